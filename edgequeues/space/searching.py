"""Tables `queue_entries` and `deliveries` for those who search: entries in whatever state. Nothing is changed.

What one turn looks at is bounded; where that ends before what there is, the answer says where to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import apsw
from msgspec import Struct

from edgequeues.core.lifecycle import Stand
from edgequeues.models import Entry
from edgequeues.space import deliveries, log
from edgequeues.space.consumers import Consumer
from edgequeues.space.deliveries import Delivery
from edgequeues.spec import conditions
from edgequeues.spec.conditions import CONDITION_BYTES, CONDITIONS_MAX, Condition

LOOKED_AT = 2_000  # entries that one turn compares with what is searched for
POSITION_MAX = (1 << 63) - 1

_SHOWN = (
    "SELECT id, size, :key IS NULL OR ordering_key = :key,"
    " updated_ts > :aged AND (expires_ts IS NULL OR expires_ts > :at) FROM queue_entries WHERE queue_id = :queue"
)
_AMONG = "id > :low AND id < :high"
LOOK = {  # (reverse, typed)
    (False, False): f"{_SHOWN} AND {_AMONG} ORDER BY id LIMIT :rows",
    (False, True): f"{_SHOWN} AND type_dxn = :type AND {_AMONG} ORDER BY id LIMIT :rows",
    (True, False): f"{_SHOWN} AND {_AMONG} ORDER BY id DESC LIMIT :rows",
    (True, True): f"{_SHOWN} AND type_dxn = :type AND {_AMONG} ORDER BY id DESC LIMIT :rows",
}


class Search(Struct, frozen=True):
    """What is searched for; all that is said must hold. states: (), any.

    where: an expression over the data and where it stands. consumer: None, every one. after: a position to go on
    after, in the direction of the search.
    """

    states: tuple[Stand, ...] = ()
    consumer: str | None = None
    id: str | None = None
    key: str | None = None
    type: str | None = None
    where: str | None = None
    after: int | None = None
    reverse: bool = False


class Stance(Struct, frozen=True):
    """Where an entry stands with a consumer, as in a `Standing`; of what is finished no more is known."""

    consumer: str
    state: Stand
    attempts: int | None = None
    due: int | None = None
    worker: str | None = None
    last_error: str | None = None
    first: int | None = None
    last: int | None = None


NOWHERE = Stance("", "none", 0)


class Found(Struct, frozen=True):
    """A part of what there is. resume: not None when there may be more: the position to go on after."""

    found: list[tuple[Entry, list[Stance]]]
    resume: int | None


class Scope(NamedTuple):
    """Where is searched. at: unix ms; what had expired by then is left out, unless it is handed out.

    aged_ts: as retention has it. consumers: whose standings count.
    """

    queue_id: str
    at: int
    aged_ts: int
    consumers: Sequence[Consumer]


def search(
    db: apsw.Connection, scope: Scope, ask: Search, asked: Condition | None, limit: int, bytes_max: int
) -> Found:
    """Up to `limit` entries and about `bytes_max` of data, one at least, among the next LOOKED_AT.

    asked: `ask.where`, compiled; of CONDITIONS_MAX entries, or about CONDITION_BYTES of data. Raises InvalidRequest
    where it would take too long.
    """
    found: list[tuple[Entry, list[Stance]]] = []
    looked, tried, room, last = 0, 0, CONDITION_BYTES, ask.after
    for position, size, is_wanted, is_live in _rows(db, scope, ask):
        if len(found) == limit or bytes_max <= 0 or room <= 0 or tried == CONDITIONS_MAX:
            return Found(found, last)
        looked, last = looked + 1, position
        if not is_wanted:
            continue
        stances = _stances(db, scope.consumers, position)
        if not is_live and all(one.state != "leased" for one in stances):
            continue
        matching = [one for one in stances or [NOWHERE] if not ask.states or one.state in ask.states]
        if not matching:
            continue
        if asked is not None:
            tried += 1
            scans = max(asked.scans, 1) * len(matching)
            room -= conditions.work(size, scans, f"the entry at position {position}")
        entry = log.at(db, position)
        assert entry is not None
        if asked is None or any(asked(entry.data, _facts(entry, one), scope.at) for one in matching):
            found.append((entry, stances))
            bytes_max -= size
    return Found(found, last if looked == LOOKED_AT else None)


def _rows(db: apsw.Connection, scope: Scope, ask: Search) -> Iterator[tuple[int, int, bool, bool]]:
    """Position and size of the next entries, whether each has the key that is wanted, and whether it is alive."""
    low, high = 0, POSITION_MAX
    if ask.after is not None:
        low, high = (low, ask.after) if ask.reverse else (ask.after, high)
    if ask.id is not None:
        [position] = log.positions(db, scope.queue_id, [ask.id]) or [0]
        low, high = max(low, position - 1), min(high, position + 1)
    asked: dict[str, Any] = {
        "queue": scope.queue_id,
        "at": scope.at,
        "aged": scope.aged_ts,
        "key": ask.key,
        "type": ask.type,
        "low": low,
        "high": high,
        "rows": LOOKED_AT,
    }
    # At once: the rows are small, and a half-read statement would keep the transaction from committing.
    rows: list[Any] = db.execute(LOOK[ask.reverse, ask.type is not None], asked).fetchall()
    yield from rows


def _stances(db: apsw.Connection, consumers: Sequence[Consumer], position: int) -> list[Stance]:
    """Where an entry stands with each of these; nothing of those that have not been given it yet."""
    rows = {one.consumer_id: one for one in deliveries.of_entry(db, position)} if consumers else {}
    found = []
    for one in consumers:
        row = rows.get(one.consumer_id)
        if row is not None:
            found.append(_stance(one.name, row))
        elif not one.filling or position <= one.filled:
            found.append(Stance(one.name, "finished"))
    return found


def _stance(consumer: str, row: Delivery) -> Stance:
    return Stance(consumer, row.state, row.attempts, row.due, row.worker, row.error, row.first, row.last)


def _facts(entry: Entry, one: Stance) -> dict[str, object]:
    """What a condition may ask beside the message. Times are unix seconds, as in all expressions."""
    return {
        "id": entry.id,
        "key": entry.key,
        "type": entry.type,
        "priority": entry.priority,
        "created_at": entry.created / 1_000,
        "updated_at": entry.updated / 1_000,
        "state": one.state,
        "consumer": one.consumer or None,
        "attempts": one.attempts,
        "due_at": _seconds(one.due),
        "worker": one.worker,
        "error": one.last_error,
        "first_seen_at": _seconds(one.first),
        "last_seen_at": _seconds(one.last),
    }


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000
