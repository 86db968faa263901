"""A program with a manager of sessions over a folder, until it is killed or asked to end.

`python -m tests.e2e.session_manager DATA LASTS_S`: each line of its input is a message as JSON, to be taken in. Each
line of its output is a JSON object: `did` is `open`; `in`, with the source of a message that was taken in; `begin`
and `end` of each delivery; `left`, when it was asked to end by SIGTERM.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions import SessionManager, open_local_inbox, open_manager


def tell(did: str, **more: object) -> None:
    print(json.dumps({"did": did, **more}), flush=True)


async def take_in(manager: SessionManager) -> None:
    rest = b""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as source:
        async for piece in source:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                message = json.loads(line)
                await manager.enqueue(**message, origin="test")
                tell("in", source=message["source_message_id"])


async def main(data: Path, lasts_s: float) -> None:
    async def deliver(row: InboundRow) -> None:
        told = {"id": row["id"], "session": row["session_id"], "source": row["source_message_id"]}
        tell("begin", **told, failures=row["attempt_count"])
        await trio.sleep(lasts_s)
        tell("end", **told)

    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with (
            open_local_inbox(data) as inbox,
            open_manager(inbox, deliver) as manager,
            trio.open_nursery() as tasks,
        ):
            tell("open")
            tasks.start_soon(take_in, manager)
            async for _ in signals:
                break
            tasks.cancel_scope.cancel()
    tell("left")


if __name__ == "__main__":
    trio.run(main, Path(sys.argv[1]), float(sys.argv[2]))
