"""The app, for the lane or as ASGI: admits a request, finds its route, answers; one place turns errors into problems.

What no table matches goes to another ASGI app (pages for people). Nothing here knows a dialect.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from time import perf_counter
from urllib.parse import quote, unquote

import trio

from edgequeues.core.errors import EdgeQueuesError, InvalidRequest, MethodNotAllowed, RouteNotFound
from edgequeues.core.grants import Verb
from edgequeues.http import compress, hosts, observing, params, problems
from edgequeues.http.auth import NOBODY, OWNER, Auth
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.observing import CLIENT_GONE, NOBODY_WATCHES, Served, Watchers
from edgequeues.http.problems import RequestTimeout
from edgequeues.http.routes import (
    App,
    Budget,
    ClientGone,
    Dialect,
    Head,
    Headers,
    Out,
    Place,
    Receive,
    Request,
    Response,
    Route,
    Scope,
    Send,
    Socket,
)
from edgequeues.http.table import Table
from edgequeues.http.waits import Waits

LINGER_S = 5.0  # for a client to end a body nobody wants, before the connection is closed under it
POLICY_VIOLATION = 1008  # a WebSocket close code, RFC 6455
SOCKET_REFUSED_S = 5.0  # before a WebSocket is refused: some clients come back at once, for ever

log = logging.getLogger("edgequeues.http")


class Server:
    """Serves dialects; the first one answers for every path that is no other's.

    `waits` is shared with the handlers; `end` it when the server stops. watchers: of every request, in the task
    that answers it; those over WebSockets excepted.
    """

    def __init__(
        self,
        dialects: Sequence[Dialect],
        rest: App,
        waits: Waits,
        *,
        auth: Auth,
        hosts: Hosts,
        origins: Origins,
        watchers: Watchers = NOBODY_WATCHES,
    ) -> None:
        self.waits = waits
        self.dialects = dialects
        self.rest = observing.observed(rest, watchers.observers)
        self._observers = watchers.all
        self._tracer = watchers.tracer
        self._dialects = {route: dialect.name for dialect in dialects for route in dialect.routes}
        self._table = Table(route for dialect in dialects for route in dialect.routes)
        self._auth = auth
        self._hosts = hosts
        self._origins = origins
        self._budget = Budget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI scope."""
        kind = scope["type"]
        if kind == "http":
            peer = (scope.get("client") or ("",))[0]
            head = Head(scope["method"], _raw_path(scope), scope["query_string"], scope["headers"], peer)
            if not await self.serve(head, receive, _Asgi(send)):
                await self.rest(scope, receive, send)
        elif kind == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self.rest(scope, receive, send)

    async def serve(self, head: Head, receive: Receive, out: Out) -> bool:
        """Answer one request; False: it is for `rest`, and nothing has been read or said."""
        request = Request(head.method, {}, params.EMPTY, {}, receive, self._budget)
        request.head, request.caller = head, NOBODY
        if self._tracer is None:
            return await self._serve(request, head, out)
        with self._tracer.request(head):
            return await self._serve(request, head, out)

    async def _serve(self, request: Request, head: Head, out: Out) -> bool:
        began_s, status = perf_counter(), CLIENT_GONE
        try:
            try:
                self._admit(request, head.headers)
                response = await self._answer(request, head)
            except ClientGone:
                return True
            except Exception as error:
                response = self._refusal(error, head)
            finally:
                request.release()  # not later: an answer may take long to be taken
            if response is None:
                status = 0
                return False
            status = response.status
            if type(response.body) is bytes:
                await _send_whole(request, response, response.body, out)
                return True
            try:
                await _send_stream(request, response, out)
            finally:
                request.release()  # what it read meanwhile
            return True
        finally:
            if status and self._observers:
                self._tell(request, head, status, perf_counter() - began_s)

    def _tell(self, request: Request, head: Head, status: int, seconds: float) -> None:
        route = request.route
        if route is not None:
            dialect, template = self._dialects[route], route.template
        else:
            owner = self._owner(_path(head.target))
            dialect, template = self.dialects[0].name if owner is None else owner.name, ""
        who = request.caller.who.id
        served = Served(dialect, template, observing.method(head.method), status, seconds, who)
        for observer in self._observers:
            observer(served)

    def _still_may(self, request: Request, verb: Verb, where: Place) -> None:
        """Judge a request again that takes long. Raises Unauthenticated, Forbidden."""
        self._auth.caller(request.headers, request.method).require(verb, *where(request))

    async def _answer(self, request: Request, head: Head) -> Response | None:
        """Find the route and call it; None: no dialect has this path."""
        method, path = head.method, _path(head.target)
        if not path.startswith(b"/"):
            raise InvalidRequest("the target of a request is a path, and a path begins with /")
        found = self._table.find(path)
        if found is None:
            if self._owner(path) is None:
                return None
            request.caller = self._auth.caller(request.headers, method)
            raise RouteNotFound(_shown(path)[:200])
        routes, request.params = found
        if method == "OPTIONS" and b"access-control-request-method" in request.headers:
            return Response(status=204, headers=hosts.preflight(request.headers, _methods(routes)))
        route = routes.get(method) or (routes.get("GET") if method == "HEAD" else None)
        if route is None or route.verb is not None:
            request.caller = self._auth.caller(request.headers, method)
        if route is None:
            methods = _methods(routes)
            response = self._refusal(MethodNotAllowed(f"{method} is not one of {methods}"), head)
            response.headers = [(b"allow", methods.encode())]
            return response
        request.route = route
        if route.verb is not None and request.caller is not OWNER:
            request.caller.require(route.verb, *route.place(request))
        request.query = params.parse(head.query)
        response = await route.handler(request)
        if route.verb is not None and request.caller is not OWNER:
            if route.verb == "read":  # which may have waited for an entry
                self._still_may(request, route.verb, route.place)
            response.recheck = partial(self._still_may, request, route.verb, route.place)
        return response

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request("GET", {}, params.EMPTY, {}, receive)
        socket = Socket(scope.get("subprotocols", ()), receive, send)
        try:
            self._admit(request, scope["headers"])
            # Not a GET: what is said later may change something.
            self._auth.caller(request.headers, "CONNECT")
            found = self._table.find(_path(_raw_path(scope)))
            serve = None if found is None or "GET" not in found[0] else found[0]["GET"].socket
            if serve is None:
                raise RouteNotFound
        except EdgeQueuesError as error:
            log.info("a WebSocket was refused: %s", error)
            await self.waits.pause(SOCKET_REFUSED_S)
            await socket.close(POLICY_VIOLATION)  # before it is accepted: answered 403
            return
        with suppress(ClientGone):
            await serve(socket)

    def _admit(self, request: Request, raw: Headers) -> None:
        """Take the headers in, by lower-case name. Refuses what a web page or a smuggler would send."""
        request.headers = headers = dict(raw)
        host = headers.get(b"host")
        if host is None or (len(headers) != len(raw) and sum(name == b"host" for name, _ in raw) > 1):
            raise InvalidRequest("a request carries exactly one Host header")
        self._hosts.check(host)
        origin = headers.get(b"origin")
        if origin is not None:
            request.cors = self._origins.headers(origin, host)
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise InvalidRequest("a request has either Content-Length or Transfer-Encoding, not both")

    def _owner(self, path: bytes) -> Dialect | None:
        """The dialect whose path this is, be there a route or not."""
        text = path.decode("latin-1")
        return next((one for one in self.dialects if text.startswith(one.prefixes)), None)

    def _refusal(self, error: Exception, head: Head) -> Response:
        """Say no in the words of the dialect that was spoken to."""
        problems.report(error, f"{head.method} {_shown(head.target)}")
        dialect = self._owner(_path(head.target)) or self.dialects[0]
        refusal = dialect.refuse(error)
        return Response(refusal.body, status=refusal.status, media=refusal.media, headers=refusal.headers)


