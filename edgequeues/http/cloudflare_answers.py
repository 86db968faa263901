"""What is said of pulled messages over the Cloudflare dialect: acks and retries, and what only this server takes.

The service knows the first two. The others are for consumers that saw `"edgequeues": 1` in the metrics of a pull:
docs/protocol/cloudflare.md, "More in an ack".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from edgequeues.core import ids, jsontext
from edgequeues.core.errors import InvalidId
from edgequeues.http import cloudflare_errors as errors
from edgequeues.http.cloudflare_codec import DELAY_S_MAX, MESSAGE_BYTES_MAX, Fields, few, required
from edgequeues.models import NewEntry, Retry
from edgequeues.space.results import BYTES_MAX as RESULT_BYTES_MAX

ERROR_CHARS_MAX = 4_096
EMITS_MAX = 100


class Emit(NamedTuple):
    """A message to append to the queue of that name, with the ack of a lease."""

    lease: str
    queue: str
    entry: NewEntry


class Answers(NamedTuple):
    """What became of messages.

    acks: leases to finish. retries: attempts that failed, for good or not. releases: leases to give back as if they
    had never been handed out. results: JSON by acked lease, of what came of it.
    """

    acks: list[str]
    retries: list[Retry]
    releases: list[str]
    results: Mapping[str, str]
    emits: list[Emit]


def answers(body: bytes) -> Answers:
    """What an ack says. Raises InvalidJson, Refused."""
    fields = Fields.of_body(body)
    said = _by_lease(fields, "errors")
    acks = [required(one, "lease_id") for one in few(fields, "acks")]
    retries = [_retry(one, said) for one in few(fields, "retries")]
    retries += [_retry(one, said, permanent=True) for one in few(fields, "permanent")]
    releases = [required(one, "lease_id") for one in few(fields, "releases")]
    failed = {one.lease for one in retries}
    if not said.keys() <= failed:
        raise fields.refusal("errors", "has a lease that is neither among the retries nor permanent")
    return Answers(acks, retries, releases, _results(fields, acks), _emits(fields, acks))


def _retry(one: Fields, said: Mapping[str, bytes], *, permanent: bool = False) -> Retry:
    lease = required(one, "lease_id")
    delay_ms = None if permanent else one.seconds("delay_seconds", DELAY_S_MAX, errors.METADATA)
    text = json.loads(said[lease]) if lease in said else None
    if text is not None and not isinstance(text, str):
        raise one.refusal("lease_id", "has an error that is no string")
    return Retry(lease, delay_ms, text and text[:ERROR_CHARS_MAX], permanent)


def _results(fields: Fields, acks: Collection[str]) -> dict[str, str]:
    results = {lease: raw.decode() for lease, raw in _by_lease(fields, "results").items()}
    if not results.keys() <= set(acks):
        raise fields.refusal("results", "has a lease that is not among the acks")
    for result in results.values():
        if len(result.encode()) > RESULT_BYTES_MAX:
            why = f"has one of {len(result.encode())} bytes, at most {RESULT_BYTES_MAX} are kept"
            raise fields.refusal("results", why, errors.MESSAGE_SIZE, 413)
    return results


def _emits(fields: Fields, acks: Collection[str]) -> list[Emit]:
    found = fields.objects("emit")
    if len(found) > EMITS_MAX:
        raise fields.refusal("emit", f"has {len(found)}, at most {EMITS_MAX}", errors.BATCH_COUNT, 413)
    emits = [_emit(one) for one in found]
    if not {one.lease for one in emits} <= set(acks):
        raise fields.refusal("emit", "has a lease that is not among the acks")
    return emits


def _emit(one: Fields) -> Emit:
    body = one.raw("body")
    if body is None:
        raise one.refusal("body", "is missing")
    if len(body) > MESSAGE_BYTES_MAX:
        why = f"has {len(body)} bytes, at most {MESSAGE_BYTES_MAX} are taken"
        raise one.refusal("body", why, errors.MESSAGE_SIZE, 413)
    return Emit(
        required(one, "lease_id"),
        _checked(one, "queue", ids.check_name),
        NewEntry(body.decode(), idempotency_key=_checked(one, "key", ids.check_idempotency_key)),
    )


def _checked(one: Fields, name: str, check: Callable[[str], str]) -> str:
    try:
        return check(required(one, name))
    except InvalidId as error:
        raise one.refusal(name, f"will not do: {error.detail}") from error


def _by_lease(fields: Fields, name: str) -> dict[str, bytes]:
    """Members of an object whose names are leases."""
    raw = fields.raw(name)
    if raw is None or raw == b"null":
        return {}
    if not raw.startswith(b"{"):
        raise fields.refusal(name, "must be an object")
    return dict(jsontext.members(raw))
