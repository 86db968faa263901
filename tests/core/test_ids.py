from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import ids
from edgequeues.core.errors import InvalidId

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
HEX = "0123456789abcdef0123456789ABCDEF"
NOT_PRINTABLE = ["\x00", "\n", "\x1f", "\x7f", "\x85", "\x9f", "\ud800", "\udfff"]

Check = Callable[[str], str]


def test_a_ulid_tells_its_millisecond_and_its_random_bits() -> None:
    made = ids.new_ulid(1_469_918_176_385, Random(7))
    fives = ["0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(char) for char in made]
    assert sum(five << 5 * place for place, five in enumerate(fives[9::-1])) == 1_469_918_176_385
    assert fives[10:] == [byte & 31 for byte in Random(7).randbytes(16)]
    assert made.startswith("01ARYZ6S41")


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1), st.randoms(use_true_random=False))
def test_ulids_are_ulids_and_sort_by_millisecond(one_ms: int, other_ms: int, random: Random) -> None:
    one, other = ids.new_ulid(one_ms, random), ids.new_ulid(other_ms, random)
    assert ids.is_ulid(one)
    assert ids.is_ulid(one.lower())
    if one_ms != other_ms:
        assert (one < other) == (one_ms < other_ms)


def test_one_seed_gives_the_same_ulids_and_no_two_alike() -> None:
    first, second = Random(1), Random(1)
    made = [ids.new_ulid(0, first) for _ in range(1_000)]
    assert made == [ids.new_ulid(0, second) for _ in range(1_000)]
    assert len(set(made)) == 1_000


@given(st.integers(0, 2**48 - 1), st.integers(0, 20), st.integers())
def test_ulids_made_at_once_are_as_many_and_no_two_alike(now_ms: int, number: int, seed: int) -> None:
    made = ids.new_ulids(now_ms, number, Random(seed))
    assert len(set(made)) == len(made) == number
    assert all(ids.is_ulid(one) for one in made)
    assert {one[:10] for one in made} <= {ids.new_ulid(now_ms, Random(seed))[:10]}


@pytest.mark.parametrize(
    "text",
    ["", ULID[:-1], ULID + "0", ULID + "\n", "8" + ULID[1:], "I" + ULID[1:]]
    + [ULID[:-1] + char for char in "ILOUilou-\u0661\u212a\u017f"],
)
def test_what_is_not_quite_a_ulid_is_none(text: str) -> None:
    assert not ids.is_ulid(text)


def test_each_kind_gives_back_what_it_accepts() -> None:
    accepted: list[tuple[Check, list[str]]] = [
        (ids.check_space, ["a", "0", "A_-", "B" + "A2" * 16, "x" * 64, ULID, HEX]),
        (ids.check_queue, ["a", "jobs-2_x", "x" * 128, ULID, ULID.lower()]),
        (ids.check_name, ["a", "jobs-2_x", "x" * 128, HEX[:-1], HEX + "0", ULID[:-1]]),
        (ids.check_object_id, ["a", ".", "~", "-", "_", "..", "a.b~c", "x" * 128, ULID, HEX]),
        (ids.check_actor, ["a", "-", "0a1b2c3d", "x" * 32]),
        (ids.check_type, ["a", " ", "dxn:type:example.com/type/Task", "é", "\U0001f600", "x" * 512]),
        (ids.check_key, ["a", " ", "customer 1", "é", "\xa0", "\U0001f600" * 256]),
    ]
    for check, texts in accepted:
        assert [check(text) for text in texts] == texts


