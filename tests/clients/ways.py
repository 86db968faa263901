"""One way to write a test of the client that runs on trio, on asyncio, and with the client that blocks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Literal, cast

import trio

from edgequeues.client import Client, SyncClient, SyncSubscription
from edgequeues.client.blocking import finish

Way = Literal["trio", "asyncio", "sync"]
Test = Callable[[Client], Awaitable[None]]
Run = Callable[[Test], None]  # with a client of a server, one way

WAYS: tuple[Way, ...] = ("trio", "asyncio", "sync")


def run(way: Way, url: str, test: Test) -> None:
    """Run a test with a client of the server. `sync`: what it awaits are the verbs of a SyncClient, done by then."""

    async def main() -> None:
        async with Client(url) as client:
            await test(client)

    async def drive(client: SyncClient) -> None:
        await test(cast(Client, Awaited(client)))

    if way == "trio":
        trio.run(main)
    elif way == "asyncio":
        asyncio.run(main())
    else:
        with SyncClient(url) as client:
            finish(drive(client))


class Awaited:
    """A SyncClient behind the face of a Client: whatever is awaited was done before, and never suspends."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._client, name)

        @wraps(verb)
        def call(*args: Any, **kwargs: Any) -> Any:
            if inspect.iscoroutinefunction(inspect.unwrap(getattr(Client, name))):
                return _later(verb, *args, **kwargs)
            given = verb(*args, **kwargs)
            return AwaitedSubscription(given) if isinstance(given, SyncSubscription) else _one_by_one(given)

        return call


class AwaitedSubscription:
    """The same for a subscription."""

    def __init__(self, subscription: SyncSubscription) -> None:
        self._subscription = subscription

    @property
    def cursor(self) -> str | None:
        return self._subscription.cursor

    def __aiter__(self) -> AwaitedSubscription:
        return self

    async def __anext__(self) -> Any:
        return next(self._subscription)

    async def __aenter__(self) -> AwaitedSubscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._subscription.close()


async def _later(verb: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return verb(*args, **kwargs)


async def _one_by_one(given: Iterator[Any]) -> AsyncGenerator[Any, None]:
    for one in given:
        yield one
