"""Expressions: computed from a message by closures that are made once. `expression_nodes` lists what there is.

An expression always ends and changes nothing. It reads JSON values by key and by position, never an attribute of an
object of Python. What is missing is null; what is wrong is an ExprError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from edgequeues.core import expression_values as values
from edgequeues.core.expression_nodes import (
    At,
    ExprFault,
    Place,
    bare_path,
    check,
    children,
    node_at,
    path_of,
    place_of,
    roots,
)
from edgequeues.core.expression_reading import Closure, Env, found, origin, read, steps_into
from edgequeues.core.expression_values import ExprError, equal, truthy

__all__ = ["Env", "ExprError", "ExprFault", "bare_path", "compile_expr", "found", "node_at", "roots"]

Function = Callable[..., Any]
Operands = dict[At, Closure]  # of a node, by where they are inside it
Maker = Callable[[Any, At, Operands], Closure]

_MISSING = object()


def compile_expr(expr: Any, *, calls: Mapping[str, Function] = {}) -> Closure:
    """A function from an Env to the value of `expr`; it raises nothing but ExprError. Raises ExprFault.

    calls: functions of the place, by name; each is given the Env and its arguments.
    """
    check(expr, calls)
    return _closure(expr, (), calls)


def _closure(node: Any, at: At, calls: Mapping[str, Function]) -> Closure:
    key, value = next(iter(node.items()))
    place = place_of(node)
    if place is not None:
        return read(place)
    operands = {where[len(at) + 1 :]: _closure(child, where, calls) for child, where in children(node, at)}
    if key == "call" and value["fn"] in calls:
        return _call(calls[value["fn"]], list(operands.values()))
    return _MAKERS[key](value, at, operands)


# -- paths, constants, comparisons ----------------------------------------------------------------------


def _get(value: Any, at: At, operands: Operands) -> Closure:
    """A path from what another node than a variable makes."""
    return steps_into(operands["expr",], path_of(value["path"], at))


def _has(value: Any, at: At, operands: Operands) -> Closure:
    place = place_of({"get": value})
    start, steps = (operands["expr",], path_of(value["path"], at)) if place is None else origin(place)
    walked = steps_into(start, steps, _MISSING)
    return lambda env: walked(env) is not _MISSING


def _constant(node: Any) -> tuple[Any] | None:
    """The value of a constant, in a tuple; None for other nodes."""
    if "lit" not in node:
        return None
    key, value = next(iter(node["lit"].items()))
    return ({"null": None, "float": float(value)}.get(key, value) if key in {"null", "float"} else value,)


def _lit(value: Any, at: At, operands: Operands) -> Closure:
    constant = _constant({"lit": value})
    assert constant is not None
    [same] = constant
    return lambda env: same


def _eq(value: Any, at: At, operands: Operands) -> Closure:
    left, right = operands[0,], operands[1,]
    for other, node in ((left, value[1]), (right, value[0])):
        constant = _constant(node)
        if constant is not None:
            return _eq_constant(other, constant[0])
    return lambda env: equal(left(env), right(env))


def _eq_constant(other: Closure, constant: Any) -> Closure:
    if constant is None or type(constant) is bool:
        return lambda env: other(env) is constant
    if type(constant) is str:
        return lambda env: other(env) == constant  # nothing but a text is equal to a text, for Python too
    return lambda env: equal(other(env), constant)


def _ne(value: Any, at: At, operands: Operands) -> Closure:
    same = _eq(value, at, operands)
    return lambda env: not same(env)


def _in(value: Any, at: At, operands: Operands) -> Closure:
    item, box = operands[0,], operands[1,]
    place = place_of(value[1])
    if place == Place("input", "headers", []):
        inner = item
        item = lambda env: _lowered(inner(env))  # noqa: E731
    contains = values.contains(at)
    return lambda env: contains(item(env), box(env))


def _lowered(name: Any) -> Any:
    return name.lower() if type(name) is str else name


def _order(name: str) -> Maker:
    def make(value: Any, at: At, operands: Operands) -> Closure:
        left, right, compare = operands[0,], operands[1,], values.order(name, at)
        return lambda env: compare(left(env), right(env))

    return make


def _arithmetic(name: str) -> Maker:
    def make(value: Any, at: At, operands: Operands) -> Closure:
        left, right, compute = operands[0,], operands[1,], values.arithmetic(name, at)
        return lambda env: compute(left(env), right(env))

    return make


# -- logic and choice ---------------------------------------------------------------------------------------

# What these make is never a list or an object, so that Python's truth is ours.
_NO_CONTAINER = frozenset(
    {"eq", "ne", "lt", "le", "gt", "ge", "in", "not", "bool", "and", "or", "is_null", "has"}
)


def _condition(node: Any, closure: Closure) -> Closure:
    """A closure whose result is as true for Python as that of `closure` is for us."""
    if next(iter(node)) in _NO_CONTAINER:
        return closure
    return lambda env: truthy(closure(env))


def _and(value: Any, at: At, operands: Operands) -> Closure:
    conditions = [_condition(node, closure) for node, closure in zip(value, operands.values(), strict=True)]
    if len(conditions) == 2:
        left, right = conditions
        return lambda env: bool(left(env) and right(env))
    return lambda env: all(condition(env) for condition in conditions)


def _or(value: Any, at: At, operands: Operands) -> Closure:
    conditions = [_condition(node, closure) for node, closure in zip(value, operands.values(), strict=True)]
    if len(conditions) == 2:
        left, right = conditions
        return lambda env: bool(left(env) or right(env))
    return lambda env: any(condition(env) for condition in conditions)


def _not(value: Any, at: At, operands: Operands) -> Closure:
    condition = _condition(value, operands[()])
    return lambda env: not condition(env)


def _bool(value: Any, at: At, operands: Operands) -> Closure:
    operand = operands[()]
    return lambda env: truthy(operand(env))


def _is_null(value: Any, at: At, operands: Operands) -> Closure:
    operand = operands[()]
    return lambda env: operand(env) is None


def _neg(value: Any, at: At, operands: Operands) -> Closure:
    operand, negated = operands[()], values.negate(at)
    return lambda env: negated(operand(env))


def _if(value: Any, at: At, operands: Operands) -> Closure:
    condition = _condition(value["cond"], operands["cond",])
    then, other = operands["then",], operands["else",]
    yes, no = _constant(value["then"]), _constant(value["else"])
    if yes is not None and no is not None:
        [first], [second] = yes, no
        return lambda env: first if condition(env) else second
    return lambda env: then(env) if condition(env) else other(env)


def _coalesce(value: Any, at: At, operands: Operands) -> Closure:
    closures = list(operands.values())

    def first(env: Env) -> Any:
        for closure in closures:
            value = closure(env)
            if value is not None:
                return value
        return None

    return first


# -- the rest -----------------------------------------------------------------------------------------------


def _obj(value: Any, at: At, operands: Operands) -> Closure:
    closures = dict(zip(value, operands.values(), strict=True))
    return lambda env: {name: closure(env) for name, closure in closures.items()}


def _arr(value: Any, at: At, operands: Operands) -> Closure:
    closures = list(operands.values())
    return lambda env: [closure(env) for closure in closures]


def _time_between(value: Any, at: At, operands: Operands) -> Closure:
    closures = [operands["expr",], operands["from",], operands["to",]]

    def between(env: Env) -> bool | None:
        time, first, last = (values.unix_seconds(closure(env)) for closure in closures)
        return None if time is None or first is None or last is None else first <= time < last

    return between


def _map_enum(value: Any, at: At, operands: Operands) -> Closure:
    key, mapping, default = operands["expr",], dict(value["mapping"]), operands.get(("default",))

    def mapped(env: Env) -> Any:
        found = key(env)
        if type(found) is str and found in mapping:
            return mapping[found]
        return None if default is None else default(env)

    return mapped


def _state_will_be(value: Any, at: At, operands: Operands) -> Closure:
    state = value["state"]
    return lambda env: env.more.get("next_state") == state


def _built_in(value: Any, at: At, operands: Operands) -> Closure:
    function = values.FUNCTIONS[value["fn"]](at)
    [operand] = operands.values()
    return lambda env: function(operand(env))


def _call(function: Function, closures: list[Closure]) -> Closure:
    """A function of the place. What it raises but ExprError is a fault of the place."""
    return lambda env: function(env, *(closure(env) for closure in closures))


_MAKERS: dict[str, Maker] = {
    "lit": _lit,
    "get": _get,
    "has": _has,
    "obj": _obj,
    "arr": _arr,
    "not": _not,
    "and": _and,
    "or": _or,
    "bool": _bool,
    "eq": _eq,
    "ne": _ne,
    "in": _in,
    "neg": _neg,
    "if": _if,
    "coalesce": _coalesce,
    "is_null": _is_null,
    "time_between": _time_between,
    "map_enum": _map_enum,
    "state_will_be": _state_will_be,
    "call": _built_in,
    **{name: _order(name) for name in values.ORDERS},
    **{name: _arithmetic(name) for name in values.ARITHMETIC},
}
