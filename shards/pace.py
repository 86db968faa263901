"""Whether a flush may be done on the event loop: where one shard alone is at work, and the disk is quick.

There it saves the way to a worker thread and back, which costs as much as the flush. Where several shards are at
work their flushes overlap in threads, and a slow one must stop nobody else; measured in
docs/adr/0002-group-commit-and-the-flush.md.
"""

from __future__ import annotations

QUICK_S = 0.0005
IN_A_ROW = 16


class Pace:
    """What the last flushes of a namespace were like. quick_s: what a quick one takes at most."""

    def __init__(self, quick_s: float = QUICK_S) -> None:
        self._quick_s = quick_s
        self._name = ""
        self._row = 0  # quick flushes of this shard, without any other in between

    def is_quick(self, name: str) -> bool:
        """Was the shard alone for a while, and none of its flushes slow?"""
        return self._row >= IN_A_ROW and self._name == name

    def note(self, name: str, took_s: float) -> None:
        """A flush of shard `name` took so long, without the way to a thread."""
        alone = name == self._name
        self._name = name
        self._row = self._row + 1 if alone and took_s <= self._quick_s else 0
