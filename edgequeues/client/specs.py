"""The verbs about specs and webhooks, a part of `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from msgspec import Struct

from edgequeues.client import answers
from edgequeues.client.http import Transport
from edgequeues.client.wire import JSON, Call, pairs


class QueueChange(Struct, frozen=True):
    """What a spec does to a queue: `made`, `changed`, `removed` or `same`. fields: what is other than it was."""

    queue: str
    change: str
    fields: Sequence[str] = ()


class ScheduleChange(Struct, frozen=True):
    """What a spec does to a schedule, as QueueChange. next: unix ms, when it comes then; None: never."""

    schedule: str
    change: str
    next: int | None = None


class Applied(Struct, frozen=True, omit_defaults=True):
    """What a spec did, or would do."""

    app: str
    queues: list[QueueChange]
    schedules: Sequence[ScheduleChange] = ()


class SpecInfo(Struct, frozen=True):
    """A spec that holds. applied: unix ms. blocked: why its webhooks are not served; None: they are."""

    app: str
    origin: str
    applied: int
    queues: list[str]
    webhooks: list[str]
    blocked: str | None = None
    schedules: Sequence[str] = ()


class PastCall(Struct, frozen=True):
    """What became of a call to a webhook. at: unix ms. status: 0 where its sender did not wait for one."""

    at: int
    status: int
    outcome: str


class Hook(Struct, frozen=True):
    """A webhook. counts: what became of its calls since the server started, by outcome; recent: of the last 50."""

    name: str
    space: str
    app: str
    queue: str | None
    state: str
    why: str | None
    counts: dict[str, int]
    recent: list[PastCall] = []


class _Specs(Struct, frozen=True):
    specs: list[SpecInfo]


class _Hooks(Struct, frozen=True):
    hooks: list[Hook]


class SpecVerbs:
    """What is done with specs. A space may hold those of several apps."""

    _transport: Transport

    async def apply_spec(
        self, space: str, app: str, spec: bytes, *, origin: str | None = None, dry_run: bool = False
    ) -> Applied:
        """Have a spec hold in a space instead of the app's earlier one; its queues are there when this returns.

        spec: JSON, as `edgequeues spec show --json` prints it. origin: where it comes from, shown to others.
        dry_run: only say what it would do. Raises Refused: `invalid_spec`, `spec_conflict`, `hook_taken`.
        """
        query = pairs(origin=origin, dry_run=_said(dry_run))
        call = Call("PUT", _path(space, app), query=query, headers=(JSON,), body=spec, repeatable=True)
        return answers.decoded(await self._transport.send(call), Applied)

    async def remove_spec(self, space: str, app: str, *, dry_run: bool = False) -> Applied:
        """Have a spec hold no more; its queues, which must be empty, are removed.

        Raises Refused: `spec_not_found`, `spec_conflict`.
        """
        call = Call("DELETE", _path(space, app), query=pairs(dry_run=_said(dry_run)))
        return answers.decoded(await self._transport.send(call), Applied)

    async def spec(self, space: str, app: str) -> bytes:
        """The spec of an app, as JSON that `apply_spec` takes. Raises Refused: `spec_not_found`."""
        call = Call("GET", _path(space, app), repeatable=True)
        return answers.checked(await self._transport.send(call))

    async def specs(self, space: str) -> list[SpecInfo]:
        """The specs that hold in a space."""
        call = Call("GET", f"/v1/spaces/{quote(space, safe='')}/specs", repeatable=True)
        return answers.decoded(await self._transport.send(call), _Specs).specs

    async def hooks(self) -> list[Hook]:
        """All webhooks of the server, by name."""
        call = Call("GET", "/v1/hooks", repeatable=True)
        return answers.decoded(await self._transport.send(call), _Hooks).hooks


def _path(space: str, app: str) -> str:
    return f"/v1/spaces/{quote(space, safe='')}/specs/{quote(app, safe='')}"


def _said(flag: bool) -> str | None:
    return "true" if flag else None
