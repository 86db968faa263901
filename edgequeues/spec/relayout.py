"""A text laid out anew: the form that `fmt` prints, but with its comments, and with what was said though it need not.

A comment stays with what it stands above, or behind. Blank lines between what belongs together stay, one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edgequeues.core.attrs import show
from edgequeues.core.jsonwords import quoted
from edgequeues.spec.faults import Lines
from edgequeues.spec.fmt import INDENT, name_text, priority_text
from edgequeues.spec.fmt import expression as expression_text
from edgequeues.spec.keys import KEYS
from edgequeues.spec.parse import parse
from edgequeues.spec.syntax import comments, read
from edgequeues.spec.tree import Block, Entry, Field, Value, Word

NAMES = {
    "delivery": "dead_letter_queue",
    "webhook": "queue",
    "schedule": "queue",
}  # of these blocks, the key whose value is a name

Item = Entry | Block | Field
_LINE_END = re.compile(r"\r\n|\r")


@dataclass
class _Comment:
    start: int
    end: int
    text: str


@dataclass
class _Notes:
    """The comments of one item: above it, behind it, behind its opening brace, above its closing one."""

    above: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    opening: list[str] = field(default_factory=list)
    closing: list[str] = field(default_factory=list)
    blank: bool = False


def relayout(text: str) -> str:
    """The text in order, indented, one thing a line. It must be a spec without faults."""
    lines = Lines(text)
    items = read(lines)
    found = [
        _Comment(start, end, _LINE_END.sub("\n", lines.text[start:end].rstrip()))
        for start, end in comments(lines.text)
    ]
    layout = _Layout(lines.text, found)
    printed = "\n".join(layout.body(items, None, 0, len(lines.text))) + "\n"
    assert parse(printed).spec == parse(text).spec, "laid out anew, this text would mean something else"
    return printed


class _Layout:
    def __init__(self, text: str, found: list[_Comment]) -> None:
        self.text = text
        self.comments = found

    def body(self, items: Sequence[Item], kind: str | None, start: int, end: int) -> Iterator[str]:
        """What is between two braces, without them. kind: whose; None: what has no order of its own."""
        notes = [_Notes() for _ in items]
        closing = self._attach(items, notes, start, end)
        order = list(KEYS[kind]) if kind else []
        pairs = list(zip(items, notes, strict=True))
        if order:
            pairs.sort(key=lambda pair: order.index(pair[0].key.text))
        for at, (item, note) in enumerate(pairs):
            if at and (note.blank or kind == "app"):
                yield ""
            yield from note.above
            yield from self._item(item, note, kind)
        yield from closing

    def _item(self, item: Item, note: _Notes, within: str | None) -> Iterator[str]:
        behind = " ".join(["", *note.behind])
        if isinstance(item, Field):
            yield f"{item.key.text}: {show(item.type)}{behind}"
        elif isinstance(item, Block):
            head = " ".join([item.key.text, *filter(None, [_named(item.name)])])
            inside: Sequence[Item] = item.typed if item.typed is not None else item.body
            kind = item.key.text if item.typed is None and item.key.text in KEYS else None
            yield from self._braced(head, inside, kind, (item.open, item.end), behind)
        else:
            yield from self._entry(item, within, behind)

    def _braced(
        self, head: str, items: Sequence[Item], kind: str | None, span: tuple[int, int], behind: str
    ) -> Iterator[str]:
        opening = self._opening(span[0] + 1, items[0].key.start if items else span[1] - 1)
        body = list(self.body(items, kind, span[0] + 1, span[1] - 1))
        if not body and not opening:
            yield f"{head} {{}}{behind}"
            return
        yield " ".join([f"{head} {{", *opening])
        yield from (f"{INDENT}{line}" if line else "" for line in body)
        yield f"}}{behind}"

    def _entry(self, entry: Entry, within: str | None, behind: str) -> Iterator[str]:
        head = f"{entry.key.text}: {self._value(entry.key.text, within, entry.value)}"
        fields = entry.value.fields
        if fields is None or not fields.entries:
            yield head + behind
        else:
            yield from self._braced(head, fields.entries, None, (fields.open, fields.end), behind)

    def _value(self, key: str, within: str | None, value: Value) -> str:
        """A value, without the fields in braces behind it."""
        if value.target is not None:
            return f"{value.target} {_named(value.name)}"
        if value.run is not None:
            return f"{value.run[0]} {quoted(value.run[1])}"
        assert value.expression is not None
        shown = self.text[value.expression.start : value.expression.end]
        if within and NAMES.get(within) == key:
            return name_text(value.expression.ast.get("lit", {}).get("string", shown))
        if value.expression.bare is not None or (within == "webhook" and key == "on"):
            return "".join(shown.split())
        call = value.expression.ast.get("call", {})
        if call.get("fn") == "per_key":
            return f"per_key({expression_text(call['args'][0])})"
        return (
            priority_text(value.expression.ast)
            if key == "priority"
            else expression_text(value.expression.ast)
        )

    def _attach(self, items: Sequence[Item], notes: list[_Notes], start: int, end: int) -> list[str]:
        """Give the comments between `start` and `end` to the items; return those behind the last one."""
        spans = [(item.key.start, _end(item)) for item in items]
        opening = self._opening_end(start, spans[0][0] if spans else end)
        closing: list[str] = []
        at = 0
        for comment in self._between(start, end):
            while at < len(spans) and spans[at][1] <= comment.start:
                at += 1
            inside = at < len(spans) and spans[at][0] < comment.start
            if inside and self._is_deeper(items[at], comment):
                continue
            before = spans[at - 1][1] if at and not inside else None
            if before is not None and self._same_line(before, comment.start):
                notes[at - 1].behind.append(comment.text)
            elif at < len(spans):
                notes[at].above.append(comment.text)
            elif comment.start >= opening:
                closing.append(comment.text)
        for (first, _), note, previous in zip(spans, notes, [(start, start), *spans], strict=False):
            note.blank = self._blank_between(previous[1], first)
        if opening > start and notes:  # what stands behind the brace is printed there
            notes[0].above = notes[0].above[len(self._opening(start, spans[0][0])) :]
        return closing

    def _is_deeper(self, item: Item, comment: _Comment) -> bool:
        """Does a comment stand between the braces of an item?"""
        if isinstance(item, Block):
            return item.open < comment.start
        fields = item.value.fields if isinstance(item, Entry) else None
        return fields is not None and bool(fields.entries) and fields.open < comment.start

    def _between(self, start: int, end: int) -> list[_Comment]:
        return [comment for comment in self.comments if start <= comment.start < end]

    def _opening(self, start: int, end: int) -> list[str]:
        """Comments behind an opening brace, on its line, if nothing else is there."""
        stop = self._opening_end(start, end)
        return [comment.text for comment in self._between(start, stop)]

    def _opening_end(self, start: int, end: int) -> int:
        """Where those end; `start`: there are none. An app has no brace around it."""
        line_end = min(
            [at for at in (self.text.find(sign, start) for sign in "\r\n") if at >= 0], default=end
        )
        if start == 0 or line_end > end:
            return start
        return max([comment.end for comment in self._between(start, line_end)], default=start)

    def _same_line(self, start: int, end: int) -> bool:
        return not {"\n", "\r"} & set(self.text[start:end])

    def _blank_between(self, start: int, end: int) -> bool:
        """Is there a blank line before an item, or before the comments above it?"""
        gap = self.text[start:end].replace("\r\n", "\n").replace("\r", "\n")
        return any(not line.strip() for line in gap.split("\n")[1:-1])


def _end(item: Item) -> int:
    return item.value.end if isinstance(item, Entry) else item.end


def _named(words: Sequence[Word]) -> str:
    """The name of a block; of two parts for a command, which no word of the language can be taken for."""
    return name_text(words[0].text) if len(words) == 1 else ".".join(word.text for word in words)
