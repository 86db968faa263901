"""The JSON of an expression: which nodes there are, what each may hold, and the limits of the whole.

An expression is an object with one key, its kind. Below, `e` stands for an expression.

| node | meaning |
|---|---|
| `{"lit": {"null": true}}` | null |
| `{"lit": {"bool": b}}`, `{"int": n}`, `{"float": x}`, `{"string": s}` | a constant; n within 64 bits, x finite |
| `{"var": {"input": {"field": f}}}` | a field of the message; in webhooks also `item` |
| `{"var": {"now": true}}` | the time, in unix seconds |
| `{"var": {"payload": {"path": p}}}` | the same as `get` of the input field `payload` |
| `{"var": {"attrs": {"field": f}}}`, `row` | a field of an entity, or of a row of a view |
| `{"var": {"arg": {"name": f}}}` | an argument |
| `{"var": {"e_payload": {"path": p}}}` | what is at a path in the payload of an event |
| `{"var": {"actor": true}}`, `state`, `rows_count`, `agg`, `e_type`, `e_actor`, `e_time` | a value as it is |
| `{"get": {"expr": e, "path": p}}`, `has` | what is at a path, else null; whether anything is there, null included |
| `{"obj": {key: e, ...}}`, `{"arr": [e, ...]}` | a new object, a new list |
| `{"not": e}`, `{"bool": e}`, `{"neg": e}`, `{"is_null": e}` | of one operand |
| `{"and": [e, ...]}`, `{"or": [e, ...]}`, `{"coalesce": [e, ...]}` | of one operand or more |
| `{"eq": [e, e]}`, `ne lt le gt ge in add sub mul div` | of two operands |
| `{"if": {"cond": e, "then": e, "else": e}}` | a choice |
| `{"time_between": {"expr": e, "from": e, "to": e}}` | from <= expr < to, each a number or an RFC 3339 text |
| `{"map_enum": {"expr": e, "mapping": {text: v, ...}, "default": e}}` | a table; `default` may be left out: null |
| `{"state_will_be": {"state": s}}` | whether the command at hand leads to that state |
| `{"call": {"fn": name, "args": [e, ...]}}` | len str int float lower upper time, and what the place has |

A path `p` is a list of keys and of positions from 0. A text is taken too: `"a.b.0"` is `["a", "b", 0]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from edgequeues.core.attrs import INT_MAX, INT_MIN
from edgequeues.core.jsonwords import did_you_mean, kind, quoted

DEPTH_MAX = 64  # nodes inside nodes
NODES_MAX = 1_000  # of one expression
STEPS_MAX = 64  # of one path: data is nested no deeper

At = tuple[str | int, ...]  # where in the JSON of an expression
Steps = list[str | int]  # a path in data

UNARY = frozenset({"not", "bool", "neg", "is_null"})
BINARY = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "add", "sub", "mul", "div"})
VARIADIC = frozenset({"and", "or", "coalesce"})
BUILT_IN = {
    "len": 1,
    "str": 1,
    "int": 1,
    "float": 1,
    "lower": 1,
    "upper": 1,
    "time": 1,
}  # with their arguments
FROM_PLACE = frozenset({"has_role", "role_of", "auth_ok", "allowed", "constraint"})

PLAIN_VARIABLES = frozenset({"actor", "state", "rows_count", "agg", "e_type", "e_actor", "e_time"})
FIELD_VARIABLES = {"input": "field", "attrs": "field", "row": "field", "arg": "name"}
PATH_VARIABLES = frozenset({"payload", "e_payload"})


class ExprFault(ValueError):
    """This JSON is no expression. path: where in it."""

    def __init__(self, path: At, text: str) -> None:
        self.path = path
        self.text = text
        where = ".".join(map(str, path))
        super().__init__(f"{where}: {text}" if where else text)


class Place(NamedTuple):
    """A value that expressions start from. group: `input`, `attrs`, ..., or the name of a plain variable."""

    group: str
    field: str | None
    steps: Steps


def one(node: Any, at: At, what: str = "an expression") -> tuple[str, Any]:
    """Key and value of an object that has exactly one."""
    if not isinstance(node, dict):
        raise ExprFault(at, f"{kind(node)} where {what} is wanted, an object with one key")
    if len(node) != 1:
        raise ExprFault(at, f"{what} is an object with one key, this one has {len(node)}")
    [(key, value)] = node.items()
    return key, value


def path_of(value: Any, at: At, *, empty: bool = False) -> Steps:
    """The steps of a path. Raises ExprFault; an empty one passes only where `empty`."""
    if isinstance(value, str):
        parts = value.split(".") if value else []
        if "" in parts:
            raise ExprFault(
                at, f"the path {quoted(value)} has an empty step; a list of steps may hold any key"
            )
        value = [
            int(part) if part.isascii() and part.isdigit() and len(part) < 19 else part for part in parts
        ]
    if not isinstance(value, list):
        raise ExprFault(at, f"{kind(value)} where a path is wanted, a list of keys and positions")
    for index, step in enumerate(value):
        if type(step) is int and not 0 <= step <= INT_MAX:
            raise ExprFault((*at, index), f"the position {step}; positions count from 0, to the front only")
        if type(step) is not int and type(step) is not str:
            raise ExprFault((*at, index), f"{kind(step)} where a key or a position is wanted")
    if not value and not empty:
        raise ExprFault(at, "an empty path")
    if len(value) > STEPS_MAX:
        raise ExprFault(at, f"a path of {len(value)} steps, at most {STEPS_MAX} are taken")
    return value


def place_of(node: Any) -> Place | None:
    """Where `var`, or `get` of one, reads; None for every other node. `node` has been checked.

    Steps of `get` inside `get` are joined. The first step into the input field `headers` is in lower case, as the
    names of headers are kept.
    """
    key, value = next(iter(node.items()))
    if key == "get":
        inner = place_of(value["expr"])
        return None if inner is None else _lowered(inner, path_of(value["path"], ()))
    if key != "var":
        return None
    group, detail = next(iter(value.items()))
    if group == "payload":
        return Place("input", "payload", path_of(detail["path"], (), empty=True))
    if group in PATH_VARIABLES:
        return Place(group, None, path_of(detail["path"], (), empty=True))
    return Place(group, detail[FIELD_VARIABLES[group]] if group in FIELD_VARIABLES else None, [])


def _lowered(place: Place, more: Steps) -> Place:
    if place.group == "input" and place.field == "headers" and not place.steps and isinstance(more[0], str):
        more = [more[0].lower(), *more[1:]]
    return place._replace(steps=[*place.steps, *more])


def children(node: Any, at: At) -> Iterator[tuple[Any, At]]:
    """The expressions directly inside a node of a right form, and where they are."""
    key, value = next(iter(node.items()))
    if key in UNARY:
        yield value, (*at, key)
    elif key in BINARY or key in VARIADIC or key == "arr":
        yield from ((item, (*at, key, index)) for index, item in enumerate(value))
    elif key == "obj":
        yield from ((item, (*at, key, name)) for name, item in value.items())
    elif key == "call":
        yield from ((item, (*at, key, "args", index)) for index, item in enumerate(value["args"]))
    elif key not in {"lit", "var", "state_will_be"}:
        names = ("cond", "then", "else", "expr", "from", "to", "default")
        yield from ((value[name], (*at, key, name)) for name in names if name in value)


def check(expr: Any, functions: Iterable[str] = ()) -> None:
    """Raises ExprFault unless `expr` is an expression within the limits. functions: those of the place."""
    known = {*BUILT_IN, *functions}
    waiting: list[tuple[Any, At, int]] = [(expr, (), 1)]
    nodes = 0
    while waiting:
        node, at, depth = waiting.pop()
        nodes += 1
        if nodes > NODES_MAX:
            raise ExprFault(at, f"more than {NODES_MAX} nodes; split the expression")
        if depth > DEPTH_MAX:
            raise ExprFault(at, f"nested more than {DEPTH_MAX} deep; split the expression")
        key, value = one(node, at)
        form = _FORMS.get(key)
        if form is None:
            raise ExprFault(at, f"there is no node {quoted(key)}{did_you_mean(key, _FORMS)}")
        form(value, (*at, key))
        if key == "call":
            _check_function(value, (*at, key), known)
        waiting.extend((child, where, depth + 1) for child, where in reversed([*children(node, at)]))


def roots(expr: Any) -> set[str]:
    """The input fields that a checked expression reads."""
    found = set()
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        place = place_of(node) if "var" in node else None
        if place is not None and place.group == "input" and place.field is not None:
            found.add(place.field)
        waiting.extend(child for child, _ in children(node, ()))
    return found


def node_at(expr: Any, path: At) -> Any:
    """The node that the path of an ExprError or of a report points to."""
    for step in path:
        expr = expr[step]
    return expr


def bare_path(expr: Any) -> tuple[str, Steps] | None:
    """The input field and the steps into it, where a checked expression is a path and nothing else."""
    place = place_of(expr)
    if place is None or place.group != "input" or place.field is None:
        return None
    return place.field, place.steps


# -- forms --------------------------------------------------------------------------------------------------


def _check_lit(value: Any, at: At) -> None:
    key, constant = one(value, at, "a constant")
    where = (*at, key)
    if key in {"null", "bool"}:
        if type(constant) is not bool or (key == "null" and not constant):
            raise ExprFault(
                where, f"{kind(constant)} where {'true' if key == 'null' else 'a boolean'} is wanted"
            )
    elif key == "int":
        if type(constant) is not int:
            raise ExprFault(where, f"{kind(constant)} where an integer is wanted")
        if not INT_MIN <= constant <= INT_MAX:
            raise ExprFault(where, "an integer beyond 64 bits")
    elif key == "float":
        # A writer of JSON may leave out the `.0` of a float.
        if type(constant) is not int and type(constant) is not float:
            raise ExprFault(where, f"{kind(constant)} where a number is wanted")
        if type(constant) is float and not math.isfinite(constant):
            raise ExprFault(where, "a number that is not finite")
        if type(constant) is int and not INT_MIN <= constant <= INT_MAX:
            raise ExprFault(where, "an integer beyond 64 bits; write it with an exponent")
    elif key == "string":
        if type(constant) is not str:
            raise ExprFault(where, f"{kind(constant)} where a text is wanted")
    else:
        known = ("null", "bool", "int", "float", "string")
        raise ExprFault(at, f"there is no constant {quoted(key)}{did_you_mean(key, known)}")


def _check_var(value: Any, at: At) -> None:
    key, detail = one(value, at, "a variable")
    where = (*at, key)
    if key == "now" or key in PLAIN_VARIABLES:
        if detail is not True:
            raise ExprFault(where, f"{kind(detail)} where true is wanted")
    elif key in FIELD_VARIABLES:
        _check_fields(detail, where, {FIELD_VARIABLES[key]})
        name = detail[FIELD_VARIABLES[key]]
        if type(name) is not str or not name:
            raise ExprFault(where, "a name is a text that is not empty")
    elif key in PATH_VARIABLES:
        _check_fields(detail, where, {"path"})
        path_of(detail["path"], (*where, "path"), empty=True)
    else:
        known = {"now", *PLAIN_VARIABLES, *FIELD_VARIABLES, *PATH_VARIABLES}
        raise ExprFault(at, f"there is no variable {quoted(key)}{did_you_mean(key, known)}")


def _check_fields(value: Any, at: At, wanted: set[str], also: Iterable[str] = ()) -> None:
    if not isinstance(value, dict):
        raise ExprFault(at, f"{kind(value)} where an object is wanted")
    for name in sorted(wanted - value.keys()):
        raise ExprFault(at, f"{quoted(name)} is missing")
    for name in value:
        if name not in wanted and name not in also:
            raise ExprFault(at, f"there is no {quoted(name)} here{did_you_mean(name, {*wanted, *also})}")


def _check_path(value: Any, at: At) -> None:
    _check_fields(value, at, {"expr", "path"})
    path_of(value["path"], (*at, "path"))


def _check_list(value: Any, at: At, least: int = 0, most: int = NODES_MAX) -> None:
    if not isinstance(value, list):
        raise ExprFault(at, f"{kind(value)} where a list of expressions is wanted")
    if not least <= len(value) <= most:
        wanted = str(least) if least == most else f"{least} or more"
        raise ExprFault(at, f"{len(value)} operands where {wanted} are wanted")


def _check_obj(value: Any, at: At) -> None:
    if not isinstance(value, dict):
        raise ExprFault(at, f"{kind(value)} where an object of expressions is wanted")


def _check_map_enum(value: Any, at: At) -> None:
    _check_fields(value, at, {"expr", "mapping"}, {"default"})
    mapping = value["mapping"]
    if not isinstance(mapping, dict):
        raise ExprFault((*at, "mapping"), f"{kind(mapping)} where an object is wanted")
    for name, constant in mapping.items():
        if isinstance(constant, list | dict) or kind(constant) == "no JSON":
            raise ExprFault((*at, "mapping", name), f"{kind(constant)} where a plain value is wanted")


def _check_state(value: Any, at: At) -> None:
    _check_fields(value, at, {"state"})
    if type(value["state"]) is not str:
        raise ExprFault((*at, "state"), f"{kind(value['state'])} where a text is wanted")


def _check_call(value: Any, at: At) -> None:
    _check_fields(value, at, {"fn", "args"})
    if type(value["fn"]) is not str:
        raise ExprFault((*at, "fn"), f"{kind(value['fn'])} where a text is wanted")
    _check_list(value["args"], (*at, "args"))


def _check_function(value: Any, at: At, known: set[str]) -> None:
    name = value["fn"]
    if name not in known:
        text = f"the function {quoted(name)} is not available here"
        if name not in FROM_PLACE:
            text = f"there is no function {quoted(name)}{did_you_mean(name, known)}"
        raise ExprFault((*at, "fn"), text)
    if name in BUILT_IN and len(value["args"]) != BUILT_IN[name]:
        raise ExprFault((*at, "args"), f"{len(value['args'])} arguments where {BUILT_IN[name]} is wanted")


def _check_nothing(value: Any, at: At) -> None:
    """An operand: it is looked at as a node of its own."""


_FORMS: dict[str, Callable[[Any, At], None]] = {
    "lit": _check_lit,
    "var": _check_var,
    "get": _check_path,
    "has": _check_path,
    "obj": _check_obj,
    "arr": _check_list,
    "if": lambda value, at: _check_fields(value, at, {"cond", "then", "else"}),
    "time_between": lambda value, at: _check_fields(value, at, {"expr", "from", "to"}),
    "map_enum": _check_map_enum,
    "state_will_be": _check_state,
    "call": _check_call,
    **dict.fromkeys(UNARY, _check_nothing),
    **dict.fromkeys(BINARY, lambda value, at: _check_list(value, at, 2, 2)),
    **dict.fromkeys(VARIADIC, lambda value, at: _check_list(value, at, 1)),
}
