"""What the daemon and a command say to each other: one JSON object a line. Version 1.

docs/guides/handlers.md is for those who write the other side.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct

from edgequeues.daemon.contract import EmailReply, SmsReply
from edgequeues.events.event import BlobRef, SwitchboardEvent

VERSION = 1
LINE_BYTES_MAX = 1024 * 1024  # of what a command says, with its end

# -- from the daemon ------------------------------------------------------------------------------------


class Hello(Struct, tag="hello", tag_field="type"):
    """The first line. version: of the protocol."""

    version: int = VERSION


class Event(Struct, tag="event", tag_field="type", rename="camel"):
    """An event to be dealt with. id: a number that comes back with whatever is about it."""

    id: int
    attempt: int
    budget_ms: int
    event: SwitchboardEvent


class Answer(Struct, tag="answer", tag_field="type", rename="camel", omit_defaults=True):
    """What became of a call: its result, or else why there is none."""

    call: int
    result: Any = UNSET
    error: str | None = None
    permanent: bool = False
    retry_after_ms: int | None = None


class Cancel(Struct, tag="cancel", tag_field="type"):
    """The time for an event is up. It is to be answered all the same, with a result or an error, and soon."""

    id: int


class Stop(Struct, tag="stop", tag_field="type"):
    """The last line: there is nothing more to do."""


ToCommand = Hello | Event | Answer | Cancel | Stop

# -- from the command -----------------------------------------------------------------------------------


class Ready(Struct, tag="ready", tag_field="type"):
    """It may be given events."""


class Did(Struct, tag="result", tag_field="type"):
    """An event is dealt with."""

    id: int
    result: Any = None


class Failed(Struct, tag="error", tag_field="type", rename="camel"):
    """An event is not dealt with. permanent: it never can be. retry_after_ms: to wait before the next attempt."""

    id: int
    error: str
    retry_after_ms: Annotated[float, Meta(ge=0)] | None = None
    permanent: bool = False


class Call(Struct, tag="call", tag_field="type"):
    """Something of the context is used. Without `call`, a number of the command's choice, no answer is wanted."""

    id: int
    method: Literal["url", "sendEmail", "sendSms", "log", "count", "observe"]
    call: int | None = None
    params: Any = None


FromCommand = Ready | Did | Failed | Call


class Url(Struct):
    """Of the call `url`: an object for which a link is wanted."""

    ref: BlobRef


class LogLine(Struct):
    """Of the call `log`."""

    message: Annotated[str, Meta(max_length=8_192)]
    level: Literal["debug", "info", "warning", "error"] = "info"
    fields: Annotated[dict[Annotated[str, Meta(max_length=64)], Any], Meta(max_length=32)] = {}


class Measure(Struct):
    """Of the calls `count` and `observe`."""

    name: str
    value: float = 1.0
    labels: Annotated[dict[str, str], Meta(max_length=16)] = {}


PARAMS: dict[str, Any] = {
    "url": Url,
    "sendEmail": EmailReply,
    "sendSms": SmsReply,
    "log": LogLine,
    "count": Measure,
    "observe": Measure,
}

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(FromCommand)


def line(message: ToCommand) -> bytes:
    """A message as a line."""
    return _encoder.encode(message) + b"\n"


def heard(text: bytes) -> FromCommand:
    """What a line says. Raises msgspec.DecodeError."""
    said: FromCommand = _decoder.decode(text)
    return said
