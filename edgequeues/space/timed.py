"""The time of a space, and its one alarm: the sooner of whatever is due."""

from __future__ import annotations

from edgequeues.space.rows import Rows
from shards.shard import Context

SWEEP_PAUSE_MS = 1_000  # between sweeps, so that many short lives do not mean as many turns
UNREAD = -1  # the alarm as remembered, before it was looked up


class Timed(Rows):
    """The alarm is remembered, so that what is due later costs nothing."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._alarm_ms: int | None = UNREAD

    def _pass(self) -> None:
        """Take down what time it is: what is decided by it must not be undone by an earlier one."""
        home = self._home()
        if home.stepped_back(self.now_ms):
            self._alarm_in(0)  # by this clock, what is due is due sooner
        home.note(self.now_ms)

    def _sweep_by(self, sweep_ts: int, *, urgent: bool) -> None:
        """Have the alarm go off by the store's time `sweep_ts`, or a little later where nothing is urgent."""
        pause_ms = 0 if urgent else max(sweep_ts - self._time(), SWEEP_PAUSE_MS)
        self._alarm_in(pause_ms)

    def _alarm_at(self) -> int | None:
        """Unix ms at which the alarm goes off, read once."""
        if self._alarm_ms == UNREAD:
            self._alarm_ms = self.get_alarm()
        return self._alarm_ms

    def _alarm_in(self, pause_ms: int) -> None:
        """Have the alarm go off in so many ms at the latest."""
        due_ms = self.now_ms + max(pause_ms, 0)
        alarm_ms = self._alarm_at()
        if alarm_ms is None or due_ms < alarm_ms:
            self.set_alarm(due_ms)
            self._alarm_ms = due_ms
