"""Bodies of the Cloudflare dialect, out: our values as the service words them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.core import ids, times
from edgequeues.core.errors import ConsumerNotFound
from edgequeues.http import codec
from edgequeues.http.cloudflare_answers import Answers
from edgequeues.http.cloudflare_codec import SOURCE_HEADER, WORKER_WAIT_MS, Wire
from edgequeues.http.cloudflare_turns import Emitted, Handed, Seen, Settled, View
from edgequeues.http.routes import Response
from edgequeues.models import Backlog, ConsumerConfig, ConsumerInfo, Entry, Purge, Verdict
from edgequeues.space.dead_verbs import Told

_SAID: Mapping[Verdict, str] = {
    "finished": "the message is finished already",
    "stale": "the message was handed out again since, under another lease",
    "lapsed": "the lease has expired, so the message is tried again anyway",
    "superseded": "the message was replaced by another under its id",
    "unknown": "no lease of this queue",
}


OURS = {"edgequeues": 1}  # a consumer that sees it may say more in an ack than the service takes


class _Info(Struct, frozen=True):
    page: int
    per_page: int
    count: int
    total_count: int
    total_pages: int


class _Envelope(Struct, frozen=True):
    success: bool
    errors: list[Any]
    messages: list[Any]
    result: Any
    result_info: _Info | UnsetType = UNSET


class _Message(Struct, frozen=True):
    id: str
    timestamp_ms: int
    attempts: int
    body: Raw | str
    metadata: dict[str, str]
    lease_id: str | UnsetType = UNSET
    ref: str | UnsetType = UNSET


def ok(result: object) -> Response:
    """The answer that all went well."""
    return Response(codec.encode(_Envelope(True, [], [], result)))


def page(items: Sequence[object], number: int | None, size: int) -> Response:
    """One page of a list, from 1; None: all of it, as clients expect that know of no pages."""
    per_page = size if number is not None else max(len(items), size)
    first = ((number or 1) - 1) * per_page
    shown = list(items[first : first + per_page])
    pages = max(-(-len(items) // per_page), 1)
    info = _Info(number or 1, per_page, len(shown), len(items), pages)
    return Response(codec.encode(_Envelope(True, [], [], shown, info)))


# -- queues -------------------------------------------------------------------------------------------------


def has_id(view: View) -> bool:
    """May the queue be shown? Not one whose id is a ULID in lower case: 32 hex digits stand for the other."""
    return view.info.id.isupper()


def queue(view: View, wire: Wire) -> dict[str, object]:
    """A queue, its consumers and all."""
    info, config = view.info, view.info.config
    retention_s = None if config.max_age_ms is None else _whole(config.max_age_ms / 1_000)
    return {
        "queue_id": ids.ulid_to_hex(info.id),
        "queue_name": config.name or info.id,
        "created_on": _time(info.created),
        "modified_on": _time(info.configured or info.created),
        "settings": {
            "delivery_delay": _whole(config.delay_ms / 1_000),
            "delivery_paused": config.paused,
            "message_retention_period": retention_s,
        },
        "producers": [],
        "producers_total_count": 0,
        "consumers": consumers(view, wire),
        "consumers_total_count": len(view.consumers),
    }


def purge(view: View, state: Purge, wire: Wire) -> dict[str, object]:
    """A queue whose purge was asked for: as the service's pages have it, and as wrangler reads it."""
    started = None if state.started is None else _time(state.started)
    return queue(view, wire) | {"started_at": started, "complete": state.completed}


def purge_state(state: Purge) -> dict[str, object]:
    """How far a purge has come."""
    started = "" if state.started is None else _time(state.started)
    return {"completed": "true" if state.completed else "false", "started_at": started}


# -- consumers ----------------------------------------------------------------------------------------------


def consumers(view: View, wire: Wire) -> list[dict[str, object]]:
    """All consumers of a queue."""
    return [consumer(view, one, wire) for one in view.consumers]


def consumer(view: View, one: ConsumerInfo, wire: Wire) -> dict[str, object]:
    """One consumer."""
    facts = one.config.facts
    kind = facts.get("type", "http_pull")
    shown: dict[str, object] = {
        "consumer_id": consumer_id(view, one),
        "queue_name": view.info.config.name or view.info.id,
        "created_on": _time(one.created),
        "type": kind,
        "dead_letter_queue": view.graves.get(one.config.dead_letters or "", one.config.dead_letters or ""),
        "settings": _consumer_settings(one.config, kind, wire),
    }
    if kind == "worker":
        script = facts.get("script", "")
        shown |= {"script": script, "script_name": script, "environment": facts.get("environment", "")}
    return shown


def _consumer_settings(config: ConsumerConfig, kind: str, wire: Wire) -> dict[str, object]:
    facts, backoff = config.facts, config.backoff
    delay_ms = backoff.list_ms[0] if backoff.list_ms else backoff.initial_ms
    settings: dict[str, object] = {
        "batch_size": config.batch,
        "max_retries": wire.retries(config.attempts_max),
        "retry_delay": _whole(delay_ms / 1_000),
    }
    if kind == "worker":
        concurrency = facts.get("max_concurrency")
        settings["max_wait_time_ms"] = int(facts.get("max_wait_time_ms", WORKER_WAIT_MS))
        settings["max_concurrency"] = None if concurrency is None else int(concurrency)
    else:
        settings["visibility_timeout_ms"] = config.lease_ms
    return settings


