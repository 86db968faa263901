"""Values that the verbs about specs and webhooks take and give."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from edgequeues.models import NewEntry

Change = Literal["made", "changed", "removed", "same"]
MessageState = Literal["queued", "dead", "replayed", "processed", "finished"]


class Arriving(Struct, frozen=True):
    """A message from outside that may have come before: if a message of any of these keys did.

    keys: unique in the queue that it goes to. fault: why it is to be a dead letter at once.
    """

    entry: NewEntry
    keys: tuple[str, ...] = ()
    fault: str | None = None


class Taken(Struct, frozen=True):
    """What became of a message from outside.

    id: of the message; "" where it was filtered. outcome: `queued`; `dead`: not of the queue's type, see `error`;
    `filtered`; `duplicate`: it came before. state, then: `queued` and unfinished, `dead`, `replayed` as another
    message, `processed` with `result` (JSON), or `finished`, and no result was kept.
    position: of its entry, where this made one in the queue.
    """

    id: str
    outcome: Literal["queued", "dead", "filtered", "duplicate"]
    state: MessageState | None = None
    result: str | None = None
    error: str | None = None
    position: int | None = None


class QueueChange(Struct, frozen=True):
    """What a spec does to a queue. fields: what is other than it was, as `retention.max_depth`."""

    queue: str
    change: Change
    fields: list[str] = []


class ScheduleChange(Struct, frozen=True):
    """What a spec does to a schedule. next: unix ms, when it comes then; None: never."""

    schedule: str
    change: Change
    next: int | None = None


class ScheduleInfo(Struct, frozen=True):
    """A schedule as listed. next, last: unix ms, of what comes next, and of the last for which there was a message.

    last_error: why there was none the last time, or what it waits for; None: nothing is wrong.
    """

    name: str
    app: str
    queue: str
    cron: str
    timezone: str
    missed: str
    next: int | None
    last: int | None
    made: int
    last_error: str | None


class ScheduleList(Struct, frozen=True):
    """Schedules by name. resume: not None when there are more: pass it as `after`."""

    schedules: list[ScheduleInfo]
    resume: str | None


class Applied(Struct, frozen=True):
    """What a spec did, or would do. gone: ids of the queues that it has no more, to be removed."""

    app: str
    queues: list[QueueChange]
    gone: list[str] = []
    schedules: list[ScheduleChange] = []
