"""Bodies of the admin API, in and out. Its times are unix seconds."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from edgequeues.core import ids, jsontext
from edgequeues.core.errors import InvalidRequest, TooLarge
from edgequeues.http import codec, params
from edgequeues.http.previews import preview
from edgequeues.http.work_codec import LEASES_MAX
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, UNIX_MS_MAX, Entry, PerSecond
from edgequeues.models_letters import FilterText, LetterFilter, LetterReason, Replayed
from edgequeues.space.audit import Record
from edgequeues.space.deadletters import DeadLetter
from edgequeues.space.letters import Envelope
from edgequeues.space.overview import Close, Doing
from edgequeues.space.results import Outcome
from edgequeues.space.workbench import Inspected, Kin
from edgequeues.spec import conditions, pieces
from edgequeues.spec.ir import Mapping
from edgequeues.spec.trying import Trial

S = TypeVar("S", bound=Struct)

MAPPING_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = ENTRY_BYTES_MAX + MAPPING_BYTES_MAX
UnixS = Annotated[int, Meta(ge=0, le=UNIX_MS_MAX // 1_000)]
FILTERS = frozenset(("reason", "key", "type", "since", "until", "error", "where", "replayed"))


class FilterIn(Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters of a queue, in the words of this API. ids: these. all: whichever there are."""

    ids: list[str] | None = None
    all: bool = False
    reason: Annotated[tuple[LetterReason, ...], Meta(max_length=8)] = ()
    key: FilterText | None = None
    type: FilterText | None = None
    since: UnixS | None = None
    until: UnixS | None = None
    error: FilterText | None = None
    where: FilterText | None = None


class ReplayLetters(FilterIn, frozen=True):
    """Dead letters to replay. per_second: at most so many a second."""

    preview: bool = False
    limit: Annotated[int, Meta(ge=1)] | None = None
    per_second: PerSecond | None = None


class PurgeLetters(FilterIn, frozen=True):
    """Dead letters to delete."""

    replayed: bool | None = None


class Order(Struct, frozen=True):
    """Dead letters that something is to be done with: named, or by a filter; the other one is None."""

    ids: list[str] | None
    wanted: LetterFilter | None
    preview: bool = False
    limit: int | None = None
    per_second: float | None = None


class EditLetter(Struct, forbid_unknown_fields=True):
    """A message as it is to be; left out: as it was."""

    message: Raw | UnsetType = UNSET


class TryLetter(Struct, forbid_unknown_fields=True):
    """A message and a mapping to try; left out: as they are."""

    message: Raw | UnsetType = UNSET
    map_to: Raw | UnsetType = UNSET


def replay(body: bytes) -> Order:
    """Dead letters to replay. Raises InvalidJson, InvalidRequest, InvalidId, TooLarge."""
    asked = _decode(body, ReplayLetters)
    named, wanted = _meant(asked)
    if named is not None and (asked.preview or asked.limit is not None):
        raise InvalidRequest("preview and limit go with a filter, not with ids")
    return Order(named, wanted, asked.preview, asked.limit, asked.per_second)


def purge(body: bytes) -> Order:
    """Dead letters to delete. Raises InvalidJson, InvalidRequest, InvalidId, TooLarge."""
    asked = _decode(body, PurgeLetters)
    named, wanted = _meant(asked, also=asked.replayed is not None)
    return Order(named, None if wanted is None else replace(wanted, replayed=asked.replayed))


def _meant(asked: FilterIn, *, also: bool = False) -> tuple[list[str] | None, LetterFilter | None]:
    """The ids, or the filter. also: is there another field of a filter?"""
    wanted = LetterFilter(
        reason=asked.reason,
        key=asked.key,
        type=asked.type,
        since=_ms(asked.since),
        until=_end_ms(asked.until),
        error=asked.error,
        where=conditions.read(asked.where),
    )
    filtered = also or wanted != LetterFilter()
    if [asked.ids is not None, filtered, asked.all].count(True) != 1:
        raise InvalidRequest('say which: ids, or some of the fields of a filter, or "all": true')
    if asked.ids is None:
        return None, wanted
    if not 1 <= len(asked.ids) <= LEASES_MAX:
        raise InvalidRequest(f"ids: {len(asked.ids)}, where 1 to {LEASES_MAX} are taken")
    return list(dict.fromkeys(ids.check_object_id(one) for one in asked.ids)), None


def edit(body: bytes) -> str | None:
    """The data of an edited message; None: it is to be as it was. Raises InvalidJson, InvalidRequest, TooLarge."""
    return None if not body.strip() else _data(_decode(body, EditLetter).message)


def trial(body: bytes) -> tuple[Mapping | None, str | None]:
    """A mapping to be tried, and data to try it on; None: what is there. Raises as `edit` does."""
    if not body.strip():
        return None, None
    asked = _decode(body, TryLetter)
    return None if asked.map_to is UNSET else _mapping(bytes(asked.map_to)), _data(asked.message)


def _mapping(text: bytes) -> Mapping:
    """A mapping as text of the language, or as the JSON of a spec."""
    if len(text) > MAPPING_BYTES_MAX:
        raise TooLarge(f"map_to: {len(text)} bytes, at most {MAPPING_BYTES_MAX} are taken")
    if text.startswith(b'"'):
        return pieces.mapping("map_to", jsontext.value(text))
    try:
        found: Mapping = msgspec.json.decode(text, type=Mapping)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"map_to: {error}") from error
    return found


def _data(given: Raw | UnsetType) -> str | None:
    if given is UNSET:
        return None
    data = bytes(given)
    if len(data) > ENTRY_BYTES_MAX:
        raise TooLarge(f"message: {len(data)} bytes, at most {ENTRY_BYTES_MAX}")
    return data.decode()


