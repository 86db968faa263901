"""What a backup is on disk: a data folder like any other, with `SHA256SUMS`, written last, for `sha256sum -c`."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from edgequeues.core.dxn import Dxn, from_shard
from edgequeues.core.errors import InvalidId
from shards import files

SUMS = "SHA256SUMS"
CONTROL = "control.db"
DIGEST = re.compile(r"[0-9a-f]{64}")
PIECE_BYTES = 256 * 1024


class Kept(NamedTuple):
    """A file of a backup. bytes: how many. sha256: in hexadecimal."""

    path: Path
    bytes: int
    sha256: str


async def write(path: Path, pieces: AsyncIterator[bytes]) -> Kept:
    """Write a file that gets its name once all of it is on disk. Nothing is made before its first bytes are there."""
    digest, size = hashlib.sha256(), 0
    piece = await anext(pieces, b"")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with _new(part) as file:
            while piece:
                file.write(piece)
                digest.update(piece)
                size += len(piece)
                piece = await anext(pieces, b"")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return Kept(path, size, digest.hexdigest())


def close(folder: Path, kept: Sequence[Kept]) -> None:
    """Say that the backup is whole: it has these files."""
    lines = [f"{one.sha256}  {one.path.relative_to(folder).as_posix()}\n" for one in kept]
    for place in {one.path.parent for one in kept}:
        _sync(place)
    with _new(folder / SUMS) as file:
        file.write("".join(lines).encode())
        file.flush()
        os.fsync(file.fileno())
    _sync(folder)
    _sync(folder.parent)


def path_of(folder: Path, space: Dxn) -> Path:
    """Where the file of a space, or of its traces, lies."""
    return files.path_of(folder, space.shard)


def spaces_in(folder: Path) -> dict[Dxn, Kept]:
    """The spaces in a backup, and their traces. Raises ValueError where it is not whole, OSError."""
    sums = folder / SUMS
    if not sums.exists():
        raise ValueError(
            f"{folder} is no whole backup: {SUMS} is not there, which `edgequeues backup` writes last. A single file"
            " can be restored by its own name"
        )
    found = {}
    for line in sums.read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        path = folder / name
        if path == folder / CONTROL:
            continue
        space = _space(folder, path)
        if space is None or not DIGEST.fullmatch(digest):
            raise ValueError(f"{sums}: {line[:200]!r} is not what `edgequeues backup` writes")
        if not path.exists():
            raise ValueError(f"{path} is missing, which {SUMS} names")
        found[space] = Kept(path, path.stat().st_size, digest)
    return found


def _space(folder: Path, path: Path) -> Dxn | None:
    """Whose file it is, None if it is nobody's."""
    shard = files.decode(path.name.removesuffix(files.SUFFIX))
    if shard is None or files.path_of(folder, shard) != path:
        return None
    try:
        space, tag = from_shard(shard)
    except InvalidId:
        return None
    return Dxn(space, "", tag=tag)


def read(path: Path) -> Iterator[bytes]:
    """A file in pieces."""
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _new(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")
