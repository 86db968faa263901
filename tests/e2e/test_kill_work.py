"""A server is killed again and again while queues are worked: nothing is lost, done twice, or out of its order."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from edgequeues.client import Client, NewEntry, Retry, Unreachable
from edgequeues.client.messages import Message

from .process import Running, command, serving
from .work_ledger import KEYS, LINED, LOOSE, Ledger, buried, make_queues, name_of, sound, stored

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore:Async generator 'httpx:ResourceWarning"
    ),  # a body cut off while it is sent
]

ROUNDS = int(os.environ.get("EDGEQUEUES_KILL_ROUNDS", "10"))
SEED = int(os.environ.get("EDGEQUEUES_KILL_SEED", random.SystemRandom().randrange(1 << 32)))
DRAIN_S = 300
STRESS = ("--wal-checkpoint-bytes", "65536", "--wal-bytes-max", "1048576")


@dataclass
class Producer:
    """Pushes to one queue, one call after the other. With `keyed` a push that was not answered is repeated."""

    name: str
    ledger: Ledger
    keyed: bool
    chance: random.Random
    pending: list[NewEntry] = field(default_factory=list)
    made: int = 0

    async def run(self, client: Client) -> None:
        """Push until the server is gone."""
        while True:
            self.pending = self.pending or self.batch()
            labels = [name_of(entry.data) for entry in self.pending]
            try:
                answer = await client.push(self.ledger.queue, self.pending)
            except Unreachable:
                if not self.keyed:
                    self.ledger.unanswered.append(labels)
                    self.pending = []
                return
            for label, one in zip(labels, answer.results, strict=True):
                self.ledger.meet(label, one.id)
                self.ledger.pushed.add(label)
            self.pending = []
            await trio.sleep(self.chance.uniform(0, 0.01))

    def batch(self) -> list[NewEntry]:
        size = self.chance.choice([1, 1, 2, 5])
        numbers = range(self.made, self.made + size)
        self.made += size
        return [
            NewEntry(
                {"label": f"{self.name}-{number}", "pad": "x" * self.chance.randrange(200)},
                key=self.chance.choice(KEYS),
                priority=self.chance.choice([None, 2, 7]),
                idempotency_key=f"{self.name}-{number}" if self.keyed else None,
            )
            for number in numbers
        ]


@dataclass
class Worker:
    """Pulls from one queue; acks most, fails some, lets some lapse. An ack that was not answered is repeated."""

    ledger: Ledger
    chance: random.Random
    patient: bool = False  # does nothing but ack
    unanswered: list[Message] = field(default_factory=list)

    async def run(self, client: Client) -> None:
        """Work until the server is gone."""
        with suppress(Unreachable):
            await self.end(client, self.unanswered, permanent=False)
            while True:
                await self.step(client)

    async def step(self, client: Client) -> None:
        """Pull some messages, and deal with them."""
        sent, batch = trio.current_time(), 100 if self.patient else self.chance.choice([1, 3, 10])
        pulled = await client.pull(self.ledger.queue, batch=batch, wait_s=0.2)
        came = trio.current_time()
        for message in pulled.messages:
            self.ledger.hand(message, sent, came)
        dice = {message.lease: 0.0 if self.patient else self.chance.random() for message in pulled.messages}
        await self.end(client, [one for one in pulled.messages if dice[one.lease] < 0.7], permanent=False)
        await self.end(
            client, [one for one in pulled.messages if 0.7 <= dice[one.lease] < 0.8], permanent=True
        )
        failed = [lease for lease, chance in dice.items() if 0.8 <= chance < 0.92]
        if failed:
            answers = await client.retry(self.ledger.queue, failed, error="try again")
            assert {one.outcome for one in answers} <= {"done", "lapsed", "stale", "finished"}

    async def end(self, client: Client, messages: list[Message], *, permanent: bool) -> None:
        """Ack these, or give them up for good; until it is answered, that may have been done or not."""
        if not messages:
            return
        leases, sent = [one.lease for one in messages], trio.current_time()
        self.ledger.doubtful.update((one.lease, name_of(one.data)) for one in messages)
        if not permanent:
            self.unanswered = messages
            answers = await client.ack(self.ledger.queue, leases)
            self.unanswered = []
        else:
            answers = await client.retry(self.ledger.queue, leases, error="never", permanent=True)
        for message, answer in zip(messages, answers, strict=True):
            self.ledger.finish(message, answer, sent, permanent=permanent)


async def verify(url: str, ledgers: list[Ledger]) -> None:
    """Compare what is there with what was answered. A lease may lapse meanwhile, so the dead come last."""
    async with Client(url) as client:
        for ledger in ledgers:
            alive = await stored(client, ledger.queue)
            ledger.compare(alive, await buried(client, ledger.queue))


async def drain(url: str, ledger: Ledger) -> None:
    """Ack all that is left; then the totals of the consumer are those of the ledger."""
    worker = Worker(ledger, random.Random(0), patient=True)
    async with Client(url) as client:
        with trio.fail_after(DRAIN_S):
            while [one.unfinished for one in await client.consumers(ledger.queue)] != [0]:
                await worker.step(client)
        assert await stored(client, ledger.queue) == {}
        dead = await buried(client, ledger.queue)
        ledger.compare({}, dead)
        [totals] = await client.consumers(ledger.queue)
        assert totals.total_in == len(ledger.seen)
        assert totals.total_exhausted + totals.total_permanent == len(dead)
        assert totals.total_acked == totals.total_in - len(dead)
        assert ledger.seen == ledger.over.keys() | set(ledger.doubtful.values()) | dead.keys()
        print(
            f"{ledger.queue}: {len(ledger.pushed)} pushed, {len(ledger.acked)} acked, {len(dead)} dead,"
            f" {totals.total_lapsed} lapsed, {len(ledger.unanswered)} pushes unanswered, {dict(ledger.outcomes)}"
        )


async def one_round(
    server: Running, workers: list[Worker], producers: list[Producer], chance: random.Random
) -> None:
    """Work, and kill."""
    once = Retry(attempts_max=1)
    async with Client(server.url, retry=once) as client, trio.open_nursery() as nursery:
        for run in [one.run for one in producers] + [one.run for one in workers]:
            nursery.start_soon(run, client)
        await trio.sleep(chance.uniform(0.05, 0.8))
        await server.stop(signal.SIGKILL)


async def test_what_was_answered_of_work_survives_being_killed(tmp_path: Path) -> None:
    print(f"EDGEQUEUES_KILL_SEED={SEED} EDGEQUEUES_KILL_ROUNDS={ROUNDS}")
    chance, data = random.Random(SEED), tmp_path / "data"
    ledgers = [Ledger(LOOSE), Ledger(LINED)]
    producers = [
        Producer(
            f"{ledger.queue[-5:]}-{'k' if keyed else 'n'}{number}",
            ledger,
            keyed,
            random.Random(chance.random()),
        )
        for ledger in ledgers
        for number, keyed in enumerate((True, True, False))
    ]
    workers = [Worker(ledger, random.Random(chance.random())) for ledger in ledgers for _ in range(3)]
    for number in range(10 * ROUNDS):
        if number >= ROUNDS and all(ledger.acked and ledger.permanent for ledger in ledgers):
            break  # on a slow machine, a round may be over before much was done
        try:
            async with serving(data, *STRESS) as server:
                if not number:
                    await make_queues(server.url)
                await verify(server.url, ledgers)
                await one_round(server, workers, producers, chance)
            sound(data)
        except BaseException:
            print(f"round {number} of seed {SEED}")
            raise
    async with serving(data) as server:
        for worker in workers:
            async with Client(server.url) as client:
                await worker.end(client, worker.unanswered, permanent=False)
        for ledger in ledgers:
            await drain(server.url, ledger)
        assert await server.stop() == 0
    checked = await command("check", str(data))
    assert checked.returncode == 0, checked.stdout
    assert all(ledger.acked and ledger.permanent for ledger in ledgers)
