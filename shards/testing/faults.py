"""What goes wrong with a simulated disk: armed by a test at any time, asked by the disk at every step."""

from __future__ import annotations

import errno
import os
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

Step = Literal["read", "write", "sync"]


class Faults:
    """Armed faults, each good for one step, and the room left. A pattern is a glob for the file's name."""

    def __init__(self) -> None:
        self._armed: list[tuple[Step, str]] = []
        self._free: int | None = None  # bytes; None: no limit

    # -- for tests --------------------------------------------------------------------------------------

    def fail_sync(self, count: int = 1, pattern: str = "*-wal") -> None:
        """Let the next `count` syncs of matching files or folders raise EIO, each once, as the kernel does.

        What they covered stays readable, but no later sync makes it durable, although it says ok.
        """
        self._armed += [("sync", pattern)] * count

    def fail_write(self, count: int = 1, pattern: str = "*") -> None:
        """Let SQLite's next `count` writes to matching files raise SQLITE_IOERR; nothing is written."""
        self._armed += [("write", pattern)] * count

    def fail_read(self, count: int = 1, pattern: str = "*") -> None:
        """Let SQLite's next `count` reads of matching files raise SQLITE_IOERR."""
        self._armed += [("read", pattern)] * count

    def fill(self, free_bytes: int = 0) -> None:
        """Leave room for `free_bytes`; a write that needs more writes what fits, and fails (ENOSPC, FULL).

        Room is what files grow by, to the byte; deleting and truncating give it back at once. Overwriting
        needs none. SQLite's -shm files are not counted.
        """
        self._free = free_bytes

    def free(self, more_bytes: int | None = None) -> None:
        """Make room for `more_bytes` more; None ends the limit."""
        self._free = None if more_bytes is None or self._free is None else self._free + more_bytes

    @property
    def free_bytes(self) -> int | None:
        """Room left in bytes, None if there is no limit."""
        return self._free

    # -- for the disk -----------------------------------------------------------------------------------

    def strikes(self, step: Step, path: Path) -> bool:
        """Does an armed fault hit this step? It is used up by that."""
        for fault in self._armed:
            if fault[0] == step and fnmatch(path.name, fault[1]):
                self._armed.remove(fault)
                return True
        return False

    def take_room(self, wanted: int) -> int:
        """Use up to `wanted` bytes of room, return how many there were; a negative number gives room back."""
        if self._free is None:
            return wanted
        granted = min(wanted, self._free)
        self._free -= granted
        return granted


def os_error(code: int, path: Path) -> OSError:
    """Return the error the kernel would report."""
    return OSError(code, os.strerror(code), str(path))


def no_room(path: Path) -> OSError:
    """Return ENOSPC for `path`."""
    return os_error(errno.ENOSPC, path)
