"""What a message carries of the trace that it came by.

The vocabulary is that of https://www.w3.org/TR/trace-context/. Nothing here needs OpenTelemetry, as `edgequeues.otel`
does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import msgspec
from msgspec.structs import replace

from edgequeues.core import jsontext
from edgequeues.models import NewEntry

TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"

_carried: ContextVar[str | None] = ContextVar("carried", default=None)  # JSON text of an object of texts


@contextmanager
def carrying(context: Mapping[str, str]) -> Iterator[None]:
    """Have messages that come in meanwhile, in this task, carry this context."""
    token = _carried.set(msgspec.json.encode(dict(context)).decode() if context else None)
    try:
        yield
    finally:
        _carried.reset(token)


def marked(entries: Sequence[NewEntry]) -> Sequence[NewEntry]:
    """Messages as `mark` has them."""
    return entries if _carried.get() is None else [mark(one) for one in entries]


def mark(entry: NewEntry) -> NewEntry:
    """A message as it is to be stored: with the context of this task's trace, where there is one and it has none."""
    context, own = _carried.get(), entry.headers
    if context is None or (own is not None and TRACEPARENT in own):
        return entry
    return replace(entry, headers=context if own in (None, "{}") else f"{own[:-1]},{context[1:]}")


def unmarked(headers: str | None) -> str | None:
    """Headers without what they carry of a trace, which a repeat of the same message need not share."""
    if headers is None or TRACEPARENT not in headers:
        return headers
    own = {
        name: value
        for name, value in jsontext.value(headers).items()
        if name not in (TRACEPARENT, TRACESTATE)
    }
    return jsontext.write(own).decode() if own else None
