"""Checks of a store with which things go wrong: work fails, leases lapse, callers are cancelled, it restarts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import anyio
import anyio.lowlevel

from edgequeues.store.base import LeaseLost, NotHeld, QueueNotFound, QueueStore, StoreError
from edgequeues.store.subject import Check, Trial, equal, given, nothing, refused

DELAY_MS = 1_000
STEPS = 14  # moments at which a call is cancelled: before its first step,
ROUNDS = 8  # after each of so many rounds of the event loop, and then some milliseconds later
Answer = Callable[[QueueStore, str], Awaitable[None]]


async def _ack(store: QueueStore, message_id: str) -> None:
    await store.ack(message_id)


async def _retry(store: QueueStore, message_id: str) -> None:
    await store.retry(message_id, 0)


async def _dead_letter(store: QueueStore, message_id: str) -> None:
    await store.dead_letter(message_id, "no use")


ANSWERS: dict[str, Answer] = {"ack": _ack, "retry": _retry, "dead-letter": _dead_letter}


async def retry_waits(trial: Trial) -> None:
    """A message that is to be retried comes when its delay is over, not before, as the same with one attempt more."""
    async with trial.store() as store:
        made = await store.enqueue(trial.queue, "x")
        await store.retry((await given(store, trial.queue, "x")).id, DELAY_MS)
        await nothing(store, trial.queue, f"its delay of {DELAY_MS} ms is not over")
        await trial.wait(DELAY_MS + 1)
        again = await given(store, trial.queue, "x")
        equal((again.id, again.attempts), (made, 2), "id and attempts")


async def retry_at_once(trial: Trial) -> None:
    """Without a delay it comes at once; each hand-out is counted."""
    async with trial.store() as store:
        await store.enqueue(trial.queue, "x")
        for attempts in (1, 2, 3):
            found = await given(store, trial.queue, "x")
            equal(found.attempts, attempts, "attempts")
            await store.retry(found.id, 0)
        await store.ack((await given(store, trial.queue, "x")).id)


async def retry_does_not_hold_up_others(trial: Trial) -> None:
    """While a message waits for its retry, those after it are handed out."""
    async with trial.store() as store:
        await store.enqueue(trial.queue, "first")
        await store.enqueue(trial.queue, "second")
        await store.retry((await given(store, trial.queue, "first")).id, 60_000)
        await given(store, trial.queue, "second")


async def impossible_delays_are_refused(trial: Trial) -> None:
    """A delay that cannot be is refused, and the message is still held."""
    async with trial.store() as store:
        await store.enqueue(trial.queue, 1)
        found = await given(store, trial.queue, 1)
        await refused(store.retry(found.id, -1), ValueError, "a retry in -1 ms")
        await store.ack(found.id)


async def lapsed_comes_again(trial: Trial) -> None:
    """A message that nobody answers comes again when its lease has lapsed, and the attempt counts."""
    trial.require_time(trial.subject.lease_ms + 1)
    async with trial.stores() as (one, other):
        await one.enqueue(trial.queue, 1)
        await given(one, trial.queue, 1)
        await trial.lapse()
        again = await given(other, trial.queue, 1)
        equal(again.attempts, 2, "attempts")
        await other.ack(again.id)


async def lost_leases_are_told(trial: Trial) -> None:
    """Who answers after another was handed the message is told LeaseLost, and changes nothing."""
    trial.require_time(3 * (trial.subject.lease_ms + 1))
    for name, answer in ANSWERS.items():
        queue = trial.queue_of(name)
        async with trial.stores() as (one, other):
            await one.enqueue(queue, 1)
            found = await given(one, queue, 1)
            await trial.lapse()
            await given(other, queue, 1)
            await refused(answer(one, found.id), LeaseLost, f"{name} by who lost the lease")
            await nothing(one, queue, "the other still has it")
            await other.ack(found.id)
            await nothing(one, queue, "the other has finished it")


async def strangers_cannot_answer(trial: Trial) -> None:
    """Who was not handed a message cannot answer it: NotHeld, and it stays where it is."""
    for name, answer in ANSWERS.items():
        queue = trial.queue_of(name)
        async with trial.stores() as (one, other):
            made = await one.enqueue(queue, 1)
            await refused(answer(one, made), NotHeld, f"{name} of what was not handed out")
            await refused(answer(one, "no such id"), NotHeld, f"{name} of an id that never was")
            await given(one, queue, 1)
            await refused(answer(other, made), NotHeld, f"{name} by another store object")
            await one.ack(made)


async def one_answer_only(trial: Trial) -> None:
    """When a message was answered, a second answer is told NotHeld, and changes nothing."""
    for name, answer in ANSWERS.items():
        queue = trial.queue_of(name)
        async with trial.store() as store:
            await store.enqueue(queue, 1)
            found = await given(store, queue, 1)
            await store.ack(found.id)
            await refused(answer(store, found.id), NotHeld, f"{name} after ack")
            await nothing(store, queue, "it was acknowledged")


async def unknown_queues_are_told(trial: Trial) -> None:
    """To dequeue where nothing was ever enqueued raises QueueNotFound: the name may be wrong."""
    async with trial.store() as store:
        await refused(store.dequeue(trial.queue_of("missing")), QueueNotFound, "dequeue of an unknown queue")


async def dead_letter_puts_away(trial: Trial) -> None:
    """A dead letter is not handed out again, and does not hold up what is behind it."""
    trial.require_time(trial.subject.lease_ms + 1)
    async with trial.store() as store:
        await store.enqueue(trial.queue, "bad")
        await store.enqueue(trial.queue, "good")
        await store.dead_letter((await given(store, trial.queue, "bad")).id, "no use")
        await store.ack((await given(store, trial.queue, "good")).id)
        await trial.lapse()
        await nothing(store, trial.queue, "one is a dead letter, the other is finished")


async def dead_letter_keeps_the_error(trial: Trial) -> None:
    """A dead letter is kept with its message and what was said to be wrong."""
    async with trial.store() as store:
        await store.enqueue(trial.queue, {"n": 1})
        error = "order 7: déjà paid\nby 世界"
        await store.dead_letter((await given(store, trial.queue, {"n": 1})).id, error)
        equal(await trial.letters(trial.queue), [({"n": 1}, error)], "dead letters")


async def restarts_lose_nothing(trial: Trial) -> None:
    """What was confirmed is so after a restart: messages, leases, acknowledgements and keys."""
    trial.require_time(trial.subject.lease_ms + 1)
    async with trial.store() as store:
        first = await store.enqueue(trial.queue, "finished", "k")
        await store.enqueue(trial.queue, "leased")
        await store.enqueue(trial.queue, "waiting")
        await store.ack((await given(store, trial.queue, "finished")).id)
        await given(store, trial.queue, "leased")
    await trial.restart()
    async with trial.store() as store:
        await store.ack((await given(store, trial.queue, "waiting")).id)
        await nothing(store, trial.queue, "one is finished, one is leased")
        equal(await store.enqueue(trial.queue, "finished", "k"), first, "the id of a repeat")
        await trial.lapse()
        equal((await given(store, trial.queue, "leased")).attempts, 2, "attempts")


async def cancelled_enqueue_is_whole(trial: Trial) -> None:
    """An enqueue that was cancelled and is done again under its key makes one message."""
    async with trial.store() as store:
        for steps in range(STEPS):
            queue = trial.queue_of(str(steps))
            await _cancelled(partial(store.enqueue, queue, 1, "k"), steps)
            await store.enqueue(queue, 1, "k")
            await store.ack((await given(store, queue, 1)).id)
            await nothing(store, queue, "there is one message under the key")


async def cancelled_dequeue_loses_nothing(trial: Trial) -> None:
    """A message that a cancelled dequeue may have taken comes again when its lease would have lapsed."""
    trial.require_time(trial.subject.lease_ms + 1)
    queues = [trial.queue_of(str(steps)) for steps in range(STEPS)]
    async with trial.store() as store:
        for steps, queue in enumerate(queues):
            await store.enqueue(queue, steps)
            await _cancelled(partial(store.dequeue, queue), steps)
        await trial.lapse()
        for steps, queue in enumerate(queues):
            await store.ack((await given(store, queue, steps)).id)


async def cancelled_ack_can_be_repeated(trial: Trial) -> None:
    """An ack that was cancelled can be done again, whether it counted or not; then the message is finished."""
    trial.require_time(trial.subject.lease_ms + 1)
    queues = [trial.queue_of(str(steps)) for steps in range(STEPS)]
    async with trial.store() as store:
        for steps, queue in enumerate(queues):
            await store.enqueue(queue, 1)
            message_id = (await given(store, queue, 1)).id
            await _cancelled(partial(store.ack, message_id), steps)
            with suppress(NotHeld, LeaseLost):  # then the first one counted
                await store.ack(message_id)
        await trial.lapse()
        for queue in queues:
            await nothing(store, queue, "it was acknowledged")


async def _cancelled(call: Callable[[], Awaitable[object]], step: int) -> None:
    """Call, and cancel that at one of STEPS moments, unless it is done by then. What it raises is its own affair."""

    async def run() -> None:
        with suppress(StoreError):
            await call()
        scope.cancel()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            for _ in range(min(step, ROUNDS)):
                await anyio.lowlevel.checkpoint()
            if step > ROUNDS:
                await anyio.sleep(0.001 * 2 ** (step - ROUNDS))
            scope.cancel()


CHECKS: tuple[Check, ...] = tuple(
    Check(look.__name__, " ".join((look.__doc__ or "").split()), look)
    for look in (
        retry_waits,
        retry_at_once,
        retry_does_not_hold_up_others,
        impossible_delays_are_refused,
        lapsed_comes_again,
        lost_leases_are_told,
        strangers_cannot_answer,
        one_answer_only,
        unknown_queues_are_told,
        dead_letter_puts_away,
        dead_letter_keeps_the_error,
        restarts_lose_nothing,
        cancelled_enqueue_is_whole,
        cancelled_dequeue_loses_nothing,
        cancelled_ack_can_be_repeated,
    )
)
