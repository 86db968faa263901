"""Entries as they are sent: options beside the data, the data byte for byte.

The main path is one msgspec decode. It is trusted only where nothing is in doubt: what msgspec refuses, or may
have overlooked, is read again by the careful path, which takes halves of surrogate pairs and words the errors.
Both give the same `EntryIn`; the rules that follow are written once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from edgequeues.core import jsontext, versions
from edgequeues.core.backoff import DELAY_MS_MAX, DelayMs
from edgequeues.core.errors import DuplicateId, EdgeQueuesError, InvalidJson, InvalidRequest, TooLarge
from edgequeues.core.ids import check_idempotency_key, check_key, check_object_id, check_type, shown
from edgequeues.models import (
    ENTRIES_MAX,
    ENTRY_BYTES_MAX,
    PRIORITY,
    TTL_MS_MAX,
    UNIX_MS_MAX,
    NewEntry,
    Priority,
    TtlMs,
    UnixMs,
)

HEADERS_MAX = 64
HEADERS_BYTES_MAX = 8 * 1024  # of their compact JSON text


class EntryIn(Struct, forbid_unknown_fields=True):
    """An entry of the right form; its values are not judged yet. id, type: None: whatever the data says of itself."""

    data: Raw
    id: str | UnsetType | None = UNSET
    type: str | UnsetType | None = UNSET
    ttl_ms: TtlMs | UnsetType = UNSET
    key: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    if_version: str | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    due: UnixMs | UnsetType = UNSET
    delay_ms: DelayMs | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET


class EntriesIn(Struct, forbid_unknown_fields=True):
    """The body of an append or a push."""

    entries: list[EntryIn]


class _Named(Struct):
    """What a data object says of itself."""

    id: Any = None
    type: Any = msgspec.field(default=None, name="@type")


_SENT = msgspec.json.Decoder(EntryIn)
_BODY = msgspec.json.Decoder(EntriesIn)
_NAMED = msgspec.json.Decoder(_Named)
_INTEGERS: dict[str, tuple[msgspec.json.Decoder[int], int, int]] = {
    "ttl_ms": (msgspec.json.Decoder(TtlMs), 1, TTL_MS_MAX),
    "priority": (msgspec.json.Decoder(Priority), 0, 9),
    "due": (msgspec.json.Decoder(UnixMs), 0, UNIX_MS_MAX),
    "delay_ms": (msgspec.json.Decoder(DelayMs), 0, DELAY_MS_MAX),
}
_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def entries(body: bytes) -> list[NewEntry]:
    """The entries of `{"entries": [...]}`, in order.

    Raises InvalidJson, InvalidRequest, InvalidId, DuplicateId or TooLarge; where one entry is at fault, the
    detail begins with `entries[i]`.
    """
    batch = _sent_in(body)
    in_range = jsontext.in_range(body)
    made = []
    first_with: dict[str, int] = {}
    for index, one in enumerate(batch):
        try:
            new = _new_entry(one, in_range)
        except EdgeQueuesError as error:
            raise located(error, f"entries[{index}]") from None
        if new.object_id is not None and first_with.setdefault(new.object_id, index) != index:
            first = first_with[new.object_id]
            raise DuplicateId(f"entries[{first}] and entries[{index}] are both {new.object_id!r}")
        made.append(new)
    return made


def entry(line: bytes) -> NewEntry:
    """The entry of one line. Raises InvalidJson, InvalidRequest, InvalidId or TooLarge."""
    try:
        return _new_entry(_sent(line), jsontext.in_range(line))
    except EdgeQueuesError as error:
        raise located(error, "") from None


def located(error: EdgeQueuesError, where: str) -> EdgeQueuesError:
    """The same error with its place in front. A detail that begins with a dot is about a field."""
    if error.detail.startswith("."):
        return type(error)((where + error.detail).removeprefix("."))
    return type(error)(f"{where}: {error.detail}" if where else error.detail)


# The form: main path, then careful path.


def _sent_in(body: bytes) -> list[EntryIn]:
    try:
        body.decode()  # msgspec does not look into the data
        sent = _BODY.decode(body).entries
    except _REFUSALS:
        return _carefully_in(body)
    _check_count(len(sent))
    return sent if body.count(b'"') == 2 + sum(map(_quotes, sent)) else _carefully_in(body)


def _sent(text: bytes) -> EntryIn:
    try:
        text.decode()
        sent = _SENT.decode(text)
    except _REFUSALS:
        return _carefully(text)
    return sent if text.count(b'"') == _quotes(sent) else _carefully(text)


def _quotes(sent: EntryIn) -> int:
    """How many quotes an entry needs to say this: two a name, two a string, and those of the data.

    msgspec keeps the last of two equal names, but a name given twice has its quotes twice. So a text with just
    as many quotes repeats no name; one with more may only hold escaped quotes, and the careful path will know.
    """
    quotes = 2 + bytes(sent.data).count(b'"')
    if sent.id is not UNSET:
        quotes += 2 if sent.id is None else 4
    if sent.type is not UNSET:
        quotes += 2 if sent.type is None else 4
    if sent.ttl_ms is not UNSET:
        quotes += 2
    if sent.key is not UNSET:
        quotes += 4
    if sent.headers is not UNSET:
        quotes += 2 + 4 * len(sent.headers)
    if sent.if_version is not UNSET:
        quotes += 4
    if sent.priority is not UNSET:
        quotes += 2
    if sent.due is not UNSET:
        quotes += 2
    if sent.delay_ms is not UNSET:
        quotes += 2
    if sent.idempotency_key is not UNSET:
        quotes += 4
    return quotes


def _carefully_in(body: bytes) -> list[EntryIn]:
    slices = None
    for name, value in _members(body):
        if name != "entries":
            raise InvalidRequest(f"{_field(name)}: unknown field")
        if slices is not None:
            raise InvalidJson("entries: given twice")
        if not value.startswith(b"["):
            raise InvalidRequest("entries: expected an array")
        slices = jsontext.elements(value)
    if slices is None:
        raise InvalidRequest("entries: missing")
    _check_count(len(slices))
    sent = []
    for index, text in enumerate(slices):
        try:
            sent.append(_sent(text))
        except EdgeQueuesError as error:
            raise located(error, f"entries[{index}]") from None
    return sent


def _carefully(text: bytes) -> EntryIn:
    fields: dict[str, Any] = {}
    for name, value in _members(text):
        if name not in _READERS:
            raise InvalidRequest(f".{_field(name)}: unknown field")
        if name in fields:
            raise InvalidJson(f".{name}: given twice")
        fields[name] = _READERS[name](name, value)
    if "data" not in fields:
        raise InvalidRequest(".data: missing")
    return EntryIn(**fields)


def _members(text: bytes) -> list[tuple[str, bytes]]:
    if text.lstrip(b" \t\n\r").startswith(b"{"):
        return jsontext.members(text)
    jsontext.check(text)  # rather say that it is no JSON than that it is no object
    raise InvalidRequest("expected an object")


def _data(name: str, value: bytes) -> Raw:
    return Raw(value)


def _string(name: str, value: bytes) -> str:
    if not value.startswith(b'"'):
        raise InvalidRequest(f".{name}: expected a string")
    string: str = json.loads(value)
    return string


def _string_or_null(name: str, value: bytes) -> str | None:
    return None if value == b"null" else _string(name, value)


def _integer(name: str, value: bytes) -> int:
    decoder, low, high = _INTEGERS[name]
    try:
        return decoder.decode(value)
    except msgspec.DecodeError:
        raise InvalidRequest(f".{name}: expected an integer from {low} to {high}") from None


def _strings(name: str, value: bytes) -> dict[str, str]:
    if not value.startswith(b"{"):
        raise InvalidRequest(f".{name}: expected an object of strings")
    strings: dict[str, str] = {}
    for inner, text in jsontext.members(value):
        place = f"{name}.{_field(inner)}"
        if inner in strings:
            raise InvalidJson(f".{place}: given twice")
        strings[inner] = _string(place, text)
    return strings


_READERS: dict[str, Callable[[str, bytes], Any]] = {
    "data": _data,
    "id": _string_or_null,
    "type": _string_or_null,
    "ttl_ms": _integer,
    "priority": _integer,
    "due": _integer,
    "delay_ms": _integer,
    "idempotency_key": _string,
    "key": _string,
    "headers": _strings,
    "if_version": _string,
}


def _field(name: str) -> str:
    """A name from outside as part of a path: as it is where it looks like one, else quoted."""
    return name if name.isidentifier() and len(name) <= 80 else shown(name)


# The rules.


def _check_count(number: int) -> None:
    if not number:
        raise InvalidRequest("entries: empty, at least one is needed")
    if number > ENTRIES_MAX:
        raise TooLarge(f"{number} entries, at most {ENTRIES_MAX}")


def _new_entry(sent: EntryIn, in_range: bool) -> NewEntry:
    """What to append. `in_range`: no number of the data needs a look."""
    data = _data_text(sent.data, in_range)
    own_id, own_type = _own_names(sent.data, data) if data[0] == "{" else (None, None)
    object_id = _agreed("id", sent.id, "data.id", own_id)
    type_name = _agreed("type", sent.type, 'data["@type"]', own_type)
    if sent.if_version is not UNSET:
        versions.parse(sent.if_version)
    if sent.due is not UNSET and sent.delay_ms is not UNSET:
        raise InvalidRequest(".due: give either due or delay_ms")
    return NewEntry(
        data,
        None if object_id is None else check_object_id(object_id),
        None if type_name is None else check_type(type_name),
        None if sent.ttl_ms is UNSET else sent.ttl_ms,
        None if sent.key is UNSET else check_key(sent.key),
        None if sent.headers is UNSET else _headers_text(sent.headers),
        None if sent.if_version is UNSET else sent.if_version,
        None,
        PRIORITY if sent.priority is UNSET else sent.priority,
        None if sent.due is UNSET else sent.due,
        None if sent.delay_ms is UNSET else sent.delay_ms,
        None if sent.idempotency_key is UNSET else check_idempotency_key(sent.idempotency_key),
    )


def _data_text(raw: Raw, in_range: bool) -> str:
    data = str(raw, "utf-8")
    # At most four bytes a character, so most texts need not be measured.
    if len(data) > ENTRY_BYTES_MAX // 4 and (size := len(data.encode())) > ENTRY_BYTES_MAX:
        raise TooLarge(f".data: {size} bytes, at most {ENTRY_BYTES_MAX}")
    if not in_range or data.count("[") + data.count("{") > jsontext.NESTING_MAX:
        try:
            jsontext.check(data.encode())
        except InvalidJson as error:
            raise InvalidJson(f".data: {error.detail}") from None
    return data


def _own_names(raw: Raw, data: str) -> tuple[Any, Any]:
    """`id` and `@type` of the object `data`, whatever they are. Raises InvalidJson where one comes twice."""
    ids = data.count('"id"')
    types = data.count('"@type"') if "@" in data else 0  # one character is found much sooner than seven
    escaped = "\\" in data and "\\u00" in data  # a name may be written in escapes
    if not (ids or types or escaped):
        return None, None
    if ids > 1 or types > 1 or escaped:
        names = [name for name, _ in jsontext.members(data.encode())]
        for name in ("id", "@type"):
            if names.count(name) > 1:
                raise InvalidJson(f".data: {name!r} given twice")
    try:
        named = _NAMED.decode(raw)
    except msgspec.DecodeError:  # half a surrogate pair somewhere
        found = dict(jsontext.members(data.encode()))
        own_id, own_type = found.get("id", b""), found.get("@type", b"")
        return _own_string(own_id), _own_string(own_type)
    return named.id, named.type


def _own_string(value: bytes) -> Any:
    return json.loads(value) if value.startswith(b'"') else None


def _agreed(field: str, option: str | UnsetType | None, place: str, own: Any) -> str | None:
    """The option, else what the data says of itself if that is a string. Raises InvalidRequest if they differ."""
    if option is UNSET:
        return own if isinstance(own, str) else None
    if option is None:
        return None
    if isinstance(own, str) and own != option:
        raise InvalidRequest(f".{field}: {shown(option)}, but {place} is {shown(own)}")
    return option


def _headers_text(headers: dict[str, str]) -> str:
    if len(headers) > HEADERS_MAX:
        raise InvalidRequest(f".headers: {len(headers)}, at most {HEADERS_MAX}")
    text = jsontext.write(headers)
    if len(text) > HEADERS_BYTES_MAX:
        raise InvalidRequest(f".headers: {len(text)} bytes of JSON, at most {HEADERS_BYTES_MAX}")
    return text.decode()
