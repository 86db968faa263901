"""What is on record of the space's own file: that it was copied, and that it was put in place."""

from __future__ import annotations

from edgequeues.space.watched import Watched


class BackupVerbs(Watched):
    """Who took the space along."""

    def backed_up(self, size: int, sha256: str) -> None:
        """Have it on record that whoever asks got a copy of the file. size: bytes."""
        self._record("backup", bytes=size, sha256=sha256)

    def restored(self, size: int, sha256: str, *, replaced: bool) -> None:
        """Have it on record that whoever asks put a copy in the place of the space, in which this is written now."""
        self._record("restore", bytes=size, sha256=sha256, replaced=replaced)
