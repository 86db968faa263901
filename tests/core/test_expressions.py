"""What expressions read, and that they always end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.expressions import Env, ExprError, bare_path, compile_expr, found, node_at, roots

from .expression_kit import call, choice, lit, path, value_in, value_of

SAMPLE = choice({"eq": [path("payload", "incident", "urgency"), lit("high")]}, lit("critical"), lit("high"))


@pytest.mark.parametrize(
    ("payload", "severity"),
    [
        ({"incident": {"urgency": "high"}}, "critical"),
        ({"incident": {"urgency": "low"}}, "high"),
        ({"incident": {"urgency": None}}, "high"),
        ({"incident": {}}, "high"),
        ({"incident": None}, "high"),
        ({"incident": []}, "high"),
        ({}, "high"),
        ([], "high"),
        ("a text", "high"),
        (None, "high"),
    ],
)
def test_ds_s02_equality_with_what_is_missing_is_false_and_no_error(payload: Any, severity: str) -> None:
    assert value_of(SAMPLE, payload=payload) == severity


# -- paths --------------------------------------------------------------------------------------------------

PAYLOAD = {
    "event": {"data": {"service": {"summary": "db"}}},
    "cf-ray": "7d1",
    "a.b": 1,
    "messages": [{"id": "m0"}, {"id": "m1"}],
    "queue": "q",
    "type": "t",
    "in": "i",
    "title": "text",
    "nothing": None,
}


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        (["event", "data", "service", "summary"], "db"),
        (["event", "data", "service"], {"summary": "db"}),
        (["cf-ray"], "7d1"),
        (["a.b"], 1),
        (["a", "b"], None),
        (["messages", 0, "id"], "m0"),
        (["messages", 1, "id"], "m1"),
        (["messages", 2, "id"], None),
        (["messages", 2**62], None),
        (["messages", "0"], None),
        (["messages", "length"], None),
        (["queue"], "q"),
        (["type"], "t"),
        (["in"], "i"),
        (["title", 0], None),
        (["title", "upper"], None),
        (["__class__"], None),
        (["__class__", "__name__"], None),
        (["event", "__class__"], None),
        (["event", "keys"], None),
        (["event", 0], None),
        (["event", "data", "nope", "summary"], None),
        (["event", "data", "service", "summary", "deeper"], None),
        (["nothing"], None),
        (["nothing", "deeper"], None),
    ],
)
def test_ds_s03_paths_reach_any_key_and_position_and_nothing_of_python(
    steps: list[str | int], value: Any
) -> None:
    assert value_of(path("payload", *steps), payload=PAYLOAD) == value
    by_parts = path("payload")
    for step in steps:
        by_parts = {"get": {"expr": by_parts, "path": [step]}}
    assert value_of(by_parts, payload=PAYLOAD) == value
    from_a_list = {"get": {"expr": {"arr": [path("payload")]}, "path": [0, *steps]}}
    assert value_of(from_a_list, payload=PAYLOAD) == value


@pytest.mark.parametrize(
    ("field", "name", "value"),
    [
        ("headers", "x-github-event", "push"),
        ("headers", "X-GitHub-Event", "push"),
        ("headers", "x-other", None),
        ("payload", "X-GitHub-Event", None),
    ],
)
def test_ds_s03_a_header_is_found_in_any_case_and_other_keys_are_not(
    field: str, name: str, value: str | None
) -> None:
    headers = {"x-github-event": "push"}
    fields = {"headers": headers, "payload": headers}
    assert value_of(path(field, name), **fields) == value
    assert value_of({"in": [lit(name), path(field)]}, **fields) is (value is not None)
    has = {"has": {"expr": path(field), "path": [name]}}
    assert value_of(has, **fields) is (value is not None)


def test_ds_s03_only_the_name_of_a_header_ignores_case() -> None:
    assert value_of(path("headers", "A", "B"), headers={"a": {"B": 1, "b": 2}}) == 1
    assert value_of(path("payload", "headers", "A"), payload={"headers": {"A": 1, "a": 2}}) == 1


def test_a_dotted_text_is_a_path_with_positions() -> None:
    dotted = {"get": {"expr": path("payload"), "path": "messages.1.id"}}
    assert value_of(dotted, payload=PAYLOAD) == "m1"
    assert value_of({"var": {"payload": {"path": "event.data"}}}, payload={"event": {"data": 5}}) == 5
    assert value_of({"var": {"payload": {"path": []}}}, payload=5) == 5


@pytest.mark.parametrize(
    ("steps", "there"),
    [
        (["nothing"], True),
        (["messages", 1], True),
        (["messages", 2], False),
        (["nope"], False),
        (["title", "x"], False),
        (["nothing", "x"], False),
    ],
)
def test_has_says_whether_anything_is_there_null_included(steps: list[str | int], there: bool) -> None:
    has = {"has": {"expr": path("payload"), "path": steps}}
    assert value_of(has, payload=PAYLOAD) is there
    made = {"has": {"expr": {"obj": {"p": path("payload")}}, "path": ["p", *steps]}}
    assert value_of(made, payload=PAYLOAD) is there


def test_what_an_expression_reads_is_known_without_a_message() -> None:
    expr = {
        "add": [
            path("a", "x", 1),
            choice(path("headers", "X-Y"), {"var": {"payload": {"path": "z"}}}, lit(1)),
        ]
    }
    assert roots(expr) == {"a", "headers", "payload"}
    assert roots({"var": {"now": True}}) == set()
    assert roots({"eq": [{"var": {"attrs": {"field": "a"}}}, lit(1)]}) == set()


def test_a_bare_path_is_a_path_and_nothing_else() -> None:
    assert bare_path(path("payload", "a", 0)) == ("payload", ["a", 0])
    assert bare_path({"get": {"expr": path("payload", "a"), "path": "b"}}) == ("payload", ["a", "b"])
    assert bare_path(path("headers", "X-A")) == ("headers", ["x-a"])
    assert bare_path(path("note")) == ("note", [])
    assert bare_path({"var": {"payload": {"path": "a"}}}) == ("payload", ["a"])
    assert bare_path({"not": path("payload")}) is None
    assert bare_path({"has": {"expr": path("payload"), "path": ["a"]}}) is None
    assert bare_path({"var": {"now": True}}) is None
    assert bare_path({"var": {"arg": {"name": "a"}}}) is None


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (["event"], "an object"),
        (["nothing"], "null"),
        (["a.b"], "an integer"),
        (["messages"], "a list"),
        (["title"], "a text"),
        (["event", "nope", "id"], "missing after payload.event"),
        (["messages", 7], "missing after payload.messages"),
        (["messages", 0, "nope"], "missing after payload.messages[0]"),
        (["title", "id"], "missing after payload.title, which is a text"),
        (["nothing", "id"], "missing after payload.nothing, which is null"),
        (["event", 0], "missing after payload.event, which is an object"),
    ],
)
def test_ds_s02_what_is_at_a_path_is_said_in_words(steps: list[str | int], words: str) -> None:
    assert found(Env({"payload": PAYLOAD}), ("payload", steps)) == words


def test_a_field_that_is_not_there_is_missing() -> None:
    assert found(Env({}), ("payload", ["a"])) == "missing"


def test_variables_come_from_their_place_and_are_null_where_there_is_none() -> None:
    more = {"actor": "ann", "attrs": {"title": "t"}, "e_payload": {"a": [1]}, "next_state": "open"}
    env = Env({}, 12.5, more)
    assert value_in(env, {"var": {"now": True}}) == 12.5
    assert value_in(env, {"var": {"actor": True}}) == "ann"
    assert value_in(env, {"var": {"attrs": {"field": "title"}}}) == "t"
    assert value_in(env, {"var": {"e_payload": {"path": "a.0"}}}) == 1
    assert value_in(env, {"var": {"row": {"field": "title"}}}) is None
    assert value_in(env, {"var": {"rows_count": True}}) is None
    assert value_in(env, {"get": {"expr": {"var": {"now": True}}, "path": ["real"]}}) is None
    assert value_in(env, {"state_will_be": {"state": "open"}}) is True
    assert value_in(env, {"state_will_be": {"state": "shut"}}) is False


# -- totality -----------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e308])
    | st.sampled_from(["", "a", "A", "1", "\ud83d", "2024-01-01T00:00:00Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)

leaves = st.sampled_from(
    [path("a"), path("a", "a"), path("a", 0), path("b", "a", "b"), path("headers", "A"), path("no")]
) | json_values.filter(lambda v: not isinstance(v, int | list | dict) or abs(_small(v)) < 2**63).map(lit)


def _small(value: Any) -> int:
    return value if isinstance(value, int) else 2**63


def nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.lists(inner, min_size=2, max_size=2)
    binary = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge", "in", "add", "sub", "mul", "div"])
    unary = st.sampled_from(["not", "bool", "neg", "is_null"])
    several = st.sampled_from(["and", "or", "coalesce", "arr"])
    functions = st.sampled_from(["len", "str", "int", "float", "lower", "upper", "time"])
    return st.one_of(
        st.builds(lambda op, operands: {op: operands}, binary, pairs),
        st.builds(lambda op, operand: {op: operand}, unary, inner),
        st.builds(lambda op, operands: {op: operands}, several, st.lists(inner, min_size=1, max_size=3)),
        st.builds(call, functions, inner),
        st.builds(choice, inner, inner, inner),
        st.builds(lambda e, op: {op: {"expr": e, "path": ["a", 0]}}, inner, st.sampled_from(["get", "has"])),
    )


@given(st.recursive(leaves, nodes, max_leaves=12), json_values, json_values)
def test_every_expression_has_a_value_or_an_expr_error_for_every_message(expr: Any, a: Any, b: Any) -> None:
    closure = compile_expr(expr)
    env = Env({"a": a, "b": b, "headers": {"a": "x"}})
    try:
        first = closure(env)
    except ExprError as error:
        node = node_at(expr, error.path)
        assert next(iter(node)) not in {"lit", "var", "eq", "and", "if", "coalesce"}
        return
    assert value_of({"eq": [path("a"), path("b")]}, a=first, b=closure(env)) is True
