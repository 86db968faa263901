"""Handlers that are commands in any language, which are told of events over standard input; see `messages`.

Each process deals with one event at a time, so an event that kills one harms no other.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random
from typing import Any

import msgspec
import trio

from edgequeues.daemon.contract import Context, GiveUp, Handler, Result, TryAgain
from edgequeues.daemon.handlers.messages import PARAMS, Answer, Call, Cancel, Did, Event, Failed, Ready
from edgequeues.daemon.handlers.process import Gone, Process
from edgequeues.daemon.handlers.spec import HandlerSpec, Link, UnusableHandler, result_of
from edgequeues.events.event import SwitchboardEvent

CALLS_MAX = 16  # of one event that are under way at once; further ones wait
CANCEL_S = 1.0  # that a process has to answer an event whose time is up
PAUSE_S_MIN, PAUSE_S_MAX = 0.1, 10.0  # before a process is started where the last one failed


class _Conversation:
    """About one event, with one process."""

    def __init__(self, process: Process, number: int, ctx: Context, link: Link | None) -> None:
        self._process = process
        self._number = number
        self._ctx = ctx
        self._link = link
        self._room = trio.Semaphore(CALLS_MAX)
        self.is_over = False

    async def run(self, event: SwitchboardEvent, budget_s: float) -> Result:
        """Have the event dealt with. Raises TryAgain, GiveUp, and Gone."""
        end: Did | Failed | None = None
        gone: Gone | None = None
        async with trio.open_nursery() as tasks:
            told = Event(self._number, self._ctx.attempt, round(budget_s * 1000), event)
            tasks.start_soon(self._say, told)
            try:
                end = await self._listen(tasks)
            except Gone as fault:
                gone = fault
                tasks.cancel_scope.cancel()
        if gone is not None:
            raise gone
        self.is_over = True
        if isinstance(end, Did):
            return result_of(end.result, who="the handler")
        assert isinstance(end, Failed)
        if end.permanent:
            raise GiveUp(end.error)
        raise TryAgain(end.error, delay_s=_seconds(end.retry_after_ms))

    async def cancel(self) -> None:
        """Tell the process that the time is up, and hear how it takes it. Raises Gone."""
        await self._process.say(Cancel(self._number))
        while isinstance(heard := await self._hear(), Call):
            if heard.call is not None:
                await self._process.say(Answer(heard.call, error="the time for this event is up"))
        self.is_over = True

    async def _listen(self, tasks: trio.Nursery) -> Did | Failed:
        while True:
            heard = await self._hear()
            if not isinstance(heard, Call):
                return heard
            await self._room.acquire()
            tasks.start_soon(self._answer, heard)

    async def _hear(self) -> Did | Failed | Call:
        """What is about this event; what comes too late is about an earlier one."""
        while True:
            heard = await self._process.hear()
            if isinstance(heard, Ready) or heard.id > self._number:
                raise Gone("it wrote about an event that it has not got")
            if heard.id == self._number:
                return heard

    async def _say(self, message: Event | Answer) -> None:
        """One that reads no more says so by its output, too."""
        try:
            await self._process.say(message)
        except Gone:
            return

    async def _answer(self, call: Call) -> None:
        """Do what the process wants. What fails is its own to deal with."""
        answer = Answer(call.call or 0)
        try:
            answer.result = await self._done(call)
        except (TryAgain, GiveUp) as fault:
            answer.error = f"{fault.code}: {fault}"
            answer.permanent = isinstance(fault, GiveUp)
            if isinstance(fault, TryAgain) and fault.delay_s is not None:
                answer.retry_after_ms = round(fault.delay_s * 1000)
        except Exception as fault:  # a bad name of a metric, say
            answer.error = f"{call.method}: {fault}"
        finally:
            self._room.release()
        if call.call is not None:
            await self._say(answer)
        elif answer.error is not None:
            self._ctx.logger.warning("the handler's call failed", method=call.method, err=answer.error)

    async def _done(self, call: Call) -> Any:
        params = msgspec.convert(call.params, PARAMS[call.method])
        ctx = self._ctx
        match call.method:
            case "url":
                if self._link is None:
                    raise GiveUp("there is no object store to ask for a link; set BLOBS_ENDPOINT")
                return await self._link(params.ref)
            case "sendEmail":
                await ctx.send_email(params)
            case "sendSms":
                await ctx.send_sms(params)
            case "log":
                getattr(ctx.logger, params.level)(params.message, handler=params.fields)
            case "count":
                ctx.metrics.count(params.name, params.value, **params.labels)
            case "observe":
                ctx.metrics.observe(params.name, params.value, **params.labels)
        return None


class Commands:
    """Processes of one command: each is started when it is needed, and kept for the next event."""

    def __init__(
        self,
        spec: HandlerSpec,
        tasks: trio.Nursery,
        *,
        logger: Any,
        redact: Callable[[str], str],
        link: Link | None,
        chance: Random,
    ) -> None:
        self._words = spec.words()
        self._budget_s = spec.budget_s
        self._tasks = tasks
        self._logger = logger
        self._redact = redact
        self._link = link
        self._chance = chance
        self._room = trio.Semaphore(spec.at_once)
        self._idle: list[Process] = []
        self._numbers = count(1)
        self._failures = 0  # processes in a row that came to a bad end
        self._not_before_s = -math.inf  # no process is started sooner

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        """See `contract.Handler`."""
        async with self._room:
            process = await self._process()
            conversation = _Conversation(process, next(self._numbers), ctx, self._link)
            try:
                return await conversation.run(event, self._budget_s)
            except Gone as fault:
                how = await process.kill(fault)
                raise TryAgain(f"the handler's process is no more: {fault} ({how})") from None
            finally:
                if not conversation.is_over and process.is_usable:  # it was cancelled
                    with trio.move_on_after(CANCEL_S, shield=True), suppress(Gone):
                        await conversation.cancel()
                await self._put(process, is_good=conversation.is_over)

    async def first(self) -> None:
        """Start one process, to see that it can be. Raises UnusableHandler."""
        try:
            self._idle.append(await self._start())
        except Gone as fault:
            raise UnusableHandler(
                f"{self._words[0]}: the handler's command does not run: {fault}; try it by hand, and see what the "
                "log has of its standard error"
            ) from None

    async def close(self) -> None:
        """End all processes; no event is dealt with any more."""
        async with trio.open_nursery() as endings:
            while self._idle:
                endings.start_soon(self._idle.pop().stop)

    async def _put(self, process: Process, *, is_good: bool) -> None:
        if is_good and process.is_usable:
            self._failures = 0
            self._idle.append(process)
        else:
            self._failed()
            how = await process.kill()
            self._logger.warning("a process of the handler was ended", pid=process.pid, how=how)

    async def _process(self) -> Process:
        """One that waits for an event, or a new one, later where others failed. Raises TryAgain."""
        while self._idle:
            process = self._idle.pop()
            if not process.has_ended():
                return process
            await self._put(process, is_good=False)
        await trio.sleep_until(self._not_before_s)
        try:
            return await self._start()
        except Gone as fault:
            self._failed()
            raise TryAgain(f"the handler's process does not start: {fault}") from None

    def _failed(self) -> None:
        pause_s = min(PAUSE_S_MIN * math.exp2(min(self._failures, 20)), PAUSE_S_MAX)
        self._failures += 1
        self._not_before_s = trio.current_time() + pause_s * (0.5 + 0.5 * self._chance.random())

    async def _start(self) -> Process:
        """Raises Gone."""
        try:
            process = await Process.start(self._words)
        except OSError as fault:
            raise Gone(f"it cannot be started: {fault.strerror}") from None
        self._tasks.start_soon(process.log, self._logger, self._redact)
        try:
            await process.ready()
        except Gone as fault:
            how = await process.kill(fault)
            raise Gone(f"{fault} ({how})") from None
        except BaseException:
            await process.kill()
            raise
        return process


@asynccontextmanager
async def open_command(
    spec: HandlerSpec,
    *,
    logger: Any,
    redact: Callable[[str], str] = lambda line: line,
    link: Link | None = None,
    chance: Random | None = None,
) -> AsyncIterator[Handler]:
    """A command whose processes end with the block. Raises UnusableHandler where it does not get ready."""
    fault: Exception | None = None
    async with trio.open_nursery() as tasks:
        commands = Commands(spec, tasks, logger=logger, redact=redact, link=link, chance=chance or Random())
        try:
            await commands.first()
            yield commands
        except Exception as error:  # so that it comes out as it is, and in no group
            fault = error
        finally:
            with trio.CancelScope(shield=True):
                await commands.close()
            tasks.cancel_scope.deadline = trio.current_time() + CANCEL_S  # for what is left to be logged
    if fault is not None:
        raise fault


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1000
