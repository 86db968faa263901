"""From a text to blocks and values, or to the one place where it is no spec; the grammar is in grammar.lark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple, cast

from edgequeues.spec.expression_tree import FUNCTIONS, Expression
from edgequeues.spec.faults import Fault, Lines, listed, meant
from edgequeues.spec.keys import BLOCKS, VALUES
from edgequeues.spec.tree import Block, Entry, Tree, Value

if TYPE_CHECKING:
    from lark import Lark

LOOK_BACK = 300  # characters before a fault that are looked at to tell what was meant
NESTING_MAX = 64  # of braces, and of other brackets

# What brackets stand in: comments, strings, and what begins as one of them and does not end.
_MARKS = re.compile(
    r"//[^\r\n]*|#[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/"
    r"""|"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*'"""
    r"|(?P<open>[{(\[])|(?P<close>[})\]])|(?P<endless>/\*)|(?P<quote>[\"'])"
)
_PAIRS = {"{": "}", "(": ")", "[": "]"}
_NOT_INSIDE = {"{": {"RPAR", "RSQB"}, "(": {"RBRACE", "RSQB", "LBRACE"}, "[": {"RBRACE", "RPAR", "LBRACE"}}
_HEAD = re.compile(r"([A-Za-z_]\w*)(?:[ \t]+[\w.-]+)?[ \t]*\Z")
_BLOCK_AND_COLON = re.compile(r"(\w+)[ \t]*:[ \t]*\Z")
_ENGLISH = re.compile(r"\s(and|or|not)[ \t]+[\w.]+\s*\Z")
_SIGNS = {"and": "&&", "or": "||", "not": "!"}
_NUMBER = re.compile(r"\d[\w.]*")
_WORD = re.compile(r"[^\s{}()\[\],:]+")

_OPERATORS = frozenset(
    {"EQ", "NE", "LE", "GE", "LESS", "GREATER", "PLUS", "MINUS", "STAR", "SLASH", "OR", "AND", "IN"}
)
_SAID = {
    "NAME": "a name", "QNAME": "a name", "STRING": 'a "text"', "COLON": "`:`", "LBRACE": "`{`", "RBRACE": "`}`",
    "LPAR": "`(`", "RPAR": "`)`", "LSQB": "`[`", "RSQB": "`]`", "_COMMA": "`,`", "DOT": "`.`", "EQUALS": "`=`",
    "QUESTION": "`?`", "GREATER": "`>`", "LESS": "`<`", "INT": "a number", "FLOAT": "a number",
    "COMMAND": "`command`", "QUEUE": "`queue`", "$END": "the end of the text",
}  # fmt: skip


