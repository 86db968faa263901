"""What is on record of the space's own file: that it was copied, and that it was put in place."""

from __future__ import annotations

from edgequeues.space.watched import Watched
from shards.replacing import Placed


class BackupVerbs(Watched):
    """Who took the space along."""

    def backed_up(self, size: int, sha256: str) -> None:
        """Have it on record that whoever asks got a copy of the file. size: bytes."""
        self._record("backup", bytes=size, sha256=sha256)

    def restored(self, placed: Placed) -> None:
        """Have it on record that whoever asks put a copy in the place of the space, in which this is written."""
        self._record("restore", bytes=placed.bytes, sha256=placed.sha256, replaced=placed.replaced)
