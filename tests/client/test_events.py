from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.client import Refused, Retry, Unavailable, Unreachable
from edgequeues.client.events import Event, EventParser

from .script import Pieces, entry_json, problem, scripted

Q = "dxn:queue:demo:log"


def event(position: int) -> bytes:
    data = msgspec.json.encode(entry_json(position, position)).decode()
    return f"id: c{position}\nevent: entry\ndata: {data}\n\n".encode()


def stream(*pieces: bytes | Exception) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces(*pieces))


TEXT = (
    b": hello\r\nid: 1\r\nevent: entry\r\ndata: a\r\ndata:b\r\n\r\n"
    b"id\n\nevent: other\rid: 2\rdata:  x\r\rdata: y\n\n"
)
EVENTS = [Event("entry", "1", b"a\nb"), Event("other", "2", b" x"), Event("message", "2", b"y")]


@given(st.lists(st.integers(0, len(TEXT)), max_size=8))
def test_events_are_the_same_wherever_the_bytes_are_cut(cuts: list[int]) -> None:
    parser, found, at = EventParser(), list[Event](), 0
    for cut in [*sorted(cuts), len(TEXT)]:
        found += parser.feed(TEXT[at:cut])
        at = cut
    assert found == EVENTS


def test_an_event_is_given_as_soon_as_its_empty_line_is_there() -> None:
    parser = EventParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == [Event("message", None, b"a")]
    assert parser.feed(b"data: unfinished\n") == []


async def test_a_drop_is_taken_up_after_the_last_entry_received() -> None:
    client, script = scripted(
        stream(event(1), b": still here\n\n", event(2), httpx.ReadError("reset")),
        httpx.ConnectError("restarting"),
        stream(event(3)),
        stream(event(4)),
    )
    async with client.subscribe(Q, after="c0", type="t") as entries:
        seen = [(await anext(entries)).position for _ in range(4)]
        assert entries.cursor == "c4"
    assert seen == [1, 2, 3, 4]
    assert [request.headers.get("last-event-id") for request in script.requests] == [None, "c2", "c2", "c3"]
    assert dict(script.requests[0].url.params) == {"after": "c0", "type": "t"}


async def test_events_cut_off_in_the_middle_are_received_again_whole() -> None:
    client, _ = scripted(stream(event(1) + event(2)[:-5]), stream(event(2)))
    async with client.subscribe(Q) as entries:
        assert [(await anext(entries)).data for _ in range(2)] == [1, 2]


async def test_tail_is_pinned_so_that_a_drop_before_the_first_entry_loses_nothing() -> None:
    newest = {"entries": [entry_json(7)], "nextCursor": "c7", "prevCursor": "c7"}
    client, script = scripted(httpx.Response(200, json=newest), stream(), stream(event(8)))
    async with client.tail(Q) as entries:
        assert (await anext(entries)).position == 8
    assert [request.url.params.get("after") for request in script.requests] == [None, "c7", "c7"]


async def test_the_tail_of_an_unknown_queue_is_its_front() -> None:
    empty: dict[str, object] = {"entries": [], "nextCursor": None, "prevCursor": None}
    client, script = scripted(httpx.Response(200, json=empty), stream(event(1)))
    async with client.tail(Q) as entries:
        assert (await anext(entries)).position == 1
    assert "after" not in script.requests[1].url.params


async def test_it_gives_up_after_as_many_failures_in_a_row_as_allowed() -> None:
    faults = [httpx.ConnectError("down")] * 3
    client, _ = scripted(*faults[:2], stream(event(1)), *faults, retry=Retry(attempts_max=1))
    async with client.subscribe(Q, retry=Retry(attempts_max=3)) as entries:
        assert (await anext(entries)).position == 1  # after which failures count from none
        with pytest.raises(Unreachable):
            await anext(entries)


async def test_a_refusal_is_raised_at_once_and_503_is_waited_out() -> None:
    client, script = scripted(
        problem(503, "not_ready", retry_after="2"), stream(event(1)), problem(410, "cursor_store")
    )
    async with client.subscribe(Q) as entries:
        assert (await anext(entries)).position == 1
        with pytest.raises(Refused, match="cursor_store"):
            await anext(entries)
    assert script.pauses[0] == 2.0


async def test_unavailable_comes_out_when_patience_ends() -> None:
    client, _ = scripted(problem(503, "not_ready"))
    with pytest.raises(Unavailable):
        await anext(client.subscribe(Q, retry=Retry(attempts_max=1)))


class Endless(Pieces):
    """Goes silent after its pieces."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in super().__aiter__():
            yield piece
        await trio.sleep_forever()


async def test_a_cancelled_wait_loses_no_entry_and_counts_as_no_failure() -> None:
    first, second = (httpx.Response(200, stream=Endless(*some)) for some in ([event(1) + event(2)], []))
    client, script = scripted(first, second, stream(event(3)))
    seen = []
    async with client.subscribe(Q, retry=Retry(attempts_max=1)) as entries:
        for _ in range(5):
            with trio.move_on_after(1):
                seen.append((await anext(entries)).position)
    assert seen == [1, 2, 3]
    assert [request.headers.get("last-event-id") for request in script.requests] == [None, "c2", "c2"]


async def test_closing_gives_the_connection_back() -> None:
    body = Pieces(event(1), event(2))
    client, _ = scripted(httpx.Response(200, stream=body))
    async with client.subscribe(Q) as entries:
        await anext(entries)
    assert body.closed
