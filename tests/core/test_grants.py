"""What a grant allows, and how an operator words one."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.errors import InvalidRequest
from edgequeues.core.grants import MEANINGS, PATTERN_LENGTH_MAX, PATTERNS_MAX, VERBS, grant

NAMES = st.text("abA-_", min_size=1, max_size=4)
PATTERNS = st.lists(
    st.one_of(NAMES, NAMES.map(lambda name: name + "*"), st.just("*")), min_size=1, max_size=3
)


def covers(patterns: Sequence[str], name: str | None) -> bool:
    """The same said by regular expressions."""
    if name is None:
        return "*" in patterns
    return any(re.fullmatch(re.escape(one).replace(r"\*", ".*"), name) for one in patterns)


def test_nothing_said_is_everything_everywhere() -> None:
    made = grant([])
    for verb in VERBS:
        assert made.allows(verb, "demo", "log")
        assert made.allows(verb, "demo", None)
        assert made.allows(verb, None, None)


def test_a_verb_that_is_not_granted_is_not_allowed() -> None:
    made = grant(["read", "list"])
    assert [verb for verb in VERBS if made.allows(verb, "demo", "log")] == ["read", "list"]


@pytest.mark.parametrize(
    ("pattern", "name", "allowed"),
    [
        ("demo", "demo", True),
        ("demo", "demo2", False),
        ("demo", "dem", False),
        ("demo", "Demo", False),
        ("demo*", "demo", True),
        ("demo*", "demo-2", True),
        ("demo*", "dem", False),
        ("*", "demo", True),
        ("*", None, True),
        ("demo", None, False),
        ("demo*", None, False),
    ],
)
def test_a_pattern_is_a_name_or_the_beginning_of_names(pattern: str, name: str | None, allowed: bool) -> None:
    assert grant([], [pattern]).allows("read", name, "log") is allowed
    assert grant([], [], [pattern]).allows("read", "demo", name) is allowed


def test_space_and_queue_must_both_match() -> None:
    made = grant(["read"], ["a", "b*"], ["log", "x*"])
    assert made.allows("read", "bee", "x1")
    assert not made.allows("read", "bee", "other")
    assert not made.allows("read", "c", "x1")
    assert not made.allows("append", "bee", "x1")


@given(PATTERNS, PATTERNS, st.none() | NAMES, st.none() | NAMES)
def test_patterns_cover_what_the_same_regular_expressions_do(
    spaces: list[str], queues: list[str], space: str | None, queue: str | None
) -> None:
    made = grant([], spaces, queues)
    assert made.allows("read", space, queue) == (covers(spaces, space) and covers(queues, queue))


@pytest.mark.parametrize(
    "pattern", ["", "a b", "**", "a**", "*a", "a*b", "é", "a/b", "a:b", "a.b", "\n", "a\n"]
)
def test_a_pattern_that_no_name_could_match_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest, match=r"space .*: write a name, or the beginning of names"):
        grant([], [pattern])
    with pytest.raises(InvalidRequest, match=r"queue .*: write a name, or the beginning of names"):
        grant([], [], [pattern])


def test_patterns_are_bounded_in_length_and_number() -> None:
    longest = "a" * (PATTERN_LENGTH_MAX - 1) + "*"
    assert grant([], [longest]).spaces == (longest,)
    with pytest.raises(InvalidRequest, match="write a name"):
        grant([], ["a" + longest])
    many = [f"s{n}" for n in range(PATTERNS_MAX + 1)]
    assert len(grant([], many[1:]).spaces) == PATTERNS_MAX
    with pytest.raises(InvalidRequest, match=f"{PATTERNS_MAX + 1} patterns, at most {PATTERNS_MAX}"):
        grant([], many)


def test_a_pattern_given_twice_counts_once() -> None:
    assert grant([], ["b", "a", "b"] * PATTERNS_MAX).spaces == ("b", "a")


@pytest.mark.parametrize("verb", ["", "write", "Read", "read,append"])
def test_a_verb_nobody_knows_is_refused_with_those_there_are(verb: str) -> None:
    with pytest.raises(InvalidRequest, match="none of read, append, delete, configure, list"):
        grant(["read", verb])


def test_a_grant_reads_as_what_it_allows() -> None:
    assert str(grant(["delete", "read"], ["demo", "x*"])) == "read,delete in spaces demo,x*, queues *"


def test_every_verb_has_a_meaning() -> None:
    assert list(MEANINGS) == list(VERBS)
