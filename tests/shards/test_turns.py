"""A call is a turn: atomic, undone alone, and a plain function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

from shards.errors import TurnRefused
from shards.namespace import Namespace
from shards.testing import running

from .examples import Notes, Refused, SlowDisk, open_slowly


class Nested(Notes):
    """Verbs that open transactions inside their turn."""

    def inner_fails(self) -> None:
        self.add("1")
        try:
            with self.db:
                self.add("2")
                raise Refused
        except Refused:
            pass
        self.add("3")

    def outer_fails(self) -> None:
        self.add("1")
        with self.db:
            self.add("2")
        raise Refused

    def deep(self, levels: int) -> None:
        with self.db:
            self.add(str(levels))
            if levels:
                self.deep(levels - 1)

    async def coroutine(self) -> None:
        self.add("never")

    def generator(self) -> Iterator[int]:
        yield self.add("never")

    def hidden_coroutine(self) -> object:
        self.add("undone")
        return self.coroutine()

    def hidden_generator(self) -> object:
        self.add("undone")
        return self.generator()


async def gather(namespace: Namespace[Notes], calls: list[tuple[Callable[..., Any], str]]) -> list[object]:
    """Run calls at once, in order, on one shard; return answers and errors."""
    answers: list[object] = [None] * len(calls)
    ref = namespace.ref("a")

    async def one(number: int) -> None:
        verb, text = calls[number]
        try:
            answers[number] = await ref.call(verb, text)
        except Exception as error:
            answers[number] = error

    async with trio.open_nursery() as nursery:
        for number in range(len(calls)):
            nursery.start_soon(one, number)
    return answers


async def test_a_turn_that_raises_is_undone_alone_and_the_rest_of_its_batch_stands() -> None:
    disk = SlowDisk()
    async with running(Notes, disk=disk) as namespace:
        await open_slowly(namespace.ref("a"), disk, 0.01)
        calls = [(Notes.add_then_raise if i % 3 == 1 else Notes.add, f"{i}") for i in range(30)]
        before = disk.flushes
        answers = await gather(namespace, calls)
        assert disk.flushes - before <= 2  # so good and bad ones did share a transaction
        kept = {f"{i}" for i in range(30) if i % 3 != 1}
        assert set(await namespace.ref("a").call(Notes.texts)) == kept
        assert all(isinstance(answers[i], Refused if i % 3 == 1 else int) for i in range(30))


async def test_what_a_verb_raises_reaches_its_caller_untouched() -> None:
    async with running(Notes) as namespace:
        with pytest.raises(Refused, match=r"^why$"):
            await namespace.ref("a").call(Notes.add_then_raise, "why")


async def test_an_undone_turn_forgets_what_it_cached() -> None:
    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "1")
        with pytest.raises(Refused):
            await ref.call(Notes.add_then_raise, "2")
        assert await ref.call(Notes.in_memory_and_stored) == (1, 1)
        assert await ref.call(lambda shard: shard.forgotten) == 1


async def test_events_of_an_undone_turn_are_dropped() -> None:
    async with running(Notes) as namespace:
        with namespace.hub.watch("a", "undone") as undone, namespace.hub.watch("a", "added") as added:
            await gather(namespace, [(Notes.add_then_raise, "1"), (Notes.add, "2")])
            await added.wait()
            with trio.move_on_after(1) as waiting:
                await undone.wait()
            assert waiting.cancelled_caught


async def test_do_s06_a_nested_transaction_undoes_itself_alone() -> None:
    async with running(Nested) as namespace:
        ref = namespace.ref("a")
        await ref.call(Nested.inner_fails)
        assert await ref.call(Nested.texts) == ["1", "3"]


async def test_do_s06_an_outer_failure_undoes_the_nested_transaction_too() -> None:
    async with running(Nested) as namespace:
        ref = namespace.ref("a")
        with pytest.raises(Refused):
            await ref.call(Nested.outer_fails)
        assert await ref.call(Nested.texts) == []


async def test_do_s06_a_helper_may_open_a_transaction_inside_a_transaction() -> None:
    async with running(Nested) as namespace:
        ref = namespace.ref("a")
        await ref.call(Nested.deep, 5)
        assert await ref.call(Nested.texts) == ["5", "4", "3", "2", "1", "0"]


@pytest.mark.parametrize("verb", [Nested.coroutine, Nested.generator])
async def test_do_s06_coroutine_and_generator_functions_are_refused(verb: Callable[[Nested], object]) -> None:
    async with running(Nested) as namespace:
        with pytest.raises(TurnRefused, match="Write `def`"):
            await namespace.ref("a").call(verb)
        assert await namespace.find("a") is None  # nothing was even opened


@pytest.mark.parametrize("verb", [Nested.hidden_coroutine, Nested.hidden_generator])
async def test_do_s06_a_verb_that_returns_one_is_undone(verb: Callable[[Nested], object]) -> None:
    async with running(Nested) as namespace:
        ref = namespace.ref("a")
        with pytest.raises(TurnRefused):
            await ref.call(verb)
        assert await ref.call(Nested.texts) == []


async def test_a_turn_happens_at_one_instant() -> None:
    def instants(shard: Notes) -> set[int]:
        return {shard.now_ms for _ in range(1000)}

    async with running(Notes) as namespace:
        [first] = await namespace.ref("a").call(instants)
        await trio.sleep(2)
        [second] = await namespace.ref("a").call(instants)
        assert second - first == 2000


async def test_chance_repeats_with_its_seed() -> None:
    async def draw(seed: int) -> list[float]:
        async with running(Notes, seed=seed) as namespace:
            return await namespace.ref("a").call(lambda shard: [shard.random.random() for _ in range(3)])

    assert await draw(7) == await draw(7)
    assert await draw(7) != await draw(8)


async def test_a_statement_that_fails_undoes_its_turn_and_the_shard_goes_on() -> None:
    def broken(shard: Notes) -> None:
        shard.add("1")
        shard.db.execute("INSERT INTO note (text) VALUES (NULL)")

    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        with pytest.raises(Exception, match="NOT NULL"):
            await ref.call(broken)
        await ref.call(Notes.add, "2")
        assert await ref.call(Notes.texts) == ["2"]
