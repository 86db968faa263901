"""The admin API, `/admin`: how the queues of a space are doing, what has failed in them, and mending it.

docs/protocol/admin.md is its contract.
"""

from __future__ import annotations

import sys
from functools import partial

from msgspec.structs import replace

from edgequeues.backups import Backups
from edgequeues.core import ids
from edgequeues.core.errors import InvalidRequest
from edgequeues.http import admin_codec, backups, codec, params, problems, watching
from edgequeues.http.admin_codec import BODY_BYTES_MAX, FILTERS, Order
from edgequeues.http.bulk import Bulk, Heap
from edgequeues.http.reading import patiently
from edgequeues.http.routes import Dialect, Request, Response, Route, json_body
from edgequeues.http.tenants import Space, Tenants
from edgequeues.http.waits import Waits
from edgequeues.http.watching import QUEUE
from edgequeues.http.work_codec import IDS_BYTES_MAX
from edgequeues.models_letters import LetterFilter, Replayed
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.space.workbench import Found
from edgequeues.specs import Specs

TURNS_MAX = 20  # that one list takes before it says where to go on
LIST_BYTES = 1024 * 1024  # of data and errors that one of them reads, about

LETTERS = QUEUE + "/dlq"
LETTER = LETTERS + "/{id}"


def dialect(router: Router, waits: Waits, held: Specs, kept: Backups) -> Dialect:
    """The protocol. `waits` ends what goes on for long when the server stops."""
    tenants = Tenants(router, held)
    table = [
        *watching.routes(router, tenants, waits),
        *_records(tenants),
        *_letters(tenants, waits),
        *_mending(tenants),
        *_by_the_many(tenants, waits),
    ]
    for route in table:
        route.place = tenants.place
    return Dialect("admin", ("/admin/",), [*table, *backups.routes(kept)], problems.refuse)


def _records(tenants: Tenants) -> list[Route]:
    async def results(request: Request) -> Response:
        """List what came of messages of a queue, as those who worked them said, as long as it is kept."""
        params.only(request.query, ("tenant_id", "after", "limit"))
        after, limit = params.integer(request.query, "after") or 0, admin_codec.limit(request.query)
        name = _name(request)
        space = await tenants.space(request)
        found = await space.call(SpaceShard.outcomes, name, after, limit + 1)
        resume = found[limit - 1].position if len(found) > limit else None
        return Response(
            admin_codec.page("results", [admin_codec.came_of(one) for one in found[:limit]], resume)
        )

    async def audit(request: Request) -> Response:
        """List what was done to a space, or to one of its queues, the oldest first, or the newest."""
        params.only(request.query, ("tenant_id", "queue", "after", "limit", "reverse"))
        named = params.text(request.query, "queue")
        named = None if named is None else ids.check_queue(named)
        after, limit = params.integer(request.query, "after"), admin_codec.limit(request.query)
        reverse = params.flag(request.query, "reverse")
        space = await tenants.space(request)
        found = await space.call(SpaceShard.audited, named, after, limit + 1, reverse=reverse)
        resume = found[limit - 1].audit_id if len(found) > limit else None
        return Response(admin_codec.page("audit", [admin_codec.record(one) for one in found[:limit]], resume))

    return [
        Route("GET", QUEUE + "/results", results, "read"),
        Route("GET", "/admin/audit", audit, "read"),
    ]


def _letters(tenants: Tenants, waits: Waits) -> list[Route]:
    async def letters(request: Request) -> Response:
        """List dead letters of a queue, all or those that a filter names."""
        params.only(request.query, {"tenant_id", "after", "limit", *FILTERS})
        wanted, limit = admin_codec.wanted(request.query), admin_codec.limit(request.query)
        queue_id, position = _cursor(params.text(request.query, "after"))
        name, space = _name(request), await tenants.space(request)
        heaps = [one for one in await _heaps(space, name, wanted) if one.queue >= queue_id]
        found: list[object] = []
        turns, resume = 0, None
        for number, heap in enumerate(heaps):
            after: int | None = position if heap.queue == queue_id else 0
            while after is not None and len(found) < limit and turns < TURNS_MAX:
                part = await patiently(partial(_look, space, heap, after, limit - len(found)), waits)
                found += [admin_codec.letter(*pair) for pair in part.letters]
                after, turns = part.resume, turns + 1
            if after is not None:
                resume = f"{heap.queue}.{after}"
                break
            if len(found) >= limit and number + 1 < len(heaps):
                resume = f"{heaps[number + 1].queue}.0"
                break
        return Response(admin_codec.page("dead_letters", found, resume))

    async def letter(request: Request) -> Response:
        """A dead letter with all that is known of it."""
        params.only(request.query, ("tenant_id",))
        name, letter_id = _name(request), _id(request)
        space = await tenants.space(request)
        found = await space.call(SpaceShard.inspect, name, letter_id)
        return Response(codec.encode(admin_codec.inspected(found)))

    return [Route("GET", LETTERS, letters, "read"), Route("GET", LETTER, letter, "read")]


