from __future__ import annotations

import json
import re
from math import isinf
from typing import Any, NoReturn

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidJson

# Pieces from which random texts are glued: most are invalid, and near misses are many.
NUMBERS = """0 1 -1 -0 01 1. .5 1.5 1e5 1E+5 1e-5 1e400 -1e999 1e-400 0e999 1e308 1e309 - + e 5e"""
WORDS = """true false null tru NaN Infinity -Infinity nul"""
STRINGS = r"""
"" "a" "id" "@type" "\n" "\u0000" "\ud83d" "\uDE00" "\ud83d\ude00" "\x" "\" "1e400" "[" "]" "\"" "\\" "\\\"["
"""
PARTS = r"""\" \\ \ud83d \uDE00 \u00 \ [ ] { } : , " [1,2] {"a":1} {"a":{"b":[]}} "a": , :"""
CHARACTERS = [" ", "\n", "\t", "\x00", "\x1f", "\x7f", "\ufeff", "\u2028", "é"]
PIECES = [*f"{NUMBERS} {WORDS} {STRINGS} {PARTS}".split(), *CHARACTERS]
glued = st.lists(st.sampled_from(PIECES), max_size=12).map(lambda pieces: "".join(pieces).encode())

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=[])),  # halves of pairs too
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def finite(number: str) -> float:
    if isinf(float(number)):
        raise ValueError(number)
    return float(number)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


def oracle(text: bytes) -> Any:
    """What the text says. Raises ValueError unless it is one to accept."""
    value = json.loads(text.decode(), parse_constant=refuse, parse_float=finite, parse_int=finite)
    if depth(value) > 64:
        raise ValueError("nesting")
    return value


def accepted(text: bytes) -> bool:
    try:
        jsontext.check(text)
    except InvalidJson as error:
        refusal = error
    else:
        return True
    at = re.match(r"byte (\d+): .", refusal.detail)
    assert at
    assert int(at[1]) <= len(text)
    return False


def expected(text: bytes) -> bool:
    try:
        oracle(text)
    except ValueError:
        return False
    return True


@given(glued)
@example(b'"\\ud83dx\\ude00"')
@example(b'"\\ud83d\\n\\ude00"')
@example(b'["\\ud83d", NaN]')
@example(b'["\\ud83d", "NaN"]')
@example(b'["\\\\", 1e400]')
@example(b'["\\\\\\"", 1e400]')
@example(b"1\x00")
def test_what_is_accepted_is_what_the_standard_library_accepts(text: bytes) -> None:
    assert accepted(text) == expected(text)


@given(st.binary(max_size=20) | st.binary(max_size=20).map(lambda raw: b'"' + raw + b'"'))
def test_bytes_are_accepted_only_where_they_are_json_in_utf_8(text: bytes) -> None:
    assert accepted(text) == expected(text)


@given(values, st.booleans(), st.sampled_from([None, 1]))
def test_every_value_is_accepted_however_it_is_written(
    value: Any, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode(errors="replace")
    assert accepted(text)


@given(st.data())
def test_one_changed_byte_is_judged_like_the_standard_library_does(data: st.DataObject) -> None:
    text = bytearray(json.dumps(data.draw(values)).encode())
    at = data.draw(st.integers(0, len(text) - 1))
    text[at] = data.draw(st.sampled_from(b'[]{}:,"\\0159eE.-+ \n\x00\xff\xc3nulaNtdD'))
    assert accepted(bytes(text)) == expected(bytes(text))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (b"", "byte 0: "),
        (b"[1,]", "byte [23]: "),
        (b'{"a" 1}', "byte 5: "),
        (b"1 2", "byte 2: extra data"),
        (b'["\xff"]', "byte 2: not UTF-8"),
        (b'["\xed\xa0\x80"]', "byte 2: not UTF-8"),
        (b"\xef\xbb\xbf1", "byte 0: a byte order mark"),
        (b"[1, NaN]", "byte 4: NaN is not JSON"),
        (b'["NaN", "\\"", -Infinity]', "byte 15: Infinity is not JSON"),
        ('["é", x]'.encode(), "byte 7: "),
        ('["é", 1e400]'.encode(), "byte 7: number beyond double range"),
        (b"[" * 65 + b"]" * 65, "byte 64: nested more than 64 deep"),
        (b'["[", ' + b"[" * 65 + b"]" * 66, "byte 69: nested more than 64 deep"),
    ],
)
def test_a_refusal_names_the_byte_and_what_is_wrong(text: bytes, detail: str) -> None:
    with pytest.raises(InvalidJson, match=f"^{detail}"):
        jsontext.check(text)


