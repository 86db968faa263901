"""What an expression gives is known before any message, as far as it is certain; what cannot work is reported."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import attrs
from edgequeues.core.attrs import AttrType
from edgequeues.core.expression_types import JSON, assignable, infer
from edgequeues.core.expressions import Env, ExprError, compile_expr

SCOPE = {
    "payload": AttrType(),
    "headers": AttrType("map", of=AttrType("string")),
    "title": AttrType("string"),
    "note": AttrType("string", optional=True),
    "count": AttrType("int"),
    "rank": AttrType("int", optional=True, default=3),
    "price": AttrType("float"),
    "paid": AttrType("bool"),
    "at": AttrType("time"),
    "level": AttrType("enum", values=("high", "low")),
}
Node = dict[str, Any]


def f(name: str) -> Node:
    return {"var": {"input": {"field": name}}}


def get(expr: Node, *path: str | int) -> Node:
    return {"get": {"expr": expr, "path": list(path)}}


def text(value: str) -> Node:
    return {"lit": {"string": value}}


def number(value: int) -> Node:
    return {"lit": {"int": value}}


def both(key: str, left: Node, right: Node) -> Node:
    return {key: [left, right]}


def choice(cond: Node, then: Node, other: Node) -> Node:
    return {"if": {"cond": cond, "then": then, "else": other}}


def call(name: str, *args: Node) -> Node:
    return {"call": {"fn": name, "args": list(args)}}


def typed(expr: Node) -> str:
    """The type, which must be certain to work."""
    told: list[str] = []
    found = infer(expr, SCOPE, report=lambda at, what: told.append(what))
    assert not told
    assert found is not None
    return attrs.show(found)


def faults(expr: Node) -> list[tuple[tuple[str | int, ...], str]]:
    told: list[tuple[tuple[str | int, ...], str]] = []
    assert infer(expr, SCOPE, report=lambda at, what: told.append((at, what))) is None
    return told


NULL: Node = {"lit": {"null": True}}
NOW: Node = {"var": {"now": True}}


@pytest.mark.parametrize(
    ("expr", "shown"),
    [
        (f("title"), "string"),
        (f("note"), "string?"),
        (f("rank"), "int"),
        (get(f("payload"), "a", 0, "b"), "json"),
        (get(f("headers"), "x-kind"), "string"),
        (NOW, "time"),
        (text("x"), 'enum("x")'),
        (number(1), "int"),
        (NULL, "json?"),
        (both("eq", f("count"), f("price")), "bool"),
        (both("eq", f("level"), text("high")), "bool"),
        (both("eq", f("title"), NULL), "bool"),
        (both("lt", f("title"), text("m")), "bool"),
        (both("in", text("a"), get(f("payload"), "tags")), "bool"),
        (both("in", text("a"), f("headers")), "bool"),
        ({"has": {"expr": f("payload"), "path": ["a"]}}, "bool"),
        ({"not": f("title")}, "bool"),
        ({"and": [f("title"), f("count")]}, "bool"),
        (both("add", f("title"), text("!")), "string"),
        (both("add", f("note"), text("!")), "string?"),
        (both("add", f("count"), number(1)), "int"),
        (both("div", f("count"), number(2)), "int"),
        (both("mul", f("count"), f("price")), "float"),
        (both("add", f("at"), number(60)), "time"),
        (both("sub", f("at"), NOW), "float"),
        (both("add", f("payload"), f("title")), "json"),
        ({"neg": f("count")}, "int"),
        (choice(f("paid"), text("a"), text("b")), 'enum("a", "b")'),
        (choice(f("paid"), f("title"), text("b")), "string"),
        (choice(f("paid"), f("count"), f("price")), "float"),
        (choice(f("paid"), f("count"), NULL), "json?"),
        ({"coalesce": [f("note"), text("none")]}, "string"),
        ({"coalesce": [f("note"), f("note")]}, "string?"),
        (call("len", f("title")), "int"),
        (call("str", f("count")), "string"),
        (call("lower", f("note")), "string?"),
        (call("time", get(f("payload"), "at")), "time"),
        ({"arr": [f("title")]}, "json"),
        ({"obj": {"a": f("title")}}, "json"),
        ({"map_enum": {"expr": f("level"), "mapping": {"high": "P1"}, "default": text("P2")}}, "string"),
        ({"map_enum": {"expr": f("level"), "mapping": {"high": "P1"}}}, "json"),
        ({"time_between": {"expr": f("at"), "from": NOW, "to": NOW}}, "bool"),
    ],
)
def test_the_type_of_what_works(expr: Node, shown: str) -> None:
    assert typed(expr) == shown


@pytest.mark.parametrize(
    ("expr", "at", "words"),
    [
        (f("titel"), (), 'there is no field `titel`; did you mean "title"?'),
        (get(f("title"), "x"), (), 'a text has nothing at "x"'),
        (get(f("count"), 0), (), "an integer has nothing at"),
        (get(f("headers"), 0), (), "its keys are texts"),
        (both("eq", f("title"), f("count")), (), "a text never equals an integer"),
        (both("eq", f("level"), text("hihg")), (), '"hihg" is never one of "high", "low"'),
        (both("ne", f("paid"), number(1)), (), "a boolean never equals an integer"),
        (both("lt", f("title"), f("count")), (), "have no order"),
        (both("ge", f("paid"), f("paid")), (), "have no order"),
        (both("in", text("a"), f("title")), (), "looks into a list or an object, not into a text"),
        (both("in", f("count"), f("headers")), (), "for an integer"),
        (both("add", f("title"), f("count")), (), "a text + an integer is no number, and no text"),
        (both("mul", f("title"), number(2)), (), "a text * an integer is no number"),
        (both("sub", f("payload"), f("title")), (), "is no number"),
        ({"neg": f("title")}, (), "a number is wanted"),
        (call("len", f("count")), (), "size() takes no integer"),
        (call("upper", f("paid")), (), "upper() takes no boolean"),
        ({"not": both("lt", f("title"), f("count"))}, ("not",), "have no order"),
        (choice(f("paid"), f("titel"), f("title")), ("if", "then"), "there is no field"),
    ],
)
def test_what_could_never_work_is_reported_where_it_is(expr: Node, at: tuple[str, ...], words: str) -> None:
    [(where, what)] = faults(expr)
    assert where == at
    assert words in what


def test_all_faults_of_an_expression_are_reported() -> None:
    expr = {"and": [both("lt", f("title"), f("count")), both("eq", f("levle"), text("x"))]}
    assert [at for at, _ in faults(expr)] == [("and", 0), ("and", 1, "eq", 0)]


@pytest.mark.parametrize(
    ("found", "wanted", "why"),
    [
        (JSON, AttrType("int"), None),
        (AttrType("int"), AttrType("float"), None),
        (AttrType("int"), AttrType("time"), None),
        (AttrType("float"), AttrType("int"), "a number where an integer is wanted"),
        (AttrType("time"), AttrType("string"), "a time in unix seconds where a text is wanted"),
        (AttrType("enum", values=("a",)), AttrType("string"), None),
        (AttrType("enum", values=("a",)), AttrType("enum", values=("a", "b")), None),
        (
            AttrType("enum", values=("a", "c")),
            AttrType("enum", values=("a", "b")),
            '"c" where one of "a", "b"',
        ),
        (AttrType("string"), AttrType("enum", values=("a",)), None),
        (AttrType("string", optional=True), AttrType("string"), "it may be null"),
        (AttrType("string", optional=True), AttrType("string", optional=True), None),
        (AttrType("string", optional=True), AttrType("string", default="x"), None),
        (
            AttrType("map", of=AttrType("int")),
            AttrType("map", of=AttrType("string")),
            "an integer where a text",
        ),
        (AttrType("bool"), AttrType("int"), "a boolean where an integer is wanted"),
    ],
)
def test_what_fits_where_another_type_is_wanted(found: AttrType, wanted: AttrType, why: str | None) -> None:
    said = assignable(found, wanted)
    assert (said is None) if why is None else (said is not None and why in said)


SIMPLE = st.sampled_from([f("title"), f("count"), f("price"), f("paid"), f("at"), f("level"), f("payload")])
VALUES = {
    "payload": st.sampled_from([None, 1, "x", [1], {"a": 1}]),
    "title": st.text(max_size=3),
    "count": st.integers(-5, 5),
    "price": st.floats(-5, 5),
    "paid": st.booleans(),
    "at": st.integers(0, 10),
    "level": st.sampled_from(["high", "low"]),
}


def _both(key: str, pair: tuple[Node, Node]) -> Node:
    return both(key, *pair)


def nodes(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    two = st.tuples(inner, inner)
    return st.one_of(
        *[two.map(partial(_both, key)) for key in ("eq", "lt", "add", "sub", "mul")],
        st.tuples(inner, inner, inner).map(lambda three: choice(*three)),
        inner.map(lambda one: {"not": one}),
        inner.map(lambda one: call("str", one)),
    )


@given(st.recursive(SIMPLE, nodes, max_leaves=6), st.fixed_dictionaries(VALUES))
def test_what_is_certain_comes_true(expr: Node, fields: dict[str, Any]) -> None:
    """A value that is computed is of the type that was inferred, and what holds no `json` never fails."""
    told: list[str] = []
    found = infer(expr, SCOPE, report=lambda at, what: told.append(what))
    if found is None:
        assert told
        return
    try:
        value = compile_expr(expr)(Env(fields, 0.0))
    except ExprError:
        if "payload" in str(expr) or "'if'" in str(expr):  # which may give anything
            return
        raise
    wanted = {"field": AttrType(found.type, True, None, found.values, found.of)}
    if found.type != "time":  # of which nothing below 1970 is one
        assert attrs.checker(wanted)({"field": value}) is None
