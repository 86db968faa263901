"""Stores with one thing wrong each, for a suite that is to notice: where work fails, leases lapse, callers leave."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
import trio

from edgequeues.store import LeaseLost, NotHeld, QueueNotFound, StoredMessage

from .mutants import Mutant, excepting
from .subjects import Ours


class RetriesAtOnce(Mutant):
    """A delay is not kept."""

    fails = ("retry_waits",)

    async def retry(self, message_id: str, delay_ms: int) -> None:
        await super().retry(message_id, min(delay_ms, 0))


class RetriesNever(Mutant):
    """What is to be tried again is finished."""

    fails = ("retry_waits", "retry_at_once", "queues_are_apart")

    async def retry(self, message_id: str, delay_ms: int) -> None:
        await self.store.ack(message_id)


class CountsNothing(Mutant):
    """Every attempt is the first."""

    fails = ("retry_waits", "retry_at_once", "lapsed_comes_again", "restarts_lose_nothing")

    def shown(self, message: StoredMessage) -> StoredMessage:
        return msgspec.structs.replace(message, attempts=1)


class ForgivesDelays(Mutant):
    """A delay that cannot be is taken for none."""

    fails = ("impossible_delays_are_refused",)

    async def retry(self, message_id: str, delay_ms: int) -> None:
        await super().retry(message_id, max(delay_ms, 0))


class BlocksItsLine(Mutant):
    """Nothing is handed out while a message waits for its retry."""

    fails = ("retry_does_not_hold_up_others",)
    until_s = 0.0

    async def retry(self, message_id: str, delay_ms: int) -> None:
        await super().retry(message_id, delay_ms)
        self.until_s = trio.current_time() + delay_ms / 1000

    async def dequeue(self, queue: str) -> StoredMessage | None:
        return None if trio.current_time() < self.until_s else await super().dequeue(queue)


class HidesLostLeases(Mutant):
    """Who comes too late is told that all is well."""

    fails = ("lost_leases_are_told",)

    async def ack(self, message_id: str) -> None:
        await excepting(LeaseLost, super().ack(message_id))


class TellsNoStranger(Mutant):
    """To retry or bury what nobody handed out goes well."""

    fails = ("strangers_cannot_answer", "one_answer_only")

    async def retry(self, message_id: str, delay_ms: int) -> None:
        await excepting(NotHeld, super().retry(message_id, delay_ms))

    async def dead_letter(self, message_id: str, error: str) -> None:
        await excepting(NotHeld, super().dead_letter(message_id, error))


class UnknownIsEmpty(Mutant):
    """A queue that never was is taken for an empty one."""

    fails = ("unknown_queues_are_told",)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        return await excepting(QueueNotFound, super().dequeue(queue))


class BuriesNothing(Mutant):
    """A dead letter is tried again."""

    fails = ("dead_letter_puts_away", "dead_letter_keeps_the_error")

    async def dead_letter(self, message_id: str, error: str) -> None:
        await self.store.retry(message_id, 0)


class DropsTheDead(Mutant):
    """A dead letter is thrown away."""

    fails = ("dead_letter_keeps_the_error",)

    async def dead_letter(self, message_id: str, error: str) -> None:
        await self.store.ack(message_id)


class SaysLittle(Mutant):
    """Of what was wrong the first line is kept."""

    fails = ("dead_letter_keeps_the_error",)

    async def dead_letter(self, message_id: str, error: str) -> None:
        await super().dead_letter(message_id, error.partition("\n")[0])


class FinishesOnCancel(Mutant):
    """A dequeue that is cancelled has the message finished."""

    fails = ("cancelled_dequeue_loses_nothing",)

    async def dequeue(self, queue: str) -> StoredMessage | None:
        with trio.CancelScope(shield=True):
            found = await super().dequeue(queue)
        try:
            await trio.lowlevel.checkpoint_if_cancelled()
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                if found is not None:
                    await self.store.ack(found.id)
            raise
        return found


class LetsGoOnCancel(Mutant):
    """An ack that is cancelled is never done, and cannot be done again."""

    fails = ("cancelled_ack_can_be_repeated",)

    def __init__(self, store: Ours) -> None:
        super().__init__(store)
        self.over: set[str] = set()

    async def ack(self, message_id: str) -> None:
        if message_id in self.over:
            raise NotHeld(message_id)
        self.over.add(message_id)
        await trio.lowlevel.checkpoint()
        await super().ack(message_id)


class KeyAfterTheMessage(Mutant):
    """A key is written when its message is there already: between the two, a cancelled caller doubles it."""

    fails = ("cancelled_enqueue_is_whole",)
    made: ClassVar[dict[tuple[str, str], str]] = {}

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        known = self.made.get((queue, idempotency_key or ""))
        if known is not None:
            return known
        made = await super().enqueue(queue, message)
        await trio.lowlevel.checkpoint()
        if idempotency_key is not None:
            self.made[queue, idempotency_key] = made
        return made


class KeepsInMemory(Mutant):
    """What waits is gone after a restart: it was confirmed before it was kept."""

    fails = ("restarts_lose_nothing",)

    def __init__(self, store: Ours) -> None:
        super().__init__(store)
        self.waiting: list[tuple[str, Any, str | None]] = []

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        self.waiting.append((queue, message, idempotency_key))
        return "later"

    async def dequeue(self, queue: str) -> StoredMessage | None:
        if self.waiting:
            await super().enqueue(*self.waiting.pop(0))
        return await super().dequeue(queue)


MUTANTS: list[type[Mutant]] = Mutant.__subclasses__()
