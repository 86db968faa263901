"""Short ways to write the JSON of expressions."""

from __future__ import annotations

from typing import Any

from edgequeues.core.expressions import Env, compile_expr

Node = dict[str, Any]


def lit(value: Any) -> Node:
    """A constant, or a list or an object of such."""
    if isinstance(value, list):
        return {"arr": [lit(item) for item in value]}
    if isinstance(value, dict):
        return {"obj": {name: lit(item) for name, item in value.items()}}
    if value is None:
        return {"lit": {"null": True}}
    names = {bool: "bool", int: "int", float: "float", str: "string"}
    return {"lit": {names[type(value)]: value}}


def path(field: str, *steps: str | int) -> Node:
    root = {"var": {"input": {"field": field}}}
    return {"get": {"expr": root, "path": list(steps)}} if steps else root


def call(name: str, *args: Node) -> Node:
    return {"call": {"fn": name, "args": list(args)}}


def choice(cond: Node, then: Node, other: Node) -> Node:
    return {"if": {"cond": cond, "then": then, "else": other}}


def value_in(env: Env, expr: Any) -> Any:
    return compile_expr(expr)(env)


def value_of(expr: Any, **fields: Any) -> Any:
    """What `expr` is for a message with these fields."""
    return value_in(Env(fields), expr)
