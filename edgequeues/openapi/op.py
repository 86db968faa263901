"""What is said of a route besides what the route says itself: parameters, bodies, answers, errors.

A `kind` is a type that msgspec knows, a schema, or several of them, any of which it may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from edgequeues.core import errors
from edgequeues.http import problems
from edgequeues.http.params import INTEGER_MAX
from shards import errors as shard

JSON = "application/json"
NDJSON = "application/x-ndjson"
EVENTS = "text/event-stream"
ANYTHING: Mapping[str, Any] = {}  # a schema for what is no JSON, or may be any

Text = Annotated[str, Meta(min_length=1, max_length=4_096)]
Whole = Annotated[int, Meta(ge=0, le=INTEGER_MAX)]
Page = Annotated[int, Meta(ge=1, le=1_000)]


class Param(NamedTuple):
    """A parameter. many: may be repeated."""

    name: str
    kind: Any
    says: str
    required: bool = False
    many: bool = False
    example: Any = None


class Body(NamedTuple):
    """A request's body: kinds by media type. example: of the first. required: may it not be empty?"""

    kinds: Mapping[str, Any]
    example: Any = None
    required: bool = True


class Answer(NamedTuple):
    """An answer that all went well. kinds: by media type; none: it has no body. headers: what each one says."""

    says: str
    kinds: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}


class Op(NamedTuple):
    """A route described. Its summary, its verb and its path are the route's own.

    query, headers: all that it takes. paths: parameters that are others here than in the chapter.
    errors: those that it may raise besides what all routes of the dialect do. statuses: of errors without a class.
    id: where the name of the handler stands for several. streams: an answer lasts as long as the client listens.
    """

    answers: Mapping[int, Answer]
    query: tuple[Param, ...] = ()
    headers: tuple[Param, ...] = ()
    paths: tuple[Param, ...] = ()
    body: Body | None = None
    errors: tuple[type[Exception], ...] = ()
    statuses: tuple[int, ...] = ()
    id: str = ""
    streams: bool = False


class Chapter(NamedTuple):
    """What is said of a dialect. operations: by `METHOD template`. paths: their parameters, by name.

    strict: is a parameter refused that is not known? problem: the form of its errors. coded: do they carry `code`?
    common: errors of every route, beside those of all dialects.
    """

    says: str
    operations: Mapping[str, Op]
    paths: Mapping[str, Param]
    strict: bool = True
    problem: type[Struct] = problems.Problem
    problem_media: str = problems.MEDIA.decode()
    coded: bool = True
    common: tuple[type[Exception], ...] = ()


# What may be wrong with any request: before it is routed, or with the space that it is for.
EVERYWHERE: tuple[type[Exception], ...] = (
    errors.InvalidRequest,
    errors.InvalidId,
    problems.ForbiddenOrigin,
    problems.Misdirected,
    problems.HeadersTooLarge,
    problems.RequestTimeout,
    shard.Overloaded,
    shard.DiskFull,
    shard.ShardBroken,
    shard.ShardClosed,
    shard.Moved,
    shard.ShardBusy,
    shard.NeedsRepair,
    shard.SchemaTooNew,
)
# What is refused before the path is known, and so in the words of the native protocol.
AT_THE_FRONT: frozenset[type[Exception]] = frozenset(
    (
        errors.InvalidRequest,
        errors.TooLarge,
        problems.HeadersTooLarge,
        problems.RequestTimeout,
        shard.Overloaded,
    )
)
WITH_TOKEN: tuple[type[Exception], ...] = (problems.Unauthenticated, problems.Forbidden)
WITH_BODY: tuple[type[Exception], ...] = (errors.TooLarge, errors.InvalidJson)


def ok(kind: Any, says: str = "Done.", **headers: str) -> Mapping[int, Answer]:
    """One answer, 200 with JSON. headers: with `_` for `-`."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return {200: Answer(says, {JSON: kind}, named)}


def json(kind: Any, example: Any = None, *, required: bool = True) -> Body:
    """A body of JSON."""
    return Body({JSON: kind}, example, required)
