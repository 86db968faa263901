from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import forms
from edgequeues.core.errors import InvalidRequest
from tests.core.captures import capture

INNER = '{"a":  "caf\u00e9 + 100% & \U0001f525", "n": 1.0}'

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
fields = st.lists(st.tuples(texts, texts), max_size=8)


@given(fields)
def test_what_was_coded_comes_back(wanted: list[tuple[str, str]]) -> None:
    """But pairs of nothing with nothing: `=` alone is one, and the standard library's form of it."""
    assert forms.pairs(urlencode(wanted).encode()) == wanted


@given(st.lists(st.sampled_from([*"ab&=+;", "%41", "%C3%A9", "%2B", "\u00e9", "\x00", "\n"])).map("".join))
def test_a_form_says_what_the_standard_library_reads_in_it(text: str) -> None:
    expected = parse_qsl(text, keep_blank_values=True, errors="strict")
    assert forms.pairs(text.encode()) == expected


@given(st.binary(max_size=30))
def test_any_bytes_are_a_form_or_refused_with_the_byte(body: bytes) -> None:
    try:
        found = forms.pairs(body)
    except InvalidRequest as error:
        refusal = error
    else:
        assert len(found) == len([part for part in body.split(b"&") if part])
        return
    assert re.search(r"byte \d+", refusal.detail)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"a=%", "byte 2: % without"),
        (b"a=1&b=%4", "byte 6: % without"),
        (b"a=%zz", "byte 2: % without"),
        (b"a=%u00e9", "byte 2: % without"),
        (b"%=1", "byte 0: % without"),
        (b"a=1&b=caf%e9", "what starts at byte 6 is not UTF-8"),
        (b"a=1&\xe9=1", "what starts at byte 4 is not UTF-8"),
        (b"a=%ed%a0%80", "what starts at byte 2 is not UTF-8"),
    ],
)
def test_what_is_no_text_is_refused_where_it_is(body: bytes, detail: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        forms.pairs(body)
    assert detail in caught.value.detail


def test_a_form_has_so_many_fields_and_no_more() -> None:
    most = b"&".join([b"a=1"] * forms.PAIRS_MAX)
    assert len(forms.pairs(most)) == forms.PAIRS_MAX
    for body in (most + b"&a=1", b"&" * 1_000_000):
        with pytest.raises(InvalidRequest, match="1000 "):
            forms.pairs(body)


@pytest.mark.parametrize("rule", ["payload", "either"])
@pytest.mark.parametrize(
    "body",
    [
        urlencode({"payload": INNER}),
        urlencode({"payload": INNER}).replace("+", "%20"),
        urlencode({"extra": "1", "payload": INNER, "other": '{"b": 2}'}),
        urlencode({"payload": INNER}).lower().replace("payload", "%70ayload"),
    ],
)
def test_wh_s05_the_json_in_the_field_payload_comes_out_byte_for_byte(
    rule: forms.FormRule, body: str
) -> None:
    assert forms.payload(body.encode(), rule) == INNER.encode()


def test_wh_s05_without_the_field_payload_a_form_of_json_is_refused() -> None:
    for body in (b"", b"a=1", b"Payload={}", b"a=payload"):
        with pytest.raises(InvalidRequest, match="no field payload"):
            forms.payload(body, "payload")


@pytest.mark.parametrize("rule", ["payload", "either"])
def test_wh_s05_the_field_payload_given_twice_is_refused(rule: forms.FormRule) -> None:
    with pytest.raises(InvalidRequest, match="payload is given 2 times"):
        forms.payload(b"payload={}&payload={}", rule)


def test_wh_s05_what_is_in_the_field_is_not_judged_here() -> None:
    assert forms.payload(b"payload=%7Bx", "payload") == b"{x"
    assert forms.payload(b"payload=", "payload") == b""


@pytest.mark.parametrize("body", [b"payload=7&a=1", b"payload=&a=1", b"payload=ok&a=1"])
def test_wh_s05_a_field_payload_without_an_object_or_array_is_one_of_the_fields(body: bytes) -> None:
    found = forms.payload(body, "either")
    assert isinstance(found, dict)
    assert list(found) == ["payload", "a"]


def test_fields_are_texts_in_their_order_and_lists_where_they_repeat() -> None:
    found = forms.payload(b"b=2&a=1&b=1&c&payload=%5B%5D", "fields")
    assert found == {"b": ["2", "1"], "a": "1", "c": "", "payload": "[]"}
    assert isinstance(found, dict)
    assert list(found) == ["b", "a", "c", "payload"]


def test_a_form_of_twilio_keeps_plus_signs_and_empty_fields() -> None:
    found = forms.payload(capture("twilio").request.body, "fields")
    assert isinstance(found, dict)
    assert (found["From"], found["ToState"]) == ("+15550100001", "")
    assert found["Body"] == "Hi \U0001f600 100% + sure & caf\u00e9"
    assert json.loads(json.dumps(found)) == found
