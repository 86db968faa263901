"""Every route of the client's protocols has a verb, or the guide of the client says why it has none."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterable, Awaitable, Callable

import httpx
import pytest

from edgequeues.client import (
    Client,
    ConfigChange,
    Inbound,
    LetterFilter,
    QueueConfig,
    Refused,
    Transport,
)
from tests.house import tree
from tests.reference.routes import dialects

Q = "dxn:queue:demo:jobs"
GUIDE = "docs/guides/client.md"
ROW = re.compile(r"^\| `([A-Z]+) (/\S*)` \| .+ \|$", re.MULTILINE)
Route = tuple[str, str]

ROUTES: list[Route] = [
    (route.method, route.template)
    for dialect in dialects()
    if dialect.name in ("native", "admin", "blobs")
    for route in dialect.routes
]
VERBS: dict[str, Callable[[Client], Awaitable[object] | AsyncIterable[object]]] = {
    "append": lambda c: c.append(Q, [1]),
    "append_stream": lambda c: c.append_stream(Q, [1]),
    "apply_spec": lambda c: c.apply_spec("demo", "shop", b"{}"),
    "ack": lambda c: c.ack(Q, ["l"]),
    "audit": lambda c: c.audit("demo"),
    "backup": lambda c: c.backup("demo"),
    "backup_control": lambda c: c.backup_control(),
    "blobs": lambda c: c.blobs("demo", "e1"),
    "clean_sessions": lambda c: c.clean_sessions(Q, 1),
    "close_session": lambda c: c.close_session(Q, "s"),
    "config": lambda c: c.config(Q),
    "configure": lambda c: c.configure(Q, QueueConfig()),
    "consumers": lambda c: c.consumers(Q),
    "dead_letters": lambda c: c.dead_letters(Q),
    "delete": lambda c: c.delete(Q, ids=["a"]),
    "delete_consumer": lambda c: c.delete_consumer(Q, "audit"),
    "delete_letter": lambda c: c.delete_letter(Q, "a"),
    "doing": lambda c: c.doing("demo"),
    "enqueue_inbound": lambda c: c.enqueue_inbound(Q, Inbound(session_id="s", origin="o", content="c")),
    "entities": lambda c: c.entities("demo", "Order"),
    "entity": lambda c: c.entity("demo", "Order", "o1"),
    "entity_history": lambda c: c.entity_history("demo", "Order", "o1"),
    "erase_blob": lambda c: c.erase_blob("demo", "a/b.txt"),
    "erase_event": lambda c: c.erase_event("demo", "e1"),
    "explain": lambda c: c.explain(Q, "a"),
    "extend": lambda c: c.extend(Q, ["l"], 1_000),
    "get": lambda c: c.get(Q, "a"),
    "get_blob": lambda c: c.get_blob("demo", "a/b.txt"),
    "health": lambda c: c.health(),
    "hooks": lambda c: c.hooks(),
    "hurry": lambda c: c.hurry(Q, "a"),
    "inspect": lambda c: c.inspect(Q, "a"),
    "iterate": lambda c: c.iterate(Q),
    "iterate_audit": lambda c: c.iterate_audit("demo"),
    "iterate_blobs": lambda c: c.iterate_blobs("demo", "e1"),
    "iterate_dead_letters": lambda c: c.iterate_dead_letters(Q),
    "iterate_doing": lambda c: c.iterate_doing("demo"),
    "iterate_entities": lambda c: c.iterate_entities("demo", "Order"),
    "iterate_results": lambda c: c.iterate_results(Q),
    "iterate_search": lambda c: c.iterate_search(Q),
    "iterate_sessions": lambda c: c.iterate_sessions(Q),
    "lines": lambda c: c.lines(Q),
    "link_blob": lambda c: c.link_blob("demo", "a/b.txt"),
    "make_queue": lambda c: c.make_queue(Q),
    "peek": lambda c: c.peek(Q),
    "preview_replay": lambda c: c.preview_replay(Q),
    "pull": lambda c: c.pull(Q),
    "purge": lambda c: c.purge(Q, LetterFilter()),
    "push": lambda c: c.push(Q, [1]),
    "push_all": lambda c: c.push_all(Q, [1]),
    "put_blob": lambda c: c.put_blob("demo", "a/b.txt", b"x", event_id="e1", source="email"),
    "put_consumer": lambda c: c.put_consumer(Q, "audit"),
    "queue_state": lambda c: c.queue_state(Q),
    "queues": lambda c: c.queues("demo"),
    "read": lambda c: c.read(Q),
    "reclaim": lambda c: c.reclaim(Q, "w"),
    "reconfigure": lambda c: c.reconfigure(Q, ConfigChange(paused=True)),
    "release": lambda c: c.release(Q, ["l"]),
    "remove": lambda c: c.remove(Q),
    "remove_spec": lambda c: c.remove_spec("demo", "shop"),
    "restore": lambda c: c.restore("demo", b""),
    "replay": lambda c: c.replay(Q, ["a"]),
    "replay_letter": lambda c: c.replay_letter(Q, "a"),
    "replay_where": lambda c: c.replay_where(Q),
    "results": lambda c: c.results(Q),
    "retry": lambda c: c.retry(Q, ["l"]),
    "retry_session": lambda c: c.retry_session(Q, "s"),
    "run_schedule": lambda c: c.run_schedule("demo", "nightly"),
    "schedules": lambda c: c.schedules("demo"),
    "search": lambda c: c.search(Q),
    "session": lambda c: c.session(Q, "s"),
    "sessions": lambda c: c.sessions(Q),
    "skip": lambda c: c.skip(Q, "a"),
    "skip_session": lambda c: c.skip_session(Q, "s"),
    "spaces": lambda c: c.spaces(),
    "spec": lambda c: c.spec("demo", "shop"),
    "specs": lambda c: c.specs("demo"),
    "stats": lambda c: c.stats(Q),
    "subscribe": lambda c: c.subscribe(Q),
    "tail": lambda c: c.tail(Q),
    "try_letter": lambda c: c.try_letter(Q, "a"),
}


def routed(request: httpx.Request) -> Route:
    """The route that a request is for."""
    path = request.url.raw_path.decode().partition("?")[0]
    [found] = [one for one in ROUTES if one[0] == request.method and pattern(one[1]).fullmatch(path)]
    return found


def pattern(template: str) -> re.Pattern[str]:
    kinds = {"dxn": "[^/]*:[^/]*", "key...": ".+"}
    parts = re.split(r"\{(.+?)\}", template)
    return re.compile(
        "".join(
            kinds.get(part, "[^/:]+") if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
    )


async def asked(verb: str) -> list[Route]:
    """The routes that a verb asks, of a server that has nothing."""
    found: list[Route] = []

    def answer(request: httpx.Request) -> httpx.Response:
        found.append(routed(request))
        return httpx.Response(404, json={"code": "not_here", "detail": "d"})

    transport = Transport("http://server:1", transport=httpx.MockTransport(answer))
    async with Client("", transport=transport) as client:
        with pytest.raises(Refused):
            await first(VERBS[verb](client))
    return found


async def first(given: Awaitable[object] | AsyncIterable[object]) -> None:
    """Take what a verb gives, or the first of it."""
    if isinstance(given, AsyncIterable):
        await anext(aiter(given))
    else:
        await given


async def test_every_route_has_a_verb_or_the_guide_says_why_not() -> None:
    verbs = {name for name, _ in inspect.getmembers(Client, inspect.isroutine) if not name.startswith("_")}
    assert set(VERBS) == verbs
    reached = {route for verb in VERBS for route in await asked(verb)}
    section = tree.text(GUIDE).partition("## Routes without a verb\n")[2].partition("\n## ")[0]
    without = ROW.findall(section)
    assert sorted(reached.intersection(without)) == [], "the guide says that these have no verb"
    assert sorted({*reached, *without}) == sorted(set(ROUTES))
