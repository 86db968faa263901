"""How long handlers may take, told once for all of them: a scope of trio for each event costs more than the rest."""

from __future__ import annotations

import math
from types import TracebackType

import trio

from edgequeues.daemon.contract import Context, Handler, Result, TryAgain
from edgequeues.events.event import SwitchboardEvent


class Budgets:
    """All handlers that run have as long; `watch` ends those that take longer."""

    def __init__(self, budget_s: float) -> None:
        self.budget_s = budget_s
        self.workers: set[Worker] = set()

    async def watch(self) -> None:
        """Cancel handlers as their time is up, for ever."""
        while True:
            # Whatever begins later has its end later, so that nothing needs to be told of it.
            soonest_s = min((one.ends_s for one in self.workers), default=math.inf)
            await trio.sleep_until(min(soonest_s, trio.current_time() + self.budget_s))
            for one in self.workers:
                if one.ends_s <= trio.current_time():
                    one.cancel()


class Worker:
    """Runs a handler for one event after the other, in the task that enters it. ends_s: when the time is up."""

    def __init__(self, budgets: Budgets, handler: Handler) -> None:
        self.ends_s = math.inf
        self._budgets = budgets
        self._handler = handler
        self._scope: trio.CancelScope | None = None

    def __enter__(self) -> Worker:
        self._budgets.workers.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._budgets.workers.remove(self)
        if self._scope is not None:
            self._scope.__exit__(kind, fault, trace)

    def cancel(self) -> None:
        """Have the handler end that runs now."""
        assert self._scope is not None
        self._scope.cancel()

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        """Have the handler deal with an event. Raises TryAgain where that takes too long, and whatever it raises."""
        scope = self._scope
        if scope is None:
            scope = self._scope = trio.CancelScope()
            scope.__enter__()
        self.ends_s = trio.current_time() + self._budgets.budget_s
        try:
            return await self._handler.handle(event, ctx)
        except BaseException as fault:
            if scope.cancel_called:
                self._scope = None
                if scope.__exit__(type(fault), fault, fault.__traceback__):
                    raise TryAgain(f"the handler was not done within {self._budgets.budget_s:g} s") from None
            raise
        finally:
            self.ends_s = math.inf
            if self._scope is not None and scope.cancel_called:  # done all the same, though late
                self._scope = None
                scope.__exit__(None, None, None)
