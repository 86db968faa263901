"""The verbs about schedules, a part of `Client`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from urllib.parse import quote

from msgspec import Struct

from edgequeues.client import answers
from edgequeues.client.http import Transport
from edgequeues.client.values import Appended
from edgequeues.client.wire import Call, pairs

PAGE_SCHEDULES = 1_000


class Schedule(Struct, frozen=True):
    """A message that is made again and again. next, last: unix ms, of what comes next and of the last that was made.

    missed: what becomes of times that passed meanwhile: `once`, `skip` or `all`. made: messages. last_error: why
    there was none the last time, or what it waits for; None: nothing is wrong.
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
    last_error: str | None = None


class _Schedules(Struct, frozen=True):
    schedules: list[Schedule]
    resume: str | None = None


class ScheduleVerbs:
    """What is done with schedules. Specs declare them."""

    _transport: Transport

    async def schedules(self, space: str) -> AsyncGenerator[Schedule, None]:
        """Yield the schedules of a space by name, page by page."""
        after: str | None = None
        while True:
            query = pairs(after=after, limit=PAGE_SCHEDULES)
            call = Call("GET", _path(space), query=query, repeatable=True)
            page = answers.decoded(await self._transport.send(call), _Schedules)
            for one in page.schedules:
                yield one
            after = page.resume
            if after is None:
                return

    async def run_schedule(self, space: str, name: str) -> Appended:
        """Make the message of a schedule now; its next time stays as it is. Never repeated by itself.

        Raises Refused: `schedule_not_found`, `invalid_message`; Unavailable: `queue_full`.
        """
        call = Call("POST", f"{_path(space)}/{quote(name, safe='')}/run")
        return answers.decoded(await self._transport.send(call), Appended)


def _path(space: str) -> str:
    return f"/v1/spaces/{quote(space, safe='')}/schedules"