@pytest.mark.parametrize(
    ("check", "refused"),
    [
        (ids.check_space, ["", "data", "trace", "_a", "-a", "a b", "a:b", "a/b", "a~trace", "é", "x" * 65]),
        (ids.check_queue, ["", "_a", "-a", "a.b", "a\n", "\u0661", HEX, HEX.lower(), "x" * 129]),
        (ids.check_name, ["", "_a", "a.b", HEX, HEX.upper(), ULID, ULID.lower(), "x" * 129]),
        (ids.check_object_id, ["", "a b", "a:b", "a/b", "a\n", "é", "\u212a", "x" * 129]),
        (ids.check_actor, ["", "A", "a_b", "a@b", "a\n", "x" * 33]),
        (ids.check_type, ["", "x" * 513]),
        (ids.check_key, ["", "x" * 257]),
    ],
)
def test_each_kind_refuses_what_it_may_not_hold(check: Check, refused: list[str]) -> None:
    for text in refused:
        with pytest.raises(InvalidId):
            check(text)


@pytest.mark.parametrize("check", [ids.check_type, ids.check_key, ids.check_object_id, ids.check_queue])
@pytest.mark.parametrize("char", NOT_PRINTABLE)
def test_oq_s07_oq_s08_no_id_holds_a_nul_a_control_character_or_half_a_pair(check: Check, char: str) -> None:
    for text, at in ((char, 1), (f"a{char}b", 2), (f"ab{char}", 3)):
        with pytest.raises(InvalidId, match=re.escape(f"{char!a} is not allowed as character {at}")):
            check(text)


@pytest.mark.parametrize(
    ("check", "text", "detail"),
    [
        (ids.check_space, "a/b", "space id 'a/b': '/' is not allowed as character 2"),
        (ids.check_space, "_a", "space id '_a': '_' is not allowed as character 1"),
        (ids.check_space, "data", "space id 'data': a tag is never a space"),
        (ids.check_object_id, "", "object id '': empty, character 1 is missing"),
        (ids.check_actor, "x" * 34, f"actor '{'x' * 34}': character 33 of 34 is one too many"),
        (ids.check_name, ULID, f"queue name '{ULID}': a ULID is an id, never a name"),
        (
            ids.check_queue,
            HEX,
            f"queue id '{HEX}': 32 hex digits stand for a ULID elsewhere, never for a name",
        ),
        (ids.check_key, "a\x00", "ordering key 'a\\x00': '\\x00' is not allowed as character 2"),
        (ids.check_object_id, "pаy", "object id 'pаy': '\\u0430' is not allowed as character 2"),  # noqa: RUF001
    ],
)
def test_an_error_says_which_kind_what_was_given_and_what_is_wrong(
    check: Check, text: str, detail: str
) -> None:
    with pytest.raises(InvalidId) as caught:
        check(text)
    assert caught.value.detail == detail


def test_an_error_repeats_at_most_80_characters() -> None:
    with pytest.raises(InvalidId) as caught:
        ids.check_type("\ud800" + "x" * 1_000_000)
    assert caught.value.detail == rf"type name '\ud800{'x' * 79}'...: '\ud800' is not allowed as character 1"


@given(st.text())
def test_a_refusal_can_always_be_sent(text: str) -> None:
    for check in (ids.check_space, ids.check_queue, ids.check_name, ids.check_object_id, ids.check_actor):
        try:
            assert check(text) == text
            assert text.isascii()
        except InvalidId as error:
            error.detail.encode()


@pytest.mark.parametrize(
    "names",
    [
        ["order_events", "order-events", "OrderEvents", "orderEvents", "Order-Events", "ORDER_EVENTS"],
        ["http_server", "HTTPServer", "HttpServer", "HTTP-Server"],
        ["jobs", "JOBS", "Jobs"],
        ["v2_jobs", "v2Jobs", "V2-jobs"],
    ],
)
def test_names_that_differ_in_style_alone_are_one(names: list[str]) -> None:
    assert {ids.snake(name) for name in names} == {names[0]}


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,40}", fullmatch=True))
def test_the_common_form_is_its_own_common_form(name: str) -> None:
    assert re.fullmatch("[a-z0-9][a-z0-9_]*", ids.snake(name))
    assert ids.snake(ids.snake(name)) == ids.snake(name)
