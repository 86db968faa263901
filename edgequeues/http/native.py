"""The native protocol, `/v1`: everything, addressed by DXN. docs/protocol/native.md is its contract."""

from __future__ import annotations

from collections.abc import Sequence

from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidRequest
from edgequeues.http import (
    codec,
    entities,
    envelope,
    nodes,
    params,
    problems,
    schedules,
    searching,
    sessions,
    specs,
    turns,
    work,
    work_codec,
)
from edgequeues.http.deleting import delete_ids, delete_range
from edgequeues.http.intake import Intake
from edgequeues.http.reading import Reading, known_tags, to_its_end
from edgequeues.http.routes import BODY_BYTES_MAX, Dialect, Request, Response, Route, json_body, media
from edgequeues.http.waits import Waits
from edgequeues.models import ENTRIES_MAX, AppendAnswer, NewEntry, QueueConfig, RangeQuery
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.specs import Specs
from edgequeues.tracing import marked
from shards.namespace import Ref

CONFIG_BYTES_MAX = 64 * 1024
LIMIT_MAX = 1_000_000
WAIT_S_MAX = 60

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENTS = b"text/event-stream"

_RANGE = frozenset(("after", "before", "limit", "reverse", "type", "since", "until", "id", "wait"))


def dialect(router: Router, waits: Waits, held: Specs, *, body_bytes_max: int = BODY_BYTES_MAX) -> Dialect:
    """The protocol. `waits` ends the long polls and subscriptions when the server stops."""
    table = [
        *_writing(router, waits, body_bytes_max),
        *_reading(router, waits),
        *_settings(router, waits),
        *work.routes(router, waits, body_bytes_max),
        *searching.routes(router, waits),
        *sessions.routes(router, waits, body_bytes_max),
        *nodes.routes(router, waits),
        *specs.routes(held),
        *schedules.routes(router),
        *entities.routes(router),
    ]
    return Dialect("native", ("/v1/",), table, problems.refuse)


def _writing(router: Router, waits: Waits, body_bytes_max: int) -> list[Route]:
    async def append(request: Request) -> Response:
        """Append a list of entries in one turn, or a stream of them in many."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("actor",))
        actor = params.text(request.query, "actor")
        if actor is not None:
            ids.check_actor(actor)
        if media(request, JSON, NDJSON) == NDJSON:
            space = await router.make(dxn, stranger=request.caller.stranger)
            return _taken_in(request, space, dxn.queue, actor)
        entries = envelope.entries(await request.body(body_bytes_max))
        space = await router.make(dxn, stranger=request.caller.stranger)
        return Response(codec.encode(await space.call(SpaceShard.append, dxn.queue, marked(entries), actor)))

    async def delete(request: Request) -> Response:
        """An object, objects by id, or a range; what is not there counts 0."""
        dxn = codec.address(request.params["dxn"])
        if dxn.object is not None:
            params.only(request.query, ())
            return Response(codec.deleted(await delete_ids(router, dxn, (dxn.object,), request.caller.who)))
        params.only(request.query, ("id", "after", "before", "through"))
        named = params.many(request.query, "id", count_max=ENTRIES_MAX)
        cursors = [params.text(request.query, name) for name in ("after", "before", "through")]
        if bool(named) == any(cursors):
            raise InvalidRequest("give either id, or some of after, before and through")
        if named:
            return Response(
                codec.deleted(
                    await delete_ids(
                        router, dxn, [ids.check_object_id(one) for one in named], request.caller.who
                    )
                )
            )
        return Response(
            codec.deleted(await delete_range(router, waits, dxn, *cursors, who=request.caller.who))
        )

    return [Route("POST", "/v1/{dxn}", append, "append"), Route("DELETE", "/v1/{dxn}", delete, "delete")]


def _reading(router: Router, waits: Waits) -> list[Route]:
    async def read(request: Request) -> Response:
        """One object, or a range: in one piece if it fits a page, else streamed."""
        dxn = codec.address(request.params["dxn"])
        if dxn.object is not None:
            params.only(request.query, ())
            return await _object(router, dxn, dxn.object)
        params.only(request.query, _RANGE)
        ask = _range(request.query)
        wait_s = params.seconds(request.query, "wait", high=WAIT_S_MAX)
        reading, known = Reading(router, dxn, waits), known_tags(request.headers)
        if wait_s > 0:
            return await request.while_connected(lambda: reading.answer(ask, known, wait_s=wait_s))
        return await reading.answer(ask, known)

    async def subscribe(request: Request) -> Response:
        """Entries as events, from a cursor on, for as long as the client listens."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ("after", "type"))
        after, type_name = params.text(request.query, "after"), params.text(request.query, "type")
        if type_name is not None:
            ids.check_type(type_name)
        last = request.headers.get(b"last-event-id")
        reading = Reading(router, dxn, waits)
        if last:
            after = last.decode("latin-1")
        elif after == "tail":
            after = await reading.tail()
        ask = RangeQuery(after=after, type=type_name)
        events = reading.events(await reading.look(ask), ask)
        return Response(events, media=EVENTS, headers=[(b"cache-control", b"no-store")], compress=False)

    return [
        Route("GET", "/v1/{dxn}", read, "read"),
        Route("GET", "/v1/{dxn}/subscribe", subscribe, "read"),
    ]


