"""What a killed server had answered about work queues, to be compared with what is there afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import trio

from edgequeues.client import Client, QueueConfig, Refused
from edgequeues.client.messages import Answered, Backoff, ConsumerRules, DeadLetter, Message
from edgequeues.space.check import problems
from edgequeues.space.schema import MIGRATIONS
from shards.check import check
from shards.folders import locked

LOOSE, LINED = "dxn:queue:farm:loose", "dxn:queue:farm:lined"
KEYS = ("red", "green", "blue")
ATTEMPTS_MAX, LEASE_MS = 4, 300
_RULES = ConsumerRules(
    attempts_max=ATTEMPTS_MAX, lease_ms=LEASE_MS, backoff=Backoff(initial_ms=20, max_ms=100)
)
RULES = {LOOSE: _RULES, LINED: msgspec.structs.replace(_RULES, ordering="per_key")}


@dataclass
class Ledger:
    """What the answers of all rounds have said of one queue. Messages are called by a label in their data.

    over: when the answer came that said a message is finished. doubtful: leases that were to finish one and were not
    answered, with its label. attempts: the last number that was told of each, and when. given: when each position
    of a key was handed out first.
    """

    queue: str
    ids: dict[str, str] = field(default_factory=dict)
    pushed: set[str] = field(default_factory=set)
    unanswered: list[list[str]] = field(default_factory=list)  # pushes that are not repeated
    acked: set[str] = field(default_factory=set)
    permanent: set[str] = field(default_factory=set)
    over: dict[str, float] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, tuple[int, float]] = field(default_factory=dict)
    given: dict[str, dict[int, float]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    outcomes: Counter[str] = field(default_factory=Counter)

    def meet(self, label: str, object_id: str) -> None:
        """A message exists once: whoever speaks of it means the same object."""
        assert self.ids.setdefault(label, object_id) == object_id, f"{label} exists twice"
        self.seen.add(label)

    def hand(self, message: Message, sent: float, came: float) -> str:
        """Note a message that a pull gave, asked at `sent` and answered at `came`; return its label."""
        label = name_of(message.data)
        self.meet(label, message.id)
        assert not self.over.get(label, came) < sent, f"{label} was finished, and comes back"
        before, told = self.attempts.get(label, (0, 0.0))
        assert message.attempts <= ATTEMPTS_MAX
        assert message.attempts > before or told > sent, f"{label}: {before} attempts, now {message.attempts}"
        self.attempts[label] = (message.attempts, came)
        if message.key is not None and RULES[self.queue].ordering == "per_key":
            self.in_turn(message, sent)
            self.given.setdefault(message.key, {}).setdefault(message.position, came)
        return label

    def in_turn(self, message: Message, sent: float) -> None:
        """No later message of its key had been handed out when this was asked for, so it was unfinished."""
        later = self.given.get(message.key or "", {})
        early = [at for at, came in later.items() if at > message.position and came < sent]
        assert not early, f"{early} of {message.key} were handed out before {message.position} was finished"

    def finish(self, message: Message, answer: Answered, sent: float, *, permanent: bool) -> None:
        """Note what became of a lease that was to end its message."""
        label = self.doubtful.pop(message.lease)
        self.outcomes[answer.outcome] += 1
        assert answer.outcome != "unknown"
        if answer.outcome == "done":
            assert label not in self.acked | self.permanent, f"{label} was finished twice"
            (self.permanent if permanent else self.acked).add(label)
            if message.key is not None and RULES[self.queue].ordering == "per_key":
                self.in_turn(message, sent)
        if answer.settled:
            self.over[label] = trio.current_time()

    def compare(self, stored: dict[str, str], dead: dict[str, DeadLetter]) -> None:
        """What is in the queue and, looked at later, among the dead is what the answers said."""
        for label, object_id in [*stored.items(), *((name, one.original_id) for name, one in dead.items())]:
            self.meet(label, object_id)
        assert not stored.keys() & self.over.keys()
        assert not self.acked & dead.keys()
        assert self.permanent <= dead.keys()
        lost = self.pushed - stored.keys() - dead.keys() - self.over.keys() - set(self.doubtful.values())
        assert not lost, f"{sorted(lost)} of {self.queue} are lost"
        for letter in dead.values():
            assert letter.reason == "permanent" or letter.attempts == ATTEMPTS_MAX
        for labels in self.unanswered:
            assert self.seen.isdisjoint(labels) or self.seen.issuperset(labels), f"{labels}: half a push"


def name_of(data: object) -> str:
    assert isinstance(data, dict)
    return str(data["label"])


async def stored(client: Client, queue: str) -> dict[str, str]:
    """Labels and ids of the messages that are unfinished. Some may end meanwhile, none may come."""
    found: dict[str, str] = {}
    after: int | None = 0
    while after is not None:
        page = await client.peek(queue, after=after, limit=1_000)
        for one in page.messages:
            assert name_of(one.data) not in found
            found[name_of(one.data)] = one.id
        after = page.resume
    kept = {entry.id async for entry in client.iterate(queue)}
    assert kept <= set(found.values()), "what is finished is kept"
    return found


async def buried(client: Client, queue: str) -> dict[str, DeadLetter]:
    """The dead letters of a queue by their labels."""
    found: dict[str, DeadLetter] = {}
    try:
        async for letter in client.iterate_dead_letters(f"{queue}-dlq"):
            assert name_of(letter.data) not in found
            found[name_of(letter.data)] = letter
    except Refused as error:
        assert error.code == "queue_not_found"  # noqa: PT017 (nobody has died yet)
    return found


def sound(data: Path) -> None:
    """The files, as they were left, have no problems."""
    with locked(data):
        assert [problem for one in check(data, MIGRATIONS, problems) for problem in one.problems] == []


async def make_queues(url: str) -> None:
    async with Client(url) as client:
        for queue, rules in RULES.items():
            await client.configure(queue, QueueConfig(kind="work", mutable=False, on_ack="delete"))
            await client.delete_consumer(queue, "default")
            await client.put_consumer(queue, "default", rules)
