"""Stores with one thing wrong each, for a suite that is to notice: where all else goes well."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Awaitable
from typing import ClassVar, TypeVar

import msgspec
import trio

from edgequeues.store import NotHeld, StoredMessage

from .subjects import Ours

T = TypeVar("T")


class Mutant:
    """Does what the store does that it stands before; each kind overrides one thing. Those it names must fail."""

    fails: ClassVar[tuple[str, ...]]

    def __init__(self, store: Ours) -> None:
        self.store = store

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        return await self.store.enqueue(queue, message, idempotency_key)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        found = await self.store.dequeue(queue)
        return None if found is None else self.shown(found)

    def shown(self, message: StoredMessage) -> StoredMessage:
        return message

    async def ack(self, message_id: str) -> None:
        await self.store.ack(message_id)

    async def retry(self, message_id: str, delay_ms: int) -> None:
        await self.store.retry(message_id, delay_ms)

    async def dead_letter(self, message_id: str, error: str) -> None:
        await self.store.dead_letter(message_id, error)


async def excepting(kind: type[Exception], call: Awaitable[T]) -> T | None:
    try:
        return await call
    except kind:
        return None


class LosesMessages(Mutant):
    """Every third message is confirmed and never kept."""

    fails = ("oldest_first", "each_to_one")
    count = 0

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        self.count += 1
        if self.count % 3 == 0:
            return f"{queue}:lost"
        return await super().enqueue(queue, message, idempotency_key)


class OtherIds(Mutant):
    """An id is returned that is not the one handed out."""

    fails = ("enqueue_then_dequeue", "queues_are_apart", "retry_waits")

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        return "x" + await super().enqueue(queue, message, idempotency_key)


class Own(Mutant):
    """What one object was told, another never hears of."""

    fails = ("another_store_sees_it", "key_makes_one")
    count = 0

    def __init__(self, store: Ours) -> None:
        super().__init__(store)
        Own.count += 1
        self.suffix = f"-{Own.count}"

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        return await super().enqueue(queue + self.suffix, message, idempotency_key)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        return await super().dequeue(queue + self.suffix)


class NeverAcks(Mutant):
    """An ack is confirmed and not done."""

    fails = ("ack_finishes", "restarts_lose_nothing", "cancelled_ack_can_be_repeated")

    async def ack(self, message_id: str) -> None:
        await trio.lowlevel.checkpoint()


class AcksAgain(Mutant):
    """A second answer is as good as the first."""

    fails = ("one_answer_only", "strangers_cannot_answer")

    async def ack(self, message_id: str) -> None:
        await excepting(NotHeld, super().ack(message_id))


class AcksAtOnce(Mutant):
    """A message is finished when it is handed out: one that fails is lost."""

    fails = ("lapsed_comes_again", "retry_waits", "cancelled_dequeue_loses_nothing")

    async def dequeue(self, queue: str) -> StoredMessage | None:
        found = await super().dequeue(queue)
        if found is not None:
            await self.store.ack(found.id)
        return found


class HidesNothing(Mutant):
    """A message that was handed out can be handed out to others too."""

    fails = ("leased_is_hidden", "each_to_one")

    async def dequeue(self, queue: str) -> StoredMessage | None:
        found = await super().dequeue(queue)
        if found is not None:
            await self.store.retry(found.id, 0)
        return found


class NewestFirst(Mutant):
    """Of two messages the later one comes first."""

    fails = ("oldest_first",)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        first = await super().dequeue(queue)
        second = None if first is None else await super().dequeue(queue)
        if first is not None and second is not None:
            await self.store.retry(first.id, 0)
        return second or first


class OneQueue(Mutant):
    """All is one queue."""

    fails = ("queues_are_apart", "key_is_of_its_queue", "unknown_queues_are_told")

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        return await super().enqueue("one", message, idempotency_key)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        await super().enqueue("one", None, "so that it is there")
        return await super().dequeue("one")


class Normalizes(Mutant):
    """Text comes out in another form than it went in."""

    fails = ("values_are_kept",)

    def shown(self, message: StoredMessage) -> StoredMessage:
        if isinstance(message.message, str):
            text = unicodedata.normalize("NFC", message.message)
            return msgspec.structs.replace(message, message=text)
        return message


class FloatsAlone(Mutant):
    """Numbers come out as another kind, though equal."""

    fails = ("values_are_kept",)

    def shown(self, message: StoredMessage) -> StoredMessage:
        value = message.message
        return msgspec.structs.replace(message, message=float(value)) if type(value) is int else message


class CutsLong(Mutant):
    """Of a large message a part is kept."""

    fails = ("large_is_kept",)

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        if isinstance(message, dict) and "rows" in message:
            message = {"rows": message["rows"][:1_000]}
        return await super().enqueue(queue, message, idempotency_key)


class TakesAnything(Mutant):
    """What is no JSON is made some."""

    fails = ("other_than_json_is_refused",)

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        try:
            return await super().enqueue(queue, message, idempotency_key)
        except (TypeError, ValueError):
            return await super().enqueue(queue, repr(message), idempotency_key)


class ForgetsKeys(Mutant):
    """Keys mean nothing."""

    fails = ("key_makes_one", "key_keeps_its_message", "key_outlives_its_message", "restarts_lose_nothing")

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        return await super().enqueue(queue, message)


class ForgetsKeysOfTheFinished(Mutant):
    """A key is known while its message is there, as with a unique column."""

    fails = ("key_outlives_its_message", "key_is_known_for_24_hours")
    lives: ClassVar[dict[str, int]] = defaultdict(int)

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        life = f"{idempotency_key}-{self.lives[queue]}" if idempotency_key else None
        return await super().enqueue(queue, message, life)

    async def ack(self, message_id: str) -> None:
        await super().ack(message_id)
        self.lives[message_id.partition(":")[0]] += 1


class RemembersKeysForEver(Mutant):
    """A key is never free again."""

    fails = ("key_is_known_for_24_hours",)
    made: ClassVar[dict[tuple[str, str], str]] = {}

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        if idempotency_key is None:
            return await super().enqueue(queue, message)
        if (queue, idempotency_key) not in self.made:
            made = await super().enqueue(queue, message, idempotency_key)
            self.made[queue, idempotency_key] = made
        return self.made[queue, idempotency_key]


class TrustsTheMessage(Mutant):
    """What a message calls its id is taken for a key."""

    fails = ("messages_name_nothing",)

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        if isinstance(message, dict) and isinstance(message.get("id"), str):
            idempotency_key = message["id"]
        return await super().enqueue(queue, message, idempotency_key)
