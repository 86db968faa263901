"""The verbs of those who mend what has failed, a part of `Client`: they speak `/admin`, where times are unix seconds.

`dxn` is the queue that dead letters come from, or one in which they lie.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
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
    try:
        address = parse(dxn)
    except InvalidDxn as error:
        raise ValueError(str(error)) from None
    if address.tag != "data" or address.object is not None:
        raise ValueError(f"{dxn} is not the address of a queue of a space: only those have a workbench")
    path = f"/admin/queues/{quote(address.queue, safe='')}/dlq/{quote(letter_id, safe='')}{leaf}"
    return path, pairs(tenant_id=address.space)


def _object(**given: object) -> bytes:
    """JSON of what is set; data that is JSON already stays byte for byte."""
    said = {name: Raw(text.encode(value)) for name, value in given.items() if value is not UNSET}
    return msgspec.json.encode(said)
