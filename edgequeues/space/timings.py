"""How long messages wait before they are first handed out, and how long those who have them take. In memory alone."""

from __future__ import annotations

from collections.abc import Sequence

from edgequeues.measures import WORK_S, Histogram
from edgequeues.space.watched import Watched
from shards.shard import Context

TIMED_MAX = 1_000  # queues of a space; beyond that, the one that was quiet for longest begins anew


class QueueTimes:
    """Of one queue. waited: until a message was first handed out. handled: until an attempt was acked or given up."""

    __slots__ = ("handled", "waited")

    def __init__(self) -> None:
        self.waited = Histogram(WORK_S)
        self.handled = Histogram(WORK_S)

    def copy(self) -> QueueTimes:
        """The same, which stays as it is now."""
        made = QueueTimes()
        made.waited.merge(self.waited)
        made.handled.merge(self.handled)
        return made


class Timings(Watched):
    """Counts what turns have done, once they have not come to nothing."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        # What `_took` was given in turns that are not yet written back.
        self._fresh: list[tuple[str, Sequence[int], Sequence[int]]] = []
        self._times: dict[str, QueueTimes] = {}  # by queue, the one that was quiet for longest first

    def write_back(self) -> None:
        """Write down what turns have changed; count what they took."""
        super().write_back()
        for queue_id, waited_ms, handled_ms in self._fresh:
            times = self._times.pop(queue_id, None) or QueueTimes()
            for one in waited_ms:
                times.waited.add(one / 1_000)
            for one in handled_ms:
                times.handled.add(one / 1_000)
            self._times[queue_id] = times
        self._fresh.clear()
        while len(self._times) > TIMED_MAX:
            del self._times[next(iter(self._times))]

    def forget(self) -> None:
        """Read all rows afresh from now on. What took its time in turns that were undone did not."""
        super().forget()
        self._fresh.clear()

    def delete_all(self) -> None:
        """Delete everything; nothing has taken any time yet."""
        super().delete_all()
        self._times.clear()

    def _took(self, queue_id: str, waited_ms: Sequence[int], handled_ms: Sequence[int]) -> None:
        """Count how long messages of a queue waited, and how long attempts took."""
        if waited_ms or handled_ms:
            self._fresh.append((queue_id, waited_ms, handled_ms))
