"""What one request of the Cloudflare dialect does in a space, as one turn."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from edgequeues.core.errors import NameTaken, NoConsumer, QueueNotFound
from edgequeues.http import cloudflare_errors as errors
from edgequeues.http.cloudflare_answers import Answers, Emit
from edgequeues.http.cloudflare_codec import RETENTION_S, NewConsumer, queue_name
from edgequeues.http.cloudflare_errors import Refused
from edgequeues.models import (
    WORK_QUEUE,
    Backlog,
    ConsumerConfig,
    ConsumerInfo,
    Entry,
    Message,
    NewEntry,
    Pull,
    Purge,
    QueueConfig,
    QueueInfo,
    RangeQuery,
    Verdict,
)
from edgequeues.space.consumers import DEFAULT
from edgequeues.space.dead_verbs import Told
from edgequeues.space.shard import SpaceShard
from shards.shard import grows


class View(Struct, frozen=True):
    """A queue with its consumers. graves: the names of the queues their dead letters go to, by id."""

    info: QueueInfo
    consumers: list[ConsumerInfo]
    graves: dict[str, str]


def view(space: SpaceShard, queue: str) -> View:
    """One queue. Raises QueueNotFound."""
    consumers = space.consumers(queue)
    graves: dict[str, str] = {}
    for one in consumers:
        named = one.config.dead_letters
        info = _find(space, named) if named else None
        if named and info is not None:
            graves[named] = info.config.name or info.id
    return View(space.stats(queue), consumers, graves)


def views(space: SpaceShard, after: str, limit: int) -> tuple[list[View], str | None]:
    """Queues by id from above `after`, and where to go on."""
    page = space.queues(after, limit)
    return [view(space, info.id) for info in page.queues], page.resume


def named(space: SpaceShard, names: Sequence[str]) -> list[View]:
    """Those queues of these names that there are."""
    found = [_find(space, name) for name in dict.fromkeys(names)]
    return [view(space, info.id) for info in found if info is not None and info.config.name in names]


@grows
def create(space: SpaceShard, config: QueueConfig) -> View:
    """Make a queue, which has no consumer. Raises Refused."""
    try:
        return view(space, space.create(config).id)
    except NameTaken:
        raise _taken(config.name) from None


@grows
def change(space: SpaceShard, queue: str, changes: dict[str, object]) -> View:
    """Change settings of a queue. Raises QueueNotFound, Refused."""
    try:
        space.reconfigure(queue, changes)
    except NameTaken:
        raise _taken(changes["name"]) from None
    return view(space, queue)


def _taken(name: object) -> Refused:
    return Refused(
        11009, f"Queue name '{name}' is already taken. Please use a different name and try again.", 409
    )


# -- consumers ----------------------------------------------------------------------------------------------


@grows
def add_consumer(space: SpaceShard, queue: str, new: NewConsumer) -> View:
    """Make the one consumer; it is given all that waits already. Raises QueueNotFound, Refused."""
    if space.consumers(queue):
        raise Refused(
            errors.CONSUMER_EXISTS,
            f"workers.api.error.consumer_exists: queue {_name(space, queue)} has a consumer, and only one may be; "
            "remove that first",
            409,
        )
    space.consume(queue, DEFAULT, _buried(space, new), start="beginning")
    return view(space, queue)


@grows
def change_consumer(space: SpaceShard, queue: str, consumer: str, new: NewConsumer) -> View:
    """Replace the rules of a consumer, but for those that this protocol has no words for.

    Raises QueueNotFound, ConsumerNotFound, Refused.
    """
    had = space.rules(queue, consumer)
    rules = replace(
        _buried(space, new),
        ordering=had.ordering,
        starvation_after_ms=had.starvation_after_ms,
        dead_letter_body=had.dead_letter_body,
    )
    space.consume(queue, consumer, rules)
    return view(space, queue)


def _buried(space: SpaceShard, new: NewConsumer) -> ConsumerConfig:
    """The rules with the id of the queue for dead letters, which is made where there is none of that name."""
    if not new.grave:
        return new.rules
    info = _find(space, new.grave)
    if info is None:
        config = replace(WORK_QUEUE, name=queue_name(new.grave), max_age_ms=RETENTION_S * 1_000)
        info = space.create(config)
    return replace(new.rules, dead_letters=info.id)


def _find(space: SpaceShard, queue: str) -> QueueInfo | None:
    try:
        return space.stats(queue)
    except QueueNotFound:
        return None


def _name(space: SpaceShard, queue: str) -> str:
    return space.stats(queue).config.name or queue


# -- messages -----------------------------------------------------------------------------------------------


@grows
def push(space: SpaceShard, queue: str, entries: Sequence[NewEntry], *, make: bool = False) -> Backlog:
    """Append messages. Raises QueueNotFound, QueueFull."""
    space.push(queue, entries, make=make)
    return space.backlog(queue)


class Handed(Struct, frozen=True):
    """What a pull gave. letters: what is told of those that are dead letters, by position."""

    messages: list[Message]
    letters: dict[int, Told]
    backlog: Backlog


@grows
def pull(space: SpaceShard, queue: str, ask: Pull) -> Handed:
    """Lease messages. Raises QueueNotFound, Refused where nobody may pull or the queue is paused."""
    rules = _pull_rules(space, queue)
    pulled = space.pull(queue, None, ask)
    if pulled.paused:
        raise Refused(
            errors.PAUSED,
            f"queue_delivery_paused: delivery from queue {_name(space, queue)} is paused; resume it first",
            409,
        )
    positions = [one.entry.position for one in pulled.messages]
    letters = space.told(positions, whole=rules.dead_letter_body == "envelope") if positions else {}
    return Handed(pulled.messages, letters, space.backlog(queue))


def _pull_rules(space: SpaceShard, queue: str) -> ConsumerConfig:
    """The rules by which clients pull. Raises QueueNotFound, Refused where they may not."""
    try:
        rules = space.rules(queue)
    except NoConsumer:
        rules = None
    if rules is None or rules.facts.get("type") == "worker":
        raise Refused(
            errors.METHOD,
            f"queue {_name(space, queue)} has no consumer of type http_pull; add one to pull from it",
            405,
        )
    return rules


class Emitted(Struct, frozen=True):
    """A message that was appended with an ack, and the queue it lies in."""

    lease: str
    queue: QueueInfo
    object_id: str


class Settled(Struct, frozen=True):
    """What became of the leases of an ack, in the order they were given in; emitted: what was appended with it."""

    acks: list[Verdict]
    retries: list[Verdict]
    releases: list[Verdict]
    emitted: list[Emitted]


def settle(space: SpaceShard, queue: str, said: Answers) -> Settled:
    """Finish messages and give others back. Raises QueueNotFound."""
    return Settled(
        space.ack(queue, said.acks, even_stale=True, results=said.results),
        space.retry(queue, said.retries) if said.retries else [],
        space.release(queue, said.releases) if said.releases else [],
        [],
    )


@grows
def settle_emitting(space: SpaceShard, queue: str, said: Answers, make: bool) -> Settled:
    """The same, and append what goes with the acks; what was acked before, maybe by others, has had its own.

    make: may queues be made? Raises QueueNotFound, and as a push does: then nothing was done.
    """
    done = settle(space, queue, said)
    finished = {lease for lease, verdict in zip(said.acks, done.acks, strict=True) if verdict == "done"}
    return replace(done, emitted=[_emit(space, one, make) for one in said.emits if one.lease in finished])


def _emit(space: SpaceShard, one: Emit, make: bool) -> Emitted:
    [appended] = space.push(one.queue, [one.entry], make=make).results
    return Emitted(one.lease, space.stats(one.queue), appended.id)


def extend(space: SpaceShard, queue: str, leases: Sequence[str], lease_ms: int | None) -> list[Verdict]:
    """Move the ends of leases. Raises QueueNotFound, Refused."""
    rules = _pull_rules(space, queue)
    return space.extend(queue, leases, rules.lease_ms if lease_ms is None else lease_ms)


class Seen(Struct, frozen=True):
    """What a peek found: entries with their attempts. letters: as in `Handed`."""

    entries: list[tuple[Entry, int]]
    letters: dict[int, Told]


def peek(space: SpaceShard, queue: str, limit: int) -> Seen:
    """Messages that could be pulled now; of a queue without consumers, all that lie there and are due."""
    try:
        rules = space.rules(queue)
    except NoConsumer:
        entries = space.read(queue, RangeQuery(limit=limit)).entries
        found = [(one, 0) for one in entries if one.due is None or one.due <= space.now_ms]
        whole = False
    else:
        found = [(one.entry, one.attempts) for one in space.upcoming(queue, None, limit)]
        whole = rules.dead_letter_body == "envelope"
    return Seen(found, space.told([one.position for one, _ in found], whole=whole))


def drop(space: SpaceShard, queue: str, object_ids: Sequence[str]) -> list[bool]:
    """Delete messages one by one; say of each whether it was there. Raises QueueNotFound."""
    space.stats(queue)
    return [space.delete_ids(queue, [one]) == 1 for one in object_ids]


def purged(space: SpaceShard, queue: str) -> tuple[View, Purge]:
    """How far the last purge has come. Raises QueueNotFound."""
    return view(space, queue), space.purge_state(queue)
