"""Pieces of the language by themselves: an expression that somebody searches by, a mapping that somebody tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from edgequeues.core.attrs import AttrType
from edgequeues.core.errors import InvalidRequest
from edgequeues.spec import ir
from edgequeues.spec.checking import Checking, Scope
from edgequeues.spec.faults import Fault, Lines, Path, Place, in_order, place_of

_NOTHING = ir.Spec(version=0, app="pieces")


class Read(NamedTuple):
    """An expression that was read. marks: where its parts stand in the text."""

    expr: ir.Expr
    marks: Mapping[Path, Place]


@lru_cache(maxsize=256)
def read(name: str, text: str) -> Read:
    """An expression as text. Remembered: what is read at the edge is not read again in a turn.

    name: of what the text was given for. Raises InvalidRequest, which tells where in the text each fault is.
    """
    # The parser comes with these, and a server that is never given text does without.
    from edgequeues.spec.building import Building
    from edgequeues.spec.syntax import SyntaxFault, read_expression
    from edgequeues.spec.tree import Value

    making = Building(Lines(text))
    try:
        found = read_expression(making.lines)
    except SyntaxFault as error:
        raise _refused(name, making.marks, [error.fault]) from None
    expr = making.expression((), Value(found.start, found.end, found))
    if expr is None or making.faults:
        raise _refused(name, making.marks, making.faults)
    return Read(expr, making.marks)


def expression(name: str, text: str, scope: Scope, wanted: Sequence[AttrType] = ()) -> ir.Expr:
    """The same, whose value is of one of the wanted types, if that can be told. Raises InvalidRequest."""
    found = read(name, text)
    checking = Checking(_NOTHING, None)
    checking.expression((), found.expr, scope, wanted)
    if checking.faults:
        raise _refused(name, found.marks, checking.faults)
    return found.expr


def mapping(name: str, text: str) -> ir.Mapping:
    """What a text like `command Entity.Command { field: expression }` maps to, as it stands after `map_to:`.

    Raises InvalidRequest, which tells where in the text each fault is.
    """
    from edgequeues.spec.building import Building
    from edgequeues.spec.parts import mapping as build
    from edgequeues.spec.syntax import SyntaxFault, read_target

    making = Building(Lines(text))
    try:
        found = build(making, (), read_target(making.lines))
    except SyntaxFault as error:
        raise _refused(name, making.marks, [error.fault]) from None
    if making.faults or not isinstance(found, ir.CommandMapping | ir.QueueMapping):
        raise _refused(name, making.marks, making.faults)
    return found


def told(fault: Fault) -> str:
    """What is wrong and what to do, as one sentence after the other."""
    return f"{fault.what}. {fault.remedy}".removesuffix(". ").removesuffix(".")


def _refused(name: str, marks: Mapping[Path, Place], faults: Sequence[Fault]) -> InvalidRequest:
    said = []
    for fault in in_order(faults, marks):
        place = place_of(fault, marks)
        where = "" if place is None else f" line {place.line}, column {place.column}:"
        said.append(f"{name}:{where} {told(fault)}")
    return InvalidRequest("; ".join(said))