def _settings(router: Router, waits: Waits) -> list[Route]:
    async def existing(request: Request) -> tuple[Dxn, Ref[SpaceShard]]:
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ())
        return dxn, await router.require(dxn)

    async def get_config(request: Request) -> Response:
        """Return the settings."""
        dxn, space = await existing(request)
        return _config((await space.call(SpaceShard.stats, dxn.queue)).config)

    async def put_config(request: Request) -> Response:
        """Replace the settings, or make the queue with them; those of its consumer too, where they are named."""
        dxn = codec.queue(request.params["dxn"])
        params.only(request.query, ())
        config, rules = work_codec.queue(await json_body(request, CONFIG_BYTES_MAX))
        space = await router.make(dxn, stranger=request.caller.stranger)
        if rules is not None:
            return _config(
                (
                    await space.call(by(request.caller.who, SpaceShard.provision), dxn.queue, config, rules)
                ).config
            )
        return _config(
            (await space.call(by(request.caller.who, SpaceShard.configure), dxn.queue, config)).config
        )

    async def patch_config(request: Request) -> Response:
        """Change the settings that are named."""
        changes = codec.config_changes(await json_body(request, CONFIG_BYTES_MAX))
        dxn, space = await existing(request)
        return _config(
            (await space.call(by(request.caller.who, SpaceShard.reconfigure), dxn.queue, changes)).config
        )

    async def delete_config(request: Request) -> Response:
        """Remove the queue with all it holds."""
        dxn, space = await existing(request)
        await to_its_end(lambda: space.call(by(request.caller.who, SpaceShard.remove), dxn.queue), waits)
        return Response(b"{}")

    async def stats(request: Request) -> Response:
        """Return the settings, the counts and the tail."""
        dxn, space = await existing(request)
        info, consumers = await space.call(turns.count, dxn.queue)
        return Response(codec.encode(codec.stats(info, dxn.space, dxn.tag, consumers)))

    return [
        Route("GET", "/v1/{dxn}/config", get_config, "read"),
        Route("PUT", "/v1/{dxn}/config", put_config, "configure"),
        Route("PATCH", "/v1/{dxn}/config", patch_config, "configure"),
        Route("DELETE", "/v1/{dxn}/config", delete_config, "configure"),
        Route("GET", "/v1/{dxn}/stats", stats, "read"),
    ]


def _taken_in(request: Request, space: Ref[SpaceShard], queue: str, actor: str | None) -> Response:
    async def append(entries: Sequence[NewEntry]) -> AppendAnswer:
        return await space.call(SpaceShard.append, queue, marked(entries), actor)

    intake = Intake(request, append)
    return Response(intake.answers(), media=NDJSON.encode(), beside=intake.run, compress=False)


def _range(query: params.Query) -> RangeQuery:
    type_name = params.text(query, "type")
    if type_name is not None:
        ids.check_type(type_name)
    return RangeQuery(
        after=params.text(query, "after"),
        before=params.text(query, "before"),
        limit=params.integer(query, "limit", low=1, high=LIMIT_MAX),
        reverse=params.flag(query, "reverse"),
        type=type_name,
        since_ms=params.integer(query, "since"),
        until_ms=params.integer(query, "until"),
        ids=tuple(ids.check_object_id(one) for one in params.many(query, "id", count_max=ENTRIES_MAX)),
    )


async def _object(router: Router, dxn: Dxn, object_id: str) -> Response:
    space = await router.require(dxn)
    return Response(codec.entry(await space.call(SpaceShard.get, dxn.queue, object_id)))


def _config(config: QueueConfig) -> Response:
    return Response(codec.encode(config))
