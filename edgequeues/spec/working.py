"""What a queue's spec has done with each message: a command is called, or another queue's message is made."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from edgequeues.core import attrs, jsontext
from edgequeues.core.expressions import Env
from edgequeues.models import Entry
from edgequeues.spec.calling import Call
from edgequeues.spec.ir import CommandMapping, CommandSpec, QueueMapping, QueueSpec
from edgequeues.spec.mapping import Field, Misfit

Runner = Literal[
    "space", "python", "http"
]  # who carries a command out: the space itself, or somebody outside
OUTSIDE: tuple[Runner, ...] = ("python", "http")


class Chained(NamedTuple):
    """A message to be made in another queue. data: JSON."""

    queue: str
    data: str


class Work:
    """A queue's `map_to`, compiled. command: how it is declared, if it is.

    runner: who carries it out. concurrency: how many at once, where that is outside of the space; None: any number.
    """

    def __init__(self, spec: QueueSpec, command: CommandSpec | None) -> None:
        assert spec.map_to is not None
        self.command = command
        self.runner = runner_of(command)
        self.concurrency = spec.delivery.concurrency
        self._type = spec.message_type or {}
        self._to = spec.map_to
        if isinstance(spec.map_to, CommandMapping):
            declared = {} if command is None else command.input or {}
            given = spec.map_to.input_map
            self._fields = [
                Field(name, expr, declared.get(name), needed=True) for name, expr in given.items()
            ]
        else:  # what may be missing is said by the type of the other queue
            self._fields = [Field(name, expr, None) for name, expr in spec.map_to.message.items()]

    def __call__(self, entry: Entry, at: int) -> Call | Chained:
        """What is to be done with a message at unix ms `at`. Raises InvalidMessage."""
        if isinstance(self._to, QueueMapping) and not self._fields:
            return Chained(self._to.queue, entry.data)
        env = self._env(entry, at)
        made = {one.name: one(env) for one in self._fields}
        if isinstance(self._to, QueueMapping):
            return Chained(self._to.queue, jsontext.write(made).decode())
        return Call(self._to.entity_type, self._to.command, made)

    def misfits(self, entry: Entry, at: int) -> list[Misfit]:
        """What of a message does not fit at unix ms `at`, field by field; nothing is made of it."""
        if not self._fields:
            return []
        env = self._env(entry, at)
        found = [one.misfit(env) for one in self._fields]
        return [one for one in found if one is not None]

    def _env(self, entry: Entry, at: int) -> Env:
        return Env(attrs.fields_of(self._type, jsontext.value(entry.data)), at / 1_000)


def runner_of(command: CommandSpec | None) -> Runner:
    """Who carries out a command that is declared so, or not at all."""
    if command is None or (command.python is None and command.http is None):
        return "space"
    return "http" if command.python is None else "python"


@lru_cache(maxsize=1_024)
def of_rules(rules: str, command: str | None) -> Work | None:
    """The work of a queue whose row says this; None: its messages are there to be pulled."""
    spec = msgspec.json.decode(rules, type=QueueSpec)
    if spec.map_to is None:
        return None
    return Work(spec, None if command is None else msgspec.json.decode(command, type=CommandSpec))