class SyntaxFault(Exception):
    """This text is no spec."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.what)


class _Opening(NamedTuple):
    sign: str
    at: int
    indent: int  # of its line


def read(lines: Lines) -> list[Entry | Block]:
    """The blocks and entries of a text. Raises SyntaxFault."""
    return cast("list[Entry | Block]", _read(lines, "start"))  # what Tree makes of it


def read_expression(lines: Lines) -> Expression:
    """An expression, where the text is nothing else. Raises SyntaxFault."""
    return cast("Expression", _read(lines, "expr"))


def read_target(lines: Lines) -> Value:
    """What stands after `map_to:`, where the text is nothing else. Raises SyntaxFault."""
    return cast("Value", _read(lines, "target"))


def _read(lines: Lines, rule: str) -> object:
    from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

    _check_brackets(lines)
    try:
        found: object = parser().parse(lines.text, rule)
    except UnexpectedToken as error:
        start = error.token.start_pos if error.token.type != "$END" else None
        raise SyntaxFault(
            _unexpected(lines, start, error.token.end_pos, error.accepts or error.expected)
        ) from None
    except UnexpectedCharacters as error:
        raise SyntaxFault(_unexpected(lines, error.pos_in_stream, None, error.allowed or set())) from None
    except UnexpectedEOF as error:
        raise SyntaxFault(_unexpected(lines, None, None, set(error.expected))) from None
    return found


def comments(text: str) -> Iterator[tuple[int, int]]:
    """Where the comments of a text are."""
    return (found.span() for found in _MARKS.finditer(text) if found[0].startswith(("//", "#", "/*")))


@lru_cache(maxsize=1)
def parser() -> Lark:
    """The parser, made once."""
    from lark import Lark

    grammar = files("edgequeues.spec").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        start=["start", "expr", "target"],
        parser="lalr",
        lexer="contextual",
        propagate_positions=True,
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=Tree(),
    )


def _check_brackets(lines: Lines) -> None:
    """Raises SyntaxFault where brackets are nested too deep, or a comment or string does not end."""
    braces = others = 0
    for found in _MARKS.finditer(lines.text):
        sign = found[0]
        if found["endless"]:
            raise _fault(
                lines, found.start(), found.end(), "this comment does not end", "Close it with `*/`."
            )
        if found["quote"]:
            raise _endless_string(lines, found.start())
        if sign == "{":
            braces += 1
        elif sign == "}":
            braces, others = braces - 1, 0
        elif found["open"] or found["close"]:
            others = max(others + (1 if found["open"] else -1), 0)
        if max(braces, others) > NESTING_MAX:
            what = f"nested more than {NESTING_MAX} deep"
            raise _fault(lines, found.start(), found.end(), what, "Take some of it apart.")


def _endless_string(lines: Lines, at: int) -> SyntaxFault:
    rest = lines.text[at : at + len(lines.line(lines.place(at).line))]
    end = at + len(re.split(r"[\r\n]", rest, maxsplit=1)[0])
    remedy = r"Close it on its line; write `\n` for a line break, `\"` for a quote."
    return _fault(lines, at, end, "this string does not end on its line", remedy)


def _unexpected(lines: Lines, start: int | None, end: int | None, expected: set[str]) -> Fault:
    """The fault for what cannot stand where it does. start: None: where the text ends."""
    opening = _unclosed(lines.text, start)
    if start is None and opening is not None:
        remedy = f"Write the `{_PAIRS[opening.sign]}` that belongs to it."
        return _fault(lines, opening.at, None, f"this `{opening.sign}` is not closed", remedy).fault
    if start is None:
        start = end = len(lines.text.rstrip())
        found = "the end of the text"
    else:
        word = _WORD.match(lines.text, start)
        end = end or (word.end() if word else start + 1)
        found = (
            f"`{lines.text[start:end]}`" if end - start <= 40 else f"`{lines.text[start : start + 40]}...`"
        )
    hint = _hint(lines.text, start, expected, opening)
    if opening is not None:  # the lexer knows the kind of place, not which bracket is open
        expected = expected - _NOT_INSIDE[opening.sign] or expected
    what = f"{found} cannot stand here; {_wanted(expected)} can" if expected else f"{found} cannot stand here"
    return _fault(lines, start, end, what, hint).fault


def _hint(text: str, start: int, expected: set[str], opening: _Opening | None) -> str:
    """What was probably meant."""
    number = _NUMBER.match(text, start)
    head = _before(_HEAD, text, opening.at) if opening and opening.sign == "{" else None
    name = _before(_HEAD, text, len(text[:start].rstrip()))
    sign = text[start : start + 1]
    hint = ""
    if number and not {"INT", "FLOAT", "QNAME"}.isdisjoint(expected):
        hint = "Numbers have neither units nor leading zeros; the key says the unit, as in `delay_ms: 5000`."
    elif head and head[1] not in BLOCKS:
        hint = meant(head[1], BLOCKS)
    elif sign == "=" and "COLON" in expected:
        hint = "Write `key: value`."
    elif expected == {"LBRACE"} and name and name[1] in VALUES:
        hint = f"Write `{name[1]}: ...`."
    elif (sign == ">" and expected == {"_COMMA"}) or (sign == "[" and {"LESS", "EQUALS"} <= expected):
        hint = "Maps alone have types in `<>`, as in `map<string, int>`; for a list, write `json`."
    elif sign in ("&", "|"):
        hint = f"Write `{sign}{sign}`."
    elif sign == "(" and name:
        hint = meant(name[1], FUNCTIONS, f"The functions are {listed(FUNCTIONS, 'and')}.")
    elif opening and opening.sign != "{" and sign in _PAIRS.values():
        hint = f"The `{opening.sign}` before it is not closed."
    return hint or _habit(text, start, expected, opening)


def _before(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    """What ends at `end` in such a way; no more is looked at than a line has, or a text of one word takes hours."""
    return pattern.search(text, max(end - LOOK_BACK, 0), end)


def _habit(text: str, start: int, expected: set[str], opening: _Opening | None) -> str:
    """What is written so in other languages."""
    sign = text[start : start + 1]
    word = _before(_ENGLISH, text, start)
    block = _before(_BLOCK_AND_COLON, text, opening.at if opening else start)
    hint = ""
    if block and block[1] in BLOCKS and opening and not text[opening.at + 1 : start].strip():
        hint = f"Write `{block[1]} {{`, without a colon."
    elif sign == ":" and expected == {"LBRACE"} and (name := _before(_HEAD, text, start)):
        hint = f"Write `{name[1]} {{`, without a colon."
    elif sign == ";":
        hint = "Leave it out; a comma or a new line is enough."
    elif sign == "=" and len(expected & _OPERATORS) > 1:
        hint = "Write `==` to compare."
    elif sign == "$":
        hint = "Write the path as it is, as in `payload.id`."
    elif word:
        hint = f"Write `{_SIGNS[word[1]]}` for `{word[1]}`."
    return hint


def _unclosed(text: str, end: int | None) -> _Opening | None:
    """The innermost bracket that is open at `end`; at the end of the text, the one that was forgotten.

    That is the first whose partner begins a line that is less indented than its own: it closes another.
    """
    stack: list[_Opening] = []
    forgotten: _Opening | None = None
    for found in _MARKS.finditer(text, 0, len(text) if end is None else end):
        if found["open"]:
            stack.append(_Opening(found[0], found.start(), _indent(text, found.start())[0]))
        elif found["close"] and stack:
            opening = stack.pop()
            indent, first = _indent(text, found.start())
            if first and indent < opening.indent and forgotten is None:
                forgotten = opening
    if end is None and stack and forgotten is not None:
        return forgotten
    return stack[-1] if stack else None


def _indent(text: str, at: int) -> tuple[int, bool]:
    """How far the line of `at` is indented, and whether it begins there."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    line = text[start : at + 1]
    indent = len(line) - len(line.lstrip())
    return indent, start + indent == at


def _wanted(expected: set[str]) -> str:
    """What could have stood there, in words."""
    said = {_SAID[name] for name in expected if name in _SAID}
    if {"NAME", "STRING", "INT"} <= expected:
        said = {"a value"} | {
            _SAID[name] for name in expected & {"RPAR", "RSQB", "RBRACE", "COMMAND", "QUEUE"}
        }
    elif {"NAME", "MAP_TO"} <= expected:
        said = (said - {"a name"}) | {"a key"}
    if len(expected & _OPERATORS) > 1:
        said = (
            said - {"`<`", "`>`", "`?`", "`.`", "`[`", "`,`", "`:`", "`(`", "a key", "a name", 'a "text"'}
        ) | {"an operator"}
    ordered = sorted(said, key=lambda word: (word.startswith("`"), word))
    *others, last = ordered or ["nothing"]
    return f"{', '.join(others)} or {last}" if others else last


def _fault(lines: Lines, start: int, end: int | None, what: str, remedy: str) -> SyntaxFault:
    return SyntaxFault(Fault((), what, remedy, lines.place(start, end)))