def consumer_id(view: View, one: ConsumerInfo) -> str:
    """32 hex digits that stand for a consumer as long as it is there."""
    return sha256(f"{view.info.id} {one.name} {one.created}".encode()).hexdigest()[:32]


def find_consumer(view: View, wanted: str) -> ConsumerInfo:
    """The consumer with this id. Raises ConsumerNotFound."""
    for one in view.consumers:
        if consumer_id(view, one) == wanted:
            return one
    raise ConsumerNotFound(f"consumer {ids.shown(wanted)}")


# -- messages -----------------------------------------------------------------------------------------------


def backlog(found: Backlog, wire: Wire) -> dict[str, int]:
    """Counts of what is still to be done."""
    return {
        "backlog_count": _backlog_count(found, wire),
        "backlog_bytes": found.bytes,
        "oldest_message_timestamp_ms": found.oldest or 0,
    }


def pushed(found: Backlog, wire: Wire) -> dict[str, object]:
    """The answer to a push."""
    return {"metadata": {"metrics": backlog(found, wire)}}


def _backlog_count(found: Backlog, wire: Wire) -> int:
    return found.unfinished if wire.backlog == "unfinished" else found.ready


def pulled(given: Handed, wire: Wire) -> dict[str, object]:
    """The answer to a pull."""
    messages = [
        _message(one.entry, one.attempts, given.letters.get(one.entry.position), wire, lease_id=one.lease)
        for one in given.messages
    ]
    return {
        "messages": messages,
        "message_backlog_count": _backlog_count(given.backlog, wire),
        "metadata": {"metrics": backlog(given.backlog, wire) | OURS},
    }


def seen(found: Seen, wire: Wire, name: Literal["ref", "lease_id"]) -> dict[str, object]:
    """The answer to a peek. name: what a message's reference is called."""
    messages = [
        _message(entry, attempts, found.letters.get(entry.position), wire, **{name: entry.id})
        for entry, attempts in found.entries
    ]
    return {"messages": messages}


def _message(
    entry: Entry,
    attempts: int,
    letter: Told | None,
    wire: Wire,
    *,
    lease_id: str | UnsetType = UNSET,
    ref: str | UnsetType = UNSET,
) -> _Message:
    kind = entry.content_type or "json"
    data = entry.data
    metadata = {"CF-Content-Type": kind, SOURCE_HEADER: "api"}
    if entry.headers is not None:
        metadata |= msgspec.json.decode(entry.headers)
    if letter is not None:
        metadata |= _of_letter(letter)
        if letter.envelope is not None:
            kind, data = "json", letter.envelope.decode()
            metadata["CF-Content-Type"] = kind
    body: Raw | str = Raw(data)  # a JSON string, where it is not JSON itself
    if kind == "json":
        body = b64encode(data.encode()).decode() if wire.json_body == "base64" else data
    return _Message(message_id(entry.id), entry.updated, attempts, body, metadata, lease_id, ref)


def _of_letter(letter: Told) -> dict[str, str]:
    """What a dead letter's metadata tell of it."""
    said = letter.summary
    return {
        "eq-last-error": said.error,
        "eq-attempts": str(said.attempts),
        "eq-first-seen-at": _time(said.first_seen),
        "eq-last-seen-at": _time(said.last_seen),
        "eq-original-queue": said.queue,
    }


def message_id(object_id: str) -> str:
    """32 hex digits that stand for an object: the bits of a ULID, else a digest."""
    if ids.is_ulid(object_id) and object_id.isupper():
        return ids.ulid_to_hex(object_id)
    return sha256(object_id.encode()).hexdigest()[:32]


def settled(said: Answers, done: Settled) -> dict[str, object]:
    """The answer to an ack: what is finished counts, also when it was so already; all that is odd is told."""
    acks = dict(zip(said.acks, done.acks, strict=True))
    retries = {one.lease: verdict for one, verdict in zip(said.retries, done.retries, strict=True)}
    releases = dict(zip(said.releases, done.releases, strict=True))
    permanent = {one.lease for one in said.retries if one.permanent}
    failed = [lease for lease, verdict in retries.items() if verdict == "done"]
    told = [*acks.items(), *retries.items(), *releases.items()]
    answer: dict[str, object] = {
        "ackCount": sum(verdict in ("done", "finished") for verdict in acks.values()),
        "retryCount": sum(lease not in permanent for lease in failed),
        "warnings": {lease: _SAID[verdict] for lease, verdict in told if verdict != "done"},
    }
    if permanent:
        answer["permanentCount"] = sum(lease in permanent for lease in failed)
    if releases:
        answer["releaseCount"] = sum(verdict == "done" for verdict in releases.values())
    if said.emits:
        answer["emitted"] = [_emitted(one) for one in done.emitted]
    return answer


def _emitted(one: Emitted) -> dict[str, str]:
    return {
        "lease_id": one.lease,
        "queue_id": ids.ulid_to_hex(one.queue.id),
        "queue_name": one.queue.config.name or one.queue.id,
        "id": message_id(one.object_id),
    }


def extended(leases: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, object]:
    """The answer to an extension. The lease identifiers stay what they were."""
    pairs = list(zip(leases, verdicts, strict=True))
    return {
        "messages": [
            {"lease_id": lease, "previous_lease_id": lease} for lease, verdict in pairs if verdict == "done"
        ],
        "warnings": {lease: _SAID[verdict] for lease, verdict in pairs if verdict != "done"},
    }


def _time(unix_ms: int) -> str:
    return times.utc(unix_ms, "microseconds")


def _whole(number: float) -> int | float:
    return int(number) if number == int(number) else number
