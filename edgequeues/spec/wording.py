"""Expressions as text of the language: what people read, in messages and in what is printed of a spec.

What the language has no words for is written like a call: `is_null(payload.a)`, `map_enum(x, {"a": 1})`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edgequeues.core.expression_nodes import FIELD_VARIABLES, PATH_VARIABLES, path_of
from edgequeues.core.jsonwords import json_text, path_text, quoted

# How tightly what is written holds together; what holds less tightly than its place asks is put in parentheses.
CHOICE, OR, AND, RELATION, SUM, PRODUCT, PREFIX, CONSTANT, PATH = range(9)

Written = tuple[str, int]

_OPERATORS = {
    "eq": ("==", RELATION),
    "ne": ("!=", RELATION),
    "lt": ("<", RELATION),
    "le": ("<=", RELATION),
    "gt": (">", RELATION),
    "ge": (">=", RELATION),
    "in": ("in", RELATION),
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": ("*", PRODUCT),
    "div": ("/", PRODUCT),
}
_CHAINS = {"and": ("&&", AND), "or": ("||", OR)}
_FUNCTIONS = {"len": "size", "str": "string", "float": "double"}  # where the names differ


def text(expr: Any) -> str:
    """A checked expression as text, with no more parentheses than it takes to read it back."""
    return _write(expr)[0]


def _at_least(node: Any, tightness: int) -> str:
    written, own = _write(node)
    return written if own >= tightness else f"({written})"


def _write(node: Any) -> Written:
    """The text of a node, and how tightly it holds together."""
    key, value = next(iter(node.items()))
    if key in _OPERATORS:
        return _operator(key, value)
    writer = _WRITERS.get(key)
    if writer is not None:
        return writer(value)
    return f"{key}({', '.join(map(text, value if isinstance(value, list) else [value]))})", PATH


def _operator(key: str, operands: list[Any]) -> Written:
    sign, tightness = _OPERATORS[key]
    # Sums and products are read from the left; of comparisons one alone needs no parentheses.
    left = _at_least(operands[0], tightness + (tightness == RELATION))
    return f"{left} {sign} {_at_least(operands[1], tightness + 1)}", tightness


def _chain(sign: str, tightness: int) -> Callable[[Any], Written]:
    def write(value: list[Any]) -> Written:
        if len(value) == 1:
            return f"bool({text(value[0])})", PATH
        return f" {sign} ".join(_at_least(each, tightness + 1) for each in value), tightness

    return write


def _choice(value: Any) -> Written:
    cond, then = _at_least(value["cond"], OR), _at_least(value["then"], OR)
    return f"{cond} ? {then} : {text(value['else'])}", CHOICE


def _not(value: Any) -> Written:
    return f"!{_at_least(value, PREFIX if 'not' in value else CONSTANT)}", PREFIX


def _neg(value: Any) -> Written:
    # `-5` is a constant, so that a minus before one needs parentheses to stay an operation.
    return f"-({text(value)})" if "lit" in value else f"-{_at_least(value, CONSTANT)}", PREFIX


def _lit(value: Any) -> Written:
    key, constant = next(iter(value.items()))
    written = "null" if key == "null" else repr(float(constant)) if key == "float" else json_text(constant)
    return written, PREFIX if written.startswith("-") else CONSTANT


def _path(value: Any) -> str:
    return path_text(_at_least(value["expr"], PATH), path_of(value["path"], ()))


def _call(value: Any) -> Written:
    return f"{_FUNCTIONS.get(value['fn'], value['fn'])}({', '.join(map(text, value['args']))})", PATH


def _map_enum(value: Any) -> Written:
    default = f", {text(value['default'])}" if "default" in value else ""
    return f"map_enum({text(value['expr'])}, {json_text(value['mapping'])}{default})", PATH


def _var(value: Any) -> Written:
    key, detail = next(iter(value.items()))
    if key == "input":
        return str(detail["field"]), PATH
    if key in FIELD_VARIABLES:
        return path_text(key, [detail[FIELD_VARIABLES[key]]]), PATH
    if key in PATH_VARIABLES:
        return path_text(key, path_of(detail["path"], (), empty=True)), PATH
    return str(key), PATH


def _obj(value: dict[str, Any]) -> Written:
    return "{" + ", ".join(f"{quoted(name)}: {text(each)}" for name, each in value.items()) + "}", PATH


def _time_between(value: Any) -> Written:
    return f"time_between({', '.join(text(value[name]) for name in ('expr', 'from', 'to'))})", PATH


# What is not here is written as a call of its name: coalesce, bool, is_null.
_WRITERS: dict[str, Callable[[Any], Written]] = {
    "and": _chain("&&", AND),
    "or": _chain("||", OR),
    "if": _choice,
    "not": _not,
    "neg": _neg,
    "lit": _lit,
    "var": _var,
    "get": lambda value: (_path(value), PATH),
    "has": lambda value: (f"has({_path(value)})", PATH),
    "arr": lambda value: (f"[{', '.join(map(text, value))}]", PATH),
    "obj": _obj,
    "call": _call,
    "time_between": _time_between,
    "map_enum": _map_enum,
    "state_will_be": lambda value: (f"state_will_be({quoted(value['state'])})", PATH),
}
