"""What a queue's spec says of a message: is it wanted, is it of the type, and what is computed from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from edgequeues.core import attrs, jsontext
from edgequeues.core.errors import EdgeQueuesError, InvalidMessage
from edgequeues.core.expression_reading import Closure
from edgequeues.core.expression_values import truthy
from edgequeues.core.expressions import Env, ExprError, compile_expr
from edgequeues.core.ids import check_idempotency_key, check_key
from edgequeues.core.jsonwords import kind
from edgequeues.models import PRIORITY, UNIX_MS_MAX, NewEntry
from edgequeues.spec.ir import Expr, MessageType, QueueSpec

WORDS = {"low": 1, "normal": 4, "high": 7}  # priorities by name


class Malformed(NamedTuple):
    """A message that the queue does not take, and why."""

    entry: NewEntry
    error: str


Verdict = NewEntry | Malformed | None  # as it is to be appended; None: it is not wanted


class Judge:
    """The rules of one queue, compiled."""

    def __init__(self, spec: QueueSpec) -> None:
        self.buries = spec.on_invalid == "dead_letter"
        self.check = None if spec.message_type is None else attrs.checker(spec.message_type)
        self._type: MessageType = spec.message_type or {}
        self._filter = _compiled(spec.filter)
        self._computed: list[tuple[str, Closure, Callable[[object], object]]] = [
            (name, compile_expr(expr), checked)
            for name, expr, checked in (
                ("key", spec.ordering_key, _key),
                ("priority", spec.priority, _priority),
                ("idempotency_key", spec.idempotency_key, _idempotency_key),
                ("due", spec.schedule, _due),
            )
            if expr is not None
        ]

    @property
    def is_idle(self) -> bool:
        """Is there nothing to be said of any message?"""
        return self.check is None and self._filter is None and not self._computed

    @property
    def ranks(self) -> bool:
        """Is the priority computed of each message?"""
        return any(name == "priority" for name, _, _ in self._computed)

    def all(self, entries: Sequence[NewEntry], at: int) -> list[Verdict]:
        """What is to become of each at unix ms `at`.

        Raises InvalidMessage for one that will not do, where none is buried.
        """
        verdicts = [self(entry, at) for entry in entries]
        if not self.buries:
            for index, verdict in enumerate(verdicts):
                if isinstance(verdict, Malformed):
                    raise InvalidMessage(f"entries[{index}]: {verdict.error}")
        return verdicts

    def __call__(self, entry: NewEntry, at: int) -> Verdict:
        """What is to become of a message at unix ms `at`."""
        value = jsontext.value(entry.data)
        env = Env(attrs.fields_of(self._type, value), at / 1_000)
        try:
            if self._filter is not None and not truthy(self._filter(env)):
                return None
            fault = None if self.check is None else self.check(value)
            if fault is not None:
                return Malformed(entry, fault)
            return self._complete(entry, env)
        except ExprError as error:
            return Malformed(entry, f"filter: {error}")
        except EdgeQueuesError as error:
            return Malformed(entry, error.detail)

    def _complete(self, entry: NewEntry, env: Env) -> Verdict:
        """The message with what is computed of it, where its sender said nothing."""
        found: dict[str, object] = {}
        for name, closure, checked in self._computed:
            if _is_given(entry, name):
                continue
            try:
                value = closure(env)
                if value is not None:
                    found[name] = checked(value)
            except ExprError as error:
                return Malformed(entry, f"{name}: {error}")
        return msgspec.structs.replace(entry, **found) if found else entry


@lru_cache(maxsize=1_024)
def of_rules(rules: str) -> Judge | None:
    """The judge of a queue whose row says this; None: nothing is ever to be said."""
    judge = Judge(msgspec.json.decode(rules, type=QueueSpec))
    return None if judge.is_idle else judge


def text_of(value: object) -> str:
    """A key as text. Raises InvalidMessage unless it is a text or an integer."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InvalidMessage(f"{kind(value)} is no key: a text or an integer is needed")


# -- details ------------------------------------------------------------------------------------------------


def _compiled(expr: Expr | None) -> Closure | None:
    return None if expr is None else compile_expr(expr)


def _is_given(entry: NewEntry, name: str) -> bool:
    if name == "due":
        return entry.due is not None or entry.delay_ms is not None
    return entry.priority != PRIORITY if name == "priority" else getattr(entry, name) is not None


def _key(value: object) -> str:
    return check_key(text_of(value))


def _idempotency_key(value: object) -> str:
    return check_idempotency_key(text_of(value))


def _priority(value: object) -> int:
    if isinstance(value, str):
        value = WORDS.get(value, value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 9:
        return value
    raise InvalidMessage(f"priority: {kind(value)} where an integer from 0 to 9 is needed")


def _due(value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * 1_000 <= UNIX_MS_MAX:
        return int(value * 1_000)
    raise InvalidMessage(f"schedule: {kind(value)} where unix seconds are needed")
