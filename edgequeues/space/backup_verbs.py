"""What is on record of the space's own file: that it was copied."""

from __future__ import annotations

from edgequeues.space.watched import Watched


class BackupVerbs(Watched):
    """Who took the space along."""

    def backed_up(self, size: int, sha256: str) -> None:
        """Have it on record that whoever asks got a copy of the file. size: bytes."""
        self._record("backup", bytes=size, sha256=sha256)
