"""A spec out of a file, be it text or JSON, with everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from edgequeues.core.errors import InvalidRequest
from edgequeues.spec import faults, ir
from edgequeues.spec.check import Allowed, check
from edgequeues.spec.faults import Fault, Path, Place


class Loaded(NamedTuple):
    """spec: None where there are faults. text: None where it was JSON. draft: see Parsed."""

    spec: ir.Spec | None
    faults: list[Fault]
    marks: Mapping[Path, Place]
    text: str | None
    file: str
    draft: ir.Spec | None = None

    def render(self) -> list[str]:
        """The faults for people."""
        lines = (
            None if self.text is None else faults.Lines(self.text)
        )  # once: there may be thousands of faults
        return [faults.render(fault, lines, self.marks, self.file) for fault in self.faults]


def load(content: bytes, file: str = "<text>", allowed: Allowed | None = None) -> Loaded:
    """Read and check a spec: JSON if it begins with a brace, else text. Raises nothing."""
    if is_json(content):
        return _json(content, file, allowed)
    found = read_text(content, file)
    if found.draft is None:
        return found
    blamed = [fault.path for fault in found.faults if fault.path]
    more = [fault for fault in check(found.draft, allowed) if not _known(fault.path, blamed)]
    every = faults.in_order([*found.faults, *more], found.marks)
    return found._replace(spec=None if every else found.spec, faults=every)


def read_text(content: bytes, file: str) -> Loaded:
    """Read a spec that is text, without a look at whether its parts fit together."""
    from edgequeues.spec.parse import (
        parse,  # and the parser with it, which a server that is given JSON never needs
    )

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        what = f"byte {error.start}, in line {line}, is not UTF-8"
        return Loaded(None, [Fault((), what, "Save the file as UTF-8.")], {}, None, file)
    found = parse(text, file)
    return Loaded(found.spec, found.faults, found.marks, text, file, found.draft)


def is_json(content: bytes) -> bool:
    """Is this the JSON of a spec, rather than text?"""
    return content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"


def _json(content: bytes, file: str, allowed: Allowed | None) -> Loaded:
    try:
        spec = ir.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except InvalidRequest as error:
        return Loaded(None, [Fault((), error.detail, error.remedy)], {}, None, file)
    found = check(spec, allowed)
    return Loaded(None if found else spec, found, {}, None, file)


def _known(path: Path, blamed: list[Path]) -> bool:
    """Is something at this path, or around it, blamed already?"""
    return any(path[: len(one)] == one for one in blamed)
