"""A worker: has each message of a queue handled, says what became of it, and gives back the rest when it ends.

async def handle(message: Message) -> None:
    await send(message.data)  # returning is an ack; TryAgain and GiveUp say otherwise

async with Client("http://127.0.0.1:8700") as client:
    await Worker(client, "dxn:queue:demo:jobs", handle, concurrency=4).run()
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from random import Random
from typing import Literal

import anyio
from anyio.abc import TaskGroup
from msgspec import structs

from edgequeues.client.errors import BadAnswer, ClientError, Refused
from edgequeues.client.handling import Bell, Did, GiveUp, Handled, Held, Tally, TryAgain
from edgequeues.client.http import Retry
from edgequeues.client.messages import Answered, Failed, LeaseOutcome, Message, Pulled
from edgequeues.client.work import WorkVerbs

Until = Literal["stopped", "empty", "once"]

PULL_MAX = 100
ERROR_CHARS_MAX = 4_096
LEASE_MS_MIN = 1_000  # a shorter one cannot be relied upon to be extended in time
BEATS = 3  # times a lease is extended before it would lapse
AGAIN_S = 1.0  # after an extension that failed
POLL_S_MIN = 1.0  # an empty long poll that took less was cut short: the next one waits
LAST_WORDS_S = 5.0  # for giving back what is left when `run` is cancelled
FOR_EVER = Retry(attempts_max=1 << 62, delay_max_s=10.0, retry_after_max_s=math.inf)


class Worker:
    """Works one queue with one handler; use it once.

    handle: called with each message. Returning acks it; any exception is a retry with its text, see TryAgain, GiveUp.
        It is cancelled when its time is up, or when the lease is lost to somebody else.
    concurrency: handlers at once. batch: messages held at most, those that wait for a handler included. None: as many
        as there are handlers.
    lease_ms: how soon others are given what a worker held that died; extended as long as a handler runs.
    timeout_s: how long a handler may run. None: no limit.
    wait_s: seconds of each long poll, up to 60. grace_s: what handlers are given after `stop`.
    retry: how often and how soon it tries again while the server is away or busy. By default for ever.
    tally, seen: how many messages ended how so far, and what the last pull gave.
    on_handled: told of every message. on_away: told the error when the server cannot be reached or does not serve,
        and None when it does again.
    """

    def __init__(
        self,
        client: WorkVerbs,
        dxn: str,
        handle: Callable[[Message], Awaitable[object]],
        *,
        consumer: str | None = None,
        name: str | None = None,
        concurrency: int = 1,
        batch: int | None = None,
        lease_ms: int = 30_000,
        timeout_s: float | None = None,
        wait_s: float = 20.0,
        grace_s: float = 30.0,
        retry: Retry = FOR_EVER,
        on_handled: Callable[[Handled], None] = lambda handled: None,
        on_away: Callable[[ClientError | None], None] = lambda error: None,
    ) -> None:
        """Raises ValueError for numbers that cannot be."""
        if concurrency < 1 or (batch is not None and batch < 1):
            raise ValueError("concurrency and batch are at least 1")
        if lease_ms < LEASE_MS_MIN:
            raise ValueError(
                f"lease_ms is at least {LEASE_MS_MIN}: a shorter lease could lapse between extensions"
            )
        self.tally = Tally()
        self.seen = Pulled([], paused=False, backlog=0)  # the last pull
        self._client = client
        self._dxn = dxn
        self._handle = handle
        self._consumer = consumer
        self._name = name
        self._concurrency = concurrency
        self._room = max(concurrency, batch or 1)
        self._lease_ms = lease_ms
        self._timeout_s = timeout_s
        self._wait_s = wait_s
        self._grace_s = grace_s
        self._retry = retry
        self._chance = Random()
        self._on_handled, self._on_away = on_handled, on_away
        self._held: dict[str, Held] = {}  # by lease, in the order they were handed out
        self._next: deque[Held] = deque()  # those that wait for a handler
        self._running = 0
        self._ends_s = math.inf  # when the grace of a stop is over
        self._fault: ClientError | None = None
        self._away = False
        self._pulling: anyio.CancelScope | None = None
        self._changes = Bell()  # for the task of `run`: a message was let go, or `stop`
        self._answers = Bell()  # a message was handled

    async def run(self, *, until: Until = "stopped") -> Tally:
        """Work until `stop`, until nothing is ready and nothing runs here (`empty`), or what one pull gives (`once`).

        Cancelling gives back at once what is not handled. Raises what `pull` raises, when `retry` gives up or the
        server refuses; what is held then is handled first.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep_leases)
                tasks.start_soon(self._keep_answering)
                try:
                    await self._feed(tasks, until)
                except ClientError as error:
                    self._fault = error
                await self._wind_up()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(LAST_WORDS_S, shield=True):
                await self._give_back(list(self._held.values()))
        if self._fault is not None:
            raise self._fault
        return self.tally

    def stop(self, *, grace_s: float | None = None) -> None:
        """Have `run` end: no more pulls, what has no handler yet is given back, handlers may go on for `grace_s`.

        May be called again with less. What a pull brings just then comes back when its lease lapses.
        """
        ends_s = anyio.current_time() + (self._grace_s if grace_s is None else grace_s)
        self._ends_s = min(self._ends_s, ends_s)
        if self._pulling is not None:
            self._pulling.cancel()
        self._changes.ring()

    # -- the parts of a run ------------------------------------------------------------------------------

    @property
    def _stopping(self) -> bool:
        return self._ends_s < math.inf

    async def _feed(self, tasks: TaskGroup, until: Until) -> None:
        failures = 0
        while not self._stopping:
            if len(self._held) >= max(self._concurrency, self._room // 2 + 1):
                await self._changes.wait()
                continue
            began_s = anyio.current_time()
            try:
                messages = await self._pull(0.0 if until == "empty" else self._wait_s)
            except ClientError as error:
                failures += 1
                await self._pause_s(self._again_s(error, failures))
                continue
            failures = 0
            for message in messages:
                self._take(message)
            self._begin(tasks)
            if until == "once" or (until == "empty" and not self._held):
                return
            if not messages and until == "empty":
                await self._changes.wait()
            elif not messages:
                await self._pause_s(POLL_S_MIN - (anyio.current_time() - began_s))

    async def _pull(self, wait_s: float) -> list[Message]:
        with anyio.CancelScope() as self._pulling:
            pulled = await self._client.pull(
                self._dxn,
                batch=min(self._room - len(self._held), PULL_MAX),
                lease_ms=self._lease_ms,
                consumer=self._consumer,
                worker=self._name,
                wait_s=wait_s,
            )
            self.seen = pulled
            self._is_back()
        stopped, self._pulling = self._pulling.cancelled_caught, None
        return [] if stopped else pulled.messages

    async def _wind_up(self) -> None:
        """Wait for handlers, after `stop` until the grace is over; give back what none was found for."""
        while self._held:
            idle = [held for held in self._held.values() if held.scope is None]
            if self._stopping and idle:
                await self._give_back(idle)
                continue
            left_s = self._ends_s - anyio.current_time()
            if left_s <= 0:
                return
            with anyio.move_on_after(left_s):
                await self._changes.wait()

    async def _keep_leases(self) -> None:
        """Extend the leases of all that is held, well before they lapse."""
        beat_s = pause_s = self._lease_ms / 1000 / BEATS
        while True:
            await anyio.sleep(pause_s)
            pause_s = beat_s
            try:
                answers = await self._client.extend(self._dxn, list(self._held), self._lease_ms)
            except (Refused, BadAnswer) as error:
                self._fail(error)
            except ClientError:
                pause_s = min(beat_s, AGAIN_S)  # pulls and acks tell of it
            else:
                self._check(answers)

    def _check(self, answers: Iterable[Answered]) -> None:
        """End the handlers of leases that are lost.

        One that lapsed is not: while nobody else was given the message, the ack still counts.
        """
        for answer in answers:
            held = self._held.get(answer.lease)
            if held is None or held.handled or answer.outcome == "done":
                continue
            if answer.outcome == "lapsed" and held.scope is not None:
                continue
            self._lose(held, answer.outcome)

    # -- one message -------------------------------------------------------------------------------------

    def _take(self, message: Message) -> None:
        """Have a message handled; one whose lease lapsed here goes on with the new lease instead."""
        position = message.position
        held = next((held for held in self._held.values() if held.message.position == position), None)
        if held is None:
            held = Held(message)
            self._next.append(held)
        else:
            del self._held[held.lease]
            held.lease = message.lease
        self._held[message.lease] = held

    def _begin(self, tasks: TaskGroup) -> None:
        """Start as many handlers as may run, in the order of the messages."""
        while self._next and self._running < self._concurrency:
            self._running += 1
            tasks.start_soon(self._work_on, tasks, self._next.popleft())

    async def _work_on(self, tasks: TaskGroup, held: Held) -> None:
        if not self._stopping and held.lease in self._held:
            held.began_s = anyio.current_time()
            with anyio.CancelScope() as held.scope:
                held.failed = await self._outcome(held.message)
                held.handled = True
            self._answers.ring()
        self._running -= 1
        self._begin(tasks)

    async def _outcome(self, message: Message) -> Failed | None:
        """Have the message handled; return what to say of it. None: an ack."""
        lease = message.lease
        try:
            with anyio.move_on_after(self._timeout_s) as limit:
                await self._handle(message)
        except Exception as fault:
            return _failed(lease, fault)
        if limit.cancelled_caught:
            return Failed(lease, error=f"not done within {self._timeout_s:g} s")
        return None

    async def _keep_answering(self) -> None:
        """Say what became of messages as soon as they are handled; of those handled meanwhile, in the next call."""
        failures = 0
        while True:
            handled = [held for held in self._held.values() if held.handled]
            if not handled:
                await self._answers.wait()
                continue
            try:
                await self._say(handled)
                failures = 0
            except ClientError as error:
                failures += 1
                try:
                    await anyio.sleep(self._again_s(error, failures))
                except ClientError as last:
                    self._fail(last)
                    return

    async def _give_back(self, some: list[Held]) -> None:
        """Say what there is to say of messages, once; release those that were not handled."""
        idle = {held.lease: held for held in some if not held.handled}
        handled = [held for held in some if held.handled]
        try:
            if handled:
                await self._say(handled)
            for answer in await self._client.release(self._dxn, list(idle)):
                if answer.settled:
                    self._let_go(idle[answer.lease], "released", None)
                else:
                    self._lose(idle[answer.lease], answer.outcome)
        except ClientError as error:
            self._tell_away(error)  # they come back when their leases lapse
        for held in some:
            self._held.pop(held.lease, None)

    async def _say(self, some: list[Held]) -> None:
        """Ack and retry what was handled."""
        by_lease = {held.lease: held for held in some}
        acked = [held.lease for held in some if held.failed is None]
        failed = [structs.replace(held.failed, lease=held.lease) for held in some if held.failed is not None]
        answers = await self._client.ack(self._dxn, acked) + await self._client.retry(self._dxn, failed)
        self._is_back()
        for answer in answers:
            held = by_lease[answer.lease]
            if not answer.settled and held.lease == answer.lease:
                self._lose(held, answer.outcome)
            elif not answer.settled:
                continue  # it has a new lease by now: say it again
            elif held.failed is None:
                self._let_go(held, "acked", None)
            else:
                self._let_go(held, "given_up" if held.failed.permanent else "retried", held.failed.error)

    def _lose(self, held: Held, outcome: LeaseOutcome) -> None:
        if held.scope is not None:
            held.scope.cancel()
        self._let_go(held, "lost", f"its lease is {outcome}")

    def _let_go(self, held: Held, did: Did, error: str | None) -> None:
        if self._held.pop(held.lease, None) is None:
            return
        self.tally.count(did)
        self._changes.ring()
        took_s = max(anyio.current_time() - held.began_s, 0.0)
        self._on_handled(Handled(held.message, did, error, took_s))

    # -- waiting -----------------------------------------------------------------------------------------

    def _again_s(self, error: ClientError, failures: int) -> float:
        """Return the seconds to wait before what failed is tried again. Raises it if that is of no use."""
        if isinstance(error, Refused | BadAnswer):
            raise error
        pause_s = self._retry.pause_s(failures, error, self._chance)
        if pause_s is None:
            raise error
        self._tell_away(error)
        return pause_s

    def _tell_away(self, error: ClientError) -> None:
        if not self._away:
            self._away = True
            self._on_away(error)

    def _is_back(self) -> None:
        if self._away:
            self._away = False
            self._on_away(None)

    def _fail(self, error: ClientError) -> None:
        """End because of an error: nothing that is held can be answered."""
        self._fault = self._fault or error
        self.stop(grace_s=0.0)

    async def _pause_s(self, pause_s: float) -> None:
        """Sleep, but not beyond `stop`."""
        ends_s = anyio.current_time() + pause_s
        while not self._stopping and (left_s := ends_s - anyio.current_time()) > 0:
            with anyio.move_on_after(left_s):
                await self._changes.wait()


def _failed(lease: str, fault: BaseException) -> Failed:
    """What to say of a message whose handler raised; a task group of the handler may be around it."""
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    if isinstance(fault, GiveUp):
        return Failed(lease, error=_error(str(fault)), permanent=True)
    if isinstance(fault, TryAgain):
        return Failed(lease, delay_ms=fault.delay_ms, error=_error(str(fault)))
    return Failed(lease, error=_error(f"{type(fault).__name__}: {fault}"))


def _error(text: str) -> str | None:
    whole = text.encode(errors="backslashreplace").decode()  # half a surrogate pair cannot be sent
    return whole[:ERROR_CHARS_MAX] or None
