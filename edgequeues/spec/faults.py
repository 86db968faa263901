"""What is wrong with a spec: where, what, and what to do; and how that is shown beside the text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from msgspec import Struct

from edgequeues.core.ids import snake

Path = tuple[str | int, ...]

SHOWN_MAX = 100  # characters of a line that are shown beside a caret
TAB = 4
_LINE_END = re.compile(r"\r\n|\n|\r")


class Place(Struct, frozen=True):
    """Where something stands in a text: line and column count from 1, the column and the width in characters."""

    line: int
    column: int
    width: int = 1


class Fault(Struct, frozen=True, omit_defaults=True):
    """One thing that is wrong. path: of what in the spec. place: where in the text, if that is known already."""

    path: Path
    what: str
    remedy: str = ""
    place: Place | None = None


class Lines:
    """The lines of a text, to get from an offset to a place. A byte order mark at the start is no part of it."""

    def __init__(self, text: str) -> None:
        self.text = text.removeprefix("\ufeff")
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(self.text))]

    def place(self, start: int, end: int | None = None) -> Place:
        """The place of the characters from `start` to `end`, as far as they stand on one line."""
        line = bisect_right(self._starts, start)
        first = self._starts[line - 1]
        last = self._starts[line] if line < len(self._starts) else len(self.text)
        shown = len(self.text[first:last].rstrip("\r\n")) + first
        width = max(min(end if end is not None else start + 1, shown) - start, 1)
        return Place(line, start - first + 1, width)

    def line(self, number: int) -> str:
        """One line, without its end; numbers count from 1."""
        ends = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[self._starts[number - 1] : ends].rstrip("\r\n")


def place_of(fault: Fault, marks: Mapping[Path, Place]) -> Place | None:
    """Where a fault is in the text: its own place, or that of the innermost part of its path that has one."""
    if fault.place is not None:
        return fault.place
    for length in range(len(fault.path), 0, -1):
        found = marks.get(fault.path[:length])
        if found is not None:
            return found
    return marks.get(())


def words(path: Path) -> str:
    """A path as people write it: `queues.WebhookIngress.delivery.batch`, `webhooks.Alert.allow_ips[0]`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def render(
    fault: Fault,
    text: str | Lines | None = None,
    marks: Mapping[Path, Place] | None = None,
    file: str = "<text>",
) -> str:
    """A fault for people: `file:line:column: what`, the line, a caret below it, what to do.

    Without text: `file: path: what`, what to do.
    """
    place = place_of(fault, marks or {})
    if text is None or place is None:
        where = f"{file}: {words(fault.path)}" if fault.path else file
        return "\n".join([printable(f"{where}: {fault.what}"), *_remedy(fault)])
    lines = text if isinstance(text, Lines) else Lines(text)
    shown = _shown(lines.line(place.line), place)
    head = printable(f"{file}:{place.line}:{place.column}: {fault.what}")
    return "\n".join([head, *shown, *_remedy(fault)])


def printable(text: str) -> str:
    """The text on one line, without what a terminal would obey: a file quoted in a fault may hold anything."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def in_order(faults: Iterable[Fault], marks: Mapping[Path, Place]) -> list[Fault]:
    """Faults as they stand in the text, each once; those without a place last."""
    end = Place(1 << 60, 0)
    places = {fault: place_of(fault, marks) or end for fault in faults}
    return sorted(places, key=lambda fault: (places[fault].line, places[fault].column))


def suggest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, if one is close enough."""
    by_form = {snake(name): name for name in known}
    if snake(word) in by_form:
        return by_form[snake(word)]
    close = get_close_matches(snake(word), by_form, 1, 0.6)
    return by_form[close[0]] if close else None


def meant(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """`Did you mean ...?`, or the other remedy."""
    found = suggest(word, known)
    return f"Did you mean `{found}`?" if found else otherwise


def listed(names: Iterable[str], last: str = "or") -> str:
    """`a`, `b` or `c`, each in backquotes."""
    *others, final = [f"`{name}`" for name in names] or ["nothing"]
    return f"{', '.join(others)} {last} {final}" if others else final


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"


def _remedy(fault: Fault) -> list[str]:
    return [f"  {printable(fault.remedy)}"] if fault.remedy else []


def _shown(line: str, place: Place) -> list[str]:
    """The line and its caret: tabs as blanks, what a terminal would obey as `?`, a long line cut around the place."""
    at = place.column - 1
    before = line[:at].replace("\t", " " * TAB)
    width = min(place.width, SHOWN_MAX // 2)
    marked = line[at : at + width].replace("\t", " " * TAB)
    after = line[at + width :].replace("\t", " " * TAB)
    cut = max(len(before) - SHOWN_MAX // 2, 0)
    before = f"...{before[cut:]}" if cut else before
    room = max(SHOWN_MAX - len(before) - len(marked), 0)
    after = f"{after[:room]}..." if len(after) > room + 3 else after
    source = "".join(char if char.isprintable() else "?" for char in before + marked + after)
    return [f"  {source}", f"  {' ' * len(before)}{'^' * max(len(marked), 1)}"]
