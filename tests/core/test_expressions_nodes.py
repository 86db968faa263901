"""Which JSON is an expression, and what is said of other JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.expression_nodes import DEPTH_MAX, NODES_MAX, STEPS_MAX, ExprFault
from edgequeues.core.expressions import Env, compile_expr, node_at

from .expression_kit import Node, call, lit, path

ONE = lit(1)


def fault_of(expr: Any) -> ExprFault:
    with pytest.raises(ExprFault) as caught:
        compile_expr(expr)
    return caught.value


@pytest.mark.parametrize(
    ("expr", "at", "words"),
    [
        (None, (), "null where an expression is wanted"),
        ([], (), "a list where an expression is wanted"),
        ({}, (), "has 0"),
        ({"not": ONE, "bool": ONE}, (), "has 2"),
        ({"nott": ONE}, (), 'there is no node "nott"; did you mean "not"?'),
        ({"__class__": ONE}, (), 'there is no node "__class__"'),
        ({"not": {"eq": [ONE]}}, ("not", "eq"), "1 operands where 2 are wanted"),
        ({"add": [ONE, ONE, ONE]}, ("add",), "3 operands where 2 are wanted"),
        ({"add": ONE}, ("add",), "an object where a list of expressions is wanted"),
        ({"and": []}, ("and",), "0 operands where 1 or more are wanted"),
        ({"coalesce": [ONE, 1]}, ("coalesce", 1), "an integer where an expression is wanted"),
        ({"obj": [ONE]}, ("obj",), "a list where an object of expressions is wanted"),
        ({"obj": {"a": "x"}}, ("obj", "a"), "a text where an expression is wanted"),
        ({"if": {"cond": ONE, "then": ONE}}, ("if",), '"else" is missing'),
        ({"if": {"cond": ONE, "then": ONE, "else": ONE, "elif": ONE}}, ("if",), 'there is no "elif" here'),
        ({"time_between": {"expr": ONE, "from": ONE}}, ("time_between",), '"to" is missing'),
        ({"map_enum": {"expr": ONE, "mapping": []}}, ("map_enum", "mapping"), "a list where an object"),
        ({"map_enum": {"expr": ONE, "mapping": {"a": {}}}}, ("map_enum", "mapping", "a"), "a plain value"),
        ({"state_will_be": {"state": 1}}, ("state_will_be", "state"), "an integer where a text is wanted"),
        ({"lit": 1}, ("lit",), "an integer where a constant is wanted"),
        ({"lit": {"str": "a"}}, ("lit",), 'there is no constant "str"; did you mean "string"?'),
        ({"lit": {"int": 1.0}}, ("lit", "int"), "a number where an integer is wanted"),
        ({"lit": {"int": True}}, ("lit", "int"), "a boolean where an integer is wanted"),
        ({"lit": {"int": 2**63}}, ("lit", "int"), "beyond 64 bits"),
        ({"lit": {"float": 2**63}}, ("lit", "float"), "beyond 64 bits"),
        ({"lit": {"float": float("nan")}}, ("lit", "float"), "not finite"),
        ({"lit": {"float": "1"}}, ("lit", "float"), "a text where a number is wanted"),
        ({"lit": {"bool": 1}}, ("lit", "bool"), "an integer where a boolean is wanted"),
        ({"lit": {"null": None}}, ("lit", "null"), "null where true is wanted"),
        ({"lit": {"null": False}}, ("lit", "null"), "a boolean where true is wanted"),
        ({"lit": {"string": None}}, ("lit", "string"), "null where a text is wanted"),
        ({"var": {"inputs": {"field": "a"}}}, ("var",), 'did you mean "input"?'),
        ({"var": {"input": "a"}}, ("var", "input"), "a text where an object is wanted"),
        ({"var": {"input": {"name": "a"}}}, ("var", "input"), '"field" is missing'),
        ({"var": {"input": {"field": ""}}}, ("var", "input"), "a text that is not empty"),
        ({"var": {"now": 1}}, ("var", "now"), "an integer where true is wanted"),
        ({"get": {"expr": ONE, "path": []}}, ("get", "path"), "an empty path"),
        ({"get": {"expr": ONE, "path": "a..b"}}, ("get", "path"), "an empty step"),
        ({"get": {"expr": ONE, "path": ["a", -1]}}, ("get", "path", 1), "the position -1"),
        ({"get": {"expr": ONE, "path": [True]}}, ("get", "path", 0), "a boolean where a key or a position"),
        ({"get": {"expr": ONE, "path": [1.0]}}, ("get", "path", 0), "a number where a key or a position"),
        ({"has": {"expr": ONE, "path": 1}}, ("has", "path"), "an integer where a path is wanted"),
        ({"has": {"expr": ONE, "path": ["a"] * (STEPS_MAX + 1)}}, ("has", "path"), "a path of 65 steps"),
        ({"has": {"expr": ONE}}, ("has",), '"path" is missing'),
        (call("size", ONE), ("call", "fn"), 'there is no function "size"'),
        (call("lowre", ONE), ("call", "fn"), 'did you mean "lower"?'),
        (call("len"), ("call", "args"), "0 arguments where 1 is wanted"),
        (call("len", ONE, ONE), ("call", "args"), "2 arguments where 1 is wanted"),
        (call("has_role", lit("x")), ("call", "fn"), '"has_role" is not available here'),
        ({"call": {"fn": 1, "args": []}}, ("call", "fn"), "an integer where a text is wanted"),
        ({"call": {"fn": "len", "args": {}}}, ("call", "args"), "an object where a list"),
    ],
)
def test_other_json_is_refused_with_its_place_and_the_reason(
    expr: Any, at: tuple[str | int, ...], words: str
) -> None:
    fault = fault_of(expr)
    assert fault.path == at
    assert words in str(fault)
    assert str(fault).startswith(".".join(map(str, at)))
    inside = fault_of({"arr": [ONE, expr]})
    assert inside.path == ("arr", 1, *at)


def nest(depth: int, key: str = "not") -> Node:
    expr: Node = ONE
    for _ in range(depth - 1):
        expr = {key: expr}
    return expr


def test_depth_and_count_have_limits() -> None:
    compile_expr(nest(DEPTH_MAX))
    fault = fault_of(nest(DEPTH_MAX + 1))
    assert "nested more than 64 deep" in str(fault)
    assert fault.path == ("not",) * DEPTH_MAX
    assert "nested more than 64 deep" in str(fault_of(nest(100_000)))
    compile_expr({"arr": [ONE] * (NODES_MAX - 1)})
    half = {"arr": [ONE] * (NODES_MAX // 2)}
    assert "more than 1000 nodes" in str(fault_of({"arr": [half, half]}))
    assert "more than 1000 nodes" in str(fault_of({"obj": {str(i): ONE for i in range(NODES_MAX)}}))


def test_functions_of_the_place_get_the_env_and_their_arguments() -> None:
    def has_role(env: Env, role: str) -> bool:
        return role in env.more["roles"]

    closure = compile_expr({"not": call("has_role", path("role"))}, calls={"has_role": has_role})
    assert closure(Env({"role": "admin"}, 0, {"roles": ["admin"]})) is False
    assert closure(Env({"role": "guest"}, 0, {"roles": ["admin"]})) is True
    with pytest.raises(ExprFault, match='"auth_ok" is not available here'):
        compile_expr(call("auth_ok"), calls={"has_role": has_role})


keys = st.sampled_from(
    [
        "lit",
        "var",
        "get",
        "has",
        "obj",
        "arr",
        "not",
        "and",
        "eq",
        "lt",
        "in",
        "add",
        "if",
        "coalesce",
        "neg",
        "time_between",
        "map_enum",
        "state_will_be",
        "call",
        "input",
        "now",
        "field",
        "path",
        "expr",
        "cond",
        "then",
        "else",
        "string",
        "int",
        "fn",
        "args",
        "from",
        "to",
        "mapping",
        "default",
        "state",
        "payload",
        "null",
    ]
)
almost = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 2)
    | st.sampled_from(["a", "len", "a.b", "", "x..y"])
    | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@given(almost)
def test_any_json_is_either_compiled_or_refused_at_a_place_that_is_there(expr: Any) -> None:
    try:
        compile_expr(expr)
    except ExprFault as fault:
        node_at(expr, fault.path)
