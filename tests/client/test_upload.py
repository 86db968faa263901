from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable

import httpx
import pytest
import trio

from edgequeues.client import (
    Batch,
    Chunk,
    Client,
    Confirmation,
    NewEntry,
    Refused,
    Transport,
    Unavailable,
    Unreachable,
)

from .script import Handler, problem, scripted

Q = "dxn:queue:demo:log"


def lines(request: httpx.Request) -> list[object]:
    return [json.loads(line)["data"] for line in request.content.splitlines()]


def confirming(*, cut: bool = False, refuse: Iterable[int] = ()) -> Handler:
    """Answer as the server does: progress, then the counts, unless the answer is cut short."""

    def handle(request: httpx.Request) -> httpx.Response:
        count, refused = len(lines(request)), list(refuse)
        errors = [{"line": line, "code": "invalid_request", "detail": "d"} for line in refused]
        last = {"through": count, "cursor": "c", "appended": count - len(refused), "refused": len(refused)}
        text = [{"through": count // 2, "cursor": "b"}, *([] if cut else [{**last, "errors": errors}])]
        return httpx.Response(200, content="".join(json.dumps(one) + "\n" for one in text).encode())

    return handle


async def numbers(count: int, *, every_s: float = 0.0, named: bool = False) -> AsyncIterator[object]:
    for n in range(count):
        await trio.sleep(every_s)
        yield NewEntry(n, id=f"e{n}") if named else n


async def batches() -> AsyncIterator[object]:
    yield Batch((0, 1))
    yield (2,)


async def collect(stream: AsyncIterator[Confirmation], seen: list[Confirmation]) -> None:
    async for confirmation in stream:
        seen.append(confirmation)


async def test_a_stream_is_confirmed_request_by_request_with_counts_over_the_whole() -> None:
    client, script = scripted(confirming(), confirming(refuse=[2]), confirming())
    seen = [c async for c in client.append_stream(Q, numbers(25), chunk=Chunk(entries_max=10))]
    assert [(c.through, c.appended, c.refused) for c in seen] == [(10, 10, 0), (20, 19, 1), (25, 24, 1)]
    assert [[(e.line, e.code) for e in c.errors] for c in seen] == [[], [(12, "invalid_request")], []]
    assert [lines(request) for request in script.requests] == [
        [*range(10)],
        [*range(10, 20)],
        [*range(20, 25)],
    ]
    assert script.requests[0].headers["content-type"] == "application/x-ndjson"


async def test_nothing_is_sent_for_a_source_without_entries() -> None:
    client, script = scripted()
    assert [c async for c in client.append_stream(Q, [])] == []
    assert script.requests == []


async def test_a_request_ends_when_it_is_large_or_old_enough() -> None:
    client, script = scripted(*[confirming()] * 9)
    big = [b'"' + b"x" * 60 + b'"'] * 4
    assert [c.through async for c in client.append_stream(Q, big, chunk=Chunk(bytes_max=100))] == [2, 4]
    slow = numbers(5, every_s=0.4)
    seen = [c.through async for c in client.append_stream(Q, slow, chunk=Chunk(age_max_s=1.0))]
    assert seen == [4, 5]
    assert len(script.requests) == 4


async def test_a_request_is_repeated_whole_if_all_its_entries_have_ids() -> None:
    client, script = scripted(
        problem(503, "overloaded"), httpx.ReadError("reset"), confirming(), confirming(), confirming()
    )
    source = numbers(5, named=True)
    seen = [c.through async for c in client.append_stream(Q, source, chunk=Chunk(entries_max=3))]
    assert seen == [3, 5]
    assert [lines(request) for request in script.requests] == [[0, 1, 2]] * 3 + [[3, 4]]


async def test_a_request_with_an_entry_without_id_is_not_repeated() -> None:
    client, script = scripted(problem(503, "overloaded"))
    with pytest.raises(Unavailable):
        await anext(client.append_stream(Q, [NewEntry(1, id="a"), 2]))
    assert len(script.requests) == 1


async def test_an_answer_cut_short_confirms_what_it_says_and_then_fails() -> None:
    client, _ = scripted(confirming(), confirming(cut=True))
    seen: list[Confirmation] = []
    with pytest.raises(Unreachable, match="after entry 15"):
        await collect(client.append_stream(Q, range(20), chunk=Chunk(entries_max=10)), seen)
    assert [(c.through, c.appended) for c in seen] == [(10, 10), (15, 15)]


async def test_an_answer_that_ends_early_is_repeated_from_there_if_all_entries_have_ids() -> None:
    stopped = {"code": "overloaded", "status": 503, "title": "Overloaded", "detail": "d", "retryable": True}

    def stop(request: httpx.Request) -> httpx.Response:
        last = {"through": 2, "cursor": "b", "refused": 1, "errors": [], "problem": stopped}
        return httpx.Response(200, content=json.dumps(last).encode())

    client, script = scripted(stop, confirming(cut=True), confirming())
    seen = [c async for c in client.append_stream(Q, numbers(8, named=True))]
    assert [(c.through, c.appended, c.refused) for c in seen] == [(2, 1, 1), (5, 4, 1), (8, 7, 1)]
    assert [lines(request) for request in script.requests] == [
        [*range(8)],
        [*range(2, 8)],
        [*range(5, 8)],
    ]

    client, _ = scripted(stop)
    with pytest.raises(Unavailable, match="overloaded"):
        await collect(client.append_stream(Q, range(8)), seen)


async def test_what_the_source_raises_comes_out_after_the_entries_before_it_are_confirmed() -> None:
    async def failing() -> AsyncIterator[object]:
        yield 1
        yield 2
        raise KeyError("mine")

    client, script = scripted(confirming())
    seen: list[Confirmation] = []
    with pytest.raises(KeyError, match="mine"):
        await collect(client.append_stream(Q, failing()), seen)
    assert ([c.through for c in seen], lines(script.requests[0])) == ([2], [1, 2])


async def test_a_bad_entry_of_the_source_is_the_callers_mistake() -> None:
    client, script = scripted(confirming())
    with pytest.raises(ValueError, match="line break"):
        [c async for c in client.append_stream(Q, [1, b"[\n]"])]
    assert len(script.requests) == 1


async def test_a_refused_stream_is_raised() -> None:
    client, _ = scripted(problem(400, "invalid_id"))
    with pytest.raises(Refused):
        await anext(client.append_stream(Q, numbers(3)))


async def test_entries_of_an_async_source_leave_as_they_come_those_at_hand_leave_together() -> None:
    pieces: list[bytes] = []

    class Watch(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            assert isinstance(request.stream, httpx.AsyncByteStream)
            pieces.extend([piece async for piece in request.stream])
            last = {"through": 3, "cursor": "c", "appended": 3, "refused": 0}
            return httpx.Response(200, content=json.dumps(last).encode())

    transport = Transport("http://server:1", transport=Watch())
    async with Client("", transport=transport) as client:
        [_] = [c async for c in client.append_stream(Q, numbers(3))]
        assert pieces == [b'{"data":%d}\n' % n for n in range(3)]
        pieces.clear()
        [_] = [c async for c in client.append_stream(Q, range(3))]
        assert pieces == [b'{"data":0}\n{"data":1}\n{"data":2}\n']
        pieces.clear()
        [_] = [c async for c in client.append_stream(Q, batches())]
        assert pieces == [b'{"data":0}\n{"data":1}\n', b'{"data":[2]}\n']
