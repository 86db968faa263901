"""Query parameters are read strictly: what is not understood is refused by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edgequeues.core.errors import InvalidRequest
from edgequeues.http import params
from edgequeues.http.params import Query


def test_a_query_is_decoded_and_keeps_repeats_in_order() -> None:
    assert params.parse(b"a=1&b=%C3%A9+x&a=2&c&&d=") == {
        "a": ["1", "2"],
        "b": ["\u00e9 x"],
        "c": [""],
        "d": [""],
    }


@pytest.mark.parametrize("text", [b"a=%FF", b"%FF=a", b"a=\xff", b"&".join([b"a=1"] * 2_001)])
def test_a_query_that_is_not_utf8_or_endless_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        params.parse(text)


def test_an_unknown_parameter_is_named_and_cut() -> None:
    with pytest.raises(InvalidRequest, match="unknown parameter 'lmit'"):
        params.only(params.parse(b"limit=1&lmit=1"), ("limit",))
    with pytest.raises(InvalidRequest) as caught:
        params.only({"x" * 10_000: ["1"]}, ())
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(("text", "value"), [(b"", None), (b"n=1", 1), (b"n=10", 10), (b"n=007", 7)])
def test_a_whole_number_within_bounds_is_read(text: bytes, value: int | None) -> None:
    assert params.integer(params.parse(text), "n", low=1, high=10) == value


@pytest.mark.parametrize(
    "text", ["0", "11", "-1", "+1", "1.0", "1e1", "", "x", "\u0661", "9" * 5_000, "1_0", " 1"]
)
def test_any_other_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^n must"):
        params.integer({"n": [text]}, "n", low=1, high=10)


@pytest.mark.parametrize(("text", "value"), [(b"", 0.0), (b"w=60", 60.0), (b"w=0", 0.0), (b"w=0.25", 0.25)])
def test_seconds_may_have_a_fraction(text: bytes, value: float) -> None:
    assert params.seconds(params.parse(text), "w", high=60) == value


@pytest.mark.parametrize("text", ["60.1", "61", "-1", "1e1", "inf", "nan", "", ".5", "5.", "1.2.3", "\u0661"])
def test_other_seconds_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^w must"):
        params.seconds({"w": [text]}, "w", high=60)


def test_a_flag_is_true_or_false() -> None:
    assert params.flag(params.parse(b"f=true"), "f")
    assert not params.flag(params.parse(b"f=false"), "f")
    assert not params.flag({}, "f")
    with pytest.raises(InvalidRequest, match="f must be true or false"):
        params.flag(params.parse(b"f=1"), "f")


def test_many_values_may_be_repeated_or_joined() -> None:
    assert params.many(params.parse(b"id=a,b&id=c"), "id", count_max=3) == ("a", "b", "c")
    assert params.many({}, "id", count_max=3) == ()
    for text in (b"id=", b"id=a,,b", b"id=a,b,c,d"):
        with pytest.raises(InvalidRequest, match=r"^id "):
            params.many(params.parse(text), "id", count_max=3)


@pytest.mark.parametrize(
    "read",
    [
        lambda query: params.text(query, "p"),
        lambda query: params.integer(query, "p"),
        lambda query: params.seconds(query, "p", high=9),
        lambda query: params.flag(query, "p"),
    ],
)
def test_a_single_parameter_given_twice_is_refused(read: Callable[[Query], object]) -> None:
    with pytest.raises(InvalidRequest, match="p is given more than once"):
        read({"p": ["1", "1"]})


def test_an_empty_or_endless_text_is_refused() -> None:
    for text in ("", "x" * 4_097):
        with pytest.raises(InvalidRequest, match="p must have 1 to 4096 characters"):
            params.text({"p": [text]}, "p")
