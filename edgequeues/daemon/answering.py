"""Says what becomes of messages: as soon as there is something to say, and what came meanwhile in the next call."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

import trio

from edgequeues.daemon import held as holding
from edgequeues.daemon.held import Held
from edgequeues.daemon.queue import HttpQueue, Patience
from edgequeues.daemon.wire import LEASES_MAX, Acked, Denied, QueueError, Refused
from edgequeues.logs import Log

BYTES_MAX = 1_000_000  # of one call


class Answering:
    """The acks of one daemon, one call at a time.

    What fails is said again until the lease has been over for `late_s`: most services take late acks, and an ack that
    is lost is a message handled twice. on_settled: told of each message, with the answer; None: it could not be said.
    calls: held while leases are named, as an extension gives them new names. ours: see `holding.answers`.
    """

    def __init__(
        self,
        queue: HttpQueue,
        *,
        log: Log,
        late_s: float,
        patience: Patience,
        chance: Random,
        on_settled: Callable[[Held, Acked | None], None],
    ) -> None:
        self.calls = trio.Lock()
        self.ours = False
        self._queue = queue
        self._log = log
        self._late_s = late_s
        self._patience, self._chance = patience, chance
        self._on_settled = on_settled
        self._waiting: deque[Held] = deque()
        self._bell = trio.Event()

    def say(self, held: Held, answer: holding.Answer) -> None:
        """Have an answer said."""
        held.answer = answer
        self._waiting.append(held)
        self._bell.set()

    async def run(self) -> None:
        """Say what there is to say, for ever."""
        failures = 0
        while True:
            while not self._waiting:
                self._bell = trio.Event()
                await self._bell.wait()
            failures = await self._round(failures)

    async def finish(self) -> None:
        """Say what is left; for when `run` is over."""
        failures = 0
        while self._waiting:
            failures = await self._round(failures)

    async def _round(self, failures: int) -> int:
        """One call, and a pause where it failed; return the failures in a row."""
        some = self._next()
        try:
            await self._ack(some)
        except QueueError as error:
            if isinstance(error, Refused) and await self._apart(some):
                return 0
            self._log.tell("warning", "what became of messages could not be said yet", err=str(error))
            self._drop_late()
            await trio.sleep(self._patience.pause_s(failures + 1, error, self._chance))
            return failures + 1
        return 0

    async def _ack(self, some: list[Held]) -> None:
        async with self.calls:
            self._settle(some, await self._queue.ack(holding.answers(some, ours=self.ours)))

    def _next(self) -> list[Held]:
        some: list[Held] = []
        size = 0
        for held in self._waiting:
            assert held.answer is not None
            size += held.answer.size
            if some and (size > BYTES_MAX or len(some) == LEASES_MAX):
                break
            some.append(held)
        return some

    async def _apart(self, some: list[Held]) -> bool:
        """A call was refused: of its messages, it may be one that is to blame. False: it is none of them."""
        for held in some:
            try:
                await self._ack([held])
            except Denied as error:
                if held.answer is None or held.answer.letter is None:
                    return False
                self._lose(held, f"{error}; its reply goes to the queue {held.answer.letter.queue}")
            except Refused as error:
                self._lose(held, str(error))
            except QueueError:
                return False
        return True

    def _settle(self, some: list[Held], acked: Acked) -> None:
        for held in some:
            self._waiting.remove(held)
            if (warning := acked.warnings.get(held.lease)) is not None:
                self._log.tell("warning", "the lease was not ours any more", err=warning, **held.fields())
            held.settled.set()
            self._on_settled(held, acked)

    def _drop_late(self) -> None:
        for held in [one for one in self._waiting if one.left_s < -self._late_s]:
            self._lose(held, "its lease was over for too long")

    def _lose(self, held: Held, why: str) -> None:
        self._waiting.remove(held)
        self._log.tell(
            "error", "what became of a message could not be said; it comes again", err=why, **held.fields()
        )
        held.settled.set()
        self._on_settled(held, None)
