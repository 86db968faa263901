"""Expressions as the grammar reads them: the JSON of each, and where its parts stand in the text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from edgequeues.spec.faults import Path, listed, meant

BINARY = {
    "==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "in": "in",
    "+": "add", "-": "sub", "*": "mul", "/": "div",
}  # fmt: skip
MANY = {"&&": "and", "||": "or"}
CALLS = {
    "size": "len", "string": "str", "int": "int", "double": "float",
    "lower": "lower", "upper": "upper", "time": "time",
}  # fmt: skip
ONE = frozenset({"bool", "is_null"})  # functions that are nodes of one operand
FUNCTIONS = (*CALLS, *sorted(ONE), "coalesce", "has", "time_between", "map_enum")
DIGITS_MAX = 20  # of an integer; more is no number of 64 bits, and need not be computed

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)")
_SIMPLE = frozenset("\"'\\/bfnrtu")
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class Token(Protocol):
    """A token of lark: also a text."""

    type: str
    start_pos: int
    end_pos: int


class Trouble(NamedTuple):
    """Something wrong with a part of a value."""

    start: int
    end: int
    what: str
    remedy: str = ""


@dataclass
class Expression:
    """ast: its JSON. depth: nodes inside nodes. fresh: not in parentheses, so what follows may join it."""

    ast: dict[str, Any]
    start: int
    end: int
    kids: list[tuple[Path, Expression]] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    fresh: bool = True
    depth: int = 1

    def __post_init__(self) -> None:
        self.depth = 1 + max((kid.depth for _, kid in self.kids), default=0)

    def walk(self, at: Path = ()) -> Iterator[tuple[Path, Expression]]:
        """Itself and all within, with their paths. Only for those that are not too deep."""
        yield at, self
        for path, kid in self.kids:
            yield from kid.walk((*at, *path))

    @property
    def bare(self) -> str | None:
        """The name, where it is a name and nothing else."""
        if not self.fresh or "var" not in self.ast:
            return None
        variable = self.ast["var"]
        return "now" if "now" in variable else str(variable["input"]["field"])

    @property
    def unary_literal(self) -> bool:
        """Is it a number without a sign?"""
        literal = self.ast.get("lit", {})
        return self.fresh and ("int" in literal or "float" in literal)


Children = list[Any]


class Reader:
    """One method for each rule of the grammar that is an expression."""

    def choice(self, children: Children) -> Expression:
        """`a ? b : c`."""
        parts = children[0::2]
        names = ("cond", "then", "else")
        ast = {"if": {name: part.ast for name, part in zip(names, parts, strict=True)}}
        return _made(children, ast, [(("if", name), part) for name, part in zip(names, parts, strict=True)])

    def many(self, children: Children) -> Expression:
        """`a && b && c` is one node."""
        left, sign, right = children
        key = MANY[str(sign)]
        if not (left.fresh and key in left.ast):
            return _made(children, {key: [left.ast, right.ast]}, [((key, 0), left), ((key, 1), right)])
        left.kids.append(((key, len(left.kids)), right))
        left.ast[key].append(right.ast)
        left.end, left.depth = right.end, max(left.depth, right.depth + 1)
        assert isinstance(left, Expression)
        return left

    def binary(self, children: Children) -> Expression:
        """`a + b`."""
        left, sign, right = children
        key = BINARY[str(sign)]
        return _made(children, {key: [left.ast, right.ast]}, [((key, 0), left), ((key, 1), right)])

    def negation(self, children: Children) -> Expression:
        """`!a`."""
        return _made(children, {"not": children[1].ast}, [(("not",), children[1])])

    def minus(self, children: Children) -> Expression:
        """`-a`; of a number, the number."""
        operand: Expression = children[1]
        if operand.unary_literal:
            [(key, number)] = operand.ast["lit"].items()
            made = _made(children, {"lit": {key: -number}}, [])
            made.troubles, made.fresh = operand.troubles, False
            return made
        return _made(children, {"neg": operand.ast}, [(("neg",), operand)])

    def member(self, children: Children) -> Expression:
        """`a.b`."""
        return _get(children, str(children[2]))

    def index(self, children: Children) -> Expression:
        """`a["b"]`, `a[0]`."""
        inside: Expression = children[2]
        literal = inside.ast.get("lit", {})
        step = literal.get("string", literal.get("int"))
        if step is None or (isinstance(step, int) and step < 0):
            made = _get(children, 0)
            remedy = 'Write a text or a position, as in `payload["cf-ray"]` or `payload.items[0]`.'
            made.troubles.append(
                Trouble(inside.start, inside.end, "positions count from 0, and keys are fixed", remedy)
            )
            return made
        made = _get(children, step)
        made.troubles += inside.troubles
        return made

    def root(self, children: Children) -> Expression:
        """A field of the message, or `now`."""
        name = str(children[0])
        return _made(children, {"var": {"now": True} if name == "now" else {"input": {"field": name}}}, [])

    def quoted(self, children: Children) -> Expression:
        """A field of the message whose name means something else without backquotes."""
        made = _made(children, {"var": {"input": {"field": str(children[0])[1:-1]}}}, [])
        made.fresh = False
        return made

    def parens(self, children: Children) -> Expression:
        """`(a)`."""
        inside: Expression = children[1]
        inside.fresh = False
        inside.start, inside.end = children[0].start_pos, children[2].end_pos
        return inside

    def array(self, children: Children) -> Expression:
        """`[a, b]`."""
        items = [child for child in children if isinstance(child, Expression)]
        kids: list[tuple[Path, Expression]] = [(("arr", at), item) for at, item in enumerate(items)]
        return _made(children, {"arr": [item.ast for item in items]}, kids)

    def object(self, children: Children) -> Expression:
        """`{"a": b}`."""
        values = [child for child in children if isinstance(child, Expression)]
        made = _made(children, {"obj": {}}, [])
        keys = [child for child in children if getattr(child, "type", "") == "STRING"]
        for token, value in zip(keys, values, strict=True):
            key, troubles = text_of(token)
            made.troubles += troubles
            if key in made.ast["obj"]:
                made.troubles.append(Trouble(token.start_pos, token.end_pos, f"the key {token} twice"))
            made.ast["obj"][key] = value.ast
            made.kids.append((("obj", key), value))
            made.depth = max(made.depth, value.depth + 1)
        return made

    def literal(self, children: Children) -> Expression:
        """A text, a number, null, true, false."""
        token = children[0]
        troubles: list[Trouble] = []
        if token.type == "STRING":
            text, troubles = text_of(token)
            constant: dict[str, Any] = {"string": text}
        elif token.type == "NULL":
            constant = {"null": True}
        elif token.type in ("TRUE", "FALSE"):
            constant = {"bool": token.type == "TRUE"}
        else:
            constant, troubles = _number(token)
        made = _made(children, {"lit": constant}, [])
        made.troubles = troubles
        return made

    def call(self, children: Children) -> Expression:
        """`size(a)`."""
        name = str(children[0])
        arguments = [child for child in children if isinstance(child, Expression)]
        if name == "has":
            return _has(children, arguments)
        if name == "map_enum":
            return _map_enum(children, arguments)
        if name == "time_between" and len(arguments) == 3:
            parts = list(zip(("expr", "from", "to"), arguments, strict=True))
            ast: dict[str, Any] = {name: {key: part.ast for key, part in parts}}
            return _made(children, ast, [((name, key), part) for key, part in parts])
        if name in ONE and len(arguments) == 1:
            return _made(children, {name: arguments[0].ast}, [((name,), arguments[0])])
        kids: list[tuple[Path, Expression]]
        if name == "coalesce":
            kids = [((name, at), argument) for at, argument in enumerate(arguments)]
            return _made(children, {name: [argument.ast for argument in arguments]}, kids)
        kids = [(("call", "args", at), argument) for at, argument in enumerate(arguments)]
        ast = {"call": {"fn": CALLS.get(name, name), "args": [argument.ast for argument in arguments]}}
        made = _made(children, ast, kids)
        if name in ONE or name == "time_between":
            wanted = 1 if name in ONE else 3
            _wrong_call(made, children, f"`{name}` takes {wanted}, not {len(arguments)}", "")
        elif name not in CALLS:
            remedy = meant(name, FUNCTIONS, f"There are {listed(FUNCTIONS, 'and')}.")
            _wrong_call(made, children, f"there is no function `{name}`", remedy)
        return made


def text_of(token: Token) -> tuple[str, list[Trouble]]:
    """The text of a string, with what is wrong with it."""
    start = token.start_pos
    inside = str(token)[1:-1]
    troubles = []
    for found in _ESCAPE.finditer(inside):
        if found[1][0] not in _SIMPLE or found[1] == "u":
            at = start + 1 + found.start()
            remedy = r"Write `\\` for a backslash; escapes are those of JSON: \n \t \u00e9 ..."
            troubles.append(Trouble(at, at + 2, f"there is no escape `{found[0]}`", remedy))
    if troubles:
        return inside, troubles
    escaped = _ESCAPE.sub(
        lambda found: "'" if found[1] == "'" else '\\"' if found[1] == '"' else found[0], inside
    )
    if str(token)[0] == "'":
        escaped = re.sub(r'(\\.)|"', lambda found: found[1] or '\\"', escaped)
    text: str = json.loads(f'"{escaped}"', strict=False)
    if _HALF_PAIR.search(text):
        what = "half of a surrogate pair is no character"
        return inside, [Trouble(start, token.end_pos, what, r"Write both halves: \ud83d\ude00.")]
    return text, []


def _number(token: Token) -> tuple[dict[str, Any], list[Trouble]]:
    text = str(token)
    if token.type == "INT" and len(text) <= DIGITS_MAX:
        return {"int": int(text)}, []
    number = float(text)
    if token.type == "FLOAT" and math.isfinite(number):
        return {"float": number}, []
    what = "an integer beyond 64 bits" if token.type == "INT" else "a number beyond double range"
    return {"int": 0}, [Trouble(token.start_pos, token.end_pos, what, "Write a smaller one.")]


def _made(children: Children, ast: dict[str, Any], kids: list[tuple[Path, Expression]]) -> Expression:
    first, last = children[0], children[-1]
    start = first.start if isinstance(first, Expression) else first.start_pos
    end = last.end if isinstance(last, Expression) else last.end_pos
    return Expression(ast, start, end, kids)


def _get(children: Children, step: str | int) -> Expression:
    """A step further: into the same path where there is one, in parentheses too."""
    inside: Expression = children[0]
    if "get" in inside.ast:
        inside.ast["get"]["path"].append(step)
        inside.end = children[-1].end_pos
        return inside
    return _made(children, {"get": {"expr": inside.ast, "path": [step]}}, [(("get", "expr"), inside)])


def _has(children: Children, arguments: list[Expression]) -> Expression:
    if len(arguments) == 1 and "get" in arguments[0].ast:
        [path] = arguments
        made = _made(children, {"has": path.ast["get"]}, [(("has", "expr"), kid) for _, kid in path.kids])
        made.troubles = path.troubles
        return made
    made = _made(children, {"lit": {"bool": True}}, [])
    remedy = "Write a path, as in `has(payload.incident)`; for a field of its own, `note != null`."
    return _wrong_call(made, children, "has() asks whether something is at a path", remedy)


def _map_enum(children: Children, arguments: list[Expression]) -> Expression:
    wanted = len(arguments) in (2, 3) and "obj" in arguments[1].ast
    constants = arguments[1].ast["obj"].items() if wanted else ()
    if not wanted or not all("lit" in constant for _, constant in constants):
        made = _made(children, {"lit": {"null": True}}, [])
        remedy = 'Write `map_enum(payload.state, {"open": 1, "closed": 0}, 9)`; the last one may be left out.'
        return _wrong_call(
            made, children, "map_enum() takes a value, a table of constants, and a default", remedy
        )
    ast: dict[str, Any] = {"expr": arguments[0].ast, "mapping": {}}
    for name, constant in constants:
        [(key, value)] = constant["lit"].items()
        ast["mapping"][name] = None if key == "null" else value
    kids: list[tuple[Path, Expression]] = [(("map_enum", "expr"), arguments[0])]
    if len(arguments) == 3:
        ast["default"] = arguments[2].ast
        kids.append((("map_enum", "default"), arguments[2]))
    made = _made(children, {"map_enum": ast}, kids)
    made.troubles = [trouble for _, part in arguments[1].walk() for trouble in part.troubles]
    return made


def _wrong_call(made: Expression, children: Children, what: str, remedy: str) -> Expression:
    made.troubles.append(Trouble(children[0].start_pos, children[0].end_pos, what, remedy))
    return made
