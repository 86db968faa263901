"""Expressions as text of the language: what people read, in messages and in what is printed of a spec.

What the language has no words for is written like a call: `is_null(payload.a)`, `map_enum(x, {"a": 1})`.
"""

from __future__ import annotations

import re
from typing import Any

from edgequeues.core.expression_nodes import FIELD_VARIABLES, PATH_VARIABLES, path_of
from edgequeues.core.jsonwords import json_text, path_text, quoted

# How tightly what is written holds together; what holds less tightly than its place asks is put in parentheses.
CHOICE, OR, AND, RELATION, SUM, PRODUCT, PREFIX, PATH = range(8)

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
_ROOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def text(expr: Any) -> str:
    """A checked expression as text, with no more parentheses than it takes to read it back."""
    return _write(expr)[0]


def _at_least(node: Any, tightness: int) -> str:
    written, own = _write(node)
    return written if own >= tightness else f"({written})"


def _write(node: Any) -> tuple[str, int]:
    """The text of a node, and how tightly it holds together."""
    key, value = next(iter(node.items()))
    if key in _OPERATORS:
        return _operator(key, value)
    if key in _CHAINS and len(value) > 1:
        sign, tightness = _CHAINS[key]
        return f" {sign} ".join(_at_least(each, tightness + 1) for each in value), tightness
    if key in _CHAINS:
        return _write({"bool": value[0]})
    if key == "if":
        cond, then = _at_least(value["cond"], OR), _at_least(value["then"], OR)
        return f"{cond} ? {then} : {text(value['else'])}", CHOICE
    if key == "not":
        return f"!{_at_least(value, PREFIX)}", PREFIX
    if key == "neg":
        # `-5` is a constant and `--a` hard to read; so what stands behind a minus is a path or in parentheses.
        return f"-{_at_least(value, PATH) if 'lit' not in value else f'({text(value)})'}", PREFIX
    if key == "lit":
        return _constant(value)
    return _primary(key, value), PATH


def _operator(key: str, operands: list[Any]) -> tuple[str, int]:
    sign, tightness = _OPERATORS[key]
    # Sums and products are read from the left; of comparisons one alone needs no parentheses.
    left = _at_least(operands[0], tightness + (tightness == RELATION))
    return f"{left} {sign} {_at_least(operands[1], tightness + 1)}", tightness


def _constant(value: Any) -> tuple[str, int]:
    key, constant = next(iter(value.items()))
    if key == "null":
        return "null", PREFIX
    if key == "float":
        return repr(float(constant)), PREFIX
    return json_text(constant), PREFIX


def _primary(key: str, value: Any) -> str:
    """A path, a call, a list or an object."""
    if key == "var":
        return _variable(value)
    if key == "get":
        return path_text(_at_least(value["expr"], PATH), path_of(value["path"], ()))
    if key == "has":
        return f"has({path_text(_at_least(value['expr'], PATH), path_of(value['path'], ()))})"
    if key == "arr":
        return f"[{', '.join(map(text, value))}]"
    if key == "obj":
        return _object(value)
    if key == "call":
        return f"{_FUNCTIONS.get(value['fn'], value['fn'])}({', '.join(map(text, value['args']))})"
    if key == "time_between":
        return f"time_between({', '.join(text(value[name]) for name in ('expr', 'from', 'to'))})"
    if key == "map_enum":
        default = f", {text(value['default'])}" if "default" in value else ""
        return f"map_enum({text(value['expr'])}, {json_text(value['mapping'])}{default})"
    if key == "state_will_be":
        return f"state_will_be({quoted(value['state'])})"
    operands = value if isinstance(value, list) else [value]
    return f"{key}({', '.join(map(text, operands))})"


def _variable(value: Any) -> str:
    key, detail = next(iter(value.items()))
    if key == "input":
        return str(detail["field"])
    if key in FIELD_VARIABLES:
        return path_text(key, [detail[FIELD_VARIABLES[key]]])
    if key in PATH_VARIABLES:
        return path_text(key, path_of(detail["path"], (), empty=True))
    return str(key)


def _object(value: dict[str, Any]) -> str:
    return "{" + ", ".join(f"{quoted(name)}: {text(each)}" for name, each in value.items()) + "}"
