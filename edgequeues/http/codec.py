"""JSON in and out. Entries' data is spliced in as stored, never decoded and encoded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.core import dxn as dxns
from edgequeues.core import jsontext
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidDxn, InvalidJson, InvalidRequest
from edgequeues.models import WORK_QUEUE, ConsumerInfo, Entry, QueueConfig, QueueInfo

encode: Final = msgspec.json.Encoder().encode


class EntryOut(Struct, frozen=True, gc=False, omit_defaults=True):
    """An entry as it stands in an answer; what is not set is left out, but for the type."""

    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    data: Raw
    expires: int | None = None
    key: str | None = None
    headers: Raw | None = None


class Stats(Struct, frozen=True):
    """A queue as listed."""

    id: str
    dxn: str
    config: QueueConfig
    created: int
    entries: int
    bytes: int
    oldest: int | None
    cursor: str
    consumers: list[ConsumerInfo] | UnsetType = UNSET


def entry(one: Entry) -> bytes:
    """Return the JSON of an entry."""
    return encode(_out(one))


def _out(one: Entry) -> EntryOut:
    return EntryOut(
        one.id,
        one.position,
        one.version,
        one.type,
        one.created,
        one.updated,
        Raw(one.data),
        one.expires,
        one.key,
        None if one.headers is None else Raw(one.headers),
    )


def cursors(next_cursor: str | None, prev_cursor: str | None) -> bytes:
    """Return the members of an answer that tell where its entries begin and end."""
    return b'"nextCursor":%b,"prevCursor":%b' % (encode(next_cursor), encode(prev_cursor))


class Form(NamedTuple):
    """How a dialect words a range.

    shown: one value for each entry that it shows. joined: the JSON of such values, with commas between.
    """

    start: bytes
    shown: Callable[[Sequence[Entry]], list[Any]]
    joined: Callable[[list[Any]], bytes]
    end: Callable[[str | None, str | None], bytes]

    def whole(self, shown: list[Any], next_cursor: str | None, prev_cursor: str | None) -> bytes:
        """Return the JSON of a range that is all there."""
        return self.start + self.joined(shown) + self.end(next_cursor, prev_cursor)


NATIVE: Final = Form(
    b'{"entries":[',
    lambda entries: list(map(_out, entries)),
    lambda shown: encode(shown)[1:-1],  # without the brackets of the list
    lambda next_cursor, prev_cursor: b"],%b}" % cursors(next_cursor, prev_cursor),
)


def stats(info: QueueInfo, space: str, tag: dxns.Tag, consumers: Sequence[ConsumerInfo] = ()) -> Stats:
    """Add the address to what a space says of a queue: by name where it has one. No consumers are left out."""
    address = Dxn(space=space, queue=info.config.name or info.id, tag=tag)
    return Stats(
        id=info.id,
        dxn=str(address),
        config=info.config,
        created=info.created,
        entries=info.entries,
        bytes=info.bytes,
        oldest=info.oldest,
        cursor=info.cursor,
        consumers=list(consumers) or UNSET,
    )


@lru_cache(maxsize=4096)
def address(text: str) -> Dxn:
    """Return a queue's or object's address. Raises InvalidDxn."""
    return dxns.parse(text)


def queue(text: str) -> Dxn:
    """Return a queue's address. Raises InvalidDxn, also for an object's."""
    found = address(text)
    if found.object is not None:
        raise InvalidDxn(f"{text[:200]} names an object, where a queue is wanted")
    return found


def config(body: bytes) -> QueueConfig:
    """Return the settings in `body`, defaults where it says nothing. Raises InvalidJson, InvalidRequest."""
    jsontext.check(body)
    try:
        settings = msgspec.json.decode(body, type=QueueConfig)
    except msgspec.DecodeError as error:
        raise InvalidRequest(str(error)) from error
    names(body)
    return settings


def deleted(count: int) -> bytes:
    """Return how many entries are gone."""
    return b'{"deleted":%d}' % count


def new_config(body: bytes) -> QueueConfig:
    """Return all settings of a queue: what `body` does not name is as its kind has it. Raises as `config` does."""
    changes = config_changes(body)
    defaults = WORK_QUEUE if changes.get("kind") == "work" else QueueConfig()
    return msgspec.structs.replace(defaults, **changes)


def config_changes(body: bytes) -> dict[str, object]:
    """Return only the settings that `body` names, checked. Raises as `config` does."""
    settings = config(body)
    return {name: getattr(settings, name) for name in names(body)}


def names(body: bytes) -> list[str]:
    """Return what a JSON object names, in order. Raises InvalidJson where that is something twice."""
    found = [name for name, _ in jsontext.members(body)]
    for name in found:
        if found.count(name) > 1:
            raise InvalidJson(f"{name}: given twice")
    return found
