"""A server is killed again and again under load: what it had confirmed is there, once, in order."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from edgequeues.client import Appended, Client, ClientError, NewEntry, Retry

from .process import command, serving, spawn

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("EDGEQUEUES_KILL_ROUNDS", "50"))
SEED = int(os.environ.get("EDGEQUEUES_KILL_SEED", random.SystemRandom().randrange(1 << 32)))
SHARED = "dxn:queue:crowd:shared"
QUEUES = [SHARED] * 4 + [f"dxn:queue:own{n}:log" for n in range(3)]
STRESS = ("--wal-checkpoint-bytes", "65536", "--wal-bytes-max", "1048576", "--spaces-open-max", "2")


@dataclass
class Writer:
    """Appends to one queue, one call after the other, and remembers every answer.

    acked: object id to position, in the order of the answers. pending: a call that was not answered; it is
    repeated first thing, since with ids that must never double anything.
    """

    name: str
    queue: str
    chance: random.Random
    acked: dict[str, int] = field(default_factory=dict)
    cursors: dict[str, int] = field(default_factory=dict)  # of answers, with the position each stands for
    pending: list[NewEntry] = field(default_factory=list)
    made: int = 0

    async def write(self, url: str) -> None:
        """Append until the server is gone."""
        async with Client(url, retry=Retry(attempts_max=1)) as client:
            while True:
                self.pending = self.pending or self.batch()
                try:
                    answer = await client.append(self.queue, self.pending)
                except ClientError:
                    return
                self.note(answer.results, answer.cursor)
                self.pending = []

    def batch(self) -> list[NewEntry]:
        size = self.chance.choice([1, 1, 1, 5, 40])
        numbers = range(self.made, self.made + size)
        self.made += size
        return [
            NewEntry({"n": n, "pad": "x" * self.chance.randrange(300)}, id=f"{self.name}-{n}")
            for n in numbers
        ]

    def note(self, results: list[Appended], cursor: str) -> None:
        for one, sent in zip(results, self.pending, strict=True):
            assert one.id == sent.id
            assert one.outcome in ("new", "same")
            assert one.id not in self.acked
            self.acked[one.id] = one.position
        if results[-1].outcome == "new":  # a repeat is told the tail of now, which is not its own position
            self.cursors[cursor] = results[-1].position


async def verify(url: str, writers: list[Writer]) -> None:
    """What was answered is there at its position, once; what was not is there whole or not at all."""
    async with Client(url) as client:
        for queue in sorted({writer.queue for writer in writers}):
            own = [writer for writer in writers if writer.queue == queue]
            stored = {}
            async for entry in client.iterate(queue):
                assert entry.id not in stored, f"{entry.id} is there twice"
                stored[entry.id] = entry.position
            assert list(stored.values()) == sorted(stored.values())
            for writer in own:
                mine = {name: at for name, at in stored.items() if name.startswith(f"{writer.name}-")}
                extra = [name for name in mine if name not in writer.acked]
                lost = [name for name in writer.acked if name not in mine]
                assert not lost, f"{writer.name} lost {lost}"
                assert all(mine[name] == at for name, at in writer.acked.items())
                assert [name for name in mine if name in writer.acked] == list(writer.acked)
                assert extra in ([], [entry.id for entry in writer.pending])
                for cursor in writer.chance.sample(sorted(writer.cursors), min(3, len(writer.cursors))):
                    page = await client.read(queue, after=cursor, limit=5)
                    after = [at for at in stored.values() if at > writer.cursors[cursor]]
                    assert [entry.position for entry in page.entries] == after[:5]


async def one_round(data: Path, writers: list[Writer], chance: random.Random) -> None:
    """Start, check what the last kill left, write, kill."""
    if chance.random() < 0.1:  # killed before it is ready
        process = await spawn(data.with_name("data.log"), data, "--port", "0", *STRESS)
        await trio.sleep(chance.uniform(0.1, 0.6))
        process.kill()
        await process.wait()
    async with serving(data, *STRESS) as server:
        await verify(server.url, writers)
        async with trio.open_nursery() as nursery:
            for writer in writers:
                nursery.start_soon(writer.write, server.url)
            await trio.sleep(chance.uniform(0.02, 0.6))
            await server.stop(signal.SIGKILL)


@pytest.mark.filterwarnings(
    "ignore:Async generator 'httpx:ResourceWarning"
)  # a body cut off while it is sent
async def test_what_was_confirmed_survives_being_killed(tmp_path: Path) -> None:
    print(f"EDGEQUEUES_KILL_SEED={SEED} EDGEQUEUES_KILL_ROUNDS={ROUNDS}")
    chance = random.Random(SEED)
    data = tmp_path / "data"
    writers = [Writer(f"w{n}", queue, random.Random(chance.random())) for n, queue in enumerate(QUEUES)]
    for number in range(10 * ROUNDS):
        if number >= ROUNDS and all(writer.acked for writer in writers):
            break  # on a slow machine, a round may be over before much was done
        try:
            await one_round(data, writers, chance)
        except BaseException:
            print(f"round {number} of seed {SEED}")
            raise
    async with serving(data) as server:
        await verify(server.url, writers)
        assert await server.stop() == 0
    checked = await command("check", str(data))
    assert checked.returncode == 0, checked.stdout
    confirmed = Counter({writer.name: len(writer.acked) for writer in writers})
    print(f"{ROUNDS} kills, {confirmed.total()} entries confirmed, none lost: {dict(confirmed)}")
    assert all(confirmed.values())
