"""What a text consists of before it means anything: blocks, keys, values. The grammar calls here as it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from edgequeues.core.attrs import AttrType
from edgequeues.spec.expression_tree import Expression, Reader, Token, Trouble, text_of
from edgequeues.spec.faults import listed, meant

N = TypeVar("N")

DEPTH_MAX = 64  # of maps inside maps; what makes sense is far less
DIGITS_MAX = 4_000  # of an integer; int() refuses more

PLAIN = ("json", "string", "int", "float", "bool", "time")
FORMS = {name: f"`{name}`" for name in PLAIN} | {"enum": '`enum("a", "b")`', "map": "`map<string, int>`"}


@dataclass
class Word:
    """A name or a key, and where it stands."""

    text: str
    start: int
    end: int


@dataclass
class Value:
    """What stands after a colon. fields: in braces behind it. target: `command` or `queue`, then a name."""

    start: int
    end: int
    expression: Expression | None = None
    fields: Braced | None = None
    target: str | None = None
    name: list[Word] = field(default_factory=list)
    run: tuple[str, str] | None = None  # python or http, and the text behind it
    troubles: list[Trouble] = field(default_factory=list)


@dataclass
class Braced:
    """Fields in braces, and where those are."""

    entries: list[Entry]
    open: int
    end: int


@dataclass
class Entry:
    """`key: value`."""

    key: Word
    value: Value


@dataclass
class Field:
    """`name: type` of a message type."""

    key: Word
    type: AttrType
    end: int
    troubles: list[Trouble]


@dataclass
class Block:
    """`key name { ... }`. typed: the fields of a message type, which are written unlike others."""

    key: Word
    name: list[Word]
    body: Sequence[Entry | Block]
    open: int  # where its brace is
    end: int
    typed: list[Field] | None = None
    troubles: list[Trouble] = field(default_factory=list)


@dataclass
class Json:
    """A default."""

    value: Any
    start: int
    end: int


@dataclass
class Type:
    """A type, and where it ends."""

    type: AttrType
    end: int
    troubles: list[Trouble]
    depth: int = 1


Children = list[Any]


def of(children: Children, kind: type[N]) -> list[N]:
    """Those of a kind."""
    return [child for child in children if isinstance(child, kind)]


class Tree(Reader):
    """One method for each rule of the grammar that is no expression."""

    def start(self, children: Children) -> list[Entry | Block]:
        """The whole text."""
        return [child for child in children if isinstance(child, Entry | Block)]

    def entry(self, children: Children) -> Entry:
        """`key: value`."""
        return Entry(_word(children[0]), children[2])

    def assignment(self, children: Children) -> Entry:
        """`name: expression`, as it stands in braces."""
        expression: Expression = children[2]
        return Entry(_word(children[0]), Value(expression.start, expression.end, expression))

    def block(self, children: Children) -> Block:
        """`key name { ... }`."""
        name: list[Any] = children[1] if isinstance(children[1], list) else []
        body = [child for child in children if isinstance(child, Entry | Block)]
        troubles = [found for found in name if isinstance(found, Trouble)]
        brace = children[2] if name else children[1]
        return Block(
            _word(children[0]), of(name, Word), body, brace.start_pos, children[-1].end_pos, troubles=troubles
        )

    def typed(self, children: Children) -> Block:
        """`message_type { ... }`."""
        open_, end = children[1].start_pos, children[-1].end_pos
        return Block(_word(children[0]), [], [], open_, end, of(children, Field))

    def message(self, children: Children) -> Block:
        """`message { ... }`."""
        fields: Braced = children[1]
        return Block(_word(children[0]), [], fields.entries, fields.open, fields.end)

    def name(self, children: Children) -> list[Word | Trouble]:
        """`Incident.CreateIncident`, `WebhookIngress`, `"order-events"`."""
        found: list[Word | Trouble] = []
        for token in children:
            if token.type == "DOT":
                continue
            text, troubles = text_of(token) if token.type == "STRING" else (str(token), [])
            found += [Word(text, token.start_pos, token.end_pos), *troubles]
        return found

    def target(self, children: Children) -> Value:
        """`command Incident.CreateIncident { ... }`."""
        words, start = of(children[1], Word), children[0].start_pos
        fields: Braced | None = children[2] if len(children) > 2 else None
        end = words[-1].end if fields is None else fields.end
        return Value(start, end, None, fields, str(children[0]), words, troubles=of(children[1], Trouble))

    def run(self, children: Children) -> Value:
        """`python "module:function"`."""
        text, troubles = text_of(children[1])
        value = Value(children[0].start_pos, children[1].end_pos, run=(str(children[0]), text))
        value.troubles = troubles
        return value

    def value(self, children: Children) -> Value:
        """An expression, and fields where there are some."""
        expression: Expression = children[0]
        fields: Braced | None = children[1] if len(children) > 1 else None
        return Value(expression.start, expression.end if fields is None else fields.end, expression, fields)

    def fields(self, children: Children) -> Braced:
        """`{ key: value ... }`."""
        return Braced(of(children, Entry), children[0].start_pos, children[-1].end_pos)

    def field(self, children: Children) -> Field:
        """`name: type = default`."""
        key, found = _word(children[0]), children[2]
        type_, end, troubles = found.type, found.end, list(found.troubles)
        if len(children) > 3:
            default: Json = children[4]
            if default.value is None:
                remedy = "Write `?` behind the type of a field that may be missing."
                troubles.append(Trouble(default.start, default.end, "null is no default", remedy))
            type_ = AttrType(type_.type, type_.optional, default.value, type_.values, type_.of)
            end = default.end
        return Field(key, type_, end, troubles)

    def plain_type(self, children: Children) -> Type:
        """`string?`."""
        return _typed(children, PLAIN)

    def map_type(self, children: Children) -> Type:
        """`map<string, int>`."""
        keys, values = of(children, Type)
        made = _typed(children, ("map",), of=values.type)
        if keys.type != AttrType("string"):
            made.troubles.append(
                _trouble(children[0], "the keys of a map are strings", "Write `map<string, ...>`.")
            )
        made.troubles += keys.troubles + values.troubles
        made.depth = values.depth + 1
        if made.depth > DEPTH_MAX:  # cut off, so that nothing has to go deep into it; and told once
            what = f"maps inside maps, more than {DEPTH_MAX} deep"
            made.troubles = [_trouble(children[0], what, "Declare the inner ones as `json`.")]
            made.type, made.depth = AttrType(), 1
        return made

    def enum_type(self, children: Children) -> Type:
        """`enum("high", "low")`."""
        texts = [text_of(child) for child in children if _is(child, "STRING")]
        made = _typed(children, ("enum",), values=tuple(text for text, _ in texts))
        made.troubles += [trouble for _, troubles in texts for trouble in troubles]
        return made

    def json_word(self, children: Children) -> Json:
        """A text, null, true or false."""
        token = children[0]
        value: Any = {"NULL": None, "TRUE": True, "FALSE": False}.get(token.type)
        if token.type == "STRING":
            value, _ = text_of(token)
        return Json(value, token.start_pos, token.end_pos)

    def json_number(self, children: Children) -> Json:
        """A number, with its sign."""
        text = "".join(children)
        read = float if children[-1].type == "FLOAT" or len(text) > DIGITS_MAX else int
        return Json(read(text), children[0].start_pos, children[-1].end_pos)

    def json_list(self, children: Children) -> Json:
        """`[1, 2]`."""
        values = [child.value for child in of(children, Json)]
        return Json(values, children[0].start_pos, children[-1].end_pos)

    def json_object(self, children: Children) -> Json:
        """`{"a": 1}`."""
        names = [text_of(child)[0] for child in children if _is(child, "STRING")]
        values = [child.value for child in of(children, Json)]
        return Json(dict(zip(names, values, strict=True)), children[0].start_pos, children[-1].end_pos)


def _word(token: Token) -> Word:
    return Word(str(token), token.start_pos, token.end_pos)


def _is(child: Any, token: str) -> bool:
    return getattr(child, "type", "") == token


def _typed(
    children: Children, names: tuple[str, ...], values: tuple[str, ...] = (), of: AttrType | None = None
) -> Type:
    """The type that the first token names, which must be one of `names`."""
    token, optional, last = children[0], _is(children[-1], "QUESTION"), children[-1]
    name: Any = str(token)
    if name in names:
        return Type(AttrType(name, optional, None, values, of), last.end_pos, [])
    remedy = (
        f"Write {FORMS[name]}." if name in FORMS else meant(name, FORMS, f"Types are {listed(FORMS, 'and')}.")
    )
    what = f"the type `{name}` is written otherwise" if name in FORMS else f"there is no type `{name}`"
    return Type(AttrType(), last.end_pos, [_trouble(token, what, remedy)])


def _trouble(token: Token, what: str, remedy: str) -> Trouble:
    return Trouble(token.start_pos, token.end_pos, what, remedy)
