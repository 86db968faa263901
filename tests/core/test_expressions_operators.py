"""What the operators of expressions mean, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgequeues.core.expressions import Env, ExprError, compile_expr, node_at

from .expression_kit import Node, choice, lit, path, value_of


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1.0, True, False),
        (True, True, True),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ([1], [True], False),
        ([1, [1.0]], [1.0, [1]], True),
        ({"a": 0}, {"a": False}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {}, False),
        ([], {}, False),
        ([1, 2], [1], False),
        (2**53, 2**53 + 1, False),
        (float(2**53), 2**53 + 1, False),
        ("\ud83d", "\ud83d", True),
    ],
)
def test_equality_is_by_value_and_deep_and_a_boolean_is_no_number(a: Any, b: Any, same: bool) -> None:
    for left, right in ((a, b), (b, a)):
        assert value_of({"eq": [path("a"), path("b")]}, a=left, b=right) is same
        assert value_of({"ne": [path("a"), path("b")]}, a=left, b=right) is not same
        assert value_of({"eq": [path("a"), lit(right)]}, a=left) is same
        assert value_of({"ne": [lit(left), path("b")]}, b=right) is not same


def test_equality_does_not_mind_how_deep_data_is() -> None:
    deep: list[Any] = []
    other: list[Any] = [1]
    for _ in range(100_000):
        deep, other = [deep], [other]
    assert value_of({"eq": [path("a"), path("b")]}, a=deep, b=other) is False
    while deep:
        deep, other = deep[0], other[0]  # freeing it nests as deep


ORDER: list[tuple[str, Any, Any, bool | None]] = [
    ("lt", 1, 2, True),
    ("lt", 2, 2, False),
    ("le", 2, 2.0, True),
    ("gt", 2**53 + 1, float(2**53), True),
    ("ge", -1, 0.5, False),
    ("lt", "a", "b", True),
    ("gt", "Z", "a", False),
    ("lt", "\ud83d", "\ue000", True),
    ("lt", None, 1, None),
    ("ge", "a", None, None),
    ("ge", None, None, None),
    ("lt", None, [], None),
]


@pytest.mark.parametrize(("op", "a", "b", "result"), ORDER)
def test_order_is_of_numbers_or_of_texts_and_null_with_null(
    op: str, a: Any, b: Any, result: bool | None
) -> None:
    assert value_of({op: [path("a"), path("b")]}, a=a, b=b) is result


@pytest.mark.parametrize(
    ("op", "a", "b", "words"),
    [
        ("lt", "a", 1, "a text < an integer"),
        ("ge", True, False, "a boolean >= a boolean"),
        ("le", 1, True, "an integer <= a boolean"),
        ("gt", [], [], "a list > a list"),
        ("add", 1, "a", "an integer + a text"),
        ("add", [1], [2], "a list + a list"),
        ("add", True, 1, "a boolean + an integer"),
        ("sub", "a", "b", "a text - a text"),
        ("mul", "a", 2, "a text * an integer"),
        ("mul", [0], 2, "a list * an integer"),
        ("div", 1.5, {}, "a number / an object"),
        ("div", 1, 0, "an integer / zero"),
        ("div", 1.0, 0.0, "a number / zero"),
        ("add", 2**63 - 1, 1, "beyond 64 bits"),
        ("sub", -(2**63), 1, "beyond 64 bits"),
        ("mul", 2**40, 2**40, "beyond 64 bits"),
        ("div", -(2**63), -1, "beyond 64 bits"),
        ("add", 10**400, 1.0, "beyond the range of numbers"),
        ("mul", 1e200, 1e200, "not finite"),
        ("in", "a", "abc", "a text in a text"),
        ("in", 1, {"1": 1}, "an integer in an object"),
        ("in", 1, 1, "an integer in an integer"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_operation_and_the_types(
    op: str, a: Any, b: Any, words: str
) -> None:
    expr = {"not": {op: [path("a"), path("b")]}}
    with pytest.raises(ExprError) as caught:
        value_of(expr, a=a, b=b)
    assert words in str(caught.value)
    assert node_at(expr, caught.value.path) == expr["not"]


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        ("add", 1, 2, 3),
        ("add", "a", "b", "ab"),
        ("add", 0.5, 1, 1.5),
        ("add", None, 1, None),
        ("add", "a", None, None),
        ("sub", 1, 2, -1),
        ("mul", 3, -2, -6),
        ("mul", None, "a", None),
        ("div", 7, 2, 3),
        ("div", -7, 2, -3),
        ("div", 7, -2, -3),
        ("div", -7, -2, 3),
        ("div", 2**62 + 1, 1, 2**62 + 1),
        ("div", 7, 2.0, 3.5),
        ("div", None, 0, None),
        ("div", -(2**63), 1, -(2**63)),
    ],
)
def test_arithmetic_joins_texts_cuts_towards_zero_and_lets_null_through(
    op: str, a: Any, b: Any, result: Any
) -> None:
    value = value_of({op: [path("a"), path("b")]}, a=a, b=b)
    assert (value, type(value)) == (result, type(result))


def test_a_minus_is_of_numbers_alone() -> None:
    assert value_of({"neg": path("a")}, a=5) == -5
    assert value_of({"neg": path("a")}, a=None) is None
    for wrong, words in ((True, "- a boolean"), ("a", "- a text"), (-(2**63), "beyond 64 bits")):
        with pytest.raises(ExprError, match=words):
            value_of({"neg": path("a")}, a=wrong)


@pytest.mark.parametrize(
    ("item", "box", "result"),
    [
        (1, [1.0], True),
        (1, [True], False),
        ([1], [[1]], True),
        (None, [None], True),
        (None, [], False),
        ("a", {"a": None}, True),
        ("a", {}, False),
        (None, {"a": 1}, None),
        ("a", None, None),
    ],
)
def test_in_looks_for_an_element_or_for_a_key(item: Any, box: Any, result: bool | None) -> None:
    assert value_of({"in": [path("a"), path("b")]}, a=item, b=box) is result


TRUE = [True, 1, -1, 0.5, "a", "0", "false", [], {}, [0]]
FALSE = [None, False, 0, 0.0, -0.0, ""]


@pytest.mark.parametrize("value", TRUE + FALSE)
def test_truth_is_javascripts_and_logic_makes_booleans_of_it(value: Any) -> None:
    true = any(value is each for each in TRUE)
    a = path("a")
    assert value_of({"bool": a}, a=value) is true
    assert value_of({"not": a}, a=value) is not true
    assert value_of(choice(a, lit(1), lit(2)), a=value) == (1 if true else 2)
    assert value_of(choice(a, a, path("b")), a=value, b="b") == (value if true else "b")
    for op in ("and", "or"):
        assert value_of({op: [a]}, a=value) is true
        assert value_of({op: [a, a]}, a=value) is true
        assert value_of({op: [a, a, a]}, a=value) is true
    assert value_of({"and": [a, lit(True), lit("x")]}, a=value) is true
    assert value_of({"or": [lit(""), lit(None), a]}, a=value) is true


def test_logic_looks_no_further_than_it_must() -> None:
    broken = {"div": [lit(1), lit(0)]}
    assert value_of({"and": [lit(False), broken]}) is False
    assert value_of({"or": [lit(1), broken]}) is True
    assert value_of(choice(lit(True), lit(1), broken)) == 1
    assert value_of({"coalesce": [lit(None), lit(0), broken]}) == 0
    for expr in ({"and": [broken, lit(False)]}, {"or": [broken, lit(True)]}, choice(broken, lit(1), lit(1))):
        with pytest.raises(ExprError):
            value_of(expr)


def test_the_first_that_is_not_null_is_taken() -> None:
    expr = {"coalesce": [path("p", "a"), path("p", "b"), lit("c")]}
    assert value_of(expr, p={"b": False}) is False
    assert value_of(expr, p={"a": None, "b": None}) == "c"
    assert value_of({"coalesce": [path("p")]}, p=None) is None
    assert value_of({"is_null": path("p", "a")}, p={}) is True
    assert value_of({"is_null": path("p", "a")}, p={"a": 0}) is False


def test_objects_and_lists_are_made_anew() -> None:
    expr = {"obj": {"x": {"arr": [path("a"), lit(1.0)]}, "y": {"obj": {}}}}
    closure = compile_expr(expr)
    first, second = closure(Env({"a": 5})), closure(Env({"a": 5}))
    assert first == second == {"x": [5, 1.0], "y": {}}
    assert first is not second
    assert first["x"] is not second["x"]


def test_a_float_stays_one_though_its_json_lost_the_point() -> None:
    assert json.dumps(value_of({"lit": {"float": 1}})) == "1.0"


@pytest.mark.parametrize(
    ("time", "result"),
    [
        (100, True),
        (99.9, False),
        (200, False),
        ("1970-01-01T00:01:40Z", True),
        ("1970-01-01T00:03:20Z", False),
        (None, None),
        ("never", None),
        (True, None),
    ],
)
def test_time_between_holds_from_the_first_instant_to_before_the_last(time: Any, result: bool | None) -> None:
    expr = {"time_between": {"expr": path("t"), "from": lit(100), "to": lit("1970-01-01T00:03:20Z")}}
    assert value_of(expr, t=time) is result


def test_map_enum_is_a_table_with_a_default() -> None:
    table: Node = {"map_enum": {"expr": path("u"), "mapping": {"high": 7, "low": None}}}
    assert [value_of(table, u=u) for u in ("high", "low", "none", 1, None, ["high"])] == [7] + [None] * 5
    table["map_enum"]["default"] = path("d")
    assert [value_of(table, u=u, d=4) for u in ("high", "low", "none", None)] == [7, None, 4, 4]