def test_oq_s06_numbers_of_any_length_pass_within_double_range() -> None:
    jsontext.check(
        b'{"id": 731094455820113921, "neg": -9223372036854775808, '
        b'"big": 123456789012345678901234567890, "f": 1.0, "tiny": 1e-400}'
    )
    jsontext.check(b"9" * 308)
    jsontext.check(b"-" + b"9" * 308)
    jsontext.check(b"0." + b"9" * 5_000)
    jsontext.check(b"0." + b"0" * 5_000 + b"1e5000")
    jsontext.check(b"1e-" + b"9" * 5_000)
    jsontext.check(b"1.7976931348623157e308")
    jsontext.check(b"9" * 250 + b"e-99")
    jsontext.check(b'["1e400", "' + b"9" * 400 + b'", "\\"", "1e999"]')


@pytest.mark.parametrize(
    "number",
    [
        *(
            "1e400",
            "-1e400",
            "1E+400",
            "1e0400",
            "1.8e308",
            "1.7976931348623159e308",
            "0.1e310",
            "1234.5e306",
        ),
        *("9" * 309, "9" * 5_000, "-" + "9" * 5_000, "9" * 400 + ".5", "9" * 220 + "e99"),
        "1e" + "0" * 300 + "400",
    ],
)
def test_oq_s06_a_number_beyond_double_range_is_refused(number: str) -> None:
    inner = [f"[{number}]", f'{{"a":"\\\\","b":{number}}}', f'["{number}",{number} ]', f'{{"a":{number}\n}}']
    for text in [number, f" {number}\n", *inner, f'["\\ud83d",{number}]']:
        with pytest.raises(InvalidJson, match="number beyond double range"):
            jsontext.check(text.encode())


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,330})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,4})?", fullmatch=True))
def test_oq_s06_the_range_is_judged_exactly(number: str) -> None:
    for text in (number, f"[{number}]", f'{{"a":"x","b":{number}}}'):
        assert accepted(text.encode()) == (not isinf(float(number)))


def test_oq_s07_halves_of_surrogate_pairs_are_json() -> None:
    for text in (r'{"t":"cut \ud83d here"}', r'{"\uDC00":1}', r'"\ud83d"', r'["\ud83d\ud83d\ude00"]'):
        jsontext.check(text.encode())
    with pytest.raises(InvalidJson, match=r"^byte 10: "):
        jsontext.check(rb'["\ud83d",x]')


def test_oq_s08_a_nul_escape_is_json_and_a_nul_byte_is_not() -> None:
    jsontext.check(rb'{"a":"x\u0000y","b":1}')
    for text in (b'{"a":"x\x00y"}', b'{"a":1}\x00', b"\x00"):
        with pytest.raises(InvalidJson):
            jsontext.check(text)


