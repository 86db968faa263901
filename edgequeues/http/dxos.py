"""The DXOS edge protocol: queues of typed objects, as DXOS clients read and write them.

docs/protocol/dxos.md is its contract.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from edgequeues.core import errors, ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidId, InvalidRequest
from edgequeues.http import codec, params, problems
from edgequeues.http.codec import Form
from edgequeues.http.deleting import delete_ids, delete_range
from edgequeues.http.dxos_objects import objects, texts
from edgequeues.http.problems import Refusal, UpgradeRequired
from edgequeues.http.reading import Reading, known_tags, patiently
from edgequeues.http.routes import BODY_BYTES_MAX, Dialect, Request, Response, Route, Socket
from edgequeues.http.waits import Waits
from edgequeues.models import ENTRIES_MAX, NewEntry, RangeQuery
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard

DONE = b'{"success":true,"data":{}}'
QUEUE = "/spaces/{tag}/{space}/queue/{queue}"

SOCKET_PROTOCOLS = ("edge-ws-v1", "edge-ws-v0")
SOCKET_SILENCE_S = 60.0  # clients send a ping every 4 s
GOING_AWAY = 1001  # a WebSocket close code, RFC 6455

_SPACE = re.compile(r"B[A-Z2-7]{32}")  # B and 20 bytes in base32
# These answers are given another status than natively, since clients never try again after a 4xx.
_STATUS = {errors.CursorStore: 400, errors.RateLimited: 503}


def dialect(router: Router, waits: Waits, *, body_bytes_max: int = BODY_BYTES_MAX) -> Dialect:
    """The protocol. `waits` ends the WebSockets when the server stops."""
    table = [*_queues(router, waits, body_bytes_max), _messenger(waits)]
    return Dialect("dxos", ("/spaces/", "/ws/"), table, refuse)


def _queues(router: Router, waits: Waits, body_bytes_max: int) -> list[Route]:
    async def insert(request: Request) -> Response:
        """Append objects; all are checked before the first is written. The media type says nothing: clients err."""
        dxn = _address(request)
        entries = objects(await request.body(body_bytes_max))
        if entries:
            await _append(router, waits, dxn, entries, stranger=request.caller.stranger)
        return Response(DONE, status=201)

    async def query(request: Request) -> Response:
        """Read a range; parameters that are empty or not known say nothing. An unknown queue is empty."""
        dxn = _address(request)
        given = {name: values for name, values in request.query.items() if any(values)}
        ask = RangeQuery(
            after=params.text(given, "after"),
            before=params.text(given, "before"),
            limit=params.integer(given, "limit"),
            reverse=params.flag(given, "reverse"),
            ids=_ids(request, "objectIds"),
        )
        if ask.limit == 0 or ("objectIds" in request.query and not ask.ids):
            return Response(FORM.whole([], ask.after, ask.before))
        return await Reading(router, dxn, waits, FORM).answer(ask, known_tags(request.headers))

    async def delete(request: Request) -> Response:
        """Delete by ids, of which there may be none; or, which no client asks for, what lies between cursors."""
        dxn = _address(request)
        if "ids" in request.query:
            await delete_ids(router, dxn, _ids(request, "ids"), request.caller.who)
            return Response(DONE)
        after, before = params.text(request.query, "after"), params.text(request.query, "before")
        if after is None and before is None:
            raise InvalidRequest("ids is missing")
        await delete_range(router, waits, dxn, after, before, who=request.caller.who)
        return Response(DONE)

    return [
        Route("POST", QUEUE, insert, "append"),
        Route("GET", QUEUE + "/query", query, "read"),
        Route("DELETE", QUEUE, delete, "delete"),
    ]


def _messenger(waits: Waits) -> Route:
    """A client without this WebSocket asks for it again at once, for ever. Nothing here answers its messages."""

    async def probe(_: Request) -> Response:
        """Clients look for an authentication challenge here first. Raises UpgradeRequired."""
        raise UpgradeRequired

    async def sink(socket: Socket) -> None:
        """Keep the connection as long as the client gives signs of life."""
        await socket.accept(next((one for one in SOCKET_PROTOCOLS if one in socket.offered), None))

        async def receive() -> None:
            if await socket.receive() == "__ping__":
                await socket.send("__pong__")

        while await waits.at_most(SOCKET_SILENCE_S, receive):
            pass
        await socket.close(GOING_AWAY)

    return Route("GET", "/ws/{identity}/{device}", probe, None, socket=sink)


def refuse(error: BaseException) -> Refusal:
    """Refuse in the words of old clients (reason, errorData) and of new ones (message, data).

    New clients try again only where there is a Retry-After and no data.
    """
    said = problems.problem(error)
    body: dict[str, object] = {"success": False, "reason": said.detail, "message": said.detail}
    headers = problems.headers(error)
    body["errorData"] = {"type": said.code}
    if not said.retryable:
        body["data"] = {"type": said.code}
    status = _STATUS.get(type(error), said.status)  # type: ignore[arg-type]
    return Refusal(status, b"application/json", headers, codec.encode(body))


FORM = Form(
    b'{"success":true,"data":{"objects":[',
    texts,
    b",".join,
    lambda next_cursor, prev_cursor: b"],%b}}" % codec.cursors(next_cursor, prev_cursor),
)


def _address(request: Request) -> Dxn:
    return _dxn(request.params["tag"], request.params["space"], request.params["queue"])


@lru_cache(maxsize=4096)
def _dxn(tag: str, space: str, queue: str) -> Dxn:
    if _SPACE.fullmatch(space) is None:
        raise InvalidId(f"space id {ids.shown(space)}: not B and 32 characters of A-Z and 2-7")
    if not ids.is_ulid(queue):
        raise InvalidId(f"queue id {ids.shown(queue)}: not a ULID")
    if tag == "data":
        return Dxn(space, queue)
    if tag == "trace":
        return Dxn(space, queue, tag="trace")
    raise InvalidRequest(f"tag {ids.shown(tag)}: neither data nor trace")


def _ids(request: Request, name: str) -> tuple[str, ...]:
    """Object ids, comma-joined or the parameter repeated; as many as a URL holds."""
    values = request.query.get(name, ())
    named = tuple(dict.fromkeys(one for value in values for one in value.split(",") if one))
    for one in named:
        if not ids.is_ulid(one):
            raise InvalidId(f"{name}: {ids.shown(one)} is not a ULID")
    return named


async def _append(
    router: Router, waits: Waits, dxn: Dxn, entries: Sequence[NewEntry], *, stranger: bool
) -> None:
    """Append in turns of bounded size. If a later one fails, the same call finishes it: what is the same stays."""
    space = await router.make(dxn, stranger=stranger)
    await space.call(SpaceShard.append, dxn.queue, entries[:ENTRIES_MAX])
    for start in range(ENTRIES_MAX, len(entries), ENTRIES_MAX):
        part = entries[start : start + ENTRIES_MAX]
        await patiently(lambda: space.call(SpaceShard.append, dxn.queue, part), waits)  # noqa: B023 (awaited at once)
