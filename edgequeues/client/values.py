"""Values a caller gives and gets. Times are unix milliseconds, cursors are opaque, `raw` is JSON as stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from edgequeues.client.messages import Consumer

Outcome = Literal["new", "same", "moved", "stale", "dead", "filtered"]


class NewEntry(Struct, frozen=True):
    """One object to append, where more than its data is to be said.

    data: anything `json` can write, or a Struct, dataclass or datetime; `bytes` are JSON text already and are
        stored byte for byte.
    id: the object's id; appending the same id again never doubles it. None: the server takes `data["id"]`, or
        makes one up.
    type: at most 512 characters; None: the server takes `data["@type"]`.
    ttl_ms: the entry expires that long after this append.
    key: an ordering key, kept with the entry.
    headers: at most 64 of them and 8 KiB, kept with the entry.
    if_version: the version this writer gives the object, `<16 hex digits>@<actor>`; one that is not above the
        stored version changes nothing (outcome `stale`).
    priority: 0 to 9, higher is handed out sooner. None: 4.
    due, delay_ms: it is not handed out before this unix ms, or so long after now; one of them. None: as the
        queue has it.
    idempotency_key: 1 to 256 characters; a later call with the same key answers as the first did, and does
        nothing.
    plain: what `data["id"]` and `data["@type"]` say means nothing to the queue: without an `id` or `type` here, the
        server makes an id up, and there is no type.
    """

    data: object
    id: str | None = None
    type: str | None = None
    ttl_ms: int | None = None
    key: str | None = None
    headers: Mapping[str, str] | None = None
    if_version: str | None = None
    priority: int | None = None
    due: int | None = None
    delay_ms: int | None = None
    idempotency_key: str | None = None
    plain: bool = False


class Entry(Struct, frozen=True, dict=True):
    """One stored object.

    raw: the JSON text of the data in UTF-8, exactly as it was appended.
    position: grows with every append to the queue and is never used twice.
    created, updated: unix ms of the first and the last append of this object; `expires`: unix ms, None: never.
    """

    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    raw: bytes
    expires: int | None = None
    key: str | None = None
    headers: Mapping[str, str] | None = None

    @cached_property
    def data(self) -> object:
        """The data as Python values, decoded when first asked for and shared by later ones."""
        return json.loads(self.raw)


class Page(Struct, frozen=True):
    """Part of a queue. next_cursor goes on after the highest entry given, prev_cursor before the lowest.

    An empty page gives back the cursors it was asked with; None where there is nothing to point at.
    """

    entries: list[Entry]
    next_cursor: str | None
    prev_cursor: str | None


class Appended(Struct, frozen=True):
    """What became of one object. `stale` reports the stored position and version, which stand."""

    id: str
    position: int
    version: str
    outcome: Outcome


class AppendAnswer(Struct, frozen=True):
    """On disk. One result per object in the order given; `cursor` is the tail as of this append."""

    results: list[Appended]
    cursor: str


class LineError(Struct, frozen=True):
    """An entry of a stream that was refused alone. `line` counts from 1 over the whole stream."""

    line: int
    code: str
    detail: str


class Confirmation(Struct, frozen=True):
    """How far a stream has come: entries 1 to `through` are dealt with, and those not refused are on disk.

    appended, refused: counts since the start of the stream. errors: those refused since the last confirmation,
    at most the first 1,000 of them. cursor: the tail; None while nothing was stored.
    """

    through: int
    cursor: str | None
    appended: int
    refused: int
    errors: tuple[LineError, ...] = ()


class QueueConfig(Struct, frozen=True):
    """All settings of a queue. See `Client.configure`.

    name: another address of the queue, unique in its space. None: only the id.
    kind: fixed when the queue is made.
    max_age_ms: an entry expires that long after its last append. None: never.
    max_entries: only the newest so many are kept. None: all.
    mutable: may an object be appended again with other content (it moves to the tail)?
    on_ack: is an entry deleted once every consumer has finished it? retain_acked_ms: if so, only that much later.
    delay_ms: messages are not handed out before that time has passed.
    depth_max: unfinished messages of a consumer; more are refused. None: no limit.
    paused: nothing is handed out.
    sessions: its ordering keys are sessions of users, see `enqueue_inbound`; fixed when the queue is made.
    """

    name: str | None = None
    kind: Literal["log", "work"] = "log"
    max_age_ms: int | None = None
    max_entries: int | None = None
    mutable: bool = True
    on_ack: Literal["keep", "delete"] = "keep"
    retain_acked_ms: int = 0
    delay_ms: int = 0
    depth_max: int | None = None
    paused: bool = False
    sessions: bool = False


class ConfigChange(Struct, frozen=True, forbid_unknown_fields=True):
    """Some settings of a queue; what is left out stays. The fields mean what they mean in QueueConfig."""

    name: str | UnsetType | None = UNSET
    max_age_ms: int | UnsetType | None = UNSET
    max_entries: int | UnsetType | None = UNSET
    mutable: bool | UnsetType = UNSET
    on_ack: Literal["keep", "delete"] | UnsetType = UNSET
    retain_acked_ms: int | UnsetType = UNSET
    delay_ms: int | UnsetType = UNSET
    depth_max: int | UnsetType | None = UNSET
    paused: bool | UnsetType = UNSET


class QueueStats(Struct, frozen=True, omit_defaults=True):
    """A queue and what is in it; expired entries do not count.

    bytes: of data, in UTF-8. oldest: unix ms of the last append of the entry at the front; None when empty.
    cursor: the tail. consumers: where they were asked for, as `stats` does and `queues` does not.
    """

    id: str
    dxn: str
    config: QueueConfig
    created: int
    entries: int
    bytes: int
    oldest: int | None
    cursor: str | None
    consumers: tuple[Consumer, ...] = ()


class Space(Struct, frozen=True):
    """A space that has queues. tag: `data`, or `trace` for the separate set of queues beside it."""

    id: str
    tag: str


class Health(Struct, frozen=True):
    """ready: it accepts work. False while it starts, stops, or its disk refuses."""

    ready: bool
    detail: str = ""


def require_many(entries: object) -> None:
    """One dict or bytes given instead of a list would be taken apart silently. Raises TypeError."""
    if isinstance(entries, str | bytes | bytearray | memoryview | Mapping | NewEntry):
        raise TypeError(f"entries is a list or another iterable of entries, not one {type(entries).__name__}")
