"""Checks of a store with which nothing goes wrong: what is enqueued comes out, in order, once, as it was."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import anyio

from edgequeues.store.base import StoreError
from edgequeues.store.subject import Check, Trial, equal, given, nothing, refused

DAY_MS = 24 * 3_600_000
VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**53 - 1,
    0.1,
    1e300,
    5e-324,
    "",
    "null",
    "Grüße, 世界, \U0001f600, \u05d0\u200f, e\u0301 and \u00e9",
    "\x00 \x1f \x7f \u2028 \ufeff \uffff \\ \" ' / <&>",
    [],
    {},
    [None, [True, [1, [2.5, ["deep"]]]]],
    {"": 1, "a.b": {"$c": [{}, {"d": None}]}, "Ä": "ä", "1": 1},
    {"id": "mine", "type": "data", "@type": "t", "message": {"attempts": 7}},
)


async def enqueue_then_dequeue(trial: Trial) -> None:
    """What is enqueued is handed out, under the id that was returned, as its first attempt."""
    async with trial.store() as store:
        made = await store.enqueue(trial.queue, {"n": 1})
        found = await given(store, trial.queue, {"n": 1})
        equal((found.id, found.queue, found.attempts), (made, trial.queue, 1), "id, queue and attempts")


async def another_store_sees_it(trial: Trial) -> None:
    """What one store object enqueued, another is handed."""
    async with trial.stores() as (one, other):
        await one.enqueue(trial.queue, "for you")
        await given(other, trial.queue, "for you")


async def ack_finishes(trial: Trial) -> None:
    """An acknowledged message is not handed out again, not even when its lease would have lapsed."""
    trial.require_time(trial.subject.lease_ms + 1)
    async with trial.store() as store:
        await store.enqueue(trial.queue, 1)
        await store.ack((await given(store, trial.queue, 1)).id)
        await nothing(store, trial.queue, "it was acknowledged")
        await trial.lapse()
        await nothing(store, trial.queue, "it was acknowledged")


async def leased_is_hidden(trial: Trial) -> None:
    """A message that was handed out is hidden, from others and from who has it."""
    async with trial.stores() as (one, other):
        await one.enqueue(trial.queue, 1)
        await given(one, trial.queue, 1)
        await nothing(other, trial.queue, "another has it")
        await nothing(one, trial.queue, "the same store has it")


async def each_to_one(trial: Trial) -> None:
    """Of many that dequeue at once, no two are handed the same message, and every message comes to one."""
    numbers: list[Any] = []

    async with trial.stores() as (one, other):
        for number in range(24):
            await one.enqueue(trial.queue, number)

        async def work(store: Any) -> None:
            while (found := await store.dequeue(trial.queue)) is not None:
                numbers.append(found.message)

        async with anyio.create_task_group() as tasks:
            for store in (one, other, one, other):
                tasks.start_soon(work, store)
    equal(sorted(numbers), list(range(24)), "messages handed out")


async def oldest_first(trial: Trial) -> None:
    """Messages come in the order in which they were enqueued."""
    async with trial.store() as store:
        for number in range(12):
            await store.enqueue(trial.queue, number)
        for number in range(12):
            await store.ack((await given(store, trial.queue, number)).id)


async def queues_are_apart(trial: Trial) -> None:
    """A message is in its queue alone, and another's with the same content is another."""
    left, right = trial.queue_of("left"), trial.queue_of("right")
    async with trial.store() as store:
        ids = [await store.enqueue(left, 1), await store.enqueue(right, 1)]
        found = [await given(store, left, 1), await given(store, right, 1)]
        equal([one.id for one in found], ids, "ids")
        equal(ids[0] == ids[1], False, "that both have the same id")
        await store.ack(ids[0])
        await store.retry(ids[1], 0)
        await nothing(store, left, "it was acknowledged")
        await given(store, right, 1)


async def messages_name_nothing(trial: Trial) -> None:
    """What a message says of itself means nothing to the store: two that both have an `id` are two."""
    value = {"id": "no id / at all", "key": "k", "@type": "t" * 600, "idempotency_key": 1}
    async with trial.store() as store:
        ids = {await store.enqueue(trial.queue, value) for _ in range(2)}
        ids.add(await store.enqueue(trial.queue, value, "k"))
        equal(len(ids), 3, "ids of three messages")
        for _ in range(3):
            await store.ack((await given(store, trial.queue, value)).id)
        await nothing(store, trial.queue, "all three were acknowledged")