@pytest.mark.parametrize("half", ["", r'"\ud83d",'])
def test_64_levels_are_accepted_and_65_are_not(half: str) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}"), ('[{"[[[\\"":', "}]")):
        levels = 1 if closing != "}]" else 2
        for extra, fine in ((0, True), (1, False)):
            times = 64 // levels - 1 + extra  # the array around is a level too, or two
            text = f"[{half}{'[' * (levels - 1)}{opening * times}1{closing * times}{']' * (levels - 1)}]"
            assert accepted(text.encode()) is fine


@pytest.mark.parametrize("bomb", [b"[" * 1_000_000, b'{"":' * 200_000, b'["\\ud83d",' * 200_000])
def test_a_nesting_bomb_is_a_refusal_like_any_other(bomb: bytes) -> None:
    for read in (jsontext.check, jsontext.members, jsontext.elements):
        with pytest.raises(InvalidJson, match="nested more than 64 deep"):
            read(bomb)


def test_wide_is_not_deep() -> None:
    jsontext.check(b"[" + b'{"a":[]},' * 1_000 + b'"[[[[[[[[{{{{"]')
    jsontext.check(b'["' + b"[" * 1_000 + b'", "\\"' + b"{" * 1_000 + b'"]')


def test_members_are_slices_in_order_with_duplicates() -> None:
    text = rb' { "a" :  1.0 , "b":{"a": [ 1 ,2]},"a":"\u0041" , "\u0061":1e5}'
    assert jsontext.members(text) == [
        ("a", b"1.0"),
        ("b", b'{"a": [ 1 ,2]}'),
        ("a", rb'"\u0041"'),
        ("a", b"1e5"),
    ]


def test_members_and_elements_survive_halves_of_pairs() -> None:
    text = rb'{ "\ud83d" : "\udc00" , "b":[ "\ud83d" , {"c": 1} ]}'
    found = jsontext.members(text)
    assert found == [("\ud83d", rb'"\udc00"'), ("b", rb'[ "\ud83d" , {"c": 1} ]')]
    assert jsontext.elements(found[1][1]) == [rb'"\ud83d"', b'{"c": 1}']


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=[]), max_size=3), values)), st.booleans())
def test_members_are_what_the_standard_library_reads(pairs: list[tuple[str, Any]], spaced: bool) -> None:
    comma, colon = (" , ", " : ") if spaced else (",", ":")
    text = "{" + comma.join(f"{json.dumps(n)}{colon}{json.dumps(v)}" for n, v in pairs) + "}"
    assert jsontext.members(text.encode()) == [(name, json.dumps(value).encode()) for name, value in pairs]


@given(st.lists(values))
def test_elements_are_what_the_standard_library_reads(items: list[Any]) -> None:
    assert jsontext.elements(json.dumps(items).encode()) == [json.dumps(item).encode() for item in items]


@given(st.lists(st.tuples(st.text(st.characters(exclude_categories=[]), max_size=3), values)), st.booleans())
def test_spans_are_where_members_and_elements_are(pairs: list[tuple[str, Any]], spaced: bool) -> None:
    comma, colon = (" ,\n", "\t: ") if spaced else (",", ":")
    written = [(json.dumps(name), json.dumps(value)) for name, value in pairs]
    record = (" { " + comma.join(f"{name}{colon}{value}" for name, value in written) + " } ").encode()
    array = (" [ " + comma.join(value for _, value in written) + " ] ").encode()
    assert [(s.name, record[s.start : s.end]) for s in jsontext.spans(record)] == jsontext.members(record)
    assert [array[s.start : s.end] for s in jsontext.spans(array)] == jsontext.elements(array)
    assert all(span.name == "" for span in jsontext.spans(array))


@pytest.mark.parametrize("text", [b"1", b"", b"{", b"[1", b'{"a":NaN}', b'["\xff"]', b'"[]"'])
def test_spans_need_an_object_or_an_array(text: bytes) -> None:
    with pytest.raises(InvalidJson, match=r"^byte "):
        jsontext.spans(text)


@given(glued)
def test_members_are_refused_or_exact(text: bytes) -> None:
    try:
        found = jsontext.members(text)
    except InvalidJson:
        return
    assert dict(json.loads(text.decode())).keys() == {name for name, _ in found}
    assert all(value in text and json.loads(value.decode()) is not ... for _, value in found)


@pytest.mark.parametrize(
    "text", [b"[1]", b"1", b'"{}"', b"null", b"", b"{", b'{"a":1}x', b'{"a":NaN}', b'{"\xff":1}']
)
def test_members_need_one_valid_object(text: bytes) -> None:
    with pytest.raises(InvalidJson, match=r"^byte "):
        jsontext.members(text)


@pytest.mark.parametrize("text", [b'{"a":1}', b"1", b"", b"[", b"[1]x", b"[NaN]", b'["\xff"]'])
def test_elements_need_one_valid_array(text: bytes) -> None:
    with pytest.raises(InvalidJson, match=r"^byte "):
        jsontext.elements(text)


@given(glued)
def test_a_text_in_range_holds_no_number_out_of_it(text: bytes) -> None:
    if not expected(text):
        return
    assert jsontext.in_range(text) or b"e" in text.lower()


def test_hashes_need_no_closer_look() -> None:
    assert jsontext.in_range(b'["9e1234f", "0e462097431906509019562988736854", "1E100"]')
    assert not jsontext.in_range(b"[1e100]")
