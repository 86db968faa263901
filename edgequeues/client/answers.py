"""The native protocol without a network: what an answer means, as typed values or as an exception."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.client.errors import BadAnswer, ClientError, Refused, ServerError, Unavailable, Unreachable
from edgequeues.client.text import Text
from edgequeues.client.values import AppendAnswer, Entry, Page, QueueStats, Space

T = TypeVar("T")

DONE = (200, 202)


class Answer(Struct, frozen=True):
    """One reply; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WireEntry(Struct, frozen=True):
    """An entry as it stands in an answer."""

    id: str
    position: int
    version: str
    created: int
    updated: int
    data: Raw
    type: str | None = None
    expires: int | None = None
    key: str | None = None
    headers: Raw | UnsetType = UNSET


class WirePage(Struct, frozen=True, rename="camel"):
    """A page as it stands in an answer."""

    entries: list[WireEntry]
    next_cursor: str | None = None
    prev_cursor: str | None = None


class Spaces(Struct, frozen=True):
    """A page of spaces; resume: what `after` the next page starts, None at the end."""

    spaces: list[Space]
    resume: str | None = None


class Queues(Struct, frozen=True):
    """A page of queues; resume: what `after` the next page starts, None at the end."""

    queues: list[QueueStats]
    resume: str | None = None


class Deleted(Struct, frozen=True):
    """How many entries are gone."""

    deleted: int


class LineRefused(Struct, frozen=True):
    """A bad line of a stream, by its number in that stream."""

    line: int
    code: str
    detail: str = ""


class Problem(Struct, frozen=True):
    """RFC 9457."""

    code: str
    status: int = 0
    title: str = ""
    detail: str = ""


class Progress(Struct, frozen=True):
    """A line of the answer to a stream. Only the last has the counts, or why it ended early."""

    through: int
    cursor: str | None = None
    appended: int | None = None
    refused: int = 0
    errors: tuple[LineRefused, ...] = ()
    problem: Problem | None = None


def checked(answer: Answer, statuses: Container[int] = DONE) -> bytes:
    """Return the body of a 200 or 202, or of `statuses`. Raises Refused, Unavailable, ServerError, BadAnswer else."""
    if answer.status in statuses:
        return answer.body
    if answer.status >= 400:
        raise problem(answer)
    raise BadAnswer(f"status {answer.status} is not in the protocol: is this the server's own address?")


def problem(answer: Answer) -> ServerError:
    """Return what a 4xx or 5xx answer says as an exception to raise."""
    try:
        said = msgspec.json.decode(answer.body, type=Problem)
    except msgspec.DecodeError:  # a proxy's page, most likely
        first = answer.body[:200].decode(errors="replace").strip().splitlines() or [""]
        said = Problem(f"http_{answer.status}", detail=first[0])
    return _error(said, answer.status, _retry_after_s(answer.headers))


def cut_short(told: list[Progress], through: int) -> ClientError | None:
    """Return why the answer to a stream ended before its input did, at entry `through`; None: it did not."""
    last = told[-1] if told else Progress(0)
    if last.problem is not None:
        return _error(last.problem, last.problem.status, None)
    if last.appended is None:
        detail = f"the server broke off after entry {through} of the stream; send the rest again"
        return Unreachable(detail, maybe_done=True)
    return None


def decoded(answer: Answer, kind: type[T], statuses: Container[int] = DONE) -> T:
    """Return the body of such an answer as `kind`. Raises as `checked`, and BadAnswer where it does not fit."""
    return Text(checked(answer, statuses)).decode(kind)


def appended(answer: Answer) -> AppendAnswer:
    """Return what became of the entries of an `append`."""
    return decoded(answer, AppendAnswer)


def page(answer: Answer) -> Page:
    """Return the entries of a `read`."""
    body = Text(checked(answer))
    found = body.decode(WirePage)
    return Page([given(body, one) for one in found.entries], found.next_cursor, found.prev_cursor)


def entry(body: bytes) -> Entry:
    """Return one entry from its JSON. Raises BadAnswer."""
    text = Text(body)
    return given(text, text.decode(WireEntry))


def progress(body: bytes) -> list[Progress]:
    """Return the lines of the answer to a stream; a last line cut off in the middle is left out."""
    lines = body.split(b"\n")
    whole = lines if body.endswith(b"\n") else lines[:-1] + [part for part in lines[-1:] if _closed(part)]
    return [Text(part).decode(Progress) for part in whole if part.strip()]


def given(body: Text, wire: WireEntry) -> Entry:
    """Return an entry of an answer as a value."""
    return Entry(
        id=wire.id,
        position=wire.position,
        version=wire.version,
        type=wire.type,
        created=wire.created,
        updated=wire.updated,
        raw=body.raw(wire.data),
        expires=wire.expires,
        key=wire.key,
        headers=body.headers(wire.headers),
    )


def _closed(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


def _error(said: Problem, status: int, retry_after_s: float | None) -> ServerError:
    detail = said.detail or said.title
    if status in (429, 503):
        return Unavailable(said.code, detail, status, retry_after_s=retry_after_s)
    kind = Refused if status < 500 else ServerError
    return kind(said.code, detail, status)


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds only: the date form needs a clock that agrees with the server's, and the server never sends it."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
