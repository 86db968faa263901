"""The native protocol without a network: functions that say what to send; `answers` says what comes back.

Every function raises ValueError where `dxn` is not the address of a queue or object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.client import text
from edgequeues.client.values import ConfigChange, NewEntry, QueueConfig
from edgequeues.core.dxn import parse
from edgequeues.core.errors import InvalidDxn

Pairs = tuple[tuple[str, str], ...]
NewKey = Callable[[], str]  # makes an idempotency key

JSON = ("content-type", "application/json")
NDJSON = ("content-type", "application/x-ndjson")
RANGE_DELETE_PATIENCE_S = 600.0  # a large range goes in many steps, the answer comes after the last


class Call(Struct, frozen=True):
    """One request. repeatable: sending it twice does what sending it once does.

    patience_s: how much longer than usual the answer may take, in seconds.
    """

    method: str
    path: str
    query: Pairs = ()
    headers: Pairs = ()
    body: bytes | None = None
    repeatable: bool = False
    patience_s: float = 0.0


def append(
    dxn: str, entries: Iterable[object], *, actor: str | None = None, new_key: NewKey | None = None
) -> Call:
    """Append up to 1,000 entries, all or nothing. Raises ValueError or TypeError for data without a JSON form.

    new_key: makes one for each entry that has neither an id nor a key.
    """
    given = [entry_text(entry, new_key) for entry in entries]
    body = b'{"entries":[' + b",".join(line for line, _ in given) + b"]}"
    named = all(has_id for _, has_id in given)
    query = pairs(actor=actor)
    return Call("POST", path_of(dxn), query=query, headers=(JSON,), body=body, repeatable=named)


def append_lines(dxn: str, *, actor: str | None = None) -> Call:
    """Append a stream of lines; the body comes from elsewhere, and with it whether it may be sent twice."""
    return Call("POST", path_of(dxn), query=pairs(actor=actor), headers=(NDJSON,))


def line(entry: object, new_key: NewKey | None = None) -> tuple[bytes, bool]:
    """Return an entry as a line of NDJSON, and whether it may be sent twice. Raises ValueError, TypeError."""
    encoded, safe = entry_text(entry, new_key)
    if b"\n" in encoded:
        raise ValueError(
            "a streamed entry is one line: its JSON holds a line break; use append, or re-encode it"
        )
    return encoded + b"\n", safe


def read(
    dxn: str,
    *,
    after: str | None = None,
    before: str | None = None,
    limit: int | None = None,
    reverse: bool = False,
    type: str | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
    ids: Iterable[str] = (),
    wait_s: float | None = None,
) -> Call:
    """Read part of a queue; None leaves a bound out."""
    query = pairs(
        after=after,
        before=before,
        limit=limit,
        reverse="true" if reverse else None,
        type=type,
        since=since_ms,
        until=until_ms,
        wait=None if wait_s is None else f"{wait_s:g}",
    )
    return Call(
        "GET",
        path_of(dxn),
        query=query + _ids(ids),
        repeatable=True,
        patience_s=0.0 if wait_s is None else wait_s,
    )


def subscribe(dxn: str, *, after: str | None, last_event_id: str | None, type: str | None) -> Call:
    """Open the stream of events. `last_event_id` wins over `after`."""
    headers: Pairs = (("accept", "text/event-stream"), ("accept-encoding", "identity"))
    if last_event_id is not None:
        headers += (("last-event-id", last_event_id),)
    query = pairs(after=after, type=type)
    return Call("GET", path_of(dxn, "subscribe"), query=query, headers=headers, repeatable=True)


def get(dxn: str) -> Call:
    """Fetch the object that `dxn` names."""
    return Call("GET", path_of(dxn), repeatable=True)


def delete(
    dxn: str,
    *,
    ids: Iterable[str] = (),
    after: str | None = None,
    before: str | None = None,
    through: str | None = None,
) -> Call:
    """Delete the object that `dxn` names, or of a queue: objects by id, or a range."""
    query = pairs(after=after, before=before, through=through)
    patience_s = RANGE_DELETE_PATIENCE_S if query else 0.0
    return Call("DELETE", path_of(dxn), query=query + _ids(ids), patience_s=patience_s)


def get_config(dxn: str) -> Call:
    """Fetch the settings of a queue."""
    return Call("GET", path_of(dxn, "config"), repeatable=True)


def put_config(dxn: str, config: QueueConfig) -> Call:
    """Replace all settings; makes the queue where it is not there."""
    return Call("PUT", path_of(dxn, "config"), headers=(JSON,), body=msgspec.json.encode(config))


def patch_config(dxn: str, change: ConfigChange) -> Call:
    """Change some settings."""
    return Call("PATCH", path_of(dxn, "config"), headers=(JSON,), body=msgspec.json.encode(change))


def delete_queue(dxn: str) -> Call:
    """Remove a queue with all that is in it."""
    return Call("DELETE", path_of(dxn, "config"), patience_s=RANGE_DELETE_PATIENCE_S)


def get_stats(dxn: str) -> Call:
    """Fetch a queue's counters."""
    return Call("GET", path_of(dxn, "stats"), repeatable=True)


