"""Bodies of the native protocol of work queues, in and out."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from edgequeues.core import ids, jsontext
from edgequeues.core.errors import InvalidRequest, TooLarge
from edgequeues.core.lifecycle import UNFINISHED
from edgequeues.http import codec, params
from edgequeues.models import (
    ENTRY_BYTES_MAX,
    ConsumerConfig,
    Entry,
    LeaseMs,
    PerSecond,
    Pull,
    Pulled,
    QueueConfig,
    Retry,
    Start,
)
from edgequeues.models_letters import LetterFilter
from edgequeues.space import letters as letters_
from edgequeues.space import profiles
from edgequeues.space.explaining import Peeked
from edgequeues.space.letters import Envelope
from edgequeues.space.results import BYTES_MAX as RESULT_BYTES_MAX
from edgequeues.space.workbench import Found
from edgequeues.spec import conditions

S = TypeVar("S", bound=Struct)

LEASES_MAX = 1_000  # in one call
RULES_BYTES_MAX = 64 * 1024
IDS_BYTES_MAX = 256 * 1024  # 1,000 ids of full length
STATES = UNFINISHED


class LeasesIn(Struct, forbid_unknown_fields=True):
    """Leases, by their tokens."""

    leases: list[str]


class AcksIn(Struct, forbid_unknown_fields=True):
    """Leases that are done, and JSON of what came of some."""

    leases: list[str]
    results: dict[str, Raw] = {}


class ExtensionIn(Struct, forbid_unknown_fields=True):
    """Leases, and for how long from now."""

    leases: list[str]
    lease_ms: LeaseMs


class RetriesIn(Struct, forbid_unknown_fields=True):
    """Attempts to give up."""

    retries: list[Retry]


class OneIn(Struct, forbid_unknown_fields=True):
    """A message; consumer: whose; None: `default`."""

    id: str
    consumer: str | None = None


class ReplayOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters to replay: named, or by a filter; one of the two.

    per_second: so many of the new messages are due a second; None: at once.
    limit: replay no more than so many of what the filter names. preview: count them only, and show the first.
    """

    ids: list[str] | None = None
    filter: LetterFilter | None = None
    per_second: PerSecond | None = None
    limit: Annotated[int, Meta(ge=1)] = sys.maxsize
    preview: bool = False


class PurgeIn(Struct, forbid_unknown_fields=True):
    """What to delete; filter: None: all there is."""

    filter: LetterFilter | None = None


def pull(body: bytes) -> Pull:
    """How much to pull; an empty body says nothing. Raises InvalidJson, InvalidRequest."""
    return decode(body, Pull) if body.strip() else Pull()


def acks(body: bytes) -> tuple[list[str], dict[str, str]]:
    """Leases by their tokens, and JSON of what came of some. Raises InvalidJson, InvalidRequest, TooLarge."""
    asked = decode(body, AcksIn)
    leases = _few("leases", asked.leases)  # before anything is looked for among them
    if not asked.results.keys() <= set(leases):
        raise InvalidRequest("results: of a lease that is not among the leases")
    results = {lease: bytes(result).decode() for lease, result in asked.results.items()}
    for result in results.values():
        if len(result) > RESULT_BYTES_MAX:
            raise TooLarge(f"results: one has {len(result)} bytes, at most {RESULT_BYTES_MAX} are kept")
    return leases, results


def leases(body: bytes) -> list[str]:
    """Leases by their tokens. Raises InvalidJson, InvalidRequest, TooLarge."""
    return _few("leases", decode(body, LeasesIn).leases)


def extension(body: bytes) -> tuple[list[str], int]:
    """Leases, and for how long from now. Raises InvalidJson, InvalidRequest, TooLarge."""
    asked = decode(body, ExtensionIn)
    return _few("leases", asked.leases), asked.lease_ms


def retries(body: bytes) -> list[Retry]:
    """Attempts to give up. Raises InvalidJson, InvalidRequest, TooLarge."""
    return _few("retries", decode(body, RetriesIn).retries)


def consumer(body: bytes) -> tuple[ConsumerConfig, Start]:
    """The rules of a consumer, and where it starts; what is not said is as the profile has it.

    Raises InvalidJson, InvalidRequest.
    """
    fields = _fields(body)
    try:
        start = msgspec.convert(fields.pop("start", "new"), Start)
        profile = profiles.named(fields.pop("profile", "work"))
        return _changed(profile.consumer, fields), start
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from error


def queue(body: bytes) -> tuple[QueueConfig, ConsumerConfig | None]:
    """All settings of a queue, and the rules of its consumer where a profile or a consumer is named.

    Raises InvalidJson, InvalidRequest.
    """
    fields = _fields(body)
    if not fields.keys() & {"profile", "consumer"}:
        return codec.new_config(body), None
    profile = profiles.named(fields.pop("profile", "work"))
    try:
        rules = msgspec.convert(fields.pop("consumer", {}), dict[str, Any])
        config = _changed(profile.queue, fields)
        found = config, _changed(profile.consumer, rules)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from error
    if config.kind != "work":
        raise InvalidRequest("kind: a queue with a profile or a consumer is a work queue")
    return found