async def values_are_kept(trial: Trial) -> None:
    """Whatever JSON has comes out as it went in: text of every script, numbers, nesting, any kind at the top."""
    async with trial.store() as store:
        for value in VALUES:
            await store.enqueue(trial.queue, value)
            found = await given(store, trial.queue, value)
            # 1, 1.0 and True are equal; their texts are not.
            as_text = [json.dumps(one, sort_keys=True) for one in (found.message, value)]
            equal(as_text[0], as_text[1], "the message as JSON")
            await store.ack(found.id)


async def large_is_kept(trial: Trial) -> None:
    """A message of 200 KB comes out as it went in."""
    value = {"rows": [{"n": n, "text": "äöü €" * 20} for n in range(1_500)]}
    async with trial.store() as store:
        await store.enqueue(trial.queue, value)
        equal((await given(store, trial.queue, value)).message, value, "the message")


async def other_than_json_is_refused(trial: Trial) -> None:
    """What JSON has no form for, or would change, is refused, and nothing is enqueued."""
    async with trial.store() as store:
        await store.enqueue(trial.queue, "first")
        for value in (float("nan"), float("inf"), b"bytes", object(), {1: "a key"}, (1, 2)):
            await refused(store.enqueue(trial.queue, value), (TypeError, ValueError), f"enqueue of {value!r}")
        await given(store, trial.queue, "first")
        await nothing(store, trial.queue, "what was refused is not there")


async def key_makes_one(trial: Trial) -> None:
    """Under one idempotency key there is one message, and its id is returned again."""
    async with trial.stores() as (one, other):
        first = await one.enqueue(trial.queue, {"n": 1}, "a key")
        equal(await one.enqueue(trial.queue, {"n": 1}, "a key"), first, "the id of the repeat")
        equal(await other.enqueue(trial.queue, {"n": 1}, "a key"), first, "the id of another's repeat")
        await given(one, trial.queue, {"n": 1})
        await nothing(one, trial.queue, "the others were repeats")


async def key_outlives_its_message(trial: Trial) -> None:
    """A key is known when its message is finished already."""
    async with trial.store() as store:
        first = await store.enqueue(trial.queue, 1, "k")
        await store.ack((await given(store, trial.queue, 1)).id)
        equal(await store.enqueue(trial.queue, 1, "k"), first, "the id of the repeat")
        await nothing(store, trial.queue, "it was a repeat of what is finished")


async def key_keeps_its_message(trial: Trial) -> None:
    """Another message under a known key is refused, or taken for a repeat; it is not enqueued."""
    async with trial.store() as store:
        first = await store.enqueue(trial.queue, "first", "k")
        with suppress(StoreError):
            equal(await store.enqueue(trial.queue, "second", "k"), first, "the id of the repeat")
        await given(store, trial.queue, "first")
        await nothing(store, trial.queue, "the key was that of another message")


async def key_is_of_its_queue(trial: Trial) -> None:
    """The same key in another queue is another message, and messages without a key are no repeats."""
    left, right = trial.queue_of("left"), trial.queue_of("right")
    async with trial.store() as store:
        await store.enqueue(left, 1, "k")
        await store.enqueue(right, 1, "k")
        await given(store, right, 1)
        await store.enqueue(left, 1)
        await store.enqueue(left, 1)
        for _ in range(3):
            await given(store, left, 1)


async def key_is_known_for_24_hours(trial: Trial) -> None:
    """A second before 24 h are over a key is known; a second after, it is not."""
    trial.require_time(DAY_MS)
    async with trial.store() as store:
        first = await store.enqueue(trial.queue, 1, "k")
        await store.ack((await given(store, trial.queue, 1)).id)
        await trial.wait(DAY_MS - 1_000)
        equal(await store.enqueue(trial.queue, 1, "k"), first, "the id a second before 24 h")
        await nothing(store, trial.queue, "a second before 24 h it is a repeat")
        await trial.wait(2_000)
        await store.enqueue(trial.queue, 1, "k")
        await given(store, trial.queue, 1)


CHECKS: tuple[Check, ...] = tuple(
    Check(look.__name__, " ".join((look.__doc__ or "").split()), look)
    for look in (
        enqueue_then_dequeue,
        another_store_sees_it,
        ack_finishes,
        leased_is_hidden,
        each_to_one,
        oldest_first,
        queues_are_apart,
        messages_name_nothing,
        values_are_kept,
        large_is_kept,
        other_than_json_is_refused,
        key_makes_one,
        key_outlives_its_message,
        key_keeps_its_message,
        key_is_of_its_queue,
        key_is_known_for_24_hours,
    )
)
