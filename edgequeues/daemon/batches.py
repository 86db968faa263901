"""Pulls batches of messages, has each message handled, and stops in good order.

Inside a batch, malformed messages go first, then by priority, then as they came; one by one, unless the settings say
otherwise. Of two messages with the same event, the second waits for the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import trio

from edgequeues.core import jsontext
from edgequeues.daemon import held as holding
from edgequeues.daemon.answering import Answering
from edgequeues.daemon.budgets import Budgets, Worker
from edgequeues.daemon.contract import GiveUp, Result, TryAgain
from edgequeues.daemon.graves import Reason
from edgequeues.daemon.held import ACK, DUPLICATE, RELEASED, Answer, Held, Letter
from edgequeues.daemon.leases import Leases
from edgequeues.daemon.memory import Memory
from edgequeues.daemon.parts import Parts
from edgequeues.daemon.settings import DaemonSettings
from edgequeues.daemon.wire import Acked, Message, QueueError, Refused
from edgequeues.events.event import SwitchboardEvent

POLL_S_MIN, POLL_S_MAX = 0.1, 1.0  # between pulls of an empty queue
BRIEF = 5  # pulls that fail in a row, where nobody waits for all day
LAST_WORDS_S = 5.0  # for a pull under way, and for what is still to be said, when it stops

Until = Literal["stopped", "empty", "once"]


class Batches:
    """The loop of one daemon; use it once."""

    def __init__(self, parts: Parts, settings: DaemonSettings) -> None:
        self._parts = parts
        self._settings = settings
        self._visibility_s = float(settings.visibility_s)
        self._held: dict[Held, None] = {}
        self._memory: Memory[Answer] = Memory(settings.dedup_size)
        self._running: dict[str, trio.Event | None] = {}  # by id: its handler runs; None: nobody waits for it
        self._budgets = Budgets(settings.processing_budget_seconds)
        self._batches = 0
        self._fault: QueueError | None = None  # of a pull after a batch
        self._changed = trio.Event()  # a batch is done
        self._stopped = trio.Event()
        self._handlers = trio.CancelScope()
        self._pulls: set[trio.CancelScope] = set()
        self._ours = False
        self._served = False
        self._answering = Answering(
            parts.queue,
            log=parts.log,
            late_s=self._visibility_s,
            patience=parts.patience,
            chance=parts.chance,
            on_settled=self._settled,
        )
        parts.metrics.inflight.set_function(self._held.__len__)

    async def run(self, until: Until = "stopped") -> None:
        """Work until `stop`, until nothing is ready and nothing runs here (`empty`), or what one pull gives (`once`).

        Raises QueueError where the service refuses to serve from the start.
        """
        leases = Leases(
            self._parts.queue, self._held, self._visibility_s, self._answering.calls, self._parts.log
        )
        fault: QueueError | None = None
        try:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(leases.keep)
                tasks.start_soon(self._budgets.watch)
                tasks.start_soon(self._answering.run)
                with self._handlers:
                    async with trio.open_nursery() as batches:
                        try:
                            await self._feed(batches, until)
                        except QueueError as error:
                            fault = error
                await self._last_words()
                tasks.cancel_scope.cancel()
        except BaseException:  # something else ends the daemon: what was handled is said all the same
            with trio.move_on_after(LAST_WORDS_S, shield=True):
                self._release()
                await self._answering.finish()
            raise
        if fault is not None:
            raise fault

    async def _last_words(self) -> None:
        with trio.move_on_after(LAST_WORDS_S):
            self._release()
            for held in list(self._held):
                await held.settled.wait()

    def stop(self, *, grace_s: float | None = None) -> None:
        """Have `run` end: nothing more is begun; handlers may go on for `grace_s`. May be called again with less.

        What has no handler yet is given back. To other services that can only be said as a failed attempt.
        """
        now_s = trio.current_time()
        grace_s = self._settings.shutdown_grace_seconds if grace_s is None else grace_s
        self._handlers.deadline = min(self._handlers.deadline, now_s + grace_s)
        for pull in self._pulls:
            pull.deadline = min(pull.deadline, now_s + LAST_WORDS_S)
        self._stopped.set()
        self._changed.set()

    # -- pulling -----------------------------------------------------------------------------------------

    async def _feed(self, batches: trio.Nursery, until: Until) -> None:
        """Have batches worked on; while there is nothing, this alone looks for more."""
        idle_s, failures = POLL_S_MIN, 0
        while not self._stopped.is_set():
            if self._batches >= self._settings.queue_max_concurrent_batches:
                await self._change()
                continue
            try:
                messages = await self._first()
            except QueueError as error:
                if isinstance(error, Refused) and not self._served:
                    raise
                failures += 1
                if until != "stopped" and failures == BRIEF:
                    raise
                if failures == 1 or isinstance(error, Refused):
                    self._tell(
                        "warning", "nothing can be pulled; trying again until it works", err=str(error)
                    )
                await self._pause(self._parts.patience.pause_s(failures, error, self._parts.chance))
                continue
            if failures:
                self._tell("info", "the service is back")
            self._served, failures = True, 0
            if messages:
                idle_s = POLL_S_MIN
                self._batches += 1
                batches.start_soon(self._go_on, messages, until)
            elif until == "empty" and self._batches:
                await self._change()
            elif until == "stopped":
                await self._pause(idle_s)
                idle_s = min(2 * idle_s, POLL_S_MAX)
            if until == "once" or (until == "empty" and not messages and not self._batches):
                return

    async def _first(self) -> list[Held]:
        """Pull for a batch beside those that are worked on. Raises QueueError, also that of a pull after one."""
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        return await self._pull()

    async def _go_on(self, messages: list[Held], until: Until) -> None:
        """Work on a batch and on those pulled after it, as long as they are full, which says that there is more."""
        before: list[Held] = []
        while messages:
            await self._batch(messages)
            await self._settle(before)
            before, is_full = messages, len(messages) == self._settings.queue_max_batch
            if not is_full or until == "once" or self._stopped.is_set():
                break
            try:
                messages = await self._pull()
            except QueueError as error:
                self._fault = error
                break
        await self._settle(before)
        self._batches -= 1
        self._changed.set()

    async def _pull(self) -> list[Held]:
        """Pull once. What comes when it is to stop has no handler yet, and is given back with the rest of those."""
        ends_s = trio.current_time() + self._visibility_s
        scope = trio.CancelScope(shield=True)
        self._pulls.add(scope)
        try:
            with scope:
                pulled = await self._parts.queue.pull(
                    self._settings.queue_max_batch, round(self._visibility_s * 1000)
                )
        finally:
            self._pulls.remove(scope)
        if scope.cancelled_caught:
            return []
        self._ours = self._answering.ours = pulled.ours
        if not self._served and not pulled.ours and self._parts.graves is None:
            said = "what cannot be handled is left to the rules of the service: QUEUE_DLQ_ENDPOINT names no queue"
            self._tell("warning", said)
        now_ms = self._parts.now_ms()
        lags_ms = [now_ms - one.timestamp_ms for one in pulled.messages if one.timestamp_ms]
        self._parts.metrics.lag_s.set(max([0, *lags_ms]) / 1000)
        messages = [self._take(message, ends_s) for message in pulled.messages]
        return sorted(messages, key=lambda held: held.rank)

    def _take(self, message: Message, ends_s: float) -> Held:
        held = Held(message, ends_s)
        self._held[held] = None
        try:
            held.event = self._parts.read(message.body)
        except Exception as fault:  # a body can be anything, and none may end the daemon
            held.fault = holding.short(self._parts.redact(str(fault)) or type(fault).__name__)
        return held

    async def _change(self) -> None:
        """Wait for a batch to be done, or `stop`."""
        self._changed = trio.Event()
        await self._changed.wait()

    async def _pause(self, pause_s: float) -> None:
        with trio.move_on_after(pause_s):
            await self._stopped.wait()

    # -- a batch -----------------------------------------------------------------------------------------

    async def _batch(self, messages: list[Held]) -> None:
        waiting = iter(messages)
        if self._settings.max_batch_concurrency == 1:
            await self._work(waiting)
        else:
            async with trio.open_nursery() as workers:
                for _ in range(min(self._settings.max_batch_concurrency, len(messages))):
                    workers.start_soon(self._work, waiting)

    async def _settle(self, messages: list[Held]) -> None:
        for held in messages:
            if not held.settled.is_set():
                await held.settled.wait()

    async def _work(self, waiting: Iterator[Held]) -> None:
        with Worker(self._budgets, self._parts.handler) as worker:
            for held in waiting:
                if self._stopped.is_set():
                    self._answering.say(held, RELEASED)
                elif held.left_s <= 0:
                    self._tell("warning", "the lease ended before the message had its turn", **held.fields())
                    self._settled(held, None)
                    held.settled.set()
                else:
                    self._answering.say(held, await self._answer(worker, held))

    def _release(self) -> None:
        """Give back what has no answer yet: whose handlers did not end in time."""
        for held in list(self._held):
            if held.answer is None:
                self._answering.say(held, RELEASED)

    async def _answer(self, worker: Worker, held: Held) -> Answer:
        """Have a message handled; return what to say of it."""
        if held.event is None:
            return await self._dead(held, "malformed", held.fault or "")
        id = held.event.id
        while id in self._running:
            if (done := self._running[id]) is None:
                done = self._running[id] = trio.Event()
            await done.wait()
        if id in self._memory:
            return self._memory.unsaid(id) or DUPLICATE
        self._running[id] = None
        try:
            return await self._attempt(worker, held, held.event)
        finally:
            if (waited := self._running.pop(id)) is not None:
                waited.set()

    async def _attempt(self, worker: Worker, held: Held, event: SwitchboardEvent) -> Answer:
        try:
            answer = await self._success(event, await self._handle(worker, held, event))
        except (Exception, SystemExit) as fault:  # of a handler; sys.exit() in one is no reason to leave
            return await self._failed(held, fault)
        except BaseExceptionGroup as faults:
            if faults.subgroup((trio.Cancelled, KeyboardInterrupt)) is not None:
                raise
            return await self._failed(held, faults)
        self._memory.remember(event.id, answer if answer.letter or answer.result else None)
        return answer

    async def _handle(self, worker: Worker, held: Held, event: SwitchboardEvent) -> Result:
        """Run the handler, for as long as it may take. Raises TryAgain, and whatever it raises."""
        began_s = trio.current_time()
        try:
            with self._parts.attempting(held.message):
                return await worker.handle(event, self._parts.context(event, held.message.attempts))
        finally:
            took_s = trio.current_time() - began_s
            held.took_ms = round(took_s * 1000)
            self._parts.metrics.handled_s.observe(took_s)

    async def _success(self, event: SwitchboardEvent, result: Result) -> Answer:
        """What to say of a message that was handled. Raises TryAgain, GiveUp where its reply cannot leave."""
        artifacts = _json({"artifacts": result.artifacts}) if result.artifacts else None
        if result.reply is None:
            return ACK if artifacts is None else msgspec.structs.replace(ACK, result=artifacts)
        replies = self._parts.replies
        if self._ours and replies.outbox is not None:
            body, key = replies.letter(event, result.reply)
            return msgspec.structs.replace(
                ACK, result=artifacts, letter=Letter(replies.outbox, _json(body), key)
            )
        with trio.move_on_after(self._settings.processing_budget_seconds):
            await replies.send(event, result.reply)
            return msgspec.structs.replace(ACK, result=artifacts)
        raise TryAgain("the reply could not be sent in time")

    async def _failed(self, held: Held, fault: BaseException) -> Answer:
        fault, text = holding.error(fault)
        text = self._parts.redact(text)
        if isinstance(fault, GiveUp):
            return await self._dead(held, "permanent", text)
        if held.message.attempts >= self._settings.queue_max_attempts:
            return await self._dead(held, "max_attempts", text)
        delay_s = fault.delay_s if isinstance(fault, TryAgain) else None
        return self._again(held, text, delay_s)

    def _again(self, held: Held, error: str, delay_s: float | None = None) -> Answer:
        if delay_s is None:
            rule = self._settings.on_error
            delay_s = None if rule == "backoff" else held.left_s if rule == "timeout" else float(rule)
        return Answer(did="retry", outcome="retried", delay_s=holding.whole_s(delay_s), error=error)

    async def _dead(self, held: Held, reason: Reason, error: str) -> Answer:
        """Make a dead letter; where nothing takes it, the message comes again, and the service's own rules hold."""
        error = error or "no reason given"
        if self._ours:
            return Answer(did="permanent", outcome="dead", error=error)
        if self._parts.graves is None:
            return self._again(held, error)
        try:
            await self._parts.graves.bury(held.message, reason, error, limit_s=self._visibility_s)
        except QueueError as fault:
            self._tell("error", "a dead letter could not be pushed", err=str(fault), **held.fields())
            return self._again(held, error)
        return Answer(did="ack", outcome="dead", error=error)

    # -- what was said -----------------------------------------------------------------------------------

    def _settled(self, held: Held, acked: Acked | None) -> None:
        """What was to be said of a message was said; None: it never will be."""
        metrics, answer = self._parts.metrics, held.answer
        self._held.pop(held, None)
        if answer is None or acked is None:
            return
        if answer.outcome == "dead":
            metrics.dead.inc()
        (metrics.acked if answer.did == "ack" else metrics.nacked).inc()
        heard = held.lease not in acked.warnings
        if held.event is not None and answer.did == "ack" and heard:
            self._memory.heard(held.event.id)
        if answer.letter is not None and (queue := acked.emitted.get(answer.letter.queue)) is not None:
            self._parts.replies.emitted(queue)
        level = "info" if answer.did == "ack" and answer.outcome != "dead" else "warning"
        fields = held.fields() | {"outcome": answer.outcome, "err": answer.error, "tookMs": held.took_ms}
        self._tell(level, "message " + answer.outcome, **fields)

    def _tell(self, level: str, msg: str, **fields: Any) -> None:
        self._parts.log.tell(level, msg, **fields)


def _json(value: object) -> bytes:
    return jsontext.write(msgspec.to_builtins(value))
