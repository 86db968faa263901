"""The folder of a namespace: made so that it outlives a power cut, and served by one process."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shards.disk import Disk
from shards.errors import FolderLocked


def make(folder: Path, disk: Disk) -> None:
    """Make the folder so that it outlives a power cut."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        disk.sync_folder(path.parent)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`. Raises FolderLocked when another process has it."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderLocked(str(folder)) from None
        yield
    finally:
        os.close(fd)
