"""The daemon's log: one JSON object a line, without personal data. A log that fails hurts nobody."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from functools import lru_cache
from typing import Any, Protocol, TextIO

import msgspec
import structlog

from edgequeues.core import jsontext
from edgequeues.core.times import utc

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_FIRST = ("ts", "level", "component", "eventId", "source", "attempt", "msg", "err", "outcome")

_ts = lru_cache(maxsize=1)(utc)  # many lines are of the same millisecond

Redact = Callable[[Any], Any]


class Logger(Protocol):
    """What the daemon wants of a logger; structlog's is one."""

    def bind(self, **fields: Any) -> Logger:
        """One that says these fields in every line."""

    def debug(self, msg: str, **fields: Any) -> Any:
        """Say something that few want to know."""

    def info(self, msg: str, **fields: Any) -> Any:
        """Say something."""

    def warning(self, msg: str, **fields: Any) -> Any:
        """Say that something is odd."""

    def error(self, msg: str, **fields: Any) -> Any:
        """Say that something failed."""


class Lines:
    """Where lines go: at once, each in one write. A reader that is gone is no fault of the daemon.

    level: of LEVELS; what is below it is left out. redact: takes all fields of a line, and gives those that may be
    shown.
    """

    def __init__(
        self,
        file: TextIO,
        *,
        level: str,
        redact: Redact,
        now_ms: Callable[[], int],
        component: str = "daemon",
    ) -> None:
        self.least = LEVELS[level]
        self._file = file
        self._redact = redact
        self._now_ms = now_ms
        self._component = component

    def write(self, level: str, fields: dict[str, Any]) -> None:
        """Write a line, if its level is to be seen. fields: with `msg`."""
        if LEVELS.get(level, self.least) < self.least:
            return
        try:
            self._file.write(self._line(level, fields) + "\n")
            self._file.flush()
        except (OSError, ValueError):
            return

    def _line(self, level: str, fields: dict[str, Any]) -> str:
        try:
            shown = dict(self._redact(fields))
        except Exception as fault:  # what cannot be redacted is not shown
            shown = {"msg": "a line that could not be redacted", "err": type(fault).__name__}
        shown |= {"ts": _ts(self._now_ms()), "level": level}
        shown.setdefault("component", self._component)
        ordered = {name: shown[name] for name in _FIRST if name in shown} | shown
        return _json(ordered)


class Log:
    """A logger that may raise, and what the daemon itself says in it: that must not decide what becomes of a message.

    lines: where that goes past the logger, as it is one line for each message.
    """

    def __init__(self, logger: Logger, lines: Lines | None = None) -> None:
        self._logger = logger
        self._lines = lines
        self.lost = 0  # lines

    def tell(self, level: str, msg: str, **fields: Any) -> None:
        """Log a line, if that works. Fields that are None are left out."""
        said = {name: one for name, one in fields.items() if one is not None}
        try:
            if self._lines is None:
                getattr(self._logger, level)(msg, **said)
            else:
                said["msg"] = msg
                self._lines.write(level, said)
        except Exception:
            self.lost += 1


def logger(lines: Lines) -> Logger:
    """A structlog logger, for handlers and all that is not said of each message."""

    def write(_: Any, level: str, fields: MutableMapping[str, Any]) -> Any:
        msg = fields.pop("event", "")
        lines.write(level, {**fields, "msg": msg})
        raise structlog.DropEvent

    made: Logger = structlog.wrap_logger(
        None,
        processors=[write],
        wrapper_class=structlog.make_filtering_bound_logger(lines.least),
        cache_logger_on_first_use=False,
    ).bind()  # once, and not for each line
    return made


def _json(fields: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(fields).decode()
    except (TypeError, ValueError):  # a handler's own objects; half a surrogate pair
        return jsontext.write(msgspec.to_builtins(fields, enc_hook=repr, str_keys=True)).decode()
