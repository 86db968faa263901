from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable

import httpx

from edgequeues.client import Client, Retry, Transport

Handler = Callable[[httpx.Request], httpx.Response]


class Script:
    """A server that gives the next of its answers to each request, and remembers both requests and pauses."""

    def __init__(self, steps: Iterable[httpx.Response | Exception | Handler]) -> None:
        self.steps = iter(steps)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        step = next(self.steps)
        if isinstance(step, Exception):
            raise step
        return step if isinstance(step, httpx.Response) else step(request)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def scripted(
    *steps: httpx.Response | Exception | Handler, retry: Retry | None = None
) -> tuple[Client, Script]:
    """A client on trio or asyncio whose requests go to a Script instead of a network."""
    script = Script(steps)
    transport = Transport(
        "http://server:1",
        retry=retry,
        chance=random.Random(0),
        transport=httpx.MockTransport(script),
        sleep=script.sleep,
    )
    return Client("http://server:1", transport=transport), script


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, json={"code": code, "detail": "d"}, headers=named)


def entry_json(position: int, data: object = None) -> dict[str, object]:
    """An entry as the server sends it."""
    at = {"created": 1, "updated": 1}
    return {"id": f"e{position}", "position": position, "version": "v", "type": None, "data": data, **at}


class Pieces(httpx.AsyncByteStream):
    """The body of an answer in pieces; an exception among them breaks it there."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self.pieces = pieces
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def aclose(self) -> None:
        self.closed = True
