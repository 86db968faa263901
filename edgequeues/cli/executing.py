"""A command for each message: data on stdin, facts in the environment, the exit code decides."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

import trio

from edgequeues.cli.render import clean
from edgequeues.client import GiveUp, Message, TryAgain

SHELL = "/bin/sh"
STDERR = 2
DATA_ERROR = 65  # EX_DATAERR of sysexits.h: the message itself is wrong
KILL_S = 5.0  # between SIGTERM and SIGKILL
LOOK_S = 0.05
DRAIN_S = 1.0  # for what is left in the pipe when a command has ended, but a child of it holds the pipe open
PIECE_BYTES = 64 * 1024
LINE_BYTES_MAX = 16 * 1024  # of the line that becomes the error
PLAIN_WORD = re.compile(r"[A-Za-z0-9_./][\w./+-]*", re.ASCII)
FACTS = ("ID", "LEASE", "ATTEMPTS", "POSITION", "PRIORITY", "CREATED", "KEY", "TYPE", "HEADERS")


class Commands:
    """Handles messages by running one shell command for each. Call it; it raises TryAgain and GiveUp.

    environment: of the command, beside the facts of the message.
    """

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self.text = text
        self._environment = environment

    async def __call__(self, message: Message) -> None:
        """Run the command for a message; cancelled, it is ended with all that it started."""
        process = await trio.lowlevel.open_process(
            [SHELL, "-c", self.text],
            stdin=subprocess.PIPE,
            stdout=STDERR,  # our stdout is for what became of the messages
            stderr=subprocess.PIPE,
            env={**self._environment, **facts(message)},
            start_new_session=True,  # so that Ctrl-C is for us alone, and a signal reaches all its children
        )
        said = LastLine()
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, process, message.raw)
                nursery.start_soon(_listen, process, said)
                await process.wait()
                nursery.cancel_scope.deadline = trio.current_time() + DRAIN_S
        finally:
            await _end(process)
        if process.returncode:
            error = said.text() or _ending(process.returncode)
            raise GiveUp(error) if process.returncode == DATA_ERROR else TryAgain(error)


class LastLine:
    """Passes on what a command says on stderr, and keeps its last line that is not blank."""

    def __init__(self) -> None:
        self._line = b""
        self._last = b""

    def feed(self, piece: bytes | bytearray) -> None:
        """Take the next bytes."""
        *lines, rest = (self._line + bytes(piece)).split(b"\n")
        self._line = rest[-LINE_BYTES_MAX:]
        self._last = next((line for line in reversed(lines) if line.strip()), self._last)

    def text(self) -> str:
        """The line, without what a terminal would obey."""
        line = self._line if self._line.strip() else self._last
        return clean(line[-LINE_BYTES_MAX:].decode(errors="replace").strip())


def facts(message: Message) -> dict[str, str]:
    """What the environment says of a message; what it has not is not set."""
    given = {
        "ID": message.id,
        "LEASE": message.lease,
        "ATTEMPTS": str(message.attempts),
        "POSITION": str(message.position),
        "PRIORITY": str(message.priority),
        "CREATED": str(message.created),
        "KEY": message.key,
        "TYPE": message.type,
        "HEADERS": None if message.headers is None else json.dumps(message.headers, separators=(",", ":")),
    }
    return {f"EDGEQUEUES_{name}": value for name, value in given.items() if value is not None}


def surroundings(**said: str | None) -> dict[str, str]:
    """The environment of commands: our own, without facts of other messages, and with what is said here."""
    names = {f"EDGEQUEUES_{name}" for name in FACTS}
    inherited = {name: value for name, value in os.environ.items() if name not in names}
    return inherited | {f"EDGEQUEUES_{name}": value for name, value in said.items() if value is not None}


def missing(text: str) -> str | None:
    """The program that a command begins with, if there is no such program. None: there is, or it is hard to say."""
    with suppress(ValueError):
        first = next(iter(shlex.split(text)), "")
        if PLAIN_WORD.fullmatch(first):
            found = subprocess.run(
                [SHELL, "-c", 'command -v "$1" >/dev/null 2>&1', SHELL, first], check=False
            )
            return first if found.returncode else None
    return None


async def _feed(process: trio.Process, data: bytes) -> None:
    """Write the data; a command need not read it."""
    assert process.stdin is not None
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async with process.stdin:
            await process.stdin.send_all(data)


async def _listen(process: trio.Process, said: LastLine) -> None:
    assert process.stderr is not None
    async with process.stderr:
        while piece := await process.stderr.receive_some(PIECE_BYTES):
            said.feed(piece)
            with suppress(OSError):  # nobody listens there any more, which is no fault of the message
                sys.stderr.buffer.write(piece)
                sys.stderr.buffer.flush()


async def _end(process: trio.Process) -> None:
    """End a command that still runs, and what it started."""
    if process.returncode is not None:
        return
    with trio.CancelScope(shield=True):
        _signal(process, signal.SIGTERM)
        with trio.move_on_after(KILL_S) as patience:
            await process.wait()
            await _group_ends(process)
        if patience.cancelled_caught:
            _signal(process, signal.SIGKILL)
            await process.wait()


async def _group_ends(process: trio.Process) -> None:
    while True:
        if not _signal(process, 0):
            return
        await trio.sleep(LOOK_S)


def _signal(process: trio.Process, signum: int) -> bool:
    """Send a signal to a command and all it started; return whether anything of it is left."""
    try:
        os.killpg(process.pid, signum)
    except ProcessLookupError:
        return False
    return True


def _ending(returncode: int) -> str:
    if returncode > 0:
        return f"exit code {returncode}"
    with suppress(ValueError):
        return f"ended by {signal.Signals(-returncode).name}"
    return f"ended by signal {-returncode}"