def _decode(body: bytes, kind: type[S]) -> S:
    jsontext.check(body)
    try:
        asked = msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from error
    codec.names(body)
    return asked


# -- queries ------------------------------------------------------------------------------------------------


def wanted(query: params.Query) -> LetterFilter:
    """A filter as parameters say it. Raises InvalidRequest."""
    reasons = params.many(query, "reason", count_max=8)
    try:
        reason = msgspec.convert(reasons, tuple[LetterReason, ...])
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"reason: {error}") from error
    high = UNIX_MS_MAX // 1_000
    return LetterFilter(
        reason=reason,
        key=params.text(query, "key"),
        type=params.text(query, "type"),
        since=_ms(params.integer(query, "since", high=high)),
        until=_end_ms(params.integer(query, "until", high=high)),
        error=params.text(query, "error"),
        where=conditions.read(params.text(query, "where")),
        replayed=params.flag(query, "replayed") if "replayed" in query else None,
    )


def limit(query: params.Query, high: int = ENTRIES_MAX) -> int:
    """How many are wanted in one page."""
    return params.integer(query, "limit", low=1, high=high) or min(100, high)


def _ms(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1_000


def _end_ms(seconds: int | None) -> int | None:
    """The end of a second, which belongs to it."""
    return None if seconds is None else min(seconds * 1_000 + 999, UNIX_MS_MAX)


# -- out ----------------------------------------------------------------------------------------------------


class LetterRow(Struct):
    """A dead letter as listed. failed_at: unix seconds. preview: its data, cut to a bound."""

    id: str
    failed_at: int
    error: str
    attempts: int
    preview: Any


def page(name: str, found: object, resume: object) -> bytes:
    """A page; `next` only where there is more."""
    return codec.encode({name: found} if resume is None else {name: found, "next": resume})


def queue(one: Doing) -> dict[str, object]:
    """A queue as listed."""
    return {
        "name": one.name or one.queue_id,
        "id": one.queue_id,
        "kind": one.kind,
        "paused": one.paused,
        "entries": one.entries,
        "depth": one.depth,
        "in_flight": one.in_flight,
        "states": one.states,
        "oldest_message_age_seconds": _age_s(one.oldest, one.at),
        "oldest_ready_age_seconds": _age_s(one.oldest_ready, one.at),
        "messages_per_minute": one.per_minute,
        "rates": {"in": one.came, "out": one.acked},
    }


def _age_s(since: int | None, at: int) -> int | None:
    return None if since is None else max(at - since, 0) // 1_000


def close_up(one: Close) -> dict[str, object]:
    """A queue by itself."""
    return queue(one.doing) | {"dead_letters": one.letters, "dead_letter_queues": one.graves}


def letter(entry: Entry, one: DeadLetter) -> LetterRow:
    """A dead letter as listed."""
    return LetterRow(entry.id, one.failed // 1_000, one.error, one.attempts, preview(entry.data))


def previewed(entry: Entry, one: Envelope) -> LetterRow:
    """The same of a letter in its envelope."""
    return LetterRow(entry.id, one.failed_at // 1_000, one.last_error, one.attempts, preview(entry.data))


def inspected(one: Inspected) -> dict[str, object]:
    """A dead letter with all that is known of it."""
    entry = one.entry
    return {
        "id": entry.id,
        "failed_at": one.envelope.failed_at // 1_000,
        "error": one.envelope.last_error,
        "attempts": one.envelope.attempts,
        "dead_letter_queue": one.queue,
        "position": entry.position,
        "key": entry.key,
        "type": entry.type,
        "priority": entry.priority,
        "headers": None if entry.headers is None else Raw(entry.headers.encode()),
        "letter": one.envelope,
        "forerunners": [_kin(each) for each in one.forerunners],
        "descendants": [_kin(each) for each in one.descendants],
    }


def _kin(one: Kin) -> dict[str, object]:
    return {
        "id": one.id,
        "dead_letter_queue": one.queue,
        "reason": one.reason,
        "error": one.error,
        "attempts": one.attempts,
        "failed_at": one.failed // 1_000,
        "replayed_at": None if one.replayed is None else one.replayed // 1_000,
        "new_message_id": one.message,
    }


def replayed(one: Replayed) -> dict[str, object]:
    """What became of one letter that was to be replayed."""
    found: dict[str, object] = {"ok": True, "new_message_id": one.message}
    return found | {"already": True} if one.outcome == "already" else found


def outcome(one: Replayed) -> dict[str, object]:
    """The same of one among many."""
    return {"id": one.id, "outcome": one.outcome, "new_message_id": one.message}


def tried(one: Trial) -> dict[str, Any]:
    """What a mapping would make of a letter."""
    if not one.ok:
        return {"ok": False, "error": one.misfits[0], "errors": one.misfits}
    leads = {"queue": one.queue} if one.command is None else {"command": one.command}
    return {"ok": True, **leads, "input": one.input}


def came_of(one: Outcome) -> dict[str, object]:
    """What came of a message."""
    return {
        "id": one.object_id,
        "position": one.position,
        "processed_at": one.processed // 1_000,
        "result": Raw(one.result.encode()),
    }


def record(one: Record) -> dict[str, object]:
    """Something that was done."""
    return {
        "id": one.audit_id,
        "at": one.at // 1_000,
        "who": {"id": one.who_id, "name": one.who_name},
        "action": one.action,
        "queue": one.queue_name or one.queue_id,
        "detail": Raw(one.detail.encode()),
    }
