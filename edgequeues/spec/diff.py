"""What changes from one spec to another, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import fields

from edgequeues.core.attrs import AttrType, show
from edgequeues.spec import ir
from edgequeues.spec.faults import Path, words
from edgequeues.spec.fmt import expression, name_text, plain
from edgequeues.spec.parts import UNLIMITED_KEYS

Kind = Literal["added", "removed", "changed"]

EXPRESSIONS = frozenset(
    {"ordering_key", "priority", "idempotency_key", "filter", "schedule", "key", "for_each"}
)


class Change(Struct, frozen=True, omit_defaults=True):
    """One difference. old, new: as text of the language; of a whole part, as a queue, what is in it."""

    path: Path
    kind: Kind
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        shown = {"added": f"+ {words(self.path)}", "removed": f"- {words(self.path)}"}
        if self.kind == "changed":
            return f"~ {words(self.path)}: {self.old} -> {self.new}"
        value = self.new if self.kind == "added" else self.old
        return shown[self.kind] + (f": {value}" if value else "")


def diff(old: ir.Spec | None, new: ir.Spec) -> list[Change]:
    """The changes from `old` (None: from nothing) to `new`, in the order of the new one; what is gone comes last.

    A queue, a webhook, a command or a schedule that is added or removed is one change.
    """
    changes: list[Change] = []
    if old is not None and old.app != new.app:
        changes.append(Change(("app",), "changed", old.app, new.app))
    for part in ("queues", "webhooks", "commands", "schedules"):
        before: Mapping[str, Any] = getattr(old, part) if old is not None else {}
        after: Mapping[str, Any] = getattr(new, part)
        for name, value in after.items():
            if name not in before:
                changes.append(Change((part, name), "added"))
            else:
                changes += _structs((part, name), before[name], value)
        changes += [Change((part, name), "removed") for name in before if name not in after]
    return changes


def _structs(path: Path, old: Struct, new: Struct) -> Iterator[Change]:
    for name in ir.fields_of(type(new)):
        yield from _values((*path, name), getattr(old, name), getattr(new, name))


def _values(path: Path, old: Any, new: Any) -> Iterator[Change]:
    if old == new:
        return
    if _alike(old, new):
        yield from _structs(path, old, new)
    elif path[-1] in EXPRESSIONS or not isinstance(old, dict) or not isinstance(new, dict):
        yield _change(path, old, new)
    else:
        for name in new:
            yield from _values_of((*path, name), old.get(name), new[name])
        for name in old:
            if name not in new:
                yield _change((*path, name), old[name], None)


def _values_of(path: Path, old: Any, new: Any) -> Iterator[Change]:
    """Of one field of a message type or a mapping."""
    if old != new:
        yield _change(path, old, new)


def _alike(old: Any, new: Any) -> bool:
    return isinstance(new, Struct) and not isinstance(new, AttrType) and type(old) is type(new)


def _change(path: Path, old: Any, new: Any) -> Change:
    unlimited = path[-1] in UNLIMITED_KEYS
    if old in (None, ()) and not unlimited:
        return Change(path, "added", None, _text(path, new))
    if new in (None, ()) and not unlimited:
        return Change(path, "removed", _text(path, old))
    return Change(path, "changed", _text(path, old), _text(path, new))


def _text(path: Path, value: Any) -> str:
    """A value as the language writes it, as far as it is one line."""
    if isinstance(value, AttrType):
        shown = show(value)
    elif isinstance(value, ir.CommandMapping):
        shown = f"command {value.entity_type}.{value.command}"
    elif isinstance(value, ir.QueueMapping):
        shown = f"queue {name_text(value.queue)}"
    elif isinstance(value, dict):
        is_expression = path[-1] in EXPRESSIONS or (len(path) > 1 and path[-2] in ("input_map", "message"))
        shown = expression(value) if is_expression else f"{{ {', '.join(value)} }}"
    elif isinstance(value, Struct):
        said = [
            (one.name, given) for one in fields(value) if (given := getattr(value, one.name)) != one.default
        ]
        parts = [f"{name}: {_text((*path, name), given)}" for name, given in said]
        shown = f"{{ {', '.join(parts)} }}"
    else:
        shown = plain(str(path[-1]), value)
    return shown
