"""Random objects of DXOS clients and of others: read back they are what was stored, whatever their shape."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import event, example, given
from hypothesis import strategies as st

from edgequeues.http import dxos_objects

from .test_dxos_objects import APPENDED, ID, MADE, NEWER, OLDER, one, shown, stored

blanks = st.sampled_from(["", " ", "\n", " \t"])


@st.composite
def joined(draw: st.DrawFn, brackets: str, parts: list[str], compact: bool) -> str:
    """The parts with commas between, in brackets, with blanks anywhere unless `compact`."""
    gaps = st.just("") if compact else blanks
    inside = ",".join(draw(gaps) + part + draw(gaps) for part in parts) or draw(gaps)
    return brackets[0] + inside + brackets[1]


def array(parts: list[str], compact: bool) -> st.SearchStrategy[str]:
    return joined("[]", parts, compact)


def record(pairs: list[tuple[str, str]], compact: bool) -> st.SearchStrategy[str]:
    colons = st.just(":") if compact else st.sampled_from([":", " : "])
    return colons.flatmap(lambda colon: joined("{}", [f'"{n}"{colon}{v}' for n, v in pairs], compact))


calm = st.sampled_from(["", "a", '\\"@meta\\":{\\"keys\\":[', "é", "]}", "\\u0000"])
texts = calm | st.sampled_from(["\\ud83d", "\\u0041", "queue-position"])
names = st.sampled_from(["a", "keys", "é", "@future", "@metà"])
odd_names = names | st.sampled_from(["\\u0041", 'i\\"d', "\\ud83d"])
sources = st.sampled_from(["github.com", ""])
odd_sources = sources | st.sampled_from([NEWER, OLDER, OLDER.replace("/", "\\/"), "org\\u002edxos"])


def scalars(tricky: bool) -> st.SearchStrategy[str]:
    return (texts if tricky else calm).map('"{}"'.format) | st.sampled_from(["0", "1.0", "null", "[]", "{}"])


def seldom(tricky: bool) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 0, 0, 1]) if tricky else st.just(0)


@st.composite
def keys(draw: st.DrawFn, compact: bool, tricky: bool) -> str:
    found = []
    for source in draw(st.lists(odd_sources if tricky else sources, max_size=4)):
        pairs = [("source", f'"{source}"'), ("id", draw(st.sampled_from(['"7"', '"1"'])))]
        found.append(draw(record(draw(st.permutations(pairs)) if tricky else pairs, compact)))
    if draw(seldom(tricky)):
        found.insert(0, draw(scalars(tricky)))
    return draw(array(found, compact))


@st.composite
def metas(draw: st.DrawFn, compact: bool, tricky: bool, odd: bool) -> str:
    """`odd`: perhaps no object, or its keys no array."""
    if odd and draw(seldom(tricky)):
        return draw(scalars(tricky))
    pairs = [("tags", draw(scalars(tricky))) for _ in range(draw(seldom(tricky)))]
    for _ in range(draw(st.sampled_from([0, 1, 1, 2] if tricky else [1]))):
        value = draw(scalars(tricky) if odd and draw(seldom(tricky)) else keys(compact, tricky))
        pairs.append(("\\u006beys" if draw(seldom(tricky)) else "keys", value))
    return draw(record(pairs, compact))


@st.composite
def datas(draw: st.DrawFn, *, native: bool = False) -> str:
    """The text of an object with the id ID. `native`: with anything in it that the native protocol takes."""
    compact, tricky = draw(st.booleans()), draw(st.booleans())
    some = seldom(tricky)
    pairs = [("\\u0069d" if draw(some) else "id", f'"{ID}"')]
    if native and draw(some):
        pairs = draw(st.sampled_from([[], [("id", "1")], [("id", "null")]]))
    pairs += [("@type", '"T"')] * draw(st.integers(0, 1))
    pairs += [("@relationSource", '"x"'), ("@relationTarget", '"y"')] * draw(st.integers(0, 1))
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2] if native else [0, 1]))):
        pairs.append(("\\u0040meta" if draw(some) else "@meta", draw(metas(compact, tricky, odd=native))))
    nested = metas(compact, tricky, odd=True).map('{{"@meta":{},"id":1}}'.format)
    inner = scalars(tricky) | nested if tricky else scalars(tricky)
    pairs += draw(st.lists(st.tuples(odd_names if tricky else names, inner), max_size=3))
    if tricky:
        pairs = draw(st.permutations(pairs))
    return draw(record(pairs, compact))


def positions(text: str) -> int:
    """How many position keys a client finds in `@meta.keys`."""
    meta = json.loads(text).get("@meta")
    found = meta.get("keys", []) if isinstance(meta, dict) else []
    return sum(isinstance(key, dict) and key.get("source") in (NEWER, OLDER) for key in found)


@given(datas())
@example(f'{{"@meta":{{"keys":[]}},"id":"{ID}"}}')
@example(f'{{"@meta":{{}},"id":"{ID}"}}')
@example(f'{{"@meta":{{"keys": []}},"id":"{ID}"}}')
@example(f'{{"@meta":{{ "a":1}},"id":"{ID}"}}')
def test_what_was_read_and_is_inserted_again_is_what_was_stored(text: str) -> None:
    first = one(text)
    assert positions(first.data) == 0
    if positions(text) == 0:
        event("kept byte for byte")
        assert first.data == text
    for position in (0, 7, 10**18):
        rendered = dxos_objects.render(stored(first.data, position=position))
        assert rendered is not None
        assert one(rendered.decode()) == first


@given(datas(native=True))
@example(f'{{"@meta":{{"keys":[{MADE}]}},"@meta":{{"keys":[{APPENDED}]}},"id":"{ID}"}}')
def test_what_is_shown_says_what_was_stored_and_the_position(text: str) -> None:
    expected: dict[str, Any] = json.loads(text)
    meta = expected.pop("@meta", None)
    meta = meta if isinstance(meta, dict) else {}
    own = meta.pop("keys", None)
    kept = [
        key
        for key in (own if isinstance(own, list) else [])
        if not (isinstance(key, dict) and key.get("source") in (NEWER, OLDER))
    ]
    found = json.loads(shown(text))
    found_meta = found.pop("@meta")
    found_keys = found_meta.pop("keys")
    assert found_keys[:-2] == kept
    assert sorted(key["source"] for key in found_keys[-2:]) == sorted([NEWER, OLDER])
    assert [key["id"] for key in found_keys[-2:]] == ["7", "7"]
    assert found_meta == meta
    assert found == {**expected, "id": ID}


@given(datas(native=True))
def test_the_quick_way_and_the_careful_way_show_the_same(text: str) -> None:
    entry = stored(text)
    assert dxos_objects.render(entry) == dxos_objects._render_carefully(entry)
