"""A program on asyncio with a queue of messages for sessions in it: `python asyncio_host.py DATA`.

Each line of its input is a message: a session, a space, what is said. It is on disk once `taken in` is printed. Each
session is told its messages in order, one at a time. Stop it with Ctrl-C and start it again: what was not delivered
yet is delivered then.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from edgequeues.inbound import InboundRow
from edgequeues.sessions import AsyncioManager, open_asyncio_manager, open_local_inbox

TALKS_S = 0.2  # with a session, about one message


async def deliver(row: InboundRow) -> None:
    """Tell the session. Raise, and it is tried again later; raise `Rejected`, and it is not."""
    await asyncio.sleep(TALKS_S)
    print(f"{row['session_id']} is told: {row['content']}", flush=True)


async def take_in(manager: AsyncioManager) -> None:
    """Do what an adapter does: enqueue, and go on."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := (await lines.readline()).decode():
        session_id, _, content = line.strip().partition(" ")
        position = await manager.enqueue(session_id=session_id, origin="terminal", content=content)
        print(f"taken in: {position}", flush=True)


async def main(data: Path) -> None:
    """Serve until Ctrl-C."""
    async with open_asyncio_manager(lambda: open_local_inbox(data), deliver) as manager:
        await take_in(manager)
        await asyncio.Event().wait()  # the input is over; what came is still to be delivered


if __name__ == "__main__":
    try:
        asyncio.run(main(Path(sys.argv[1])))
    except KeyboardInterrupt:
        print("left", flush=True)