def _mending(tenants: Tenants) -> list[Route]:
    async def replay(request: Request) -> Response:
        """Make a new message of a dead letter, as it was or edited."""
        params.only(request.query, ("tenant_id",))
        name, letter_id = _name(request), _id(request)
        data = admin_codec.edit(await json_body(request, BODY_BYTES_MAX))
        space, turn = await tenants.space(request), by(request.caller.who, SpaceShard.replay_one)
        return Response(codec.encode(admin_codec.replayed(await space.call(turn, name, letter_id, data))))

    async def delete(request: Request) -> Response:
        """Delete a dead letter."""
        params.only(request.query, ("tenant_id",))
        name, letter_id = _name(request), _id(request)
        space, turn = await tenants.space(request), by(request.caller.who, SpaceShard.delete_letter)
        await space.call(turn, name, letter_id)
        return Response(b'{"ok":true}')

    async def dry_run(request: Request) -> Response:
        """What a mapping would make of a dead letter; nothing is done."""
        params.only(request.query, ("tenant_id",))
        name, letter_id = _name(request), _id(request)
        mapping, data = admin_codec.trial(await json_body(request, BODY_BYTES_MAX))
        space = await tenants.space(request)
        found = await space.call(SpaceShard.try_letter, name, letter_id, mapping, data)
        return Response(codec.encode(admin_codec.tried(found)))

    return [
        Route("POST", LETTER + "/replay", replay, "push"),
        Route("DELETE", LETTER, delete, "delete"),
        Route("POST", LETTER + "/dry-run", dry_run, "read"),
    ]


def _by_the_many(tenants: Tenants, waits: Waits) -> list[Route]:
    async def replay(request: Request) -> Response:
        """Make new messages of many dead letters, in the order in which they were first pushed."""
        params.only(request.query, ("tenant_id",))
        name = _name(request)
        order = admin_codec.replay(await json_body(request, IDS_BYTES_MAX))
        space = await tenants.space(request)
        bulk = Bulk(space, waits, request.caller.who)
        if order.wanted is None:
            return _replayed(await _named(space, name, order, bulk))
        heaps = await _heaps(space, name, order.wanted)
        if order.preview:
            count, shown = await bulk.preview(heaps)
            letters = [admin_codec.previewed(*pair) for pair in shown]
            return Response(codec.encode({"ok": True, "count": count, "dead_letters": letters}))
        found = await bulk.replay(heaps, order.limit or sys.maxsize, order.per_second)
        return _replayed(found.results, found.totals, more=found.more)

    async def purge(request: Request) -> Response:
        """Delete many dead letters."""
        params.only(request.query, ("tenant_id",))
        name = _name(request)
        order = admin_codec.purge(await json_body(request, IDS_BYTES_MAX))
        space = await tenants.space(request)
        if order.wanted is None:
            turn = by(request.caller.who, SpaceShard.delete_letters)
            deleted = await space.call(turn, name, order.ids or [])
        else:
            heaps = await _heaps(space, name, order.wanted)
            deleted = await Bulk(space, waits, request.caller.who).purge(heaps)
        return Response(codec.encode({"ok": True, "deleted": deleted}))

    return [
        Route("POST", LETTERS + "/replay", replay, "push"),
        Route("POST", LETTERS + "/purge", purge, "delete"),
    ]


async def _heaps(space: Space, name: str, wanted: LetterFilter) -> list[Heap]:
    """Where the dead letters of a queue lie, and which of them are wanted. Raises QueueNotFound."""
    found = await space.call(SpaceShard.heaps, name)
    return [Heap(one.queue_id, replace(wanted, queue=one.source)) for one in found]


async def _look(space: Space, heap: Heap, after: int, limit: int) -> Found:
    return await space.call(SpaceShard.find_letters, heap.queue, heap.wanted, after, limit, LIST_BYTES)


async def _named(space: Space, name: str, order: Order, bulk: Bulk) -> list[Replayed]:
    """Replay letters by their ids, wherever they lie."""
    sorted_ = await space.call(SpaceShard.sort_letters, name, order.ids or [])
    results = [Replayed(one, None, "unknown") for one in sorted_.unknown]
    for queue_id, some in sorted_.by_queue.items():
        results += await bulk.replay_named(queue_id, some, order.per_second)
    return results


def _replayed(
    results: list[Replayed], totals: dict[str, int] | None = None, *, more: bool = False
) -> Response:
    counts = totals or {}
    if totals is None:
        for one in results:
            counts[one.outcome] = counts.get(one.outcome, 0) + 1
    told = [admin_codec.outcome(one) for one in results]
    return Response(codec.encode({"ok": True, "totals": counts, "more": more, "results": told}))


def _cursor(text: str | None) -> tuple[str, int]:
    """Where a list goes on: in which queue of dead letters, after which position. Raises InvalidRequest."""
    if text is None:
        return "", 0
    queue_id, _, position = text.partition(".")
    if not ids.is_ulid(queue_id) or not position.isdecimal() or len(position) > 18:
        raise InvalidRequest(f"after: {ids.shown(text)} is not what a list gave as `next`")
    return queue_id, int(position)


def _name(request: Request) -> str:
    return ids.check_queue(request.params["name"])


def _id(request: Request) -> str:
    return ids.check_object_id(request.params["id"])
