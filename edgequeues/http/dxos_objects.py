"""Objects as DXOS clients send them and are shown them: the stored text, with nothing written anew.

A client is shown two queue-position keys in `@meta.keys`, and may send them back. They are spliced in on the way
out and cut out on the way in, so that an object that was read and is inserted again is what was stored. How they
were put in can be seen from them: behind the keys there were, the newer source first; in an array that had to be
made, the older one first, and if only the array had to be made, a blank before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct

from edgequeues.core import jsontext
from edgequeues.core.errors import EdgeQueuesError, InvalidId, InvalidJson, InvalidRequest, TooLarge
from edgequeues.core.ids import check_type, is_ulid, shown
from edgequeues.core.jsontext import Span
from edgequeues.http.envelope import located
from edgequeues.models import ENTRY_BYTES_MAX, Entry, NewEntry

_NEWER = "org.dxos.key.queue-position"
_OLDER = "dxos.org/key/queue-position"  # known to clients before 2026
_ONCE = ("id", "@type", "@meta")

_APPENDED = f'{{"source":"{_NEWER}","id":"%d"}},{{"source":"{_OLDER}","id":"%d"}}'
_MADE = f'{{"source":"{_OLDER}","id":"%d"}},{{"source":"{_NEWER}","id":"%d"}}'
_META_MADE = f'{{"@meta":{{"keys":[{_MADE}]}},'
_KEYS_MADE = f'{{"keys": [{_MADE}]'
_META_MADE_PARTS = _META_MADE.split("%d")
_APPENDED_PARTS = _APPENDED.split("%d")

# The start of an object as the SDK writes it: up to the end of its keys, where keys are all of its `@meta`, or
# else the id alone. No group is possessive: Python before 3.11.5 goes wrong where one fails half way.
_KEY = r'\{"source":"[^"\\]*+","id":"[^"\\]*+"\}'
_HEAD = re.compile(
    r'\{"id":"([^"]{26})"'
    r'(?:(?:,"@(?:type|relationSource|relationTarget)":"[^"\\]*+")*'
    rf',"@meta":\{{"keys":\[(?:{_KEY}(?:,{_KEY})*)?(?=\]\}}))?'
)
_ASCII_ESCAPE = re.compile(r"\\u00[2-7]")  # what an encoder never writes, and what could hide a name


class _Body(Struct):
    objects: list[Raw]


class _Named(Struct):
    """What an object says of itself."""

    id: Any = UNSET
    type: Any = msgspec.field(default=None, name="@type")


class _Key(Struct):
    source: Any = None


_BODY = msgspec.json.Decoder(_Body)
_NAMED = msgspec.json.Decoder(_Named)
_KEY_SOURCE = msgspec.json.Decoder(_Key)


def objects(body: bytes) -> list[NewEntry]:
    """The objects of `{"objects": [...]}` in order, without position keys. Of equal ids, the last one is given.

    Raises InvalidJson, InvalidRequest, InvalidId or TooLarge; where one object is at fault, the detail begins
    with `objects[i]`.
    """
    made: dict[str, NewEntry] = {}
    sent = _texts_in(body)
    in_range = jsontext.in_range(body)
    for index, text in enumerate(sent):
        try:
            object_id, new = _new_entry(text, in_range)
        except EdgeQueuesError as error:
            raise located(error, f"objects[{index}]") from None
        made.pop(object_id, None)  # an object sent again stands where it was sent last
        made[object_id] = new
    return list(made.values())


def render(entry: Entry) -> bytes | None:
    """The object as a client is shown it: with its id, and its position in `@meta.keys`.

    None where the data is no object or its id no ULID: one such entry would hide the whole queue from an ECHO
    client.
    """
    data, object_id = entry.data, entry.id
    if not is_ulid(object_id) or data[0] != "{":
        return None
    head = _HEAD.match(data)
    # No id is given twice: whoever stores an object refuses that.
    if head is None or head[1] != object_id or "queue-position" in data or _is_escaped(data):
        return _render_carefully(entry)
    at = head.end()
    if data.find('"@meta"', at) >= 0:
        return _render_carefully(entry)
    number = str(entry.position)
    if data[at] != "]":
        return f"{number.join(_META_MADE_PARTS)}{data[1:]}".encode()
    comma = "" if data[at - 1] == "[" else ","
    return f"{data[:at]}{comma}{number.join(_APPENDED_PARTS)}{data[at:]}".encode()


def texts(entries: Sequence[Entry]) -> list[bytes]:
    """The entries as a client is shown them; those it cannot be shown are left out."""
    return [text for text in map(render, entries) if text is not None]


# Reading an insert.


def _texts_in(body: bytes) -> list[Raw]:
    try:
        body.decode()  # msgspec does not look into the objects
        texts = _BODY.decode(body).objects
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _carefully_in(body)
    once = body.count(b'"objects"') == 1 and b"\\u00" not in body
    return texts if once else _carefully_in(body)


def _carefully_in(body: bytes) -> list[Raw]:
    if not body.lstrip(b" \t\n\r").startswith(b"{"):
        jsontext.check(body)  # rather say that it is no JSON than that it is no object
        raise InvalidRequest("expected an object")
    arrays = [value for name, value in jsontext.members(body) if name == "objects"]
    if not arrays:
        raise InvalidRequest("objects: missing")
    if len(arrays) > 1:
        raise InvalidJson("objects: given twice")
    if not arrays[0].startswith(b"["):
        raise InvalidRequest("objects: expected an array")
    return list(map(Raw, jsontext.elements(arrays[0])))


def _new_entry(text: Raw, in_range: bool) -> tuple[str, NewEntry]:
    """What to append, and its id. `in_range`: no number in the text needs a look."""
    data = str(text, "utf-8")
    if not in_range or data.count("[") + data.count("{") > jsontext.NESTING_MAX:
        jsontext.check(data.encode())
    if data[0] != "{":
        raise InvalidRequest("expected an object")
    object_id, type_name = _own_names(text, data)
    if object_id is UNSET:
        raise InvalidRequest(".id: missing")
    if not isinstance(object_id, str):
        raise InvalidRequest(".id: expected a string")
    if not is_ulid(object_id):
        raise InvalidId(f".id: {shown(object_id)} is not a ULID")
    if "queue-position" in data or _is_escaped(data):
        data = _stripped(data)
    # At most four bytes a character, so most texts need not be measured.
    if len(data) > ENTRY_BYTES_MAX // 4 and (size := len(data.encode())) > ENTRY_BYTES_MAX:
        raise TooLarge(f"{size} bytes, at most {ENTRY_BYTES_MAX}")
    return object_id, NewEntry(data, object_id, _checked_type(type_name))


def _own_names(text: Raw, data: str) -> tuple[Any, Any]:
    """`id` and `@type`, whatever they are; UNSET: no id. Raises InvalidJson where a name comes twice."""
    if not (
        data.count('"id"') > 1 or data.count('"@type"') > 1 or data.count('"@meta"') > 1 or _is_escaped(data)
    ):
        try:
            named = _NAMED.decode(text)
        except msgspec.DecodeError:
            pass  # half a surrogate pair somewhere
        else:
            return named.id, named.type
    found = jsontext.members(data.encode())
    names = [name for name, _ in found]
    for name in _ONCE:
        if names.count(name) > 1:
            raise InvalidJson(f".{name}: given twice")
    values = dict(found)
    own_id = _string(values["id"]) if "id" in values else UNSET
    return own_id, _string(values.get("@type", b"null"))


def _string(value: bytes) -> Any:
    return json.loads(value) if value.startswith(b'"') else None


def _checked_type(name: Any) -> str | None:
    if not isinstance(name, str):
        return None
    try:
        return check_type(name)
    except InvalidId as error:
        raise InvalidId(f".@type: {error.detail}") from None


# Finding the position keys, and cutting them out.


def _is_escaped(data: str) -> bool:
    """May a name of ours be written in escapes?"""
    return "\\" in data and "\\u00" in data and _ASCII_ESCAPE.search(data) is not None


def _form(made: str) -> str:
    """The pattern of a splice of ours, whatever the position in it."""
    return re.escape(made).replace("%d", "[0-9]+")


_META_FORM = re.compile(_form(_META_MADE))
_KEYS_FORM = re.compile(_form(_KEYS_MADE).encode() + rb"(?:,|(?=[ \t\n\r]*\}))")


def _stripped(data: str) -> str:
    """An object without position keys: what it was before `render` spliced them in."""
    text = data.encode()
    members = jsontext.spans(text)
    meta = _last(members, "@meta")
    if meta is None:
        return data
    if meta is members[0] and (made := _META_FORM.match(data)):
        return "{" + data[made.end() :]
    value = text[meta.start : meta.end]
    return _replaced(text, meta, _meta_stripped(value)).decode() if value.startswith(b"{") else data


def _meta_stripped(meta: bytes) -> bytes:
    members = jsontext.spans(meta)
    keys = _last(members, "keys")
    if keys is None:
        return meta
    if keys is members[0] and (made := _KEYS_FORM.match(meta)):
        return b"{" + meta[made.end() :]
    value = meta[keys.start : keys.end]
    return _replaced(meta, keys, _keys_stripped(value)) if value.startswith(b"[") else meta


def _keys_stripped(keys: bytes) -> bytes:
    """An array without its position keys, each cut out with the comma before it, the first ones with that behind."""
    elements = jsontext.spans(keys)
    if not elements:
        return keys
    end = start = elements[0].start
    kept: list[bytes] = []
    for one in elements:
        if not _is_position(keys[one.start : one.end]):
            kept.append(keys[end if kept else one.start : one.end])
        end = one.end
    return keys[:start] + b"".join(kept) + keys[end:]


def _is_position(key: bytes) -> bool:
    if not key.startswith(b"{"):
        return False
    try:
        source = _KEY_SOURCE.decode(key).source
    except msgspec.DecodeError:  # half a surrogate pair somewhere
        source = _string(dict(jsontext.members(key)).get("source", b"null"))
    return source in (_NEWER, _OLDER)


def _last(members: list[Span], name: str) -> Span | None:
    """The member that counts for a client: of equal names the last."""
    return next((one for one in reversed(members) if one.name == name), None)


def _replaced(text: bytes, at: Span, value: bytes) -> bytes:
    return text[: at.start] + value + text[at.end :]


# Splicing them in.


def _render_carefully(entry: Entry) -> bytes:
    """`render` for any object, however it is written."""
    data, object_id = entry.data, entry.id.encode()
    if "queue-position" in data or _is_escaped(data):
        data = _stripped(data)
    text = data.encode()
    members = jsontext.spans(text)
    own = _last(members, "id")
    if own is None:
        return b'{"id":"%b",%b' % (object_id, _with_position(text, members, entry.position)[1:])
    if _string(text[own.start : own.end]) != entry.id:
        text = _replaced(text, own, b'"%b"' % object_id)
        members = jsontext.spans(text)
    return _with_position(text, members, entry.position)


def _with_position(text: bytes, members: list[Span], position: int) -> bytes:
    """An object without position keys, with them. An `@meta` that is no object, or `keys` that are no array, go."""
    both = (position, position)
    meta = _last(members, "@meta")
    if meta is None:
        made = (_META_MADE % both).encode()
        return made + text[1:] if members else made[:-1] + text[1:]
    value = text[meta.start : meta.end]
    if not value.startswith(b"{"):
        value = b"{}"
    inner = jsontext.spans(value)
    keys = _last(inner, "keys")
    if keys is None:
        value = (_KEYS_MADE % both).encode() + (b"," if inner else b"") + value[1:]
    else:
        value = _replaced(value, keys, _with_keys(value[keys.start : keys.end], _APPENDED % both))
    return _replaced(text, meta, value)


def _with_keys(array: bytes, keys: str) -> bytes:
    if not array.startswith(b"["):
        array = b"[]"
    elements = jsontext.spans(array)
    at = elements[-1].end if elements else 1
    return b"%b%b%b%b" % (array[:at], b"," if elements else b"", keys.encode(), array[at:])