def list_spaces(*, after: str | None = None, limit: int | None = None) -> Call:
    """Fetch a page of spaces."""
    return Call("GET", "/v1/spaces", query=pairs(after=after, limit=limit), repeatable=True)


def list_queues(
    space: str, *, tag: str | None = None, after: str | None = None, limit: int | None = None
) -> Call:
    """Fetch a page of a space's queues."""
    path = f"/v1/spaces/{quote(space, safe='')}/queues"
    return Call("GET", path, query=pairs(after=after, limit=limit, tag=tag), repeatable=True)


def health() -> Call:
    """Ask whether the server accepts work. Not repeated: "not now" is an answer."""
    return Call("GET", "/readyz")


class WireNew(Struct, frozen=True, omit_defaults=True):
    """An entry as it is sent."""

    data: Raw
    id: str | UnsetType | None = UNSET
    type: str | UnsetType | None = UNSET
    ttl_ms: int | None = None
    key: str | None = None
    headers: Mapping[str, str] | None = None
    if_version: str | None = None
    priority: int | None = None
    due: int | None = None
    delay_ms: int | None = None
    idempotency_key: str | None = None


def entry_text(given: object, new_key: NewKey | None = None) -> tuple[bytes, bool]:
    """Return the JSON of an entry, and whether it names its object or has an idempotency key.

    new_key: makes one where it has neither.
    """
    entry = given if isinstance(given, NewEntry) else NewEntry(given)
    data = entry.data
    own_id = not entry.plain and isinstance(data, Mapping) and isinstance(data.get("id"), str)
    has_id = entry.id is not None or own_id
    key = entry.idempotency_key
    if key is None and new_key is not None and not has_id:
        key = new_key()
    unsaid = None if entry.plain else UNSET
    wire = WireNew(
        Raw(text.encode(data)),
        id=unsaid if entry.id is None else entry.id,
        type=unsaid if entry.type is None else entry.type,
        ttl_ms=entry.ttl_ms,
        key=entry.key,
        headers=entry.headers,
        if_version=entry.if_version,
        priority=entry.priority,
        due=entry.due,
        delay_ms=entry.delay_ms,
        idempotency_key=key,
    )
    return msgspec.json.encode(wire), has_id or key is not None


def path_of(dxn: str, leaf: str = "") -> str:
    """Return the path of a queue or object, or of something below it."""
    try:
        address = str(parse(dxn))
    except InvalidDxn as error:
        raise ValueError(str(error)) from None
    return f"/v1/{address}" + (f"/{leaf}" if leaf else "")


def pairs(**given: str | int | None) -> Pairs:
    """Return a query of what is not None."""
    return tuple((name, str(value)) for name, value in given.items() if value is not None)


def _ids(ids: Iterable[str]) -> Pairs:
    if isinstance(ids, str):
        raise TypeError("ids is a list or another iterable of ids, not one string")
    return tuple(("id", one) for one in ids)
