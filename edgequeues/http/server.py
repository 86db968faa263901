"""The ASGI app: admits a request, finds its route, answers; one place turns errors into problems.

What no table matches goes to another ASGI app (pages for people). Nothing here knows a dialect.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import quote

import trio

from edgequeues.core.errors import EdgeQueuesError, InvalidRequest, MethodNotAllowed
from edgequeues.http import compress, hosts, params, problems
from edgequeues.http.problems import ForbiddenOrigin, Misdirected, RequestTimeout
from edgequeues.http.routes import ClientGone, Headers, Receive, Request, Response, Route, Table
from edgequeues.http.waits import Waits

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LINGER_S = 5.0  # for a client to end a body nobody wants, before the connection is closed under it
HOSTS_REMEMBERED = 64

log = logging.getLogger("edgequeues.http")


class Server:
    """Serves route tables. `waits` is shared with the handlers; `end` it when the server stops."""

    def __init__(
        self, routes: Iterable[Route], rest: App, waits: Waits, *, allowed_hosts: Iterable[str] = ()
    ) -> None:
        self.waits = waits
        self._table = Table(routes)
        self._rest = rest
        self._allowed_hosts = frozenset(host.lower().encode() for host in allowed_hosts)
        self._good_hosts: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI scope."""
        kind = scope["type"]
        if kind == "http":
            await self._http(scope, receive, send)
            return
        if kind == "websocket":
            try:
                self._admit(scope["headers"])
            except EdgeQueuesError:
                await send({"type": "websocket.close", "code": 1008})  # before it is accepted: answered 403
                return
        await self._rest(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        request = Request(method, {}, params.EMPTY, {}, receive)
        try:
            request.headers = self._admit(scope["headers"])
            found = self._table.find(scope.get("raw_path") or quote(scope["path"]).encode())
            if found is None:
                response = None
            else:
                routes, request.params = found
                route = routes.get(method) or (routes.get("GET") if method == "HEAD" else None)
                if route is None:
                    response = _refused(method, routes)
                else:
                    request.query = params.parse(scope["query_string"])
                    response = await route.handler(request)
        except ClientGone:
            return
        except Exception as error:
            response = _problem(error, f"{method} {scope['path']}")
        if response is None:
            await self._rest(scope, receive, send)
        elif type(response.body) is bytes:
            await _send_whole(request, response, response.body, send)
        else:
            await _send_stream(request, response, send)

    def _admit(self, raw: Headers) -> dict[bytes, bytes]:
        """Headers by lower-case name. Refuses what a web page or a smuggler would send."""
        headers = dict(raw)
        host = headers.get(b"host")
        if host is None or (len(headers) != len(raw) and sum(name == b"host" for name, _ in raw) > 1):
            raise InvalidRequest("a request carries exactly one Host header")
        if host not in self._good_hosts:
            self._check_host(host)
        origin = headers.get(b"origin")
        if origin is not None and not hosts.is_own_origin(origin):
            raise ForbiddenOrigin(f"Origin is {_shown(origin)}")
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise InvalidRequest("a request has either Content-Length or Transfer-Encoding, not both")
        return headers

    def _check_host(self, host: bytes) -> None:
        if not hosts.names_this_machine(host) and host.lower() not in self._allowed_hosts:
            raise Misdirected(f"Host is {_shown(host)}")
        if len(self._good_hosts) < HOSTS_REMEMBERED:
            self._good_hosts.add(host)


def _shown(value: bytes) -> str:
    return repr(value[:100].decode("latin-1"))


def _refused(method: str, routes: Mapping[str, Route]) -> Response:
    allow = {*routes, *(["HEAD"] if "GET" in routes else [])}
    error = MethodNotAllowed(f"{method} is not one of {', '.join(sorted(allow))}")
    response = _problem(error, "")
    response.headers = [(b"allow", ", ".join(sorted(allow)).encode())]
    return response


def _problem(error: Exception, what: str) -> Response:
    status = problems.report(error, what).status
    headers = problems.retry_after(error)
    return Response(problems.body(error), status=status, media=problems.MEDIA, headers=headers)


async def _send_whole(request: Request, response: Response, body: bytes, send: Send) -> None:
    headers = [*response.headers]
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
    start = {"type": "http.response.start", "status": response.status, "headers": headers}
    if not request.body_is_left:
        await send(start)
        await send({"type": "http.response.body", "body": body})
        return
    # Closing a socket with unread input resets it, and the client might lose the answer it was sent.
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_discard, request)
        await send(start)
        await send({"type": "http.response.body", "body": body, "more_body": True})
        nursery.cancel_scope.deadline = trio.current_time() + LINGER_S
    await send({"type": "http.response.body", "body": b""})


async def _discard(request: Request) -> None:
    with suppress(ClientGone, RequestTimeout):
        while await request.piece():
            pass


async def _send_stream(request: Request, response: Response, send: Send) -> None:
    """Send piece by piece. An error in the middle cuts the answer short, which the client can tell."""
    body = response.body
    assert not isinstance(body, bytes)
    headers = [*response.headers, (b"content-type", response.media)]
    if response.compress:
        headers.append(compress.VARY)
        if compress.accepts(request.headers.get(b"accept-encoding", b"")):
            headers.append(compress.HEADER)
            body = compress.stream(body)

    async def pour() -> None:
        async with aclosing(body):
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            if request.method != "HEAD":
                async for piece in body:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})

    try:
        if response.beside is None:
            await request.while_connected(pour)
        else:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(response.beside)
                await pour()
    except ClientGone:
        return
    except Exception as error:
        if problems.report(error, "a streamed answer") is not problems.INTERNAL:
            log.warning("a streamed answer was cut short: %s", error)
        return
    if request.body_is_left:
        with trio.move_on_after(LINGER_S):
            await _discard(request)
    await send({"type": "http.response.body", "body": b""})
