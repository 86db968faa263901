"""Sessions in tmux panes: each line typed here goes to the session it names, in order, and survives a crash of this.

    python examples/sessions/tmux_host.py --data ./chats -- python3 -i

Then `maths 6 * 7` types `6 * 7` into the Python of session `maths`, which begins with its first line. Look on with
`tmux attach`. At the end of the input all that was typed is delivered before this ends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions import SessionManager, Tmux, open_local_inbox, open_manager
from edgequeues.sessions.adapters import contract, terminal


async def host(data: Path, tmux: Tmux, command: Sequence[str]) -> None:
    """Deliver lines until there are no more. Raises shards.errors.FolderLocked while another one has the folder."""

    async def deliver(row: InboundRow) -> None:
        name = await tmux.adopt(row["session_id"], command)
        if not await tmux.send(name, row["content"]):
            raise RuntimeError(f"session {name} of tmux takes no text: has its program ended?")

    async with open_local_inbox(data) as inbox, open_manager(inbox, deliver) as manager:
        while line := await trio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True):
            await take(line, manager)
        while (await manager.sessions()).sessions:  # noqa: ASYNC110 - no delivery tells that it was the last
            await trio.sleep(0.1)


async def take(line: str, manager: SessionManager) -> None:
    """Put a line on disk, and say so, or what is wrong with it."""
    session_id, _, text = line.partition(" ")
    try:
        message = terminal.message(text, session_id.strip())
        if message is None:
            raise contract.BadMessage("type a session and a text, as: maths 6 * 7")
        position = await contract.receive(terminal.ADAPTER, message, manager.enqueue)
    except contract.BadMessage as error:
        sys.stderr.write(f"{error}\n")
    else:
        sys.stdout.write(f"{message.session_id}: {position}\n")
        sys.stdout.flush()


def main() -> None:
    """Read the command line, and host sessions."""
    parser = argparse.ArgumentParser(
        description="Sessions in tmux panes, for lines of the form: session text"
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder that messages lie in")
    parser.add_argument("--socket", help="the server of tmux, as of tmux -L; the user's own if not given")
    parser.add_argument("command", nargs="+", help="the program that a session runs, and its arguments")
    given = parser.parse_args()
    trio.run(host, given.data, Tmux(socket=given.socket), given.command)


if __name__ == "__main__":
    main()
