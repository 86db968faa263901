"""Bodies of the native protocol of work queues, in and out."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.core import ids, jsontext
from edgequeues.core.errors import InvalidRequest, TooLarge
from edgequeues.core.lifecycle import UNFINISHED
from edgequeues.http import codec, params
from edgequeues.models import (
    ENTRY_BYTES_MAX,
    ConsumerConfig,
    Entry,
    LeaseMs,
    Pull,
    Pulled,
    Retry,
    Standing,
    Start,
)
from edgequeues.space.letters import Envelope

S = TypeVar("S", bound=Struct)

LEASES_MAX = 1_000  # in one call
RULES_BYTES_MAX = 64 * 1024
IDS_BYTES_MAX = 256 * 1024  # 1,000 ids of full length
STATES = UNFINISHED


class _Leases(Struct, forbid_unknown_fields=True):
    leases: list[str]


class _Extension(Struct, forbid_unknown_fields=True):
    leases: list[str]
    lease_ms: LeaseMs


class _Retries(Struct, forbid_unknown_fields=True):
    retries: list[Retry]


class _Skip(Struct, forbid_unknown_fields=True):
    id: str
    consumer: str | None = None


class _Ids(Struct, forbid_unknown_fields=True):
    ids: list[str]


def pull(body: bytes) -> Pull:
    """How much to pull; an empty body says nothing. Raises InvalidJson, InvalidRequest."""
    return _decode(body, Pull) if body.strip() else Pull()


def leases(body: bytes) -> list[str]:
    """Leases by their tokens. Raises InvalidJson, InvalidRequest, TooLarge."""
    return _few("leases", _decode(body, _Leases).leases)


def extension(body: bytes) -> tuple[list[str], int]:
    """Leases, and for how long from now. Raises InvalidJson, InvalidRequest, TooLarge."""
    asked = _decode(body, _Extension)
    return _few("leases", asked.leases), asked.lease_ms


def retries(body: bytes) -> list[Retry]:
    """Attempts to give up. Raises InvalidJson, InvalidRequest, TooLarge."""
    return _few("retries", _decode(body, _Retries).retries)


def consumer(body: bytes) -> tuple[ConsumerConfig, Start]:
    """The rules of a consumer, and where it starts. Raises InvalidJson, InvalidRequest."""
    jsontext.check(body)
    try:
        fields: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
        codec.names(body)
        start = msgspec.convert(fields.pop("start", "new"), Start)
        return msgspec.convert(fields, ConsumerConfig), start
    except msgspec.MsgspecError as error:
        raise InvalidRequest(str(error)) from error


def skip(body: bytes) -> tuple[str, str | None]:
    """Which message, and whose. Raises InvalidJson, InvalidRequest, InvalidId."""
    asked = _decode(body, _Skip)
    consumer_name = None if asked.consumer is None else params.name(asked.consumer)
    return ids.check_object_id(asked.id), consumer_name


def object_ids(body: bytes) -> list[str]:
    """Objects by id, each once. Raises InvalidJson, InvalidRequest, InvalidId, TooLarge."""
    named = _few("ids", _decode(body, _Ids).ids)
    return list(dict.fromkeys(ids.check_object_id(one) for one in named))


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


def standings(found: list[Standing], limit: int) -> bytes:
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
                for one in found
            ],
            "resume": _resume([one.entry for one in found], limit),
        }
    )


def letters(found: list[tuple[Entry, Envelope]], limit: int) -> bytes:
    """The JSON of dead letters; resume: the position to go on after, None at the end."""
    shown = [{"id": entry.id, "position": entry.position, "letter": letter} for entry, letter in found]
    return codec.encode({"letters": shown, "resume": _resume([entry for entry, _ in found], limit)})


def _resume(shown: list[Entry], limit: int) -> int | None:
    """A list ends early where it is full, of entries or of data."""
    full = len(shown) == limit or sum(len(entry.data) for entry in shown) >= ENTRY_BYTES_MAX
    return shown[-1].position if full else None


def _decode(body: bytes, kind: type[S]) -> S:
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
