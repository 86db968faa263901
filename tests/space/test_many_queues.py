"""Random work on queues that send each other their dead letters, while everything about them is changed."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from edgequeues.core import leases
from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.models import (
    ConsumerConfig,
    LetterFilter,
    NewEntry,
    Pull,
    QueueConfig,
    RangeQuery,
    Retry,
    Start,
)
from edgequeues.space import check
from edgequeues.space.dead_verbs import ReplayAsk
from edgequeues.space.shard import SpaceShard

from .world import Space

STEPS, ROUNDS, RINGS = 250, 300, 300
NAMES = ("a", "b", "c-d", "c_d")  # two that count as the same
CONSUMERS = ("default", "one", "two")
SECOND = 1_000


class Chaos:
    """A space, who holds what there, and a hand that does something else every time."""

    def __init__(self, seed: int, *, back: bool) -> None:
        self.chance = random.Random(seed)
        self.back = back  # is the clock set back at times?
        self.space = Space()
        self.given: list[tuple[str, str]] = []  # queue and lease, of all there were
        self.live: dict[tuple[int, int], int] = {}  # until when a message is leased, by consumer and position
        self.doings: list[tuple[Callable[[], None], int]] = [
            (self.push, 16),
            (self.pull, 16),
            (self.answer, 18),
            (self.touch, 8),
            (self.replay, 5),
            (self.configure, 5),
            (self.consume, 4),
            (self.remove, 2),
            (self.wait, 12),
            (self.ring, 8),
            (self.space.shard.forget, 2),
        ]

    def step(self) -> None:
        [doing] = self.chance.choices([one for one, _ in self.doings], [weight for _, weight in self.doings])
        with suppress(EdgeQueuesError):  # refused, which leaves everything as it was
            doing()
        assert check.problems(self.space.db) == []

    # -- choosing ---------------------------------------------------------------------------------------

    @property
    def queue(self) -> str:
        """One there is, mostly: also of those that were made for dead letters."""
        there = self.queues()
        return self.chance.choice(there if there and self.chance.random() < 0.8 else NAMES)

    def queues(self) -> list[str]:
        return [one.id for one in self.space.call(SpaceShard.queues, "", 1_000).queues]

    def consumer(self) -> str | None:
        return self.chance.choice([None, *CONSUMERS])

    def some(self, queue: str) -> list[str]:
        """Ids of a few entries."""
        there = [one.id for one in self.space.read(queue, RangeQuery()).entries] or ["none"]
        return list(dict.fromkeys(self.chance.choice(there) for _ in range(self.chance.randint(1, 3))))

    # -- doing ------------------------------------------------------------------------------------------

    def push(self) -> None:
        pick = self.chance.choice
        entries = [
            NewEntry(
                str(self.chance.randrange(3)),
                pick([None, None, f"o{self.chance.randrange(6)}"]),
                key=pick([None, "k", "l"]),
                priority=pick([4, 4, 4, 9, 0]),
                delay_ms=pick([None, None, 0, 900]),
                ttl_ms=pick([None, None, None, 1, 1_500]),
                idempotency_key=pick([None, None, None, f"k{self.chance.randrange(5)}"]),
            )
            for _ in range(self.chance.randint(1, 4))
        ]
        if self.chance.random() < 0.8:
            self.space.call(SpaceShard.push, self.queue, entries)
        else:
            self.space.call(SpaceShard.append, self.queue, entries)

    def pull(self) -> None:
        queue, ask = self.queue, Pull(self.chance.choice([1, 2, 10]), self.chance.choice([None, 1, SECOND]))
        for message in self.space.call(SpaceShard.pull, queue, self.consumer(), ask).messages:
            consumer, position, _ = self.lease(message.lease)
            until = self.live.get((consumer, position))
            assert until is None or until <= self.now(), "handed out twice"
            self.live[consumer, position] = message.until
            self.given.append((queue, message.lease))

    def answer(self) -> None:
        """Ack, retry, release or extend some, in a queue that is seldom the wrong one."""
        if not self.given:
            return
        recent = self.given[-12:] if self.chance.random() < 0.8 else self.given
        some = [self.chance.choice(recent) for _ in range(self.chance.randint(1, 3))]
        queue, named = some[0][0] if self.chance.random() < 0.9 else self.queue, [one for _, one in some]
        how = self.chance.choice(["ack", "ack", "retry", "retry", "release", "extend"])
        if how == "ack":
            said = self.space.call(SpaceShard.ack, queue, named, even_stale=self.chance.random() < 0.3)
        elif how == "retry":
            delay_ms, permanent = self.chance.choice([None, None, 0, 300]), self.chance.random() < 0.2
            retries = [Retry(one, delay_ms, "no", permanent) for one in named]
            said = self.space.call(SpaceShard.retry, queue, retries)
        elif how == "release":
            said = self.space.call(SpaceShard.release, queue, named)
        else:
            said = self.space.call(SpaceShard.extend, queue, named, SECOND)
        for one, verdict in zip(named, said, strict=True):
            if verdict == "done":
                consumer, position, _ = self.lease(one)
                self.live[consumer, position] = self.now() + SECOND if how == "extend" else 0

    def touch(self) -> None:
        """Delete some, or all, or skip one."""
        queue = self.queue
        how = self.chance.choice(["delete", "delete", "skip", "skip", "purge"])
        if how == "delete":
            self.space.call(SpaceShard.delete_ids, queue, self.some(queue))
        elif how == "skip":
            self.space.call(SpaceShard.skip, queue, self.consumer(), self.some(queue)[0])
        else:
            self.space.call(SpaceShard.purge, queue)

    def replay(self) -> None:
        queue = self.queue
        if self.chance.random() < 0.5:
            self.space.call(SpaceShard.replay, queue, self.some(queue))
        else:
            per_second = self.chance.choice([None, 1.0])
            self.space.call(SpaceShard.replay_some, queue, ReplayAsk(LetterFilter(), per_second=per_second))

    def configure(self) -> None:
        pick = self.chance.choice
        config = QueueConfig(
            name=pick([None, None, *NAMES]),
            kind=pick(["work", "work", "log"]),
            max_age_ms=pick([None, None, 3_000, 100_000]),
            max_entries=pick([None, None, 1, 3]),
            mutable=pick([True, False]),
            on_ack=pick(["keep", "delete", "delete"]),
            retain_acked_ms=pick([0, 0, 2_000]),
            delay_ms=pick([0, 0, 1_500]),
            depth_max=pick([None, None, 5]),
            paused=pick([False, False, False, True]),
        )
        self.space.call(SpaceShard.configure, self.queue, config)

    def consume(self) -> None:
        pick = self.chance.choice
        rules = ConsumerConfig(
            ordering=pick(["unordered", "fifo", "per_key"]),
            lease_ms=pick([1, SECOND, 5 * SECOND]),
            attempts_max=pick([1, 2, 3, None]),
            backoff=Backoff(initial_ms=pick([0, SECOND]), max_ms=2 * SECOND),
            lapse_delay_ms=pick([0, 0, 700]),
            dead_letters=pick([None, None, "", *NAMES]),
        )
        start: Start = pick(["new", "beginning"])
        self.space.call(SpaceShard.consume, self.queue, self.consumer() or "default", rules, start)

    def remove(self) -> None:
        if self.chance.random() < 0.3:
            self.space.call(SpaceShard.remove, self.queue)
        else:
            self.space.call(SpaceShard.dismiss, self.queue, self.consumer() or "default")

    def wait(self) -> None:
        ms = self.chance.choice([1, 300, SECOND, SECOND, 5 * SECOND, 20 * SECOND])
        self.space.clock.advance(-ms if self.back and self.chance.random() < 0.3 else ms)

    def ring(self) -> None:
        """Run the alarm until it has nothing to do now."""
        for _ in range(RINGS):
            if not self.space.alarm_due():
                return
            self.space.run_alarm()
        raise AssertionError("the alarm never ends")

    # -- the end ----------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Let every queue be worked off; nothing may be stuck."""
        for _ in range(ROUNDS):
            self.space.clock.advance(20 * SECOND)
            self.ring()
            if not sum([self.work_off(queue) for queue in self.queues()]):
                break
        else:
            raise AssertionError("some messages are never finished")
        assert check.problems(self.space.db) == []

    def work_off(self, queue: str) -> int:
        """Ack all that can be pulled; return how many are left."""
        self.space.call(SpaceShard.reconfigure, queue, {"paused": False})
        for one in self.space.call(SpaceShard.consumers, queue):
            while given := self.space.call(SpaceShard.pull, queue, one.name, Pull(100)).messages:
                self.space.call(SpaceShard.ack, queue, [message.lease for message in given])
        infos = self.space.call(SpaceShard.consumers, queue)
        return sum(one.scheduled + one.waiting + one.ready + one.leased + one.backoff for one in infos)

    # -- looking ----------------------------------------------------------------------------------------

    def now(self) -> int:
        """The space's own time."""
        now_ms: int = self.space.shard._time()
        return now_ms

    def lease(self, text: str) -> leases.Lease:
        key, store_id = self.space.db.execute("SELECT lease_key, store_id FROM store").get
        found = leases.read(key, store_id, text)
        assert found is not None
        return found


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_nothing_is_given_twice_and_in_the_end_nothing_is_stuck(
    seed: int, *, back: bool
) -> None:
    """After every step all that must hold of the rows holds."""
    chaos = Chaos(seed, back=back)
    for _ in range(STEPS):
        chaos.step()
    chaos.finish()
    chaos.space.db.close()
