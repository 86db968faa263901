"""Types of message fields: what a spec declares, and whether a value is of that type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from sys import float_info
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from edgequeues.core.jsonwords import did_you_mean, json_text, kind, path_text, quoted

AttrName = Literal["json", "string", "int", "float", "bool", "time", "enum", "map"]

DEPTH_MAX = 8  # maps of maps
TIME_END = 253_402_300_800  # unix seconds, the year 10000
SHOWN_MAX = 80  # characters of a key or a value in a message of ours
INT_MIN, INT_MAX = -(2**63), 2**63 - 1

Test = Callable[[Any], bool]

_WANTED = {
    "json": "anything",
    "string": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "time": "a time in unix seconds",
    "map": "an object",
}


class AttrType(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The type of one field. values: of an enum. of: the type of a map's values; its keys are strings.

    time: unix seconds, an integer or a fraction. optional: may be missing or null. default: stands in for what is
    missing or null.
    """

    type: AttrName = "json"
    optional: bool = False
    default: Any = None
    values: Annotated[tuple[str, ...], Meta(max_length=200)] = ()
    of: AttrType | None = None


def checker(message_type: Mapping[str, AttrType]) -> Callable[[object], str | None]:
    """A function that says what is first wrong with a message, with its path, and None of one that will do."""
    tests = {name: _test(attr) for name, attr in message_type.items()}
    required = frozenset(name for name, attr in message_type.items() if not _may_be_missing(attr))

    def check(message: object) -> str | None:
        if type(message) is dict and required <= message.keys():
            for name, value in message.items():
                test = tests.get(name)
                if test is None or not test(value):
                    break
            else:
                return None
        return _first_fault(message, message_type)

    return check


def with_defaults(message_type: Mapping[str, AttrType], value: Mapping[str, Any]) -> dict[str, Any] | None:
    """The message with each default where nothing or null is. None: nothing is to be filled in."""
    missing = {
        name: attr.default
        for name, attr in message_type.items()
        if attr.default is not None and value.get(name) is None
    }
    return {**value, **missing} if missing else None


def fields_of(message_type: Mapping[str, AttrType], value: object) -> Mapping[str, Any]:
    """The fields of a message as expressions see them, defaults filled in; none where it is no object."""
    fields = value if isinstance(value, dict) else {}
    return with_defaults(message_type, fields) or fields


def check_type(attr: AttrType) -> str | None:
    """What is wrong with the declaration of a type; None: nothing."""
    inner: AttrType | None = attr
    for depth in range(DEPTH_MAX + 2):
        if inner is None:
            return None if attr.default is None else _fault(attr, attr.default, "the default")
        fault = _fault_of_form(inner)
        if fault is None and depth > 0 and inner.default is not None:
            fault = "a default is of a field, not of what is in a map"
        if fault is not None:
            return fault
        inner = inner.of
    return f"maps inside maps, more than {DEPTH_MAX} deep"


def show(attr: AttrType) -> str:
    """The type as the language writes it: `map<string, string>?`, `enum("a", "b")`, `int = 3`."""
    text: str = attr.type
    if attr.type == "enum":
        text = f"enum({', '.join(map(quoted, attr.values))})"
    elif attr.type == "map" and attr.of is not None:
        text = f"map<string, {show(attr.of)}>"
    optional = "?" if attr.optional else ""
    return text + optional + ("" if attr.default is None else f" = {json_text(attr.default)}")


def wanted(attr: AttrType) -> str:
    """What values of the type are called: "an integer", `one of "a", "b"`."""
    return f"one of {', '.join(map(quoted, attr.values))}" if attr.type == "enum" else _WANTED[attr.type]


# -- declarations -------------------------------------------------------------------------------------------


def _fault_of_form(attr: AttrType) -> str | None:
    if attr.type == "enum" and not attr.values:
        return "an enum has at least one value"
    if attr.type != "enum" and attr.values:
        return f"{attr.type} has values; those are of an enum"
    for index, value in enumerate(attr.values):
        if value in attr.values[:index]:
            return f"the enum has {quoted(value)} twice"
    if attr.type == "map" and attr.of is None:
        return "a map says what it holds: map<string, json> takes anything"
    if attr.type != "map" and attr.of is not None:
        return f"{attr.type} has a type inside; that is of a map"
    return None


# -- values -------------------------------------------------------------------------------------------------


def _may_be_missing(attr: AttrType) -> bool:
    return attr.optional or attr.default is not None


def _test(attr: AttrType) -> Test:
    """Whether a value is of the type: the quick way, `_fault` finds the words."""
    test = (
        _map_test(attr)
        if attr.type == "map"
        else _enum_test(attr)
        if attr.type == "enum"
        else _TESTS[attr.type]
    )
    if _may_be_missing(attr):
        return lambda value: value is None or test(value)
    return test


def _enum_test(attr: AttrType) -> Test:
    values = frozenset(attr.values)
    return lambda value: type(value) is str and value in values


def _map_test(attr: AttrType) -> Test:
    inner = _test(attr.of or AttrType())
    return lambda value: type(value) is dict and all(inner(item) for item in value.values())


def _is_int(value: Any) -> bool:
    return type(value) is int and INT_MIN <= value <= INT_MAX


def _is_float(value: Any) -> bool:
    if type(value) is int:
        return -float_info.max <= value <= float_info.max
    return type(value) is float and isfinite(value)


def _is_time(value: Any) -> bool:
    return (type(value) is int or type(value) is float) and 0 <= value < TIME_END


_TESTS: dict[str, Test] = {
    "json": lambda value: True,
    "string": lambda value: type(value) is str,
    "int": _is_int,
    "float": _is_float,
    "bool": lambda value: type(value) is bool,
    "time": _is_time,
}


def _first_fault(message: object, message_type: Mapping[str, AttrType]) -> str | None:
    if not isinstance(message, dict):
        return f"message: {kind(message)} where an object is wanted"
    for name, value in message.items():
        if name not in message_type:
            close = did_you_mean(name, message_type) if len(name) <= SHOWN_MAX else ""
            return f"{_inside('message', name)}: the type has no such field{close}"
        fault = _fault(message_type[name], value, _inside("message", name))
        if fault is not None:
            return fault
    for name, attr in message_type.items():
        if name not in message and not _may_be_missing(attr):
            return f"{_inside('message', name)}: missing, {wanted(attr)} is wanted"
    return None


def _fault(attr: AttrType, value: Any, where: str) -> str | None:
    if _test(attr)(value):
        return None
    if attr.type == "map" and isinstance(value, dict):
        for name, item in value.items():
            fault = _fault(attr.of or AttrType(), item, _inside(where, name))
            if fault is not None:
                return fault
    if attr.type == "enum" and isinstance(value, str):
        return f"{where}: {quoted(_shortened(value))} is none of {', '.join(map(quoted, attr.values))}"
    if attr.type == "int" and type(value) is int:
        return f"{where}: an integer beyond 64 bits"
    if attr.type in {"float", "time"} and kind(value) in {"an integer", "a number"}:
        return f"{where}: {kind(value)} out of range where {wanted(attr)} is wanted"
    return f"{where}: {kind(value)} where {wanted(attr)} is wanted"


def _inside(where: str, name: str) -> str:
    return path_text(where, [_shortened(name)])


def _shortened(text: str) -> str:
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."
