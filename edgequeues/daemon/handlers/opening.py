"""From what the settings say of a handler to one that runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from edgequeues.daemon.contract import Context, Handler, Result, TryAgain
from edgequeues.daemon.handlers.functions import open_function
from edgequeues.daemon.handlers.lines import open_command
from edgequeues.daemon.handlers.spec import HandlerSpec, Link
from edgequeues.events.event import SwitchboardEvent


class _Limited:
    """A handler that is told to stop when its time is up."""

    def __init__(self, handler: Handler, budget_s: float) -> None:
        self._handler = handler
        self._budget_s = budget_s

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        with trio.move_on_after(self._budget_s):
            return await self._handler.handle(event, ctx)
        raise TryAgain(f"the handler was not done within {self._budget_s:g} s")


@asynccontextmanager
async def open_handler(
    spec: HandlerSpec,
    *,
    logger: Any,
    redact: Callable[[str], str] = lambda line: line,
    link: Link | None = None,
    secret: str | None = None,
) -> AsyncIterator[Handler]:
    """A handler, whose threads and processes end with the block. Raises UnusableHandler where it cannot be run.

    logger: structlog's, or one like it. redact: takes personal data out of what a command writes to standard error.
    link: gives commands and URLs links to objects. secret: signs what is posted to a URL, see Standard Webhooks.
    """
    async with _opened(spec, logger, redact, link, secret) as handler:
        yield _Limited(handler, spec.budget_s)


def _opened(
    spec: HandlerSpec, logger: Any, redact: Callable[[str], str], link: Link | None, secret: str | None
) -> AbstractAsyncContextManager[Handler]:
    if spec.kind == "python":
        return open_function(spec, logger=logger)
    if spec.kind == "command":
        return open_command(spec, logger=logger, redact=redact, link=link)
    from edgequeues.daemon.handlers.posting import open_posting

    return open_posting(spec, link=link, secret=secret)
