from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from edgequeues.client import BadAnswer
from edgequeues.client.text import Text, encode


class Holder(Struct):
    data: Raw
    n: int = 0


@dataclass
class Point:
    x: int


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)
any_characters = st.text(st.characters(exclude_categories=()))


@given(values)
def test_what_is_encoded_decodes_to_the_same_value(value: object) -> None:
    assert json.loads(encode(value)) == value


@given(any_characters)
def test_text_with_lone_surrogates_is_encoded_as_escapes(value: str) -> None:
    assert json.loads(encode(value)) == value


def test_structs_dataclasses_and_datetimes_have_a_json_form() -> None:
    when = datetime(2024, 1, 2, tzinfo=UTC)
    assert encode({"p": Point(1), "at": when}) == b'{"p":{"x":1},"at":"2024-01-02T00:00:00Z"}'


@pytest.mark.parametrize(
    "raw", [b' { "a" :\n1 } ', b"1e5", b'"\\ud800"', b"[]", b"123456789012345678901234567890"]
)
def test_bytes_are_kept_as_they_are(raw: bytes) -> None:
    assert encode(raw) == raw


@pytest.mark.parametrize(
    "bad", [b"", b"{", b"1 2", b'1},{"data":2', b"\xff", float("nan"), float("inf"), b"[" * 100_000]
)
def test_what_is_not_one_json_text_is_refused(bad: object) -> None:
    with pytest.raises(ValueError):
        encode(bad)


def test_what_has_no_json_form_is_refused() -> None:
    with pytest.raises(TypeError):
        encode({"f": print})


@given(any_characters)
def test_raw_fields_come_out_byte_for_byte_even_with_lone_surrogates(value: str) -> None:
    raw = json.dumps(value).encode()
    text = Text(b'{"n":7,"data":' + raw + b"}")
    holder = text.decode(Holder)
    assert (text.raw(holder.data), holder.n) == (raw, 7)


def test_an_escaped_backslash_before_ud_is_no_surrogate_and_marks_in_the_text_survive() -> None:
    raw = rb'"\\ud800 <u0> <u1> \ud800 \"\udfff"'
    text = Text(b'{"data":' + raw + b"}")
    assert text.raw(text.decode(Holder).data) == raw


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"data":1,"n":"x"}', b'{"n":1}', b'{"data":"\\ud800}'])
def test_an_answer_that_does_not_fit_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        Text(body).decode(Holder)
