"""The verbs of those who mend what has failed, a part of `Client`: they speak `/admin`, where times are unix seconds.

`dxn` is the queue that dead letters come from, or one in which they lie.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.client import answers, text
from edgequeues.client.http import Transport
from edgequeues.client.messages import Replayed
from edgequeues.client.wire import JSON, Call, Pairs, pairs
from edgequeues.core.dxn import parse
from edgequeues.core.errors import InvalidDxn

PAGE_RECORDS = 1_000


class Kin(Struct, frozen=True):
    """A dead letter that another descends from, or that descends from it. id: None: it is no letter any more."""

    id: str | None
    dead_letter_queue: str
    reason: str
    error: str
    attempts: int
    failed_at: int
    replayed_at: int | None
    new_message_id: str | None


class InspectedLetter(Struct, frozen=True):
    """A dead letter by its queue. raw: the data of its message, exactly as it was pushed."""

    id: str
    dead_letter_queue: str
    error: str
    attempts: int
    failed_at: int
    raw: bytes
    forerunners: list[Kin]
    descendants: list[Kin]


class Misfit(Struct, frozen=True):
    """Why a message does not fit a mapping. field: None: it is none of its queue.

    path: where the expression looks, if it only does that. found: what was there.
    """

    error: str
    field: str | None = None
    expression: str | None = None
    path: str | None = None
    found: str | None = None


class Trial(Struct, frozen=True):
    """What a mapping would make of a dead letter. command or queue: where it leads. raw: JSON of the input."""

    ok: bool
    command: str | None = None
    queue: str | None = None
    raw: bytes | None = None
    errors: list[Misfit] = []

    @property
    def input(self) -> Any:
        """The input of the command, or the message, as Python values."""
        return None if self.raw is None else json.loads(self.raw)


class Actor(Struct, frozen=True):
    """Who did something. id: of a token; else `loopback`, `anybody`, or `server`."""

    id: str
    name: str


class AuditRecord(Struct, frozen=True):
    """Something that was done to a space. queue: None: it was about the whole of it."""

    id: int
    at: int
    who: Actor
    action: str
    queue: str | None
    detail: dict[str, Any]


class AuditPage(Struct, frozen=True):
    """Records, the oldest first. next: the number to go on after; None: that were all."""

    audit: list[AuditRecord]
    next: int | None = None


class Result(Struct, frozen=True, dict=True):
    """What came of a message, as who worked it said with its ack. processed_at: unix seconds. raw: the JSON text."""

    id: str
    position: int
    processed_at: int
    raw: bytes

    @cached_property
    def data(self) -> Any:
        """It as Python values, decoded when first asked for."""
        return json.loads(self.raw)


class ResultPage(Struct, frozen=True):
    """Results by the positions of their messages. next: the position to go on after; None: that were all."""

    results: list[Result]
    next: int | None = None


class _Result(Struct):
    id: str
    position: int
    processed_at: int
    result: Raw


class _Results(Struct):
    results: list[_Result]
    next: int | None = None


class _Done(Struct):
    ok: Literal[True]


class _Letter(Struct, rename="camel"):
    original_message: Raw


class _Inspected(Struct):
    id: str
    dead_letter_queue: str
    error: str
    attempts: int
    failed_at: int
    letter: _Letter
    forerunners: list[Kin]
    descendants: list[Kin]


class _Trial(Struct):
    ok: bool
    command: str | None = None
    queue: str | None = None
    input: Raw | UnsetType = UNSET
    errors: list[Misfit] = []


class _Replayed(Struct):
    ok: Literal[True]
    new_message_id: str
    already: bool = False


class AdminVerbs:
    """What is done about dead letters one by one, and what is on record."""

    _transport: Transport

    async def inspect(self, dxn: str, letter_id: str) -> InspectedLetter:
        """A dead letter, what it was before, and what became of it. Raises Refused: `entry_not_found`."""
        path, query = _letter(dxn, letter_id)
        body = text.Text(
            answers.checked(await self._transport.send(Call("GET", path, query, repeatable=True)))
        )
        found = body.decode(_Inspected)
        return InspectedLetter(
            found.id,
            found.dead_letter_queue,
            found.error,
            found.attempts,
            found.failed_at,
            body.raw(found.letter.original_message),
            found.forerunners,
            found.descendants,
        )

    async def try_letter(
        self, dxn: str, letter_id: str, *, map_to: str | None = None, message: object = UNSET
    ) -> Trial:
        """What the mapping of the queue, or `map_to` as text, would make of a dead letter. Nothing is done.

        message: to be tried instead of its own data. Raises Refused: `invalid_request` for a mapping that is none,
        or where the queue has none; `queue_gone`.
        """
        body = _object(map_to=UNSET if map_to is None else map_to, message=message)
        path, query = _letter(dxn, letter_id, "/dry-run")
        call = Call("POST", path, query, (JSON,), body, repeatable=True)
        answer = text.Text(answers.checked(await self._transport.send(call)))
        found = answer.decode(_Trial)
        raw = None if found.input is UNSET else answer.raw(found.input)
        return Trial(found.ok, found.command, found.queue, raw, found.errors)

    async def replay_letter(self, dxn: str, letter_id: str, *, message: object = UNSET) -> Replayed:
        """Make a new message of a dead letter, of other data where that is given; once, whatever is given later.

        Raises Refused: `entry_not_found`, `queue_gone`, `invalid_message`.
        """
        path, query = _letter(dxn, letter_id, "/replay")
        call = Call("POST", path, query, (JSON,), _object(message=message), repeatable=True)
        found = answers.decoded(await self._transport.send(call), _Replayed)
        return Replayed(letter_id, found.new_message_id, "already" if found.already else "replayed")

    async def delete_letter(self, dxn: str, letter_id: str) -> None:
        """Delete a dead letter for good. Never repeated by itself. Raises Refused: `entry_not_found`."""
        path, query = _letter(dxn, letter_id)
        answers.decoded(await self._transport.send(Call("DELETE", path, query)), _Done)

    async def results(self, dxn: str, *, after: int | None = None, limit: int | None = None) -> ResultPage:
        """What came of the messages of a queue, where an ack said so, for 24 h.

        limit: 1 to 1,000. None: 100. Raises Refused: `queue_not_found`.
        """
        path, query = queue_path(dxn, "/results")
        query += pairs(after=after, limit=limit)
        body = text.Text(
            answers.checked(await self._transport.send(Call("GET", path, query, repeatable=True)))
        )
        page = body.decode(_Results)
        found = [Result(one.id, one.position, one.processed_at, body.raw(one.result)) for one in page.results]
        return ResultPage(found, page.next)

    async def iterate_results(self, dxn: str, *, after: int | None = None) -> AsyncGenerator[Result, None]:
        """Yield all of them, page by page."""
        while True:
            page = await self.results(dxn, after=after, limit=PAGE_RECORDS)
            for one in page.results:
                yield one
            after = page.next
            if after is None:
                return

    async def audit(
        self, space: str, *, queue: str | None = None, after: int | None = None, limit: int | None = None
    ) -> AuditPage:
        """What was done to a space, or to one of its queues, by id or name."""
        query = pairs(tenant_id=space, queue=queue, after=after, limit=limit)
        call = Call("GET", "/admin/audit", query, repeatable=True)
        return answers.decoded(await self._transport.send(call), AuditPage)

    async def iterate_audit(
        self, space: str, *, queue: str | None = None, after: int | None = None
    ) -> AsyncGenerator[AuditRecord, None]:
        """Yield all of it, page by page."""
        while True:
            page = await self.audit(space, queue=queue, after=after, limit=PAGE_RECORDS)
            for one in page.audit:
                yield one
            after = page.next
            if after is None:
                return


def _letter(dxn: str, letter_id: str, leaf: str = "") -> tuple[str, Pairs]:
    """The path of a letter, and the query that names its space. Raises ValueError."""
    return queue_path(dxn, f"/dlq/{quote(letter_id, safe='')}{leaf}")


def queue_path(dxn: str, leaf: str = "") -> tuple[str, Pairs]:
    """The path of a queue under /admin, and the query that names its space. Raises ValueError."""
    try:
        address = parse(dxn)
    except InvalidDxn as error:
        raise ValueError(str(error)) from None
    if address.tag != "data" or address.object is not None:
        raise ValueError(f"{dxn} is not the address of a queue of a space: only those have a workbench")
    path = f"/admin/queues/{quote(address.queue, safe='')}{leaf}"
    return path, pairs(tenant_id=address.space)


def _object(**given: object) -> bytes:
    """JSON of what is set; data that is JSON already stays byte for byte."""
    said = {name: Raw(text.encode(value)) for name, value in given.items() if value is not UNSET}
    return msgspec.json.encode(said)
