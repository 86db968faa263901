"""Trying a mapping on one message: what it would make of it, or everything that does not fit."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidRequest
from edgequeues.models import Entry
from edgequeues.spec import ir, pieces
from edgequeues.spec.checking import Anything, Checking
from edgequeues.spec.ir import CommandMapping, CommandSpec, Mapping, QueueSpec
from edgequeues.spec.working import Chained, Work


class Misfit(Struct, frozen=True):
    """Why a message does not fit. All but `error` are None where it is none of its queue; else see mapping.Misfit."""

    field: str | None
    expression: str | None
    path: str | None
    found: str | None
    error: str


class Trial(Struct, frozen=True):
    """What a mapping would do. command or queue: which it leads to. input: JSON of the input, or of the message."""

    ok: bool
    misfits: list[Misfit] = []
    command: str | None = None
    queue: str | None = None
    input: Raw | None = None


def work(rules: str | None, command: str | None, mapping: Mapping) -> Work:
    """The work of a queue with another mapping than it has.

    rules, command: as its row says them; the command counts where both mappings lead to it. Raises InvalidRequest
    for an expression that could be right for no message of the queue.
    """
    spec = QueueSpec() if rules is None else msgspec.json.decode(rules, type=QueueSpec)
    checking = Checking(ir.Spec(version=0, app="trying"), None)
    scope = Anything() if spec.message_type is None else spec.message_type
    fields = mapping.input_map if isinstance(mapping, CommandMapping) else mapping.message
    for name, expr in fields.items():
        checking.expression(("map_to", name), expr, scope)
    if checking.faults:
        raise InvalidRequest(
            "; ".join(f"map_to: {one.path[1]}: {pieces.told(one)}" for one in checking.faults)
        )
    declared = None if command is None or not _same_command(spec.map_to, mapping) else command
    return Work(
        replace(spec, map_to=mapping),
        None if declared is None else msgspec.json.decode(declared, type=CommandSpec),
    )


def trial(tried: Work, entry: Entry, at: int) -> Trial:
    """What comes of a message at unix ms `at`. Nothing is done."""
    misfits = [Misfit(*each) for each in tried.misfits(entry, at)]
    if misfits:
        return Trial(False, misfits)
    todo = tried(entry, at)
    if isinstance(todo, Chained):
        return Trial(True, queue=todo.queue, input=Raw(todo.data.encode()))
    return Trial(True, command=todo.name, input=Raw(jsontext.write(todo.input)))


def _same_command(one: Mapping | None, other: Mapping) -> bool:
    return (
        isinstance(one, CommandMapping)
        and isinstance(other, CommandMapping)
        and (one.entity_type, one.command) == (other.entity_type, other.command)
    )
