"""Specs in files: as text or as JSON, read and checked as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgequeues.core.errors import EdgeQueuesError
from edgequeues.core.ids import check_space
from edgequeues.spec import ir
from edgequeues.spec.check import Allowed, check
from edgequeues.spec.faults import in_order, render
from edgequeues.spec.ir import Spec


class SpecError(Exception):
    """A spec that will not do. The message names every place that is at fault, and what to do about each."""


class Given(NamedTuple):
    """A spec that was named with the space in which it is to hold. origin: the file."""

    spec: Spec
    space: str
    origin: str


def given(text: str, allowed: Allowed | None) -> Given:
    """The spec of FILE or FILE=SPACE; without a space, that of the app's name. Raises SpecError."""
    name, _, space = text.partition("=")
    spec = read(Path(name), allowed)
    try:
        return Given(spec, check_space(space or spec.app), name)
    except EdgeQueuesError as error:
        raise SpecError(f"{text}: {error}") from error


def read(path: Path, allowed: Allowed | None = None) -> Spec:
    """The spec of a file, checked; allowed: what it may use of the server's surroundings, None: anything.

    Raises SpecError.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SpecError(f"{path}: {(error.strerror or str(error)).lower()}; name a file of a spec") from error
    return spec_of(content, str(path), allowed)


def spec_of(content: bytes, name: str, allowed: Allowed | None = None) -> Spec:
    """The spec of a text or of JSON, checked. Raises SpecError."""
    if content.lstrip().startswith(b"{"):
        try:
            spec = ir.decode(content)
        except EdgeQueuesError as error:
            raise SpecError(f"{name}: {error}") from error
        faults = [render(fault, file=name) for fault in check(spec, allowed)]
        if faults:
            raise SpecError("\n".join(faults))
        return spec
    return _parsed(content, name, allowed)


def _parsed(content: bytes, name: str, allowed: Allowed | None) -> Spec:
    from edgequeues.spec.parse import (
        parse,
    )  # and the parser with it, which a server that is given JSON never needs

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise SpecError(f"{name}: byte {error.start}: not UTF-8; save the file as UTF-8") from error
    parsed = parse(text, name)
    faults = [*parsed.faults, *(() if parsed.spec is None else check(parsed.spec, allowed))]
    if faults:
        shown = in_order(faults, parsed.marks)
        raise SpecError("\n".join(render(fault, text, parsed.marks, name) for fault in shown))
    assert parsed.spec is not None  # or there would be a fault
    return parsed.spec
