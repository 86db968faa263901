"""Which handler is to be run, and how: checked before anything is pulled."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from edgequeues.daemon.contract import Result, TryAgain
from edgequeues.events.event import BlobRef

Kind = Literal["python", "command", "url"]
Link = Callable[[BlobRef], Awaitable[BlobRef]]  # gives one whose link is good now; raises TryAgain, GiveUp

AT_ONCE_MAX = 1_000
COMMANDS_MAX = 64  # processes, each of which deals with one event at a time
BUDGET_S_MAX = 43_200.0  # the longest that a message can be hidden for
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class UnusableHandler(ValueError):
    """There is no such handler, or it cannot be run. Says what was tried, and what to do."""


class HandlerSpec(Struct, frozen=True, kw_only=True):
    """A handler. Raises UnusableHandler for one that cannot be.

    target: `module:function`; a command line, which no shell sees; or a URL. loop: what an `async def` runs on.
    at_once: events it is given at the same time, at most. budget_s: seconds it may take for one event.
    """

    kind: Kind
    target: str
    loop: Literal["trio", "asyncio"] = "trio"
    at_once: int = 4
    budget_s: float = 20.0

    def __post_init__(self) -> None:
        if not 1 <= self.at_once <= AT_ONCE_MAX:
            raise UnusableHandler(
                f"a handler is given 1 to {AT_ONCE_MAX} events at once, and not {self.at_once}"
            )
        if not 0 < self.budget_s <= BUDGET_S_MAX:
            raise UnusableHandler(
                f"a handler may take up to {BUDGET_S_MAX:.0f} s for an event, and not {self.budget_s}"
            )
        if self.loop == "asyncio" and self.kind != "python":
            raise UnusableHandler("asyncio is for handlers that are Python functions; leave the loop out")
        match self.kind:
            case "python" if not _FUNCTION.fullmatch(self.target):
                raise UnusableHandler(
                    f"{self.target!r} names no function; write module:function, as in shop.mail:handle"
                )
            case "command":
                self.words()
                if self.at_once > COMMANDS_MAX:
                    raise UnusableHandler(
                        f"a command runs in one process for each event at once: {self.at_once} is too many, "
                        f"{COMMANDS_MAX} are allowed"
                    )
            case "url":
                _check_url(self.target)

    def words(self) -> list[str]:
        """The words of a command line."""
        try:
            words = shlex.split(self.target)
        except ValueError as fault:
            raise UnusableHandler(
                f"the handler's command line cannot be read: {str(fault).lower()}"
            ) from None
        if not words:
            raise UnusableHandler("the handler's command line is empty; write, for example, node handler.mjs")
        return words


def _check_url(text: str) -> None:
    try:
        url = urlsplit(text)
        fine = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        fine = False
    if not fine or not text.isascii() or not text.isprintable() or " " in text:
        raise UnusableHandler("the handler's URL is none; write https://host/path, or http://127.0.0.1:3000/")
    if url.username is not None or url.password is not None or url.fragment:
        raise UnusableHandler(
            "the handler's URL may have neither a password nor a fragment; HANDLER_SECRET signs what is posted"
        )


def result_of(given: object, *, who: str) -> Result:
    """The result that a handler gave: None, a Result, or what it looks like on the wire. Raises TryAgain."""
    if given is None:
        return Result()
    if isinstance(given, Result):
        return given
    if not isinstance(given, dict):
        raise TryAgain(
            f"{who} gave {type(given).__name__}; it must give nothing, a Result, or a dict of its shape"
        )
    try:
        return msgspec.convert(given, Result)
    except msgspec.ValidationError as fault:
        raise TryAgain(f"{who} gave what is no result: {fault}") from None
