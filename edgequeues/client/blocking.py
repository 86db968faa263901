"""The transport of the blocking client: the same requests and repeats, and every wait holds the caller's thread up.

The verbs are coroutines that wait for their transport and for nothing else. Over one that never suspends, a coroutine
runs from its start to its end in one step, so it needs no event loop: `finish` takes that step.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator, Iterator
from typing import Any, TypeVar, cast

import httpx

from edgequeues.client.http import ByteStream, Retry, Transport, random_key

T = TypeVar("T")


def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends; return or raise what it does."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast(T, done.value)
    work.close()
    raise RuntimeError(
        "a verb of the blocking client waited for an event loop; was it given an async iterable or transport?"
    )


def items(given: AsyncIterable[T]) -> Generator[T, None, None]:
    """Give the items of an async iterable that never suspends."""
    source = aiter(given)
    try:
        while True:
            try:
                item = finish(_next(source))
            except StopAsyncIteration:
                return
            yield item
    finally:
        close = getattr(source, "aclose", None)
        if close is not None:
            finish(close())


async def _next(source: AsyncIterator[T]) -> T:
    return await anext(source)


class BlockingTransport(Transport):
    """One pool of connections to one server, for any number of threads. Close it with `finish(x.aclose())`."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        connections_max: int = 100,
        retry: Retry | None = None,
        chance: random.Random | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        new_key: Callable[[], str] = random_key,
    ) -> None:
        """As `Transport`, with a blocking transport and sleep. Raises ValueError as that does."""

        async def pause(seconds: float) -> None:
            sleep(seconds)

        super().__init__(
            base_url,
            token=token,
            timeout_s=timeout_s,
            retry=retry,
            chance=chance,
            transport=_Carrier(transport, connections_max),
            sleep=pause,
            now=time.monotonic,
            new_key=new_key,
        )

    def _stream(self, response: httpx.Response) -> ByteStream:
        return _BlockingStream(response, self._unreachable)


class _BlockingStream(ByteStream):
    """Nobody cancels a read, so closing needs no care: the connection goes, and what it brought with it."""

    async def aclose(self) -> None:
        """Close the connection."""
        await self._response.aclose()
        while (
            await anext(self._pieces, None) is not None
        ):  # httpx's generators end, rather than being collected
            pass


class _Carrier(httpx.AsyncBaseTransport):
    """Carries requests of httpx's async client over its blocking one, which heeds the proxies of the environment."""

    def __init__(self, transport: httpx.BaseTransport | None, connections_max: int) -> None:
        limits = httpx.Limits(max_connections=connections_max, max_keepalive_connections=connections_max)
        self._http = httpx.Client(limits=limits, transport=transport)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        blocking = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=_Sent(cast(httpx.AsyncByteStream, request.stream)),
            extensions=request.extensions,
        )
        answer = self._http.send(blocking, stream=True)
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=_Received(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        self._http.close()


class _Sent(httpx.SyncByteStream):
    """The body of a request, as a blocking stream."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        return items(self._stream)


class _Received(httpx.AsyncByteStream):
    """The body of an answer, as an async stream that never suspends."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self._pieces = iter(cast(httpx.SyncByteStream, answer.stream))

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self._pieces = iter(())
        self._answer.close()
