"""The transport: carries a Call to the server over httpx, on trio or asyncio, and repeats it where that is safe."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

import anyio
import httpx
from msgspec import Struct

from edgequeues.client import answers
from edgequeues.client.answers import Answer
from edgequeues.client.errors import ClientError, Unavailable, Unreachable
from edgequeues.client.wire import Call
from edgequeues.core.errors import reason

T = TypeVar("T")

NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
AGAIN = (429, 503)
HEARTBEAT_S = 15.0  # the server's comment line on a silent stream of events
BEARER_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750


class Retry(Struct, frozen=True):
    """How often and how soon a call is repeated.

    attempts_max: sends in all, the first included. 1: never repeat.
    delay_first_s: pause before the second send; doubled each time up to `delay_max_s`, then cut by a random
        share of up to a half, so that many clients do not come back at once.
    retry_after_max_s: a server that asks for a longer pause than this gets none: the error is raised instead.
    """

    attempts_max: int = 4
    delay_first_s: float = 0.1
    delay_max_s: float = 5.0
    retry_after_max_s: float = 30.0

    def pause_s(self, failures: int, error: ClientError, chance: random.Random) -> float | None:
        """Return the seconds to wait after `failures` failed sends, the last with `error`. None: give up."""
        if failures >= self.attempts_max:
            return None
        delay_s = min(self.delay_first_s * 2 ** min(failures - 1, 30), self.delay_max_s)
        pause_s = delay_s * (1 - chance.random() / 2)
        asked_s = (error.retry_after_s or 0.0) if isinstance(error, Unavailable) else 0.0
        return None if asked_s > self.retry_after_max_s else max(pause_s, asked_s)


class Body(Protocol):
    """A request body made while it is sent."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Give the body from its start; called once a send."""
        ...

    def repeatable(self) -> bool:
        """May what was sent so far be sent again?"""
        ...


def random_key() -> str:
    """What the idempotency keys of one call begin with, and of no other: 128 random bits in hexadecimal."""
    return secrets.token_hex(16)


class Transport:
    """One pool of connections to one server. Close it with `aclose`."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        connections_max: int = 100,
        retry: Retry | None = None,
        chance: random.Random | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        now: Callable[[], float] = anyio.current_time,
        new_key: Callable[[], str] = random_key,
    ) -> None:
        """Raises ValueError if `base_url` is not an http or https address, or `token` not one that can be sent.

        new_key: makes what the idempotency keys of a call with `keyed` begin with. Two must never be the same.
        """
        self.retry = retry or Retry()
        self.chance = chance or random.Random()
        self.sleep = sleep
        self.now = now  # seconds that never go back
        self.new_key = new_key
        self._timeout_s = timeout_s
        headers = {"accept": "application/json"}
        if token is not None:
            headers["authorization"] = _bearer(token)
        self._http = httpx.AsyncClient(
            base_url=_address(base_url),
            headers=headers,
            limits=httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max),
            transport=transport,
        )

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def send(self, call: Call, body: Body | None = None) -> Answer:
        """Return the answer, whatever its status, but for 429 and 503 that outlasted the repeats.

        Repeats only what is safe: a call or body that says it is repeatable, and any whose request never left.
        Raises Unreachable, Unavailable.
        """

        async def once() -> Answer:
            try:
                answer = await self._send_once(call, body)
            except httpx.TransportError as fault:
                raise self._unreachable(fault) from fault
            if answer.status in AGAIN:
                raise answers.problem(answer)
            return answer

        return await self.repeated(once, body.repeatable if body else lambda: call.repeatable)

    async def repeated(self, once: Callable[[], Awaitable[T]], repeatable: Callable[[], bool]) -> T:
        """Do something that sends one request; again where that is safe, after a pause.

        repeatable: asked after each that was sent and failed. Raises what `once` raised last.
        """
        failures = 0
        while True:
            try:
                return await once()
            except (Unreachable, Unavailable) as error:
                failures += 1
                again = _never_sent(error) or repeatable()
                pause_s = self.retry.pause_s(failures, error, self.chance) if again else None
                if pause_s is None:
                    raise
            await self.sleep(pause_s)

    async def open_stream(self, call: Call, *, read_s: float = 3 * HEARTBEAT_S) -> ByteStream:
        """Open an answer whose body is read as it comes, once. read_s: seconds it may be silent.

        Raises Refused, Unavailable, ServerError, BadAnswer, Unreachable.
        """
        request = self._request(call, None, read_s=read_s)
        try:
            response = await self._http.send(request, stream=True)
            if response.status_code == 200:
                return self._stream(response)
            try:
                answer = Answer(response.status_code, response.headers, await response.aread())
            finally:
                await response.aclose()
        except httpx.TransportError as fault:
            raise self._unreachable(fault) from fault
        answers.checked(answer)
        raise AssertionError("only a 200 passes the check")

    def _stream(self, response: httpx.Response) -> ByteStream:
        return ByteStream(response, self._unreachable)

    async def _send_once(self, call: Call, body: Body | None) -> Answer:
        content = body.chunks() if body else call.body
        request = self._request(call, content, read_s=self._timeout_s + call.patience_s)
        response = await self._http.send(request)
        return Answer(response.status_code, response.headers, response.content)

    def _request(
        self, call: Call, content: bytes | AsyncIterator[bytes] | None, *, read_s: float
    ) -> httpx.Request:
        return self._http.build_request(
            call.method,
            call.path,
            params=call.query or None,
            headers=dict(call.headers),
            content=content,
            timeout=httpx.Timeout(self._timeout_s, read=read_s),
        )

    def _unreachable(self, fault: httpx.TransportError) -> Unreachable:
        sent = not isinstance(fault, NEVER_SENT)
        return Unreachable(f"no answer from {self._http.base_url}: {reason(fault)}", maybe_done=sent)


class ByteStream:
    """The bytes of an answer as they come. It closes itself when it ends, fails, or a reader is cancelled."""

    def __init__(
        self, response: httpx.Response, unreachable: Callable[[httpx.TransportError], Unreachable]
    ) -> None:
        self.headers = response.headers
        self._response = response
        self._pieces = response.aiter_raw()
        self._unreachable = unreachable

    async def receive(self) -> bytes | None:
        """Return the next bytes; None at the end. Raises Unreachable, also after too long a silence."""
        piece: bytes | None = None
        try:
            piece = await anext(self._pieces, None)
        except httpx.TransportError as fault:
            raise self._unreachable(fault) from fault
        finally:
            if piece is None:
                await self.aclose()
        return piece

    async def aclose(self) -> None:
        """Give the connection back."""
        with anyio.CancelScope(shield=True) as scope:
            scope.cancel()  # ends the innermost read of httpx, and with it every generator around that read;
            with suppress(httpx.TransportError):  # closing the outermost leaves the others to the collector
                while await anext(self._pieces, None) is not None:
                    pass
        with anyio.CancelScope(shield=True):
            await self._response.aclose()


def _never_sent(error: ClientError) -> bool:
    return isinstance(error, Unreachable) and not error.maybe_done


def _bearer(token: str) -> str:
    if not BEARER_TOKEN.fullmatch(token):  # refused here, as h11 would show it in its complaint
        raise ValueError(
            "the access token cannot be sent: it is empty, or has a space, a line break or another character that "
            "no token has"
        )
    return f"Bearer {token}"


def _address(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{base_url!r} is not a server address: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(
            f"{base_url!r} is not a server address; expected something like http://127.0.0.1:8700"
        )
    return url
