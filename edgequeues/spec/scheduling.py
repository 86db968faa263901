"""What a schedule says: when it is due, for which of the times that have passed, and with which message."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import msgspec

from edgequeues.core import cron, jsontext
from edgequeues.core.errors import InvalidMessage
from edgequeues.core.expressions import Env
from edgequeues.models import ENTRY_BYTES_MAX
from edgequeues.spec.ir import ScheduleSpec
from edgequeues.spec.mapping import Field

LATE_MS = 60_000  # a time that is not older is no missed one
ALL_MS = 7 * 86_400_000  # how far back `all` makes up for what was missed


class Times(NamedTuple):
    """due: for which a message is to be made; None: for none. next: after that; None: there is none."""

    due: int | None
    next: int | None


class Timer:
    """A schedule, compiled; times are unix ms. What is asked of them raises CronFault where the zone is not known."""

    def __init__(self, spec: ScheduleSpec) -> None:
        self.spec = spec
        self._fields = [Field(name, expr, None) for name, expr in spec.message.items()]

    def next_after(self, at: int) -> int | None:
        """The first time after `at`."""
        return cron.next_after(self.spec.cron, self.spec.timezone, at)

    def times(self, first: int, at: int) -> Times:
        """Which of the times from `first` to `at` counts, as the schedule has it of missed ones."""
        due = first
        if self.spec.missed == "all" and at - first > ALL_MS:
            oldest = self.next_after(at - ALL_MS)
            due = oldest if oldest is not None and oldest <= at else self._latest(first, at)
        elif self.spec.missed != "all":
            due = self._latest(first, at)
        is_missed = self.spec.missed == "skip" and at - due > LATE_MS
        return Times(None if is_missed else due, self.next_after(due))

    def _latest(self, first: int, at: int) -> int:
        return cron.latest(self.spec.cron, self.spec.timezone, first, at)

    def message(self, due: int) -> str:
        """The JSON of the message for a time. Raises InvalidMessage."""
        env = Env({}, due // 1_000)
        data = jsontext.write({one.name: one(env) for one in self._fields})
        if len(data) > ENTRY_BYTES_MAX:
            raise InvalidMessage(f"the message has {len(data)} bytes, at most {ENTRY_BYTES_MAX} are taken")
        return data.decode()


@lru_cache(maxsize=1_024)
def of_spec(text: str) -> Timer:
    """The schedule of a row. text: JSON of a ScheduleSpec."""
    return Timer(msgspec.json.decode(text, type=ScheduleSpec))


def same_times(old: str, new: str) -> bool:
    """Do two schedules come at the same times?"""
    before, after = of_spec(old).spec, of_spec(new).spec
    return (before.cron, before.timezone) == (after.cron, after.timezone)
