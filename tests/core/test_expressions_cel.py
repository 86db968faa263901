"""Expressions beside those of a real CEL implementation: where both languages mean the same, both give the same.

They differ on purpose, and what is generated here stays clear of that; each difference has a test of its own below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from cel_expr_python import cel
from hypothesis import given, settings
from hypothesis import strategies as st

from edgequeues.core.expressions import Env, ExprError, compile_expr
from edgequeues.spec import wording

Node = dict[str, Any]
Made = st.SearchStrategy[Node]

VARIABLES = {
    "i": cel.Type.INT,
    "j": cel.Type.INT,
    "x": cel.Type.DOUBLE,
    "y": cel.Type.DOUBLE,
    "s": cel.Type.STRING,
    "t": cel.Type.STRING,
    "b": cel.Type.BOOL,
    "c": cel.Type.BOOL,
    "payload": cel.Type.DYN,
}
CEL = cel.NewEnv(variables=VARIABLES)
FAILED = object()

EDGES = [0, 1, -1, 7, 2**62, 2**63 - 1, -(2**63)]
INTS = st.one_of(st.integers(-20, 20), st.sampled_from(EDGES), st.sampled_from(EDGES))
FLOATS = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -2.5])
# Without NUL, at which the package ends a text.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=4) | st.sampled_from(["", "a", "\U0001f525", "\U0001f525"])
FIELDS = st.fixed_dictionaries(
    {
        "i": INTS,
        "j": INTS,
        "x": FLOATS,
        "y": FLOATS,
        "s": TEXTS,
        "t": TEXTS,
        "b": st.booleans(),
        "c": st.booleans(),
        "payload": st.fixed_dictionaries(
            {
                "n": INTS,
                "f": FLOATS,
                "s": TEXTS,
                "yes": st.booleans(),
                "list": st.lists(INTS, max_size=3),
                "cf-ray": TEXTS,
                "map": st.fixed_dictionaries({"k": TEXTS}),
            }
        ),
    }
)


def f(name: str) -> Node:
    return {"var": {"input": {"field": name}}}


def at(*path: str | int) -> Node:
    return {"get": {"expr": f("payload"), "path": list(path)}}


def lit(kind: str, value: object) -> Node:
    return {"lit": {kind: value}}


def call(name: str, *args: Node) -> Node:
    return {"call": {"fn": name, "args": list(args)}}


def _two(keys: list[str], inner: Made) -> Made:
    return st.tuples(st.sampled_from(keys), inner, inner).map(lambda made: {made[0]: [made[1], made[2]]})


def _choice(inner: Made) -> Made:
    return st.tuples(BOOLS, inner, inner).map(
        lambda made: {"if": {"cond": made[0], "then": made[1], "else": made[2]}}
    )


SIMPLE_INT = st.sampled_from([f("i"), f("j"), at("n")]) | INTS.map(lambda n: lit("int", n))
SIMPLE_FLOAT = st.sampled_from([f("x"), f("y"), at("f")]) | FLOATS.map(lambda n: lit("float", n))
SIMPLE_TEXT = st.sampled_from([f("s"), f("t"), at("s"), at("cf-ray"), at("map", "k")]) | TEXTS.map(
    lambda text: lit("string", text)
)
SIMPLE_BOOL = st.sampled_from([f("b"), f("c"), at("yes"), lit("bool", True), lit("bool", False)])
LISTS = st.just(at("list")) | st.lists(SIMPLE_INT, max_size=3).map(lambda items: {"arr": items})
PRESENT = st.sampled_from([["map"], ["map", "k"], ["map", "nope"], ["nope"], ["list"]])

# Of these, no part can fail: in CEL, `&&` and `||` do without an operand that fails where the other one decides.
SAFE = st.one_of(
    SIMPLE_BOOL,
    _two(["eq", "ne", "lt", "le", "gt", "ge"], SIMPLE_INT),
    _two(["eq", "ne", "lt", "le", "gt", "ge"], SIMPLE_FLOAT),
    _two(["eq", "ne", "lt", "le", "gt", "ge"], SIMPLE_TEXT),
    st.sampled_from([{"eq": [at("n"), at("f")]}, {"lt": [at("f"), at("n")]}]),
    _two(["eq", "ne"], SIMPLE_BOOL),
    _two(["eq", "ne"], LISTS),
    st.tuples(SIMPLE_INT, LISTS).map(lambda pair: {"in": list(pair)}),
    SIMPLE_TEXT.map(lambda text: {"in": [text, at("map")]}),
    PRESENT.map(lambda path: {"has": {"expr": f("payload"), "path": path}}),
)
BOOLS = st.recursive(
    SAFE,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda items: {"and": items}),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: {"or": items}),
        inner.map(lambda one: {"not": one}),
    ),
    max_leaves=5,
)
WHOLE = st.recursive(
    SIMPLE_INT
    | LISTS.map(lambda items: call("len", items))
    | SIMPLE_TEXT.map(lambda text: call("len", text)),
    lambda inner: st.one_of(
        _two(["add", "sub", "mul", "div"], inner),
        inner.map(lambda one: {"neg": one}),
        _choice(inner),
        inner.map(lambda one: call("int", call("str", one))),
    ),
    max_leaves=6,
)
# Where a sum of two of unknown type stands in another one, the package takes it for an integer.
BROKEN = st.recursive(
    SIMPLE_FLOAT.map(lambda one: call("float", one)) | SIMPLE_INT.map(lambda one: call("float", one)),
    lambda inner: st.one_of(
        _two(["add", "sub", "mul", "div"], inner), inner.map(lambda one: {"neg": one}), _choice(inner)
    ),
    max_leaves=6,
)
WORDS = st.recursive(
    SIMPLE_TEXT.map(lambda one: call("str", one))
    | SIMPLE_INT.map(lambda one: call("str", one))
    | SIMPLE_BOOL.map(lambda one: call("str", one)),
    lambda inner: st.one_of(_two(["add"], inner), _choice(inner)),
    max_leaves=6,
)
EXPRESSIONS = st.one_of(
    BOOLS,
    SAFE,
    WHOLE,
    _two(["add", "sub", "mul", "div"], SIMPLE_INT),
    SIMPLE_TEXT.map(lambda text: call("len", text)),
    BROKEN,
    WORDS,
    SIMPLE_FLOAT.map(lambda one: call("int", one)),
)


def ours(expr: Node, fields: Mapping[str, Any]) -> object:
    try:
        return compile_expr(expr)(Env(fields, 0.0))
    except ExprError:
        return FAILED


def theirs(text: str, fields: Mapping[str, Any]) -> object:
    value = CEL.compile(text).eval(data=dict(fields))
    return FAILED if value.type() == cel.Type.ERROR else value.plain_value()


def is_beyond(value: object) -> bool:
    """Infinite, or no number: CEL goes on with it, JSON has no word for it, so here it fails."""
    return isinstance(value, float) and not math.isfinite(value)


@settings(max_examples=2_000)
@given(EXPRESSIONS, FIELDS)
def test_both_give_the_same(expr: Node, fields: dict[str, Any]) -> None:
    """The value, its type and whether there is one: overflow, division by zero, what is no number."""
    text = wording.text(expr)
    found, wanted = ours(expr, fields), theirs(text, fields)
    if found is FAILED and (is_beyond(wanted) or _goes_beyond(expr, fields)):
        return
    assert type(found) is type(wanted), text
    assert found == wanted, text


def _goes_beyond(expr: Node, fields: Mapping[str, Any]) -> bool:
    """Does a part of it, computed by CEL, leave the numbers that JSON has?"""
    if "lit" in expr or "var" in expr:
        return False
    parts = [one for value in expr.values() for one in _nodes(value)]
    return any(is_beyond(theirs(wording.text(one), fields)) or _goes_beyond(one, fields) for one in parts)


def _nodes(value: Any) -> list[Node]:
    """The expressions directly inside a node."""
    items = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    found: list[Node] = []
    for one in items:
        if isinstance(one, dict) and len(one) == 1 and next(iter(one)) in KINDS:
            found.append(one)
        elif isinstance(one, dict):
            found += [inner for member in one.values() for inner in _nodes(member)]
    return found


KINDS = {
    *("lit", "var", "get", "has", "arr", "not", "and", "or", "eq", "ne", "lt", "le", "gt", "ge", "in"),
    *("add", "sub", "mul", "div", "neg", "if", "call"),
}


# -- on purpose ---------------------------------------------------------------------------------------------

ABSENT = at("map", "nope")
ZERO: Node = {"div": [lit("int", 1), lit("int", 0)]}
SOME: dict[str, Any] = {
    "i": 7,
    "j": 0,
    "x": 0.0,
    "y": 2.0,
    "s": "",
    "t": "x",
    "b": True,
    "c": False,
    "payload": {"n": 7, "map": {}, "list": [], "s": "abc"},
}


@pytest.mark.parametrize(
    ("expr", "here", "there"),
    [
        # What is missing is null, so that one field an event lacks does not make all of it fail.
        (ABSENT, None, FAILED),
        ({"eq": [ABSENT, lit("string", "high")]}, False, FAILED),
        ({"has": {"expr": f("payload"), "path": ["nope", "deeper"]}}, False, FAILED),
        # `&&` and `||` go from left to right: what stands before may fail the whole.
        ({"and": [{"eq": [ZERO, lit("int", 1)]}, lit("bool", False)]}, FAILED, False),
        # There is no JSON for what is infinite.
        ({"div": [lit("float", 1.0), f("x")]}, FAILED, math.inf),
        # Integers and fractions mix, as they do in JSON.
        ({"add": [at("n"), lit("float", 0.5)]}, 7.5, FAILED),
        # Words that are no number are null, as what is missing is.
        (call("int", at("s")), None, FAILED),
        # The lowest integer is one, also where it comes from a fraction.
        (call("int", call("float", lit("int", -(2**63)))), -(2**63), FAILED),
        # Booleans have no order that anybody asked for.
        ({"lt": [f("c"), f("b")]}, FAILED, True),
    ],
)
def test_where_they_differ_both_do_what_is_written_here(expr: Node, here: object, there: object) -> None:
    assert ours(expr, SOME) == here
    assert theirs(wording.text(expr), SOME) == there


def test_a_condition_may_be_anything_here_and_is_a_boolean_there() -> None:
    """Empty texts, zero and null are false, all lists and objects are true."""
    expr: Node = {"if": {"cond": f("s"), "then": lit("int", 1), "else": lit("int", 2)}}
    assert ours(expr, SOME) == 2
    with pytest.raises(Exception, match="no matching overload"):
        CEL.compile(wording.text(expr))
    both: Node = {"and": [f("i"), f("payload")]}
    assert ours(both, SOME) is True
