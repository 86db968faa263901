"""Drains an inbox: claims messages, has each delivered, and says what became of it.

A session has one delivery at a time: the inbox hands out none before the one before it is finished, and where that is
known there before it is known here, the next one waits for the task of the last. A task ends with its message; what
comes in or comes due afterwards is claimed, and so gets another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random

import trio

from edgequeues.core.backoff import Backoff, delay_ms
from edgequeues.sessions.calling import Function, alone, is_ours, words
from edgequeues.sessions.errors import Rejected
from edgequeues.sessions.inbox import Claimed, Inbox, Outcome
from edgequeues.sessions.options import Options
from edgequeues.store.base import QueueNotFound, Refused, StoreError

CALL_MAX = 100  # messages that one call of the inbox is about
CLAIM_S = 30.0  # that one claim waits
BEATS = 3  # in the life of a lock
AGAIN_S = 1.0  # after an extension that failed
LAST_WORDS_S = 5.0  # for what is still to be said, when it stops
LEFT_MAX = 100  # threads of deliveries that were cancelled, which run on
PAUSES = Backoff(initial_ms=200, max_ms=5_000, jitter=0.5)  # between tries of a call of the inbox

Say = Callable[[str], Awaitable[Outcome]]  # by the lease


class Held:
    """A message that is being delivered, or of which it is still to be said what came of it.

    after: the one that the session had before, if its task has not ended yet.
    """

    def __init__(self, claimed: Claimed, after: Held | None) -> None:
        self.id = claimed.id
        self.session_id = claimed.row["session_id"]
        self.row = claimed.row
        self.lease = claimed.lease  # the newest: it may be handed out anew while it is delivered
        self.after = after
        self.scope = trio.CancelScope()
        self.running = False
        self.over = False  # there is something to say
        self.failed = False  # namely that it is to be tried again
        self.dropped = False  # whatever comes of it, nothing is to be said
        self.lost = False  # nor given back
        self.ended = trio.Event()

    def drop(self, *, lost: bool) -> None:
        """End the delivery. lost: somebody else has the message, or nobody ever will."""
        self.dropped = True
        self.lost = self.lost or lost
        self.scope.cancel()


class Closing:
    """A session that is being closed. calls: by how many at once."""

    def __init__(self) -> None:
        self.calls = 0
        self.over = trio.Event()


class Drain:
    """The loop of one manager; use it once: `start`, then `run` until `stop`."""

    def __init__(
        self, inbox: Inbox, deliver: Callable[..., object], options: Options, log: logging.Logger
    ) -> None:
        self._inbox = inbox
        self._options = options
        self._log = log
        self._deliver = Function(deliver, options.concurrency + LEFT_MAX)
        self._chance = Random()
        self._held: dict[Held, None] = {}
        self._last: dict[str, Held] = {}  # by session: the newest
        self._first: list[Claimed] = []
        self._back: list[str] = []  # leases of what is to be given back
        self._closing: dict[str, Closing] = {}
        self._closed: set[str] = set()  # since the claim under way began
        self._reclaimed = False
        self._feeding = trio.CancelScope()
        self._stopped = trio.Event()
        self._freed = trio.Event()

    def active(self) -> list[str]:
        """The sessions whose delivery runs now."""
        return sorted({held.session_id for held in self._held if held.running})

    async def start(self) -> None:
        """Take over what an earlier life held, and claim what is there. Raises Refused; what is away may be back."""
        try:
            self._first = await self._claim(0.0)
        except Refused:
            raise
        except StoreError as error:
            self._log.warning("the inbox does not answer yet, it is tried again: %s", error)

    async def run(self) -> None:
        """Work until `stop`, whoever is cancelled meanwhile; then give back what is not delivered."""
        with trio.CancelScope(shield=True):
            try:
                async with trio.open_nursery() as tasks:
                    tasks.start_soon(self._keep_locks)
                    tasks.start_soon(self._feed, tasks)
                    await self._stopped.wait()
                    await self._wind_up()
                    tasks.cancel_scope.cancel()
            finally:
                with trio.move_on_after(LAST_WORDS_S, shield=True):
                    await self._give_back()

    def stop(self) -> None:
        """Have `run` end: nothing more is claimed, deliveries have `grace_s`."""
        self._stopped.set()
        self._feeding.cancel()

    async def close(self, session_id: str) -> int:
        """Expire all that is unfinished in a session; return how many messages. Its delivery is cancelled first.

        What this ends is not delivered any more, not even what is just on its way here from the inbox.
        """
        held = self._last.get(session_id)
        with self._closes(session_id):
            if held is not None and not held.over:
                held.drop(lost=False)
            expired = await self._inbox.close(session_id)
        if held is not None:
            with trio.move_on_after(LAST_WORDS_S):
                await held.ended.wait()
        return expired

    @contextmanager
    def _closes(self, session_id: str) -> Iterator[None]:
        closing = self._closing.setdefault(session_id, Closing())
        closing.calls += 1
        try:
            yield
        finally:
            closing.calls -= 1
            if not closing.calls:
                del self._closing[session_id]
                self._closed.add(session_id)
                closing.over.set()

    # -- claiming ----------------------------------------------------------------------------------------

    async def _feed(self, tasks: trio.Nursery) -> None:
        failures = 0
        for one in self._first:
            self._take(one, tasks)
        with self._feeding:
            while True:
                await self._until(lambda: len(self._held) < self._options.concurrency)
                self._closed.clear()
                try:
                    claimed = await self._claim(CLAIM_S)
                except StoreError as error:
                    failures += 1
                    if failures == 1:
                        self._log.warning("messages cannot be claimed, it is tried again: %s", error)
                    await trio.sleep(self._pause_s(failures))
                    continue
                if failures:
                    self._log.info("messages can be claimed again")
                failures = 0
                for one in claimed:
                    self._take(one, tasks)

    async def _claim(self, wait_s: float) -> list[Claimed]:
        if not self._reclaimed:
            reclaimed = await self._inbox.reclaim()
            self._reclaimed = True
            if reclaimed:
                self._log.info("%d messages that an earlier life held are taken over", reclaimed)
        limit = min(self._options.concurrency - len(self._held), CALL_MAX)
        return await self._inbox.claim(limit, lock_ms=self._options.lock_ms, wait_s=wait_s)

    def _take(self, one: Claimed, tasks: trio.Nursery) -> None:
        """Have a message delivered. One whose lock ended during its delivery is delivered on, under the new lock."""
        before = self._last.get(one.row["session_id"])
        if before is not None and before.id == one.id and not (before.dropped or before.failed):
            before.lease = one.lease
            return
        held = Held(one, before)
        if before is not None and not before.over:
            self._lose(before, "the inbox went on without it")
        if held.session_id in self._closing or held.session_id in self._closed:
            held.drop(lost=False)
        self._held[held] = None
        self._last[held.session_id] = held
        tasks.start_soon(self._work, held)

    # -- one message -------------------------------------------------------------------------------------

    async def _work(self, held: Held) -> None:
        try:
            say = await self._attempt(held)
            if say is not None:
                await self._say(held, say)
            elif (closing := self._closing.get(held.session_id)) is not None:
                await closing.over.wait()
        finally:
            if not held.over and not held.lost:
                self._back.append(held.lease)
            self._end(held)
        if self._back and not self._stopped.is_set():
            await self._give_back()

    def _end(self, held: Held) -> None:
        before, held.after = held.after, None
        held.ended.set()
        del self._held[held]
        if self._last[held.session_id] is held:
            del self._last[held.session_id]
            if before is not None and not before.ended.is_set():  # it was dropped before its turn came
                self._last[held.session_id] = before
        self._freed.set()

    async def _attempt(self, held: Held) -> Say | None:
        """Have it delivered; return how to say what came of it. None: there is nothing to say."""
        fault: BaseException | None = None
        try:
            with held.scope:
                if held.after is not None:
                    await held.after.ended.wait()
                await trio.lowlevel.checkpoint_if_cancelled()
                held.running = True
                await self._deliver.call(held.row)
                held.over = True
        except BaseException as raised:  # sys.exit() of a delivery function ends no other session
            if is_ours(raised):
                raise
            fault = raised
        finally:
            held.running = False
        if held.dropped or (held.scope.cancel_called and not held.over):
            held.over = False
            return None
        held.over = True
        if fault is None:
            return self._inbox.delivered
        return self._failed(held, alone(fault))

    def _failed(self, held: Held, fault: BaseException) -> Say:
        kind, error = type(fault).__name__, words(fault)
        if isinstance(fault, Rejected):
            self._log.warning("message %s of session %s is rejected: %s", held.id, held.session_id, kind)
            return lambda lease: self._inbox.rejected(lease, error)
        held.failed = True
        self._log.warning("message %s of session %s was not delivered: %s", held.id, held.session_id, kind)
        return lambda lease: self._inbox.failed(lease, error)

    async def _say(self, held: Held, say: Say) -> None:
        """Say what became of a message, again and again for as long as its lock could last."""
        ends_s = trio.current_time() + self._options.lock_ms / 1000
        failures = 0
        while True:
            lease = held.lease
            try:
                outcome = await say(lease)
            except (Refused, QueueNotFound) as error:
                self._unsaid(held, error)
                return
            except StoreError as error:
                failures += 1
                pause_s = self._pause_s(failures)
                if trio.current_time() + pause_s > ends_s:
                    self._unsaid(held, error)
                    return
                if failures == 1:
                    self._log.warning(
                        "what became of message %s of session %s could not be said yet: %s",
                        held.id,
                        held.session_id,
                        error,
                    )
                await trio.sleep(pause_s)
                continue
            if outcome in ("done", "finished"):
                return
            if lease == held.lease:
                self._unsaid(held, f"its lock is {outcome}")
                return

    def _unsaid(self, held: Held, why: object) -> None:
        self._log.error(
            "what became of message %s of session %s was not taken down, it may come again: %s",
            held.id,
            held.session_id,
            why,
        )

    # -- locks -------------------------------------------------------------------------------------------

    async def _keep_locks(self) -> None:
        """Have no lock end as long as its message is delivered."""
        beat_s = pause_s = self._options.lock_ms / 1000 / BEATS
        away = False
        while True:
            await trio.sleep(pause_s)
            held = list(self._held)
            try:
                for first in range(0, len(held), CALL_MAX):
                    await self._extend(held[first : first + CALL_MAX])
            except StoreError as error:
                if not away:
                    self._log.warning("locks cannot be extended, it is tried again: %s", error)
                away, pause_s = True, min(beat_s, AGAIN_S)
            else:
                away, pause_s = False, beat_s

    async def _extend(self, some: list[Held]) -> None:
        leases = [held.lease for held in some]
        outcomes = await self._inbox.extend(leases, self._options.lock_ms)
        for held, lease, outcome in zip(some, leases, outcomes, strict=True):
            # One that lapsed is still its own as long as nobody else was given the message.
            if held.lease == lease and outcome not in ("done", "lapsed") and not held.over:
                self._lose(held, f"its lock is {outcome}")

    def _lose(self, held: Held, why: str) -> None:
        if held in self._held and not held.dropped:
            self._log.warning(
                "the delivery of message %s of session %s is cancelled: %s", held.id, held.session_id, why
            )
            held.drop(lost=True)

    async def _give_back(self) -> None:
        """Release what is to be given back; what cannot be is handed out again when its lock ends."""
        leases, self._back = self._back, []
        try:
            for first in range(0, len(leases), CALL_MAX):
                await self._inbox.release(leases[first : first + CALL_MAX])
        except StoreError as error:
            self._log.warning("%d messages could not be given back: %s", len(leases), error)

    # -- waiting -----------------------------------------------------------------------------------------

    async def _wind_up(self) -> None:
        with trio.move_on_after(self._options.grace_s):
            await self._until(lambda: not self._held)
        for held in list(self._held):
            held.scope.cancel()
        with trio.move_on_after(LAST_WORDS_S):
            await self._until(lambda: not self._held)

    async def _until(self, reached: Callable[[], bool]) -> None:
        """Wait until enough tasks have ended."""
        while not reached():
            self._freed = trio.Event()
            await self._freed.wait()

    def _pause_s(self, failures: int) -> float:
        return delay_ms(PAUSES, failures, self._chance.random()) / 1000
