"""What can go wrong with a shard. One class per remedy; the docstring of a leaf is its message, remedy last."""

from __future__ import annotations

from typing import ClassVar


class ShardError(Exception):
    """Root of every error the runtime raises itself. A verb's own exceptions pass through untouched."""

    retryable: ClassVar[bool] = False  # may the same call succeed later, unchanged?

    def __init__(self, detail: str = "") -> None:
        remedy = " ".join((type(self).__doc__ or "").split())
        super().__init__(f"{detail}: {remedy}" if detail else remedy)
        self.detail = detail


class Overloaded(ShardError):
    """More is asked at once than is taken on: too many calls wait. Nothing was done; retry after a pause."""

    retryable = True


class ShardBroken(ShardError):
    """The disk refused a commit or its flush, so the outcome is unknown. Read before you repeat the call."""

    retryable = True


class DiskFull(ShardError):
    """The disk is full, nothing was written. Free some room (deletes still work), then retry."""

    retryable = True


class ShardBusy(ShardError):
    """Another program holds a lock on the file; nothing was done. Close that program, or retry after a pause."""

    retryable = True


class ShardClosed(ShardError):
    """The namespace is shutting down and takes no new calls. Retry against the next process."""

    retryable = True


class Moved(ShardError):
    """Another owner has taken this shard over; nothing of this call was kept. Retry, it finds the new owner."""

    retryable = True


class Fenced(ShardError):
    """The journal refused a record because a newer claim exists. The shard steps down; callers see `Moved`."""


class NeedsRepair(ShardError):
    """A flush of this file failed earlier, so its last commits may have a hole. Run the repair, then retry."""


class UnusableFile(ShardError):
    """The file is damaged, not SQLite, or not one of ours. Restore it from a copy, or move it away."""


class NotACopy(ShardError):
    """That is no whole and sound copy, and nothing was changed. Send one that is."""


class ShardExists(ShardError):
    """It exists already, and nothing was changed. Say that it is to be replaced, or choose another name."""


class SchemaTooNew(ShardError):
    """The file was written by a newer version. Start that version, or restore a copy made before the upgrade."""


class FolderLocked(ShardError):
    """Another process already serves this folder. Stop it first, or choose another folder."""


class InvalidName(ShardError):
    """A shard name is 1 to 128 letters, digits, dots, dashes, underscores or tildes, the first a letter or digit."""


class TurnRefused(ShardError):
    """A verb must be a plain function: a coroutine or generator would let other calls in between. Write `def`."""


class UnsupportedSQLite(ShardError):
    """This SQLite has the WAL-reset bug (needs 3.51.3 or newer, but not 3.52.0). Install a newer apsw."""
