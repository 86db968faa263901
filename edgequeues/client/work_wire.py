"""Work queues without a network: functions that say what to send; `work_answers` says what comes back.

Every function raises ValueError where `dxn` is not the address of a queue. What is said of leases may be sent twice:
the second time it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Raw, structs

from edgequeues.client import text
from edgequeues.client.messages import ConsumerRules, Failed, LetterFilter, Start
from edgequeues.client.values import ConfigChange, NewEntry
from edgequeues.client.wire import (
    JSON,
    RANGE_DELETE_PATIENCE_S,
    Call,
    NewKey,
    Pairs,
    entry_text,
    pairs,
    path_of,
)

T = TypeVar("T")

CALL_ITEMS = 1_000  # in one call
CALL_BYTES = 8 * 1024 * 1024  # of its body, about; a single item may be more


def push(dxn: str, entries: Iterable[object], new_key: NewKey | None = None) -> Call:
    """Append messages, all or nothing. Raises ValueError or TypeError for data without a JSON form.

    Repeatable only where all have idempotency keys: one that is named by its id could be done and gone between.
    new_key: makes one for each message that has none.
    """
    return _push(dxn, [_message(one, new_key) for one in entries])


def pushes(dxn: str, entries: Iterable[object], new_key: NewKey | None = None) -> Iterator[Call]:
    """Append any number of messages, in as many calls as it takes. Raises as `push`, when it comes to the entry."""
    given = (_message(one, new_key) for one in entries)
    for part in _cut(given, lambda one: len(one[0])):
        yield _push(dxn, part)


def pull(
    dxn: str,
    *,
    consumer: str | None = None,
    batch: int | None = None,
    lease_ms: int | None = None,
    worker: str | None = None,
    wait_s: float | None = None,
) -> Call:
    """Lease messages."""
    asked = {"batch": batch, "lease_ms": lease_ms, "worker": worker}
    query = pairs(consumer=consumer, wait=None if wait_s is None else f"{wait_s:g}")
    return _post(dxn, "pull", asked, query=query, patience_s=wait_s or 0.0)


def ack(dxn: str, leases: Sequence[str], results: Mapping[str, object]) -> Call:
    """Finish messages, some with what came of them. Raises ValueError or TypeError where that has no JSON form."""
    some = {lease: Raw(text.encode(results[lease])) for lease in leases if lease in results}
    return _post(dxn, "ack", {"leases": leases, "results": some or None}, repeatable=True)


def retry(dxn: str, failed: Sequence[Failed]) -> Call:
    """Give up attempts."""
    return _post(dxn, "retry", {"retries": failed}, repeatable=True)


def release(dxn: str, leases: Sequence[str]) -> Call:
    """Give messages back."""
    return _post(dxn, "release", {"leases": leases}, repeatable=True)


def extend(dxn: str, leases: Sequence[str], lease_ms: int) -> Call:
    """Move the ends of leases."""
    return _post(dxn, "extend", {"leases": leases, "lease_ms": lease_ms}, repeatable=True)


def skip(dxn: str, object_id: str, *, consumer: str | None) -> Call:
    """Give up a message that nobody holds."""
    return _post(dxn, "skip", {"id": object_id, "consumer": consumer})


def hurry(dxn: str, object_id: str, *, consumer: str | None) -> Call:
    """Have a message that waits for its time be ready now."""
    return _post(dxn, "hurry", {"id": object_id, "consumer": consumer})


def list_consumers(dxn: str) -> Call:
    """Fetch the consumers of a queue."""
    return Call("GET", path_of(dxn, "consumers"), repeatable=True)


def put_consumer(dxn: str, name: str, rules: ConsumerRules, *, start: Start) -> Call:
    """Make a consumer, or replace its rules."""
    said = {**msgspec.to_builtins(rules), "start": start}
    path = path_of(dxn, f"consumers/{quote(name, safe='')}")
    return Call("PUT", path, headers=(JSON,), body=msgspec.json.encode(said))


def delete_consumer(dxn: str, name: str) -> Call:
    """Remove a consumer."""
    path = path_of(dxn, f"consumers/{quote(name, safe='')}")
    return Call("DELETE", path, patience_s=RANGE_DELETE_PATIENCE_S)


def peek(
    dxn: str, *, consumer: str | None, states: Iterable[str], after: int | None, limit: int | None
) -> Call:
    """Fetch messages in some states; none named: in all."""
    if isinstance(states, str):
        raise TypeError("states is a list or another iterable of states, not one string")
    query = pairs(consumer=consumer, after=after, limit=limit) + tuple(("state", one) for one in states)
    return Call("GET", path_of(dxn, "peek"), query=query, repeatable=True)


def explain(dxn: str, object_id: str) -> Call:
    """Ask why a message is not delivered."""
    return Call("GET", path_of(dxn, "explain"), query=pairs(id=object_id), repeatable=True)


def lines(dxn: str, *, consumer: str | None, after: str | None, limit: int | None) -> Call:
    """Fetch the ordering keys whose messages wait."""
    query = pairs(consumer=consumer, after=after, limit=limit)
    return Call("GET", path_of(dxn, "lines"), query=query, repeatable=True)


def dead(dxn: str, *, after: int | None, limit: int | None, where: str | None = None) -> Call:
    """Fetch dead letters."""
    query = pairs(after=after, limit=limit, where=where)
    return Call("GET", path_of(dxn, "dead"), query=query, repeatable=True)


def replay(dxn: str, object_ids: Sequence[str], *, per_second: float | None) -> Call:
    """Make messages of dead letters. Repeatable: each letter is replayed once."""
    return _post(dxn, "replay", {"ids": object_ids, "per_second": per_second}, repeatable=True)


def replay_where(dxn: str, where: LetterFilter, *, limit: int | None, per_second: float | None) -> Call:
    """Make messages of the dead letters a filter names. With a limit a second call would replay as many again."""
    said = {"filter": where, "limit": limit, "per_second": per_second}
    return _post(dxn, "replay", said, repeatable=limit is None, patience_s=RANGE_DELETE_PATIENCE_S)


def preview(dxn: str, where: LetterFilter) -> Call:
    """Count the dead letters a filter names."""
    said = {"filter": where, "preview": True}
    return _post(dxn, "replay", said, repeatable=True, patience_s=RANGE_DELETE_PATIENCE_S)


def purge(dxn: str, where: LetterFilter | None) -> Call:
    """Delete all that is in a queue now, or the dead letters a filter names."""
    if where is None:
        return Call("POST", path_of(dxn, "purge"), patience_s=RANGE_DELETE_PATIENCE_S)
    return _post(dxn, "purge", {"filter": where}, patience_s=RANGE_DELETE_PATIENCE_S)


def make_queue(
    dxn: str, profile: str, *, settings: ConfigChange | None, rules: Mapping[str, object] | None
) -> Call:
    """Make a work queue by a profile, or set one anew."""
    said: dict[str, object] = msgspec.to_builtins(settings or ConfigChange())
    said["profile"] = profile
    if rules:
        said["consumer"] = rules
    return Call("PUT", path_of(dxn, "config"), headers=(JSON,), body=msgspec.json.encode(said))


def parts(items: Iterable[T]) -> Iterator[list[T]]:
    """Cut a list into what one call may hold. Items are texts or Structs of known size."""
    if isinstance(items, str):
        raise TypeError("leases and ids come as a list or another iterable, not as one string")
    return _cut(items, lambda one: len(one) if isinstance(one, str) else len(msgspec.json.encode(one)))


def _cut(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    part: list[T] = []
    part_bytes = 0
    for item in items:
        item_bytes = size(item)
        if part and (len(part) == CALL_ITEMS or part_bytes + item_bytes > CALL_BYTES):
            yield part
            part, part_bytes = [], 0
        part.append(item)
        part_bytes += item_bytes
    if part:
        yield part


def _push(dxn: str, texts: Sequence[tuple[bytes, bool]]) -> Call:
    body = b'{"entries":[' + b",".join(text for text, _ in texts) + b"]}"
    keyed = all(has_key for _, has_key in texts)
    return Call("POST", path_of(dxn, "push"), headers=(JSON,), body=body, repeatable=keyed)


def _message(given: object, new_key: NewKey | None) -> tuple[bytes, bool]:
    """The JSON of a message, and whether it has an idempotency key."""
    entry = given if isinstance(given, NewEntry) else NewEntry(given)
    if entry.idempotency_key is None and new_key is not None:
        entry = structs.replace(entry, idempotency_key=new_key())
    return entry_text(entry)[0], entry.idempotency_key is not None


def _post(
    dxn: str,
    verb: str,
    said: Mapping[str, object],
    *,
    query: Pairs = (),
    repeatable: bool = False,
    patience_s: float = 0.0,
) -> Call:
    body = msgspec.json.encode({name: value for name, value in said.items() if value is not None})
    return Call(
        "POST",
        path_of(dxn, verb),
        query=query,
        headers=(JSON,),
        body=body,
        repeatable=repeatable,
        patience_s=patience_s,
    )