class _Asgi:
    """What an answer goes to that an ASGI server sends."""

    __slots__ = ("_send",)

    def __init__(self, send: Send) -> None:
        self._send = send

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        await self.begin(status, headers)
        await self.piece(body, more=False)

    async def begin(self, status: int, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def piece(self, body: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _raw_path(scope: Scope) -> bytes:
    return scope.get("raw_path") or quote(scope["path"]).encode()


def _path(target: bytes) -> bytes:
    """The path as it was sent; of a target in absolute form (RFC 9112, 3.2.2) its path alone."""
    if target.startswith((b"http://", b"https://")):
        return b"/" + target.partition(b"://")[2].partition(b"/")[2]
    return target


def _shown(path: bytes) -> str:
    return unquote(path.decode("latin-1"))


def _methods(routes: Mapping[str, Route]) -> str:
    return ", ".join(sorted({*routes, *(["HEAD"] if "GET" in routes else [])}))


async def _send_whole(request: Request, response: Response, body: bytes, out: Out) -> None:
    headers = [*response.headers, *request.cors]
    if response.status not in (204, 304):
        headers.append((b"content-type", response.media))
        if len(body) >= compress.BYTES_MIN and response.compress:
            headers.append(compress.VARY)
            if compress.accepts(request.headers.get(b"accept-encoding", b"")):
                headers.append(compress.HEADER)
                body = await compress.whole(body)
        headers.append((b"content-length", b"%d" % len(body)))
    if request.method == "HEAD":
        body = b""
    if not request.body_is_left:
        await out.whole(response.status, headers, body)
        return
    # Closing a socket with unread input resets it, and the client might lose the answer it was sent.
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_discard, request)
        await out.begin(response.status, headers)
        await out.piece(body, more=True)
        nursery.cancel_scope.deadline = trio.current_time() + LINGER_S
    await out.piece(b"", more=False)


async def _discard(request: Request) -> None:
    with suppress(ClientGone, RequestTimeout):
        while await request.piece():
            pass


async def _send_stream(request: Request, response: Response, out: Out) -> None:
    """Send piece by piece. An error in the middle cuts the answer short, which the client can tell."""
    body = response.body
    assert not isinstance(body, bytes)
    headers = [*response.headers, *request.cors, (b"content-type", response.media)]
    if response.compress:
        headers.append(compress.VARY)
        if compress.accepts(request.headers.get(b"accept-encoding", b"")):
            headers.append(compress.HEADER)
            body = compress.stream(body)

    async def pour() -> None:
        async with aclosing(body):
            await out.begin(response.status, headers)
            if request.method != "HEAD":
                async for piece in body:
                    if response.recheck is not None:
                        response.recheck()
                    await out.piece(piece, more=True)

    try:
        if response.beside is None:
            await request.while_connected(pour)
        else:
            await _beside(response.beside, pour)
    except ClientGone:
        return
    except Exception as error:
        if problems.report(error, "a streamed answer") is not problems.INTERNAL:
            log.warning("a streamed answer was cut short: %s", error)
        return
    if request.body_is_left:
        with trio.move_on_after(LINGER_S):
            await _discard(request)
    await out.piece(b"", more=False)


async def _beside(other: Callable[[], Awaitable[None]], work: Callable[[], Awaitable[None]]) -> None:
    """Do both until both are done, or `work` raises."""
    error: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        try:
            await work()
        except Exception as raised:  # carried out by hand: the nursery would wrap it in a group
            error = raised
            nursery.cancel_scope.cancel()
    if error is not None:
        raise error
