"""The work queue `jobs` of a space, or another one, as the tests ask it."""

from __future__ import annotations

from edgequeues.models import (
    WORK_QUEUE,
    ConsumerConfig,
    ConsumerInfo,
    Entry,
    Explanation,
    Message,
    NewEntry,
    Pull,
    Retry,
    Verdict,
)
from edgequeues.models_letters import Replayed
from edgequeues.space.letters import Envelope
from edgequeues.space.shard import SpaceShard

from .world import Space


class Jobs:
    """Short verbs; time is the space's clock. rules: of the consumer, where they are not the usual ones."""

    def __init__(self, space: Space, rules: ConsumerConfig | None = None, queue: str = "jobs") -> None:
        self.space = space
        self.queue = queue
        self.dlq = Dead(space, f"{queue}-dlq")
        self.began_ms = space.clock.now_ms()
        if rules is not None:
            space.call(SpaceShard.configure, queue, WORK_QUEUE)
            space.call(SpaceShard.dismiss, queue, "default")
            space.call(SpaceShard.consume, queue, "default", rules)

    # -- time -------------------------------------------------------------------------------------------

    def at(self, ms: int) -> None:
        """Let it be so many ms after this was made; nobody looks at the space meanwhile."""
        self.space.clock.advance(ms - self.passed)

    @property
    def passed(self) -> int:
        return self.space.clock.now_ms() - self.began_ms

    def ring(self) -> None:
        """Run the alarm, if it is due."""
        while self.space.alarm_due():
            self.space.run_alarm()

    # -- working ----------------------------------------------------------------------------------------

    def push(self, *data: str, **options: object) -> list[str]:
        """Push messages with the same options; their ids."""
        entries = [NewEntry(one, **options) for one in data]  # type: ignore[arg-type]
        return [one.id for one in self.space.call(SpaceShard.push, self.queue, entries).results]

    def pull(self, batch: int = 1, lease_ms: int | None = None) -> list[Message]:
        return self.space.call(SpaceShard.pull, self.queue, None, Pull(batch, lease_ms)).messages

    def one(self) -> Message:
        """Pull the only message that can be pulled."""
        [message] = self.pull(batch=2)
        return message

    def given(self, batch: int = 100) -> list[str]:
        """Pull; the data of what was given."""
        return [one.entry.data for one in self.pull(batch)]

    def ack(self, *messages: Message, even_stale: bool = False) -> list[Verdict]:
        leases = [one.lease for one in messages]
        return self.space.call(SpaceShard.ack, self.queue, leases, even_stale=even_stale)

    def fail(self, *messages: Message, **how: object) -> list[Verdict]:
        retries = [Retry(one.lease, **how) for one in messages]  # type: ignore[arg-type]
        return self.space.call(SpaceShard.retry, self.queue, retries)

    def bury(self, *data: str, **options: object) -> None:
        """Push messages and give them up."""
        self.push(*data, **options)
        while messages := self.pull(100):
            assert set(self.fail(*messages, permanent=True, error="no")) == {"done"}

    # -- looking ----------------------------------------------------------------------------------------

    @property
    def info(self) -> ConsumerInfo:
        [found] = self.space.call(SpaceShard.consumers, self.queue)
        return found

    def oldest_ready(self) -> int | None:
        return self.info.oldest_ready

    def explain(self, object_id: str) -> Explanation:
        [found] = self.space.call(SpaceShard.explain, self.queue, object_id)
        return found

    @property
    def states(self) -> dict[str, int]:
        """How many messages are in each state that there is one in."""
        info = self.info
        states = ("scheduled", "waiting", "ready", "leased", "backoff")
        return {state: getattr(info, state) for state in states if getattr(info, state)}


class Dead:
    """A queue of dead letters."""

    def __init__(self, space: Space, queue: str) -> None:
        self.space = space
        self.queue = queue

    def letters(self) -> list[tuple[Entry, Envelope]]:
        """All of them; none where the queue was not made yet."""
        found: list[tuple[Entry, Envelope]] = []
        if all(one.config.name != self.queue for one in self.space.call(SpaceShard.queues, "", 1_000).queues):
            return found
        while page := self.space.call(SpaceShard.dead_letters, self.queue, _last(found), 500):
            found += page
        return found

    @property
    def data(self) -> list[str]:
        return [entry.data for entry, _ in self.letters()]

    @property
    def ids(self) -> list[str]:
        return [entry.id for entry, _ in self.letters()]

    def replay(self, *object_ids: str) -> list[Replayed]:
        return self.space.call(SpaceShard.replay, self.queue, object_ids)


def _last(found: list[tuple[Entry, Envelope]]) -> int:
    return found[-1][0].position if found else 0