def _fields(body: bytes) -> dict[str, Any]:
    """What an object names; its objects, too, name nothing twice."""
    jsontext.check(body)
    try:
        fields: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from error
    for _, value in jsontext.members(body):
        if value.lstrip().startswith(b"{"):
            codec.names(value)
    codec.names(body)
    return fields


def _changed(settings: S, changes: dict[str, Any]) -> S:
    """The settings with these changed, which are checked."""
    return msgspec.convert(msgspec.structs.asdict(settings) | changes, type(settings))


def one(body: bytes) -> tuple[str, str | None]:
    """Which message, and whose. Raises InvalidJson, InvalidRequest, InvalidId."""
    asked = decode(body, OneIn)
    consumer_name = None if asked.consumer is None else params.name(asked.consumer)
    return ids.check_object_id(asked.id), consumer_name


def replay(body: bytes) -> ReplayOrder:
    """Dead letters to replay, each named once. Raises InvalidJson, InvalidRequest, InvalidId, TooLarge."""
    order = decode(body, ReplayOrder)
    if (order.ids is None) == (order.filter is None):
        raise InvalidRequest("give either ids or filter")
    if order.filter is not None:
        conditions.read(order.filter.where)
        if order.filter.replayed:
            raise InvalidRequest("filter.replayed: each is replayed once")
        return order
    if order.preview or order.limit != sys.maxsize:
        raise InvalidRequest("preview and limit go with filter")
    named = _few("ids", order.ids or [])
    return replace(order, ids=list(dict.fromkeys(ids.check_object_id(one) for one in named)))


def purge(body: bytes) -> LetterFilter | None:
    """Which dead letters to delete; None: all there is. Raises InvalidJson, InvalidRequest."""
    wanted = decode(body, PurgeIn).filter if body.strip() else None
    conditions.read(None if wanted is None else wanted.where)
    return wanted


# -- out ----------------------------------------------------------------------------------------------------


class _Message(Struct, frozen=True):
    lease: str
    attempts: int
    until: int
    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    priority: int
    data: Raw
    key: str | UnsetType
    headers: Raw | UnsetType
    content_type: str | UnsetType


def pulled(given: Pulled) -> bytes:
    """The JSON of what a pull gave."""
    messages = [
        _Message(
            one.lease,
            one.attempts,
            one.until,
            one.entry.id,
            one.entry.position,
            one.entry.version,
            one.entry.type,
            one.entry.created,
            one.entry.updated,
            one.entry.priority,
            Raw(one.entry.data),
            UNSET if one.entry.key is None else one.entry.key,
            UNSET if one.entry.headers is None else Raw(one.entry.headers),
            UNSET if one.entry.content_type is None else one.entry.content_type,
        )
        for one in given.messages
    ]
    return codec.encode({"messages": messages, "paused": given.paused, "backlog": given.backlog})


def standings(given: Peeked) -> bytes:
    """The JSON of messages as they stand; resume: the position to go on after, None at the end."""
    return codec.encode(
        {
            "messages": [
                {
                    "id": one.entry.id,
                    "position": one.entry.position,
                    "state": one.state,
                    "attempts": one.attempts,
                    "due": one.due,
                    "worker": one.worker,
                    "last_error": one.last_error,
                    "key": one.entry.key,
                    "priority": one.entry.priority,
                    "data": Raw(one.entry.data),
                }
                for one in given.found
            ],
            "resume": given.resume,
        }
    )


def letters(found: list[tuple[Entry, Envelope]], limit: int) -> bytes:
    """The JSON of dead letters; resume: the position to go on after, None at the end."""
    entries = [entry for entry, _ in found]
    errors = sum(len(bytes(letter.errors).decode()) for _, letter in found)
    return codec.encode({"letters": shown_letters(found), "resume": _resume(entries, limit, errors)})


def found_letters(part: Found) -> bytes:
    """The same of those that were searched for."""
    found = [(entry, letters_.envelope(letter, entry.data)) for entry, letter in part.letters]
    return codec.encode({"letters": shown_letters(found), "resume": part.resume})


def shown_letters(found: list[tuple[Entry, Envelope]]) -> list[dict[str, object]]:
    """Dead letters as they stand in an answer."""
    return [{"id": entry.id, "position": entry.position, "letter": letter} for entry, letter in found]


def _resume(shown: list[Entry], limit: int, beside: int = 0) -> int | None:
    """A list ends early where it is full: of entries, or of their data and so many characters beside it."""
    full = len(shown) == limit or sum(len(entry.data) for entry in shown) + beside >= ENTRY_BYTES_MAX
    return shown[-1].position if full else None


def decode(body: bytes, kind: type[S]) -> S:
    """A body as `kind`. Raises InvalidJson, InvalidRequest."""
    jsontext.check(body)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from error


L = TypeVar("L")


def _few(name: str, many: list[L]) -> list[L]:
    if not many:
        raise InvalidRequest(f"{name}: empty, at least one is needed")
    if len(many) > LEASES_MAX:
        raise TooLarge(f"{name}: {len(many)}, at most {LEASES_MAX}")
    return many
