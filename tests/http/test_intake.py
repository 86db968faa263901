"""Streamed appends: lines in, groups of them committed, cumulative answers out."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.app import open_app
from edgequeues.core.errors import TooLarge
from edgequeues.http.intake import GROUP_LINES_MAX, LINE_BYTES_MAX, Intake, Lines
from edgequeues.http.routes import Request
from edgequeues.models import AppendAnswer, NewEntry
from shards.errors import DiskFull, Overloaded
from shards.testing import FaultyDisk, TrioClock

from .asgi import NDJSON, Client, Exchange
from .fronted import FrontName, behind, only

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"


def lines_of(text: bytes) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


async def stored(client: Client) -> list[Any]:
    return [one["data"] for one in (await client.get(LOG)).json()["entries"]]


# -- lines -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 100])
def test_lines_are_found_however_the_input_is_cut(cut: int) -> None:
    text = b"ab\n\ncdef\r\nghijk\nlast"
    lines = Lines(4)
    found = [line for start in range(0, len(text), cut) for line in lines.feed(text[start : start + cut])]
    found += lines.end()
    assert found == [b"ab", b"", None, None, b"last"]
    assert list(lines.end()) == []


def test_an_endless_line_takes_no_memory() -> None:
    lines = Lines(1_000)
    for _ in range(1_000):
        assert list(lines.feed(b"x" * 1_000)) == []
    assert lines._parts == []
    assert list(lines.feed(b"\nok\n")) == [None, b"ok"]


# -- whole streams ---------------------------------------------------------------------------------------


async def test_a_stream_is_stored_in_order_and_counted(client: Client) -> None:
    *progress, last = await client.stream(LOG, *(b'{"data":%d}' % n for n in range(1_000)))
    assert await stored(client) == list(range(1_000))
    tail = (await client.get(f"{LOG}/stats")).json()["cursor"]
    assert last == {"through": 1_000, "cursor": tail, "appended": 1_000, "refused": 0, "errors": []}
    assert all(list(line) == ["through", "cursor"] for line in progress)
    assert [line["through"] for line in progress] == sorted({line["through"] for line in progress})


async def test_an_empty_stream_is_answered_and_makes_nothing(client: Client) -> None:
    assert await client.stream(LOG) == [
        {"through": 0, "cursor": None, "appended": 0, "refused": 0, "errors": []}
    ]
    assert (await client.get("/v1/spaces")).json()["spaces"] == []


async def test_blank_lines_count_as_lines_and_do_nothing_else(client: Client) -> None:
    last = (await client.stream(LOG, b"", b'{"data":1}', b" \t\r", b"nonsense", b""))[-1]
    assert (last["through"], last["appended"], last["refused"]) == (5, 1, 1)
    assert last["errors"][0]["line"] == 4


async def test_the_last_line_needs_no_line_break(client: Client) -> None:
    reply = await client.ask("POST", LOG, b'{"data":1}\r\n{"data":2}', headers=[NDJSON])
    assert lines_of(reply.body)[-1]["through"] == 2
    assert await stored(client) == [1, 2]
    assert reply.headers["content-type"] == "application/x-ndjson"


async def test_a_bad_line_is_refused_alone_and_listed_by_number(client: Client) -> None:
    last = (
        await client.stream(
            LOG, b'{"data":1}', b"{", b'{"data":2,"id":"a b"}', b'{"dta":3}', b"\xff", b'{"data":4}'
        )
    )[-1]
    assert (last["through"], last["appended"], last["refused"]) == (6, 2, 4)
    assert [(one["line"], one["code"]) for one in last["errors"]] == [
        (2, "invalid_json"),
        (3, "invalid_id"),
        (4, "invalid_request"),
        (5, "invalid_json"),
    ]
    assert all(one["detail"] for one in last["errors"])
    assert await stored(client) == [1, 4]


async def test_refusals_are_all_counted_and_the_first_thousand_listed(client: Client) -> None:
    last = (await client.stream(LOG, *[b"x"] * 1_500, b'{"data":1}', *[b"x"] * 100))[-1]
    assert (last["refused"], last["appended"], last["through"]) == (1_600, 1, 1_601)
    assert [one["line"] for one in last["errors"]] == list(range(1, 1_001))


async def test_a_line_that_is_too_long_is_refused_alone(client: Client) -> None:
    long = b'{"data":"' + b"x" * LINE_BYTES_MAX + b'"}'
    last = (await client.stream(LOG, b'{"data":1}', long, b'{"data":2}'))[-1]
    assert [(one["line"], one["code"]) for one in last["errors"]] == [(2, "too_large")]
    assert await stored(client) == [1, 2]


async def test_what_only_the_store_can_refuse_is_refused_alone_too(client: Client) -> None:
    await client.put(f"{LOG}/config", {"mutable": False})
    await client.append(Q, {"id": "a", "n": 0}, {"id": "b", "n": 0})
    lines = [b'{"data":{"id":"x%d"}}' % n for n in range(100)]
    lines[20] = b'{"data":{"id":"a","n":1}}'
    lines[21] = b'{"data":1,"if_version":"ffffffffffffffff@x"}'
    lines[50] = b"nonsense"
    lines[77] = b'{"data":{"id":"b","n":1}}'
    last = (await client.stream(LOG, *lines))[-1]
    assert [(one["line"], one["code"]) for one in last["errors"]] == [
        (21, "exists"),
        (22, "version_ahead"),
        (51, "invalid_json"),
        (78, "exists"),
    ]
    assert (last["appended"], last["refused"], last["through"]) == (96, 4, 100)
    ids = [one["id"] for one in (await client.get(LOG)).json()["entries"]]
    assert ids == ["a", "b", *(f"x{n}" for n in range(100) if n not in (20, 21, 50, 77))]


async def test_an_object_may_come_again_and_each_time_moves(client: Client) -> None:
    lines = [b'{"data":{"id":"a","n":%d}}' % n for n in range(5)]
    last = (await client.stream(LOG, *lines))[-1]
    assert (last["appended"], last["refused"]) == (5, 0)
    [entry] = (await client.get(LOG)).json()["entries"]
    assert (entry["position"], entry["data"]["n"]) == (5, 4)


async def test_the_actor_names_the_writer_of_all_lines(client: Client) -> None:
    await client.stream(f"{LOG}?actor=me", b'{"data":1}')
    assert (await client.get(LOG)).json()["entries"][0]["version"].endswith("@me")


async def test_large_entries_go_in_small_groups(client: Client) -> None:
    data = "x" * 200_000
    line = json.dumps({"data": data}).encode()
    last = (await client.stream(LOG, *[line] * 5))[-1]
    assert last["appended"] == 5
    assert await stored(client) == [data] * 5


# -- step by step ----------------------------------------------------------------------------------------


async def next_line(exchange: Exchange) -> Any:
    piece = await exchange.piece()
    assert piece is not None
    [line] = lines_of(piece)
    return line


async def test_what_has_arrived_is_confirmed_when_the_input_pauses(client: Client) -> None:
    async with client.open("POST", LOG, headers=[NDJSON]) as exchange:
        assert await exchange.begun() == 200
        for n, piece in enumerate((b'{"data":1}\n{"da', b'ta":2}\n{"data', b'":3}\n'), 1):
            exchange.send(piece)
            assert (await next_line(exchange))["through"] == n
            assert len(await stored(client)) == n
        exchange.end()
        assert lines_of(await exchange.rest())[-1]["appended"] == 3


@only("app", why="a socket takes more than one piece that nobody reads")
async def test_a_client_that_reads_nothing_until_it_sent_all_gets_merged_answers(client: Client) -> None:
    """Each group waits for the one before it, none for the client."""
    async with client.open("POST", LOG, headers=[NDJSON], ahead=0) as exchange:
        for n in range(5_000):
            exchange.send(b'{"data":%d}\n' % n)
            if n % 100 == 0:
                await trio.testing.wait_all_tasks_blocked()
        exchange.end()
        await trio.testing.wait_all_tasks_blocked()
        assert (await client.get(f"{LOG}/stats")).json()["entries"] == 5_000
        answers = lines_of(await exchange.rest())
    assert len(answers) <= 3
    assert answers[-1]["through"] == answers[-1]["appended"] == 5_000


async def test_a_client_that_hangs_up_ends_its_stream(client: Client) -> None:
    async with client.open("POST", LOG, headers=[NDJSON]) as exchange:
        exchange.send(b'{"data":1}\n{"data":')
        assert (await next_line(exchange))["through"] == 1
        exchange.hang_up()
        await exchange.ended.wait()
    assert await stored(client) == [1]


async def test_a_stream_may_be_silent_for_long_but_not_for_ever(client: Client) -> None:
    async with client.open("POST", LOG, headers=[NDJSON]) as exchange:
        exchange.send(b'{"data":1}\n')
        assert (await next_line(exchange))["through"] == 1
        await trio.sleep(3_000)
        exchange.send(b'{"data":2}\n')
        assert (await next_line(exchange))["through"] == 2
        last = lines_of(await exchange.rest())[-1]
    assert last["problem"]["code"] == "request_timeout"
    assert (last["through"], "appended" in last) == (2, False)


# -- groups ----------------------------------------------------------------------------------------------


class Store:
    """Takes groups as a space would; refuses from group `fails_at` on."""

    def __init__(
        self, fails_at: int = 1_000_000, error: Exception | None = None, takes_s: float = 1.0
    ) -> None:
        self.groups: list[list[NewEntry]] = []
        self.fails_at = fails_at
        self.error = error or Overloaded("shard demo")
        self.takes_s = takes_s
        self.at_once = 0

    async def append(self, entries: Any) -> AppendAnswer:
        self.at_once += 1
        assert self.at_once == 1
        await trio.sleep(self.takes_s)
        self.at_once -= 1
        if len(self.groups) >= self.fails_at:
            raise self.error
        self.groups.append(list(entries))
        return AppendAnswer([], f"cursor{len(self.groups)}")

    async def take(self, *pieces: bytes) -> list[Any]:
        """Run a whole stream; return the lines of the answer."""
        left = [*({"type": "http.request", "body": piece, "more_body": True} for piece in pieces)]
        left.append({"type": "http.request", "body": b"", "more_body": False})

        async def receive() -> dict[str, Any]:
            await trio.lowlevel.checkpoint()
            return left.pop(0)

        intake = Intake(Request("POST", {}, {}, {}, receive), self.append)
        answers: list[Any] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(intake.run)
            async for answer in intake.answers():
                answers += lines_of(answer)
        return answers


async def test_while_one_group_is_stored_the_next_one_fills_up() -> None:
    store = Store()
    lines = [b'{"data":%d}\n' % n for n in range(1_000)]
    answers = await store.take(*lines)
    first, *middle, _ = [len(group) for group in store.groups]
    assert first <= 2
    assert middle == [GROUP_LINES_MAX] * 3
    assert [line["through"] for line in answers] == [*accumulate(len(group) for group in store.groups)]
    assert answers[-1]["cursor"] == "cursor5"


async def test_a_group_ends_before_an_object_it_already_holds() -> None:
    store = Store()
    await store.take(b'{"data":1,"id":"a"}\n{"data":2,"id":"b"}\n{"data":3,"id":"a"}\n{"data":4}\n')
    assert [[entry.data for entry in group] for group in store.groups] == [["1", "2"], ["3", "4"]]


async def test_a_group_ends_with_the_line_that_makes_it_large() -> None:
    store = Store()
    await store.take(*[b'{"data":"' + b"x" * 100_000 + b'"}\n'] * 7)
    assert len(store.groups[1]) == 3
    assert sum(len(group) for group in store.groups) == 7


@pytest.mark.parametrize(("error", "code"), [(Overloaded("x"), "overloaded"), (DiskFull("x"), "disk_full")])
async def test_a_group_that_fails_whole_ends_the_stream_and_says_how_far_it_came(
    error: Exception, code: str
) -> None:
    store = Store(fails_at=2, error=error)
    answers = await store.take(b"nonsense\n", *[b'{"data":1}\n'] * 600)
    last = answers[-1]
    settled = 1 + sum(len(group) for group in store.groups)
    assert (last["through"], last["cursor"], last["refused"]) == (settled, "cursor2", 1)
    assert (last["problem"]["code"], last["problem"]["status"]) == (code, 503)
    assert "appended" not in last


async def test_a_failure_within_halves_confirms_what_was_stored() -> None:
    """The group is refused for one entry, its first half goes in, then the shard fails."""

    class Sick(Store):
        async def append(self, entries: Any) -> AppendAnswer:
            if len(entries) == 8:
                raise TooLarge("together")
            return await super().append(entries)

    store = Sick(fails_at=1, takes_s=0)
    lines = [b'{"data":%d}\n' % n for n in range(8)]
    last = (await store.take(b"".join([*lines[:2], b"bad\n", *lines[2:6], b"bad\n", *lines[6:]])))[-1]
    assert [entry.data for entry in store.groups[0]] == ["0", "1", "2", "3"]
    assert (last["through"], last["refused"], last["problem"]["code"]) == (5, 1, "overloaded")


async def test_a_bug_while_storing_is_a_problem_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    last = (await Store(fails_at=0, error=ZeroDivisionError("oops")).take(b'{"data":1}\n'))[-1]
    assert (last["through"], last["problem"]["code"]) == (0, "internal")
    assert len(caplog.records) == 1
    assert "oops" not in json.dumps(last)


async def test_a_full_disk_ends_a_stream_and_keeps_what_was_confirmed(
    tmp_path: Path, clock: TrioClock, front: FrontName
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    disk = FaultyDisk(folder)
    async with open_app(folder, clock=clock, disk=disk) as server:
        client = Client(behind(front, server))
        await client.append(Q, "first")
        disk.fill(0)
        async with client.open("POST", LOG, headers=[NDJSON]) as exchange:
            exchange.end(b"".join(b'{"data":"%d%s"}\n' % (n, b"x" * 10_000) for n in range(200)))
            last = lines_of(await exchange.rest())[-1]
        assert last["problem"]["code"] == "disk_full"
        assert (await client.get(f"{LOG}/stats")).json()["entries"] == 1 + last["through"]
    disk.close()
