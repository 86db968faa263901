"""An inbox in memory, for what no real one does on demand: it can be away, refuse, and lose locks."""

from __future__ import annotations

from collections.abc import Sequence

import trio
from msgspec import UNSET, Struct

from edgequeues.core.times import utc
from edgequeues.inbound import RETRIES_MS, Inbound, InboundRow, repeat_key
from edgequeues.models_sessions import SessionPage
from edgequeues.sessions.inbox import Claimed, Outcome
from edgequeues.store.base import StoreError
from shards.testing import TrioClock


class Kept(Struct):
    """A message. lease: the last it was handed out under; held: is it still?"""

    position: int
    message: Inbound
    status: str = "pending"
    error: str | None = None
    attempts: int = 0
    due_s: float = 0.0
    lease: str | None = None

    @property
    def unfinished(self) -> bool:
        return self.status in ("pending", "processing", "failed")


class MemoryInbox:
    """See Inbox. faults: by the name of a call, what its next calls raise, one each. calls: as they were made."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []
        self.faults: dict[str, list[StoreError]] = {}
        self.calls: list[tuple[str, object]] = []
        self.clock = TrioClock()
        self._changed = trio.Event()
        self._leases = 0

    def at(self, position: int) -> Kept:
        return self.kept[position - 1]

    def take_away(self, position: int) -> None:
        """As where a lock ended, and another worker was given the message."""
        self._hand_out(self.at(position), 300.0)

    async def enqueue(self, message: Inbound) -> int | None:
        await self._called("enqueue", message.session_id)
        key = repeat_key(message)
        if key is not None and any(repeat_key(one.message) == key for one in self.kept):
            return None
        self.kept.append(Kept(len(self.kept) + 1, message))
        self._change()
        return len(self.kept)

    async def claim(self, limit: int, *, lock_ms: int, wait_s: float) -> list[Claimed]:
        await self._called("claim", limit)
        with trio.move_on_after(wait_s):
            while True:
                heads: dict[str, Kept] = {}
                for one in self.kept:
                    if one.unfinished:
                        heads.setdefault(one.message.session_id, one)
                now_s = trio.current_time()
                ready = [one for one in heads.values() if one.due_s <= now_s][:limit]
                if ready:
                    return [self._claimed(one, lock_ms) for one in ready]
                due_s = min((one.due_s for one in heads.values()), default=float("inf"))
                self._changed = trio.Event()
                with trio.move_on_at(due_s):
                    await self._changed.wait()
        return []

    async def delivered(self, lease: str) -> Outcome:
        return await self._end("delivered", lease, "delivered", None)

    async def rejected(self, lease: str, error: str) -> Outcome:
        return await self._end("rejected", lease, "expired", error)

    async def failed(self, lease: str, error: str) -> Outcome:
        outcome = await self._end("failed", lease, "failed", error)
        if outcome == "done":
            one = self._by(lease)
            one.due_s = trio.current_time() + RETRIES_MS[min(one.attempts, len(RETRIES_MS)) - 1] / 1000
        return outcome

    async def release(self, leases: Sequence[str]) -> None:
        await self._called("release", list(leases))
        for lease in leases:
            one = self._by(lease)
            if one.status == "processing" and one.lease == lease:
                one.status, one.due_s, one.attempts = "pending", 0.0, one.attempts - 1
        self._change()

    async def extend(self, leases: Sequence[str], lock_ms: int) -> list[Outcome]:
        await self._called("extend", list(leases))
        outcomes: list[Outcome] = []
        for lease in leases:
            one = self._by(lease)
            if one.lease == lease and one.status == "processing":
                outcomes.append("done" if one.due_s > trio.current_time() else "lapsed")
                one.due_s = max(one.due_s, trio.current_time() + lock_ms / 1000)
            else:
                outcomes.append("stale" if one.unfinished else "finished")
        return outcomes

    async def reclaim(self) -> int:
        await self._called("reclaim", None)
        held = [one for one in self.kept if one.status == "processing"]
        for one in held:
            one.status, one.due_s = "failed", 0.0
        return len(held)

    async def close(self, session_id: str) -> int:
        await self._called("close", session_id)
        found = [one for one in self.kept if one.unfinished and one.message.session_id == session_id]
        for one in found:
            one.status = "expired"
        return len(found)

    async def skip(self, session_id: str) -> bool:
        await self._called("skip", session_id)
        return False

    async def retry_now(self, session_id: str) -> bool:
        await self._called("retry_now", session_id)
        found = [one for one in self.kept if one.status == "failed" and one.message.session_id == session_id]
        for one in found[:1]:
            one.due_s = 0.0
        self._change()
        return bool(found)

    async def sessions(self, after: str | None = None, limit: int = 100) -> SessionPage:
        await self._called("sessions", (after, limit))
        return SessionPage([], None)

    async def cleanup(self, older_than_ms: int) -> int:
        await self._called("cleanup", older_than_ms)
        return 0

    async def _called(self, name: str, about: object) -> None:
        await trio.lowlevel.checkpoint()
        self.calls.append((name, about))
        if self.faults.get(name):
            raise self.faults[name].pop(0)

    def _change(self) -> None:
        self._changed.set()

    def _by(self, lease: str) -> Kept:
        return self.at(int(lease.partition("-")[0]))

    def _hand_out(self, one: Kept, lock_s: float) -> None:
        self._leases += 1
        one.lease = f"{one.position}-{self._leases}"
        one.status, one.due_s = "processing", trio.current_time() + lock_s
        one.attempts += 1

    def _claimed(self, one: Kept, lock_ms: int) -> Claimed:
        self._hand_out(one, lock_ms / 1000)
        assert one.lease is not None
        message, at = one.message, utc(self.clock.now_ms())
        row = InboundRow(
            id=one.position,
            session_id=message.session_id,
            origin=message.origin,
            message_type=message.message_type,
            content=message.content,
            payload_json=None if message.payload is UNSET else bytes(message.payload).decode(),
            actor_id=message.actor_id,
            actor_name=message.actor_name,
            actor_avatar_url=message.actor_avatar_url,
            status="processing",
            created_at=at,
            attempt_count=one.attempts - 1,
            locked_at=at,
            source_message_id=message.source_message_id,
            source_channel_id=message.source_channel_id,
        )
        return Claimed(f"M{one.position}", one.lease, row)

    async def _end(self, name: str, lease: str, status: str, error: str | None) -> Outcome:
        await self._called(name, lease)
        one = self._by(lease)
        if not one.unfinished:
            return "finished"
        if one.lease != lease or one.status != "processing":
            return "stale"
        one.status, one.error = status, error
        self._change()
        return "done"
