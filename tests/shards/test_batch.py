"""Turns share a transaction without savepoints: what is counted in memory, and what a turn that raises undoes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio

from shards.namespace import Namespace
from shards.shard import Shard, reads
from shards.testing import running

from .examples import Refused


class Tally(Shard):
    """A sum that turns change in memory; how often it was written down, and which turns ran."""

    migrations: ClassVar[Sequence[str]] = (
        "CREATE TABLE tally (sum INTEGER NOT NULL CHECK (sum < 1000)) STRICT; INSERT INTO tally VALUES (0);",
    )

    def opened(self) -> None:
        self.written = 0
        self.ran: list[str] = []
        self.forget()

    def forget(self) -> None:
        self.sum = self.saved = int(self.db.execute("SELECT sum FROM tally").get)

    def write_back(self) -> None:
        if self.sum != self.saved:
            self.db.execute("UPDATE tally SET sum = ?", (self.sum,))
            self.saved = self.sum
            self.written += 1

    def add(self, name: str) -> int:
        self.ran.append(name)
        self.sum += 1
        self.emit("added")
        return self.sum

    def add_then_raise(self, name: str) -> None:
        self.add(name)
        raise Refused(name)

    def add_too_much(self, name: str) -> None:
        self.ran.append(name)
        self.sum += 1000

    @reads
    def look_then_raise(self, name: str) -> None:
        self.ran.append(name)
        raise Refused(name)

    def alarm(self) -> None:
        self.sum += 100
        raise Refused

    def stored(self) -> tuple[int, int]:
        self.write_back()
        return self.sum, int(self.db.execute("SELECT sum FROM tally").get)

    def history(self) -> tuple[int, list[str]]:
        return self.written, self.ran


Call = tuple[Callable[..., Any], str]


async def together(namespace: Namespace[Tally], *calls: Call) -> list[object]:
    """Run calls in order, in one transaction; answers, and errors by the names of their classes."""
    answers: list[object] = [None] * len(calls)

    async def one(number: int, verb: Callable[..., Any], name: str) -> None:
        try:
            answers[number] = await namespace.ref("a").call(verb, name)
        except Exception as error:
            answers[number] = type(error).__name__

    async with trio.open_nursery() as nursery:
        for number, (verb, name) in enumerate(calls):
            nursery.start_soon(one, number, verb, name)
    return answers


ADD, RAISE, LOOK = Tally.add, Tally.add_then_raise, Tally.look_then_raise


async def test_what_turns_count_is_written_once_for_all_of_them() -> None:
    async with running(Tally) as namespace:
        ref = namespace.ref("a")
        await ref.call(Tally.history)
        answers = await together(namespace, *[(ADD, str(n)) for n in range(20)])
        assert sorted(map(int, map(str, answers))) == list(range(1, 21))
        written, ran = await ref.call(Tally.history)
        assert written == 1
        assert sorted(ran) == sorted(map(str, range(20)))
        assert await ref.call(Tally.stored) == (20, 20)


async def test_what_was_counted_before_a_turn_that_raises_stays(tmp_path: Path) -> None:
    async with running(Tally, folder=tmp_path) as namespace:
        ref = namespace.ref("a")
        await ref.call(Tally.history)
        calls = [(RAISE if name in "ce" else ADD, name) for name in "abcdef"]
        answers = await together(namespace, *calls)
        assert answers.count("Refused") == 2
        assert sorted(one for one in answers if isinstance(one, int)) == [1, 2, 3, 4]
        assert await ref.call(Tally.stored) == (4, 4)
    async with running(Tally, folder=tmp_path) as again:
        assert await again.ref("a").call(Tally.stored) == (4, 4)


async def test_events_are_emitted_once_though_their_turns_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(Tally) as namespace:
        await namespace.ref("a").call(Tally.history)
        emitted: list[object] = []
        monkeypatch.setattr(namespace, "emit", lambda _, events: emitted.extend(events))
        await together(namespace, (ADD, "a"), (ADD, "b"), (RAISE, "c"), (ADD, "d"))
        assert emitted == ["added"] * 3


async def test_a_verb_that_only_reads_undoes_nothing_when_it_raises() -> None:
    async with running(Tally) as namespace:
        ref = namespace.ref("a")
        await ref.call(Tally.history)
        answers = await together(namespace, (ADD, "a"), (LOOK, "b"), (ADD, "c"))
        assert sorted(map(str, answers)) == ["1", "2", "Refused"]
        assert sorted((await ref.call(Tally.history))[1]) == ["a", "b", "c"]  # each of them once


async def test_what_cannot_be_written_down_is_blamed_on_its_own_turn() -> None:
    async with running(Tally) as namespace:
        ref = namespace.ref("a")
        await ref.call(Tally.history)
        answers = await together(namespace, (ADD, "a"), (Tally.add_too_much, "b"), (ADD, "c"))
        assert sorted(map(str, answers)) == ["1", "2", "ConstraintError"]
        assert await ref.call(Tally.stored) == (2, 2)


async def test_a_lone_turn_that_raises_runs_once() -> None:
    async with running(Tally) as namespace:
        ref = namespace.ref("a")
        with pytest.raises(Refused):
            await ref.call(RAISE, "a")
        assert await ref.call(Tally.history) == (0, ["a"])
        assert await ref.call(Tally.stored) == (0, 0)


async def test_an_alarm_that_raises_takes_nothing_away_that_was_counted_before() -> None:
    async with running(Tally) as namespace:
        ref = namespace.ref("a")
        await ref.call(Tally.history)

        def add_and_be_due(shard: Tally) -> int:
            shard.set_alarm(shard.now_ms)
            return shard.add("a")

        await ref.call(add_and_be_due)
        await trio.sleep(1)  # by the test's clock: the alarm has failed by then
        await ref.call(ADD, "b")
        assert await ref.call(Tally.stored) == (2, 2)
