"""JSON texts out of files and pipes, each with the place it came from."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import trio

from edgequeues.client import NewEntry
from edgequeues.client.text import encode

STDIN = Path("-")
PIECE_BYTES = 256 * 1024

Place = tuple[str, int, bytes]  # file, line counted from 1, JSON text


class InputError(Exception):
    """What was given is not what was asked for; the message says where."""

    def __init__(self, where: str, line: int, why: object) -> None:
        super().__init__(f"{where}:{line}: {why}" if line else f"{where}: {why}")


def texts(files: Sequence[Path]) -> Iterator[Place]:
    """Give the JSON texts of files: a file is one text, or has one a line. Raises InputError."""
    for path in files:
        where = shown(path)
        try:
            content = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        except OSError as error:
            raise InputError(where, 0, error.strerror) from error
        if not content.strip():
            continue
        if _is_one(content):
            yield where, 1, content.strip()
        else:
            yield from ((where, number, line) for number, line in _lines(content.split(b"\n"), 1))


async def chunks_of(files: Sequence[Path]) -> AsyncGenerator[tuple[str, int, list[bytes]], None]:
    """Give the lines of files as they come: the file, the number of the first line, the lines at hand.

    Raises InputError.
    """
    for path in files:
        where = shown(path)
        number, rest = 1, b""
        try:
            fd = sys.stdin.fileno() if path == STDIN else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(where, 0, error.strerror) from error
        try:
            while piece := await trio.to_thread.run_sync(os.read, fd, PIECE_BYTES, abandon_on_cancel=True):
                *lines, rest = (rest + piece).split(b"\n")
                if lines:
                    yield where, number, lines
                    number += len(lines)
            if rest:
                yield where, number, [rest]
        except OSError as error:
            raise InputError(where, number, error.strerror) from error
        finally:
            if path != STDIN:
                os.close(fd)


def new_entry(make: Callable[[bytes], NewEntry], where: str, line: int, text: bytes) -> NewEntry:
    """Make an entry of a JSON text from some place. Raises InputError where `make` or JSON says ValueError."""
    try:
        made = make(text)
        encode(made.data)  # so that a mistake is named by its place
    except ValueError as error:
        raise InputError(where, line, error) from error
    return made


def shown(path: Path) -> str:
    """How a file is named in messages."""
    return "stdin" if path == STDIN else str(path)


def _lines(lines: Sequence[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    return ((number, line.strip()) for number, line in enumerate(lines, first) if line.strip())


def _is_one(content: bytes) -> bool:
    """Is it one JSON text? A file of one line is, whatever the line holds; the server will judge it."""
    if b"\n" not in content.strip():
        return True
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True
