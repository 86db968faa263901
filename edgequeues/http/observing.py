"""Who watches a server: what they are told of each request, and what traces it."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from edgequeues.http.routes import App, Head, Receive, Scope, Send
from edgequeues.measures import RequestCounts
from shards.tracing import Called

CLIENT_GONE = 499  # what a request counts as that nobody waited for; no answer has this status
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Served(NamedTuple):
    """A request that is over. All but seconds have few values, whatever clients send.

    dialect: `pages` for what no table matches. route: its template; "": none matched, or it was refused before.
    method: OTHER for what is none. status: as answered, or CLIENT_GONE. seconds: until all of the answer was sent.
    who: id of the caller's token, or what the audit says in its place; "": the route asked for nobody.
    """

    dialect: str
    route: str
    method: str
    status: int
    seconds: float
    who: str


Observer = Callable[[Served], None]


class Tracer(Protocol):
    """Who is told what is under way, in the task that does it. Pages are left out."""

    def request(self, head: Head) -> AbstractContextManager[None]:
        """A request that is being answered; its headers may say which trace it is of."""

    def answered(self, served: Served) -> None:
        """What became of it."""

    def called(self, call: Called) -> None:
        """A call of a shard that it waited for."""


class Watchers(NamedTuple):
    """All who watch.

    observers: told of every request that is over. tracer: of all that is under way; None: nobody.
    """

    observers: Sequence[Observer] = ()
    tracer: Tracer | None = None

    @property
    def all(self) -> Sequence[Observer]:
        """Those who are told of a request that is over."""
        return self.observers if self.tracer is None else (*self.observers, self.tracer.answered)

    def and_also(self, observer: Observer) -> Watchers:
        """The same, and one more."""
        return self._replace(observers=(*self.observers, observer))

    @property
    def called(self) -> Callable[[Called], None] | None:
        """Who is told of calls of shards, if anybody."""
        return None if self.tracer is None else self.tracer.called


NOBODY_WATCHES = Watchers()


def counting(counts: RequestCounts) -> Observer:
    """Who counts requests."""

    def count(served: Served) -> None:
        counts.add(served.dialect, served.route, served.method, served.status, served.seconds)

    return count


def method(given: str) -> str:
    """A method as it is told: clients may send any word as one."""
    return given if given in METHODS else "OTHER"


def observed(app: App, observers: Sequence[Observer]) -> App:
    """An ASGI app that answers what no table matches, and whose answers are told of too."""
    if not observers:
        return app

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        status, began_s = CLIENT_GONE, perf_counter()

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await app(scope, receive, noting)
        if scope["type"] == "http":
            for observer in observers:
                observer(Served("pages", "", method(scope["method"]), status, perf_counter() - began_s, ""))

    return serve
