from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import versions
from edgequeues.core.errors import InvalidRequest, VersionAhead

counters = st.integers(0, 2**64 - 1)
actors = st.from_regex("[a-z0-9-]{1,32}", fullmatch=True)


@given(counters, actors)
def test_a_version_gives_counter_and_actor_back(counter: int, actor: str) -> None:
    assert versions.parse(versions.render(counter, actor)) == (counter, actor)


@given(counters, counters, actors, actors)
def test_text_order_is_version_order(one: int, other: int, a: str, b: str) -> None:
    assert (versions.render(one, a) < versions.render(other, b)) == ((one, a) < (other, b))


def test_a_version_reads_as_documented() -> None:
    assert versions.render(27, "0a1b2c3d") == "000000000000001b@0a1b2c3d"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1@a",
        "000000000000001b",
        "000000000000001b@",
        "000000000000001B@a",
        "00000000000000001b@a",
        "+00000000000001b@a",
        "000000000000_01b@a",
        " 000000000000001b@a",
        "000000000000001b@a\n",
        "000000000000001b@A",
        "000000000000001b@a@b",
        "000000000000001b@" + "a" * 33,
        "\u0660" * 16 + "@a",
        "000000000000001b@\x00",
        "000000000000001b@\ud800",
    ],
)
def test_only_the_exact_form_is_a_version(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^version '") as caught:
        versions.parse(text)
    caught.value.detail.encode()


def test_a_stated_version_may_run_ahead_a_little() -> None:
    for counter in (0, 5, 2**40):
        for stated in (0, counter, counter + 1, counter + 2**20):
            assert versions.check_stated(versions.render(stated, "w"), counter) == stated


@pytest.mark.parametrize("ahead", [2**20 + 1, 2**63, 2**64 - 6])
def test_a_stated_version_cannot_end_all_later_writes(ahead: int) -> None:
    with pytest.raises(VersionAhead, match=f"is {ahead} above the counter"):
        versions.check_stated(versions.render(5 + ahead, "w"), 5)


def test_a_stated_version_must_be_one() -> None:
    with pytest.raises(InvalidRequest):
        versions.check_stated("5", 5)
