"""Types of expressions: what an expression will give, as far as that is certain before any message came.

`json` is not known before: it fits everywhere, and what it turns out to be is looked at when a message comes. What is
reported here could never work. A text that is written out has the type of an enum of that one value, so that it is
known whether it is one of those that another enum has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from edgequeues.core.attrs import AttrName, AttrType, wanted
from edgequeues.core.expression_nodes import At, Place, Steps, children, path_of, place_of
from edgequeues.core.jsonwords import did_you_mean, quoted

Report = Callable[[At, str], None]
Scope = Mapping[str, AttrType]

JSON, BOOL, STRING = AttrType(), AttrType("bool"), AttrType("string")
INT, FLOAT, TIME = AttrType("int"), AttrType("float"), AttrType("time")
NULL = AttrType("json", optional=True)

TEXTS = frozenset({"string", "enum"})
NUMBERS = frozenset({"int", "float", "time"})
ORDER = frozenset({"lt", "le", "gt", "ge"})
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
LITERALS = {"bool": BOOL, "int": INT, "float": FLOAT}

# What functions take, and what they give.
FUNCTIONS: dict[str, tuple[frozenset[str], AttrType]] = {
    "len": (TEXTS | {"map"}, INT),
    "str": (TEXTS | NUMBERS | {"bool"}, STRING),
    "int": (TEXTS | NUMBERS | {"bool"}, INT),
    "float": (TEXTS | NUMBERS | {"bool"}, FLOAT),
    "lower": (TEXTS, STRING),
    "upper": (TEXTS, STRING),
    "time": (TEXTS | NUMBERS, TIME),
}


def infer(expr: Any, scope: Scope, *, report: Report) -> AttrType | None:
    """The type of what a valid expression gives; None where a part of it cannot work, which was reported.

    scope: the fields it may read. report: is given the place in the JSON of the expression, and what is wrong there.
    """
    return _Inference(scope, report).of(expr, ())


def assignable(found: AttrType, target: AttrType) -> str | None:
    """Why a value of the one type cannot be given where the other is wanted; None: it can, or that is seen later."""
    if "json" in (found.type, target.type):
        return None
    if found.optional and not target.optional and target.default is None:
        return f"it may be null where {wanted(target)} is wanted: say what stands in with coalesce(...)"
    if found.type == "enum" == target.type:
        others = [quoted(value) for value in found.values if value not in target.values]
        return f"{', '.join(others)} where {wanted(target)} is wanted" if others else None
    if found.type == "map" == target.type:
        return assignable(found.of or JSON, target.of or JSON)
    if found.type == target.type or target.type in _FITS.get(found.type, ()):
        return None
    return f"{_name(found)} where {wanted(target)} is wanted"


_FITS = {
    "enum": ("string",),
    "string": ("enum",),  # which of them it is, is seen later
    "int": ("float", "time"),
    "float": ("time",),
    "time": ("float",),
}


class _Inference:
    """One walk through an expression."""

    def __init__(self, scope: Scope, report: Report) -> None:
        self._scope = scope
        self._report = report

    def of(self, node: Any, at: At) -> AttrType | None:
        """The type of a node."""
        place = place_of(node)
        if place is not None:
            return self._place(place, at)
        key, value = next(iter(node.items()))
        inner = [self.of(child, where) for child, where in children(node, at)]
        if key == "lit":
            return _literal(value)
        if key == "var":
            return JSON
        known = [one for one in inner if one is not None]
        if len(known) < len(inner):
            return None
        return self._made(key, value, known, at)

    def _made(self, key: str, value: Any, inner: list[AttrType], at: At) -> AttrType | None:
        """The type of a node whose operands have these types."""
        if key in ARITHMETIC:
            return self._arithmetic(key, inner, at)
        if key in ("get", "has"):
            reached = self._steps(inner[0], path_of(value["path"], at), at)
            return BOOL if reached is not None and key == "has" else reached
        if key in ("coalesce", "if"):
            return _joined(inner if key == "coalesce" else inner[1:], coalesced=key == "coalesce")
        if key in _MADE:
            return _MADE[key](self, value, inner, at)
        check = _PREDICATES.get(key)
        fault = None if check is None else check(*inner)
        return BOOL if fault is None else self._blame(at, fault)

    def _blame(self, at: At, what: str) -> AttrType | None:
        """Report what cannot work; it has no type."""
        self._report(at, what)
        return None

    def _place(self, place: Place, at: At) -> AttrType | None:
        """A variable, or a path from one."""
        if place.group == "now":
            return TIME
        if place.group != "input" or place.field is None:
            return JSON
        if place.field not in self._scope:
            return self._blame(
                at, f"there is no field `{place.field}`{did_you_mean(place.field, self._scope)}"
            )
        attr = self._scope[place.field]
        found = _optional(attr, attr.optional and attr.default is None)
        return self._steps(found, place.steps, at)

    def _steps(self, found: AttrType, steps: Steps, at: At) -> AttrType | None:
        """What is at a path in a value of this type."""
        for step in steps:
            if found.type == "json":
                return JSON
            if found.type != "map":
                return self._blame(at, f"{_name(found)} has nothing at {quoted(str(step))}")
            if isinstance(step, int):
                return self._blame(at, f"an object has nothing at position {step}: its keys are texts")
            found = found.of or JSON
        return found

    def _json(self, value: Any, inner: list[AttrType], at: At) -> AttrType | None:
        return JSON

    def _neg(self, value: Any, inner: list[AttrType], at: At) -> AttrType | None:
        if inner[0].type in NUMBERS or inner[0].type == "json":
            return inner[0]
        return self._blame(at, f"- {_name(inner[0])}: a number is wanted")

    def _arithmetic(self, key: str, inner: list[AttrType], at: At) -> AttrType | None:
        left, right = inner
        kinds, optional = {left.type, right.type}, left.optional or right.optional
        if key == "add" and kinds <= TEXTS:
            return AttrType("string", optional)
        if "json" in kinds:
            other = right if left.type == "json" else left
            if other.type in NUMBERS or other.type == "json" or (key == "add" and other.type in TEXTS):
                return JSON
        elif kinds <= NUMBERS:
            return AttrType(_number_of(key, left.type, right.type), optional)
        return self._blame(at, f"{_name(left)} {ARITHMETIC[key]} {_name(right)} is no number{_or_text(key)}")

    def _call(self, value: Any, inner: list[AttrType], at: At) -> AttrType | None:
        name = value["fn"]
        if name not in FUNCTIONS:
            return JSON
        takes, gives = FUNCTIONS[name]
        for one in inner:
            if one.type != "json" and one.type not in takes:
                return self._blame(at, f"{_SHOWN.get(name, name)}() takes no {_name(one).partition(' ')[2]}")
        return AttrType(gives.type, any(one.optional and one.type != "json" for one in inner))

    def _map_enum(self, value: Any, inner: list[AttrType], at: At) -> AttrType | None:
        if inner[0].type not in TEXTS and inner[0].type != "json":
            return self._blame(at, f"map_enum() takes a text, not {_name(inner[0])}")
        values = value["mapping"].values()
        return STRING if "default" in value and all(isinstance(one, str) for one in values) else JSON


# -- rules --------------------------------------------------------------------------------------------------


def _comparable(left: AttrType, right: AttrType) -> str | None:
    kinds = {left.type, right.type}
    if "json" in kinds or kinds <= NUMBERS:
        return None
    if kinds == {"enum"} and not set(left.values) & set(right.values):
        fewer, more = sorted((left, right), key=lambda one: len(one.values))
        return f"{', '.join(map(quoted, fewer.values))} is never {wanted(more)}"
    if kinds <= TEXTS or left.type == right.type:
        return None
    return f"{_name(left)} never equals {_name(right)}"


def _ordered(left: AttrType, right: AttrType) -> str | None:
    kinds = {left.type, right.type} - {"json"}
    if kinds <= NUMBERS or kinds <= TEXTS:
        return None
    return f"{_name(left)} and {_name(right)} have no order"


def _holds(item: AttrType, container: AttrType) -> str | None:
    if container.type == "json" or (container.type == "map" and item.type in (*TEXTS, "json")):
        return None
    if container.type == "map":
        return f"`in` looks for a text among the keys of an object, not for {_name(item)}"
    return f"`in` looks into a list or an object, not into {_name(container)}"


def _between(*inner: AttrType) -> str | None:
    wrong = [one for one in inner if one.type not in NUMBERS | TEXTS | {"json"}]
    return f"time_between() takes times, not {_name(wrong[0])}" if wrong else None


_MADE: dict[str, Callable[[_Inference, Any, list[AttrType], At], AttrType | None]] = {
    "neg": _Inference._neg,
    "call": _Inference._call,
    "map_enum": _Inference._map_enum,
    "obj": _Inference._json,
    "arr": _Inference._json,
}
_PREDICATES: dict[str, Callable[..., str | None]] = {
    "eq": _comparable,
    "ne": _comparable,
    **dict.fromkeys(ORDER, _ordered),
    "in": _holds,
    "time_between": _between,
}
_SHOWN = {"len": "size", "str": "string", "float": "double"}  # as the language calls them


def _literal(value: Mapping[str, Any]) -> AttrType:
    key, constant = next(iter(value.items()))
    return AttrType("enum", values=(constant,)) if key == "string" else LITERALS.get(key, NULL)


def _joined(types: Iterable[AttrType], *, coalesced: bool) -> AttrType:
    """The type of a value that is of one of these. coalesced: of the first that is not null."""
    several = list(types)
    optional = (all if coalesced else any)(one.optional for one in several)
    return _optional(reduce(_either, several), optional)


def _either(left: AttrType, right: AttrType) -> AttrType:
    kinds = {left.type, right.type}
    if kinds == {"enum"}:
        return AttrType("enum", values=tuple(dict.fromkeys((*left.values, *right.values))))
    if kinds <= TEXTS:
        return STRING
    if left.type == right.type and left.of == right.of:
        return left
    return FLOAT if kinds <= NUMBERS else JSON


def _optional(attr: AttrType, optional: bool) -> AttrType:
    return AttrType(attr.type, optional, None, attr.values, attr.of)


def _number_of(key: str, left: str, right: str) -> AttrName:
    if left == right == "int":
        return "int"
    if key in ("add", "sub") and (left == "time") != (right == "time"):
        return "time"
    return "float"


def _or_text(key: str) -> str:
    return ", and no text" if key == "add" else ""


def _name(attr: AttrType) -> str:
    """What a value of the type is called."""
    return "a text" if attr.type == "enum" else wanted(attr)
