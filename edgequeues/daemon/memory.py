"""Which events were handled of late, so that one that comes again is acknowledged and not handled again.

Only successes are remembered, only while the process lives, and only the latest.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T")


class Memory(Generic[T]):
    """The last `size` events that were handled, each with what is still to be said of it.

    An ack may be lost together with the reply that was to leave with it. So what was to be said is kept until it is
    known to have been heard, and is said again when the event comes again.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._last: OrderedDict[str, T | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def __contains__(self, event: str) -> bool:
        return event in self._last

    def remember(self, event: str, unsaid: T | None) -> None:
        """The event was handled; the one that was met longest ago is forgotten, where there are too many."""
        self._last[event] = unsaid
        self._last.move_to_end(event)
        while len(self._last) > self._size:
            self._last.popitem(last=False)

    def unsaid(self, event: str) -> T | None:
        """What is still to be said of an event that was handled."""
        self._last.move_to_end(event)
        return self._last[event]

    def heard(self, event: str) -> None:
        """What was to be said of the event is known to have arrived."""
        if event in self._last:
            self._last[event] = None
