"""What every block needs while a spec is made of its text: keys sorted out, values read, faults and marks kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

import msgspec

from edgequeues.core.attrs import AttrType
from edgequeues.spec import ir
from edgequeues.spec.expression_tree import Expression, Trouble
from edgequeues.spec.faults import Fault, Lines, Path, Place, listed, meant
from edgequeues.spec.keys import KEYS, elsewhere, shape
from edgequeues.spec.syntax import NESTING_MAX
from edgequeues.spec.tree import Block, Entry, Field, Value, Word

EXPRESSION_BYTES_MAX = 4_096
UNLIMITED = "unlimited"

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_PLAIN = re.compile(r"[\w.-]{1,128}")  # what may have been meant as a text


class Missing:
    """No value, or none that will do."""


MISSING = Missing()


class Building:
    """A spec in the making: what was found to be wrong, and where everything stands."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.faults: list[Fault] = []
        self.marks: dict[Path, Place] = {}

    def blame(self, path: Path, at: Word | Value | Expression | Trouble, what: str, remedy: str = "") -> None:
        """Note a fault."""
        self.faults.append(Fault(path, what, remedy, self.lines.place(at.start, at.end)))

    def mark(self, path: Path, at: Word | Value | Expression) -> None:
        """Note where something stands."""
        self.marks[path] = self.lines.place(at.start, at.end)

    def keys(self, body: Sequence[Entry | Block], kind: str, path: Path) -> dict[str, Entry | Block]:
        """The entries and blocks by key: those of the kind, of the right form, each once. Blames all others."""
        found: dict[str, Entry | Block] = {}
        for item in body:
            key = item.key.text
            form = KEYS[kind].get(key)
            if form is None:
                self.blame((*path, key), item.key, f"`{kind}` has no key `{key}`", elsewhere(key, kind))
            elif form == "named":
                self._misnamed(item, path)
            elif isinstance(item, Entry) != (form == "value"):
                self.blame((*path, key), item.key, f"`{key}` has another form", f"Write {shape(key, form)}.")
            elif key in found:
                self.twice((*path, key), item.key, found[key].key)
            else:
                found[key] = item
                self._unnamed(item, path)
        return found

    def _misnamed(self, item: Entry | Block, path: Path) -> None:
        if not isinstance(item, Block) or len(item.name) == 0:
            key = item.key.text
            self.blame((*path, key), item.key, f"a {key} has a name", f"Write {shape(key, 'named')}.")

    def _unnamed(self, item: Entry | Block, path: Path) -> None:
        if isinstance(item, Block) and item.name:
            name, key = item.name[0], item.key.text
            self.blame((*path, key), name, f"`{key}` has no name", f"Write `{key} {{`.")

    def twice(self, path: Path, second: Word, first: Word) -> None:
        """Blame what was said before."""
        line = self.lines.place(first.start).line
        self.blame(
            path, second, f"`{second.text}` for the second time", f"The first is in line {line}; keep one."
        )

    def troubles(self, path: Path, troubles: Sequence[Trouble]) -> bool:
        """Note what the reader found; was there anything?"""
        for trouble in troubles:
            self.blame(path, trouble, trouble.what, trouble.remedy)
        return bool(troubles)

    def expression(self, path: Path, value: Value) -> ir.Expr | None:
        """The expression of a value, its parts marked. None: it is none that could be looked at further."""
        self.mark(path, value)
        expression = value.expression
        if expression is None or value.fields is not None:
            self.troubles(path, value.troubles)
            self.blame(path, value, "an expression is wanted here", "Write one, as in `payload.event.id`.")
            return None
        return self._checked(path, expression)

    def _checked(self, path: Path, expression: Expression) -> ir.Expr | None:
        if expression.depth > NESTING_MAX:
            self.blame(path, expression, f"nested more than {NESTING_MAX} deep", "Split the expression.")
            return None
        size = len(self.lines.text[expression.start : expression.end].encode())
        if size > EXPRESSION_BYTES_MAX:
            what = f"the expression has {size} bytes, at most {EXPRESSION_BYTES_MAX} are taken"
            self.blame(path, expression, what, "Split it.")
            return None
        for at, part in expression.walk(path):
            self.mark(at, part)
            self.troubles(path, part.troubles)
        return expression.ast

    def fields(self, path: Path, entries: Sequence[Entry]) -> dict[str, ir.Expr]:
        """`{ name: expression ... }`."""
        found: dict[str, ir.Expr] = {}
        first: dict[str, Word] = {}
        for entry in entries:
            name = entry.key.text
            if name in first:
                self.twice((*path, name), entry.key, first[name])
                continue
            first[name] = entry.key
            self._identifier((*path, name), entry.key)
            expression = self.expression((*path, name), entry.value)
            if expression is not None:
                found[name] = expression
        self._few(path, first)
        return found

    def message_type(self, path: Path, fields: Sequence[Field]) -> dict[str, AttrType]:
        """`{ name: type ... }`."""
        found: dict[str, AttrType] = {}
        first: dict[str, Word] = {}
        for one in fields:
            name = one.key.text
            if name in first:
                self.twice((*path, name), one.key, first[name])
                continue
            first[name] = one.key
            self._identifier((*path, name), one.key)
            self.mark((*path, name), one.key)
            found[name] = AttrType() if self.troubles((*path, name), one.troubles) else one.type
        self._few(path, first)
        return found

    def _identifier(self, path: Path, name: Word) -> None:
        if not _IDENTIFIER.fullmatch(name.text):
            self.blame(path, name, "this name is too long", "A field's name has at most 128 characters.")

    def _few(self, path: Path, names: Mapping[str, Word]) -> None:
        if len(names) > ir.FIELDS_MAX:
            what = f"{len(names)} fields, at most {ir.FIELDS_MAX} are taken"
            self.blame(
                (*path, "..."),
                list(names.values())[ir.FIELDS_MAX],
                what,
                "Put some into one field of type json.",
            )

    def name(self, path: Path, value: Value) -> str | None:
        """The name of a queue, in quotes or not."""
        self.mark(path, value)
        text = self.text_of(value)
        if text is None:
            text = self.lines.text[value.start : value.end]
        if _NAME.fullmatch(text):
            return text
        self.blame(
            path, value, "a name is wanted here", "Names have letters, digits, `_` and `-`, 128 at most."
        )
        return None

    def text_of(self, value: Value) -> str | None:
        """The text, where a value is one in quotes."""
        literal = value.expression.ast.get("lit", {}) if value.expression and value.fields is None else {}
        text = literal.get("string")
        assert text is None or isinstance(text, str)
        return text

    def setting(self, path: Path, value: Value, wanted: Any, *, unlimited: bool = False) -> Any:
        """A plain value of a type of ir.py. MISSING: it is blamed. unlimited: the word may stand for None."""
        self.mark(path, value)
        expression = value.expression
        if expression is None or value.fields is not None or value.run:
            self.blame(path, value, "a plain value is wanted here", "Write a number, a word or a text.")
            return MISSING
        if expression.depth <= NESTING_MAX and self.troubles(
            path, [trouble for _, part in expression.walk() for trouble in part.troubles]
        ):
            return MISSING
        if expression.bare == UNLIMITED and unlimited:
            return None
        words = _words(wanted)
        plain = _plain(expression, words is not None)
        if words is not None and isinstance(plain, str):
            if plain in words:
                return plain
            self.blame(
                path, value, f"`{plain}` will not do here", meant(plain, words, f"Write {listed(words)}.")
            )
            return MISSING
        return self.converted(path, value, plain, wanted, unlimited)

    def converted(self, path: Path, value: Value, plain: Any, wanted: Any, unlimited: bool = False) -> Any:
        """A plain value as one of the wanted type. MISSING: it is blamed."""
        key = "secret_env" if path[-1] == "secret_envs" else path[-1]
        if plain is MISSING or plain is None:
            shown = self.lines.text[value.start : value.end]
            remedy = _range(wanted) or (
                f'Write it in quotes: `"{shown}"`.' if _PLAIN.fullmatch(shown) else ""
            )
            if unlimited:
                remedy = f"Write a number or `{UNLIMITED}`."
            self.blame(path, value, f"`{key}` wants a plain value", remedy)
            return MISSING
        try:
            return msgspec.convert(plain, wanted)
        except msgspec.ValidationError as error:
            why = str(error).split(" - at ")[0]
            why = why[:1].lower() + why[1:].replace(" | null", "")
            also = f", or `{UNLIMITED}`" if unlimited else ""
            remedy = (
                'Write a list, as in `["one", "two"]`.'
                if why.startswith("expected `array`")
                else _range(wanted)
            )
            self.blame(path, value, f"`{key}` will not do: {why}{also}", remedy)
            return MISSING


def _words(wanted: Any) -> tuple[str, ...] | None:
    """The words of a Literal, also where None may stand beside it."""
    for option in (wanted, *get_args(wanted)):
        if get_origin(option) is Literal:
            return get_args(option)
    return None


def _plain(expression: Expression, words: bool) -> Any:
    """The value of constants and lists of them; a bare name where words are wanted."""
    if "lit" in expression.ast:
        [(kind, constant)] = expression.ast["lit"].items()
        return None if kind == "null" else constant
    if words and expression.bare:
        return expression.bare
    if "arr" in expression.ast:
        found = [_plain(item, words) for _, item in expression.kids]
        return MISSING if MISSING in found else found
    return MISSING


def _range(wanted: Any) -> str:
    """What numbers will do, in words."""
    bounds = {}
    waiting = [wanted]
    while waiting:
        option = waiting.pop()
        meta = [part for part in getattr(option, "__metadata__", ()) if isinstance(part, msgspec.Meta)]
        for one in meta:
            bounds.update({name: bound for name in ("ge", "le") if (bound := getattr(one, name)) is not None})
        waiting.extend(get_args(option))
    if {"ge", "le"} <= bounds.keys():
        return f"Numbers from {bounds['ge']} to {bounds['le']} will do."
    return ""
