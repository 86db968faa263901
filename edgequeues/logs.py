"""Logs: one JSON object a line, or plain text for people. A log that fails hurts nobody."""

from __future__ import annotations

import json
import logging
import re
import traceback
from collections.abc import Callable, MutableMapping
from functools import lru_cache
from typing import Any, Protocol, TextIO

import msgspec
import structlog

from edgequeues.core import jsontext
from edgequeues.core.times import utc

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_FIRST = ("ts", "level", "component", "eventId", "source", "attempt", "msg", "err", "outcome")

_TS = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)")


@lru_cache(maxsize=2)
def _second(unix_s: int) -> str:
    return utc(unix_s * 1_000)[:-4]


def _ts(unix_ms: int) -> str:
    """As `utc` has it; many lines are of the same second."""
    return f"{_second(unix_ms // 1_000)}{unix_ms % 1_000:03d}Z"


Redact = Callable[[Any], Any]


class Logger(Protocol):
    """What is wanted of a logger; structlog's is one."""

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
    """Where lines go: at once, each in one write. A reader that is gone is no fault of ours.

    level: of LEVELS; what is below it is left out. redact: takes all fields of a line, and gives those that may be
    shown. text: for people, not for programs.
    """

    def __init__(
        self,
        file: TextIO,
        *,
        level: str,
        redact: Redact,
        now_ms: Callable[[], int],
        component: str = "daemon",
        text: bool = False,
    ) -> None:
        self.least = LEVELS[level]
        self._file = file
        self._redact = redact
        self._now_ms = now_ms
        self._component = component
        self._render = _text if text else _json

    def write(self, level: str, fields: dict[str, Any]) -> None:
        """Write a line, if its level is to be seen. fields: with `msg`."""
        if LEVELS.get(level, self.least) < self.least:
            return
        try:
            line = self._line(level, fields)
        except ValueError:
            return
        self._put(line)

    def kind(self, level: str, fields: dict[str, Any], last: str) -> Callable[[float], None]:
        """What writes lines that have these fields, each with another number as its `last` one. For many lines."""
        if LEVELS[level] < self.least:
            return lambda number: None
        before, _, rest = _TS.split(self._line(level, {**fields, last: 0}), maxsplit=1)
        between, _, after = rest.rpartition("0")

        def write(number: float) -> None:
            self._put(f"{before}{_ts(self._now_ms())}{between}{number}{after}")

        return write

    def _put(self, line: str) -> None:
        try:
            self._file.write(line + "\n")
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
        return self._render(ordered)


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


class Records(logging.Handler):
    """Has what libraries say by the standard library's `logging` written as lines of ours, tracebacks included."""

    def __init__(self, lines: Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        """Write one."""
        fields = {"logger": record.name, "msg": record.getMessage()}
        if record.exc_info is not None:
            fields["err"] = "".join(traceback.format_exception(*record.exc_info))
        self._lines.write(record.levelname.lower(), fields)


def _text(fields: dict[str, Any]) -> str:
    """As people read it: when, how grave, what; then the rest; a traceback last."""
    rest = dict(fields)
    said = [str(rest.pop("ts")), f"{rest.pop('level'):<7}", str(rest.pop("msg", ""))]
    rest.pop("component", None)
    long = str(rest.pop("err")) if "\n" in str(rest.get("err", "")) else ""
    said += [f"{name}={_plain(value)}" for name, value in rest.items()]
    return " ".join(said) + (f"\n{long.rstrip()}" if long else "")


def _plain(value: object) -> str:
    """A value of a field; quoted where it could be taken for something else."""
    text = str(value)
    return text if text and not set(text) & set(' "=\n\r\t') and text.isprintable() else json.dumps(text)


def _json(fields: dict[str, Any]) -> str:
    try:
        return msgspec.json.encode(fields).decode()
    except (TypeError, ValueError):  # a handler's own objects; half a surrogate pair
        return jsontext.write(msgspec.to_builtins(fields, enc_hook=repr, str_keys=True)).decode()
