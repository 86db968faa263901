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


class Log:
    """A logger around another one that may raise: what is logged must not decide what becomes of a message."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self.lost = 0  # lines

    def tell(self, level: str, msg: str, **fields: Any) -> None:
        """Log a line, if that works. Fields that are None are left out."""
        try:
            getattr(self._logger, level)(
                msg, **{name: one for name, one in fields.items() if one is not None}
            )
        except Exception:
            self.lost += 1


class _Lines:
    """Where lines go: at once, each in one write. A reader that is gone is no fault of the daemon."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def msg(self, line: str) -> None:
        """Write a line."""
        try:
            self._file.write(line + "\n")
            self._file.flush()
        except (OSError, ValueError):
            return

    debug = info = warning = error = msg


def logger(
    file: TextIO, *, level: str, redact: Redact, now_ms: Callable[[], int], component: str = "daemon"
) -> Logger:
    """A structlog logger. redact: takes all fields of a line, and gives those that may be shown."""

    def line(_: Any, method: str, fields: MutableMapping[str, Any]) -> str:
        fields["msg"] = fields.pop("event", "")
        try:
            shown = dict(redact(fields))
        except Exception as fault:  # what cannot be redacted is not shown
            shown = {"msg": "a line that could not be redacted", "err": type(fault).__name__}
        shown |= {"ts": _ts(now_ms()), "level": method}
        shown.setdefault("component", component)
        ordered = {name: shown[name] for name in _FIRST if name in shown} | shown
        return _json(ordered)

    made: Logger = structlog.wrap_logger(
        _Lines(file),
        processors=[line],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        cache_logger_on_first_use=False,
    ).bind()  # once, and not for each line
    return made


def _json(fields: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(fields).decode()
    except (TypeError, ValueError):  # a handler's own objects; half a surrogate pair
        return jsontext.write(msgspec.to_builtins(fields, enc_hook=repr, str_keys=True)).decode()
