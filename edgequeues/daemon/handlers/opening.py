"""From what the settings say of a handler to one that runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from edgequeues.daemon.contract import Handler
from edgequeues.daemon.handlers.functions import open_function
from edgequeues.daemon.handlers.lines import open_command
from edgequeues.daemon.handlers.spec import HandlerSpec, Link


def open_handler(
    spec: HandlerSpec,
    *,
    logger: Any,
    redact: Callable[[str], str] = lambda line: line,
    link: Link | None = None,
    secret: str | None = None,
) -> AbstractAsyncContextManager[Handler]:
    """A handler, whose threads and processes end with the block. Raises UnusableHandler where it cannot be run.

    logger: structlog's, or one like it. redact: takes personal data out of what a command writes to standard error.
    link: gives commands and URLs links to objects. secret: signs what is posted to a URL, see Standard Webhooks.
    """
    if spec.kind == "python":
        return open_function(spec, logger=logger)
    if spec.kind == "command":
        return open_command(spec, logger=logger, redact=redact, link=link)
    from edgequeues.daemon.handlers.posting import open_posting

    return open_posting(spec, link=link, secret=secret)
