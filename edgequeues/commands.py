"""What functions use that are run as commands: `run: python "module:function"` in a spec.

Such a function is given the input and a Context, and returns what is told to the sender, anything that JSON can say:

    def create(given: dict, context: Context) -> dict:
        context.put("Incident", given["id"], state="open", attributes={"title": given["title"]})
        return {"opened": given["id"]}

It runs in a process of its own. What it does to the context is recorded, and happens when it has returned, in the
transaction that also finishes its message: all of it or nothing. Should what it looked at have changed by then, it
runs again. So effects through the context happen exactly once; whatever else it does may happen more often.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from edgequeues.core import jsontext
from edgequeues.core.errors import EdgeQueuesError, InvalidJson
from edgequeues.core.ids import check_idempotency_key
from edgequeues.spec.calling import Change, Effects, Posted, Read

TEXT_BYTES_MAX = 1024 * 1024  # of an entity's attributes, or a message
RESULT_BYTES_MAX = 64 * 1024
EFFECTS_MAX = 1_000  # entities changed, and messages made, by one run
ID_MAX = 256  # characters of a type or an id


class Rejected(Exception):
    """Raise it for a command that will not do, however often it is tried: its message is a dead letter at once."""


class CannotStore(Exception):
    """What is to be kept is nothing that JSON can say, or too much of it."""


class Entity(NamedTuple):
    """A thing that commands act on. version: grows by one with each change."""

    entity_type: str
    entity_id: str
    state: str | None
    attributes: Mapping[str, Any]
    version: int


Look = Callable[[str, str], Entity | None]


class Context:
    """What a function knows and may do. now: unix seconds, the same for the whole run. attempt: 1 for the first.

    id: the same whenever the command runs for the same message, so a key for what must not happen twice elsewhere.
    """

    def __init__(self, look: Look, *, id: str, attempt: int, now: float, space: str) -> None:
        self.id = id
        self.attempt = attempt
        self.now = now
        self.space = space
        self._look = look
        self._seen: dict[tuple[str, str], Entity | None] = {}
        self._changes: dict[tuple[str, str], Entity | None] = {}
        self._messages: list[Posted] = []

    def get(self, entity_type: str, entity_id: str) -> Entity | None:
        """An entity, as it is, or as this run has it be; None: there is none."""
        key = entity_type, entity_id
        return self._changes[key] if key in self._changes else self._at_first(key)

    def put(
        self,
        entity_type: str,
        entity_id: str,
        *,
        state: str | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        """Have an entity be this, instead of whatever it was. Raises CannotStore, ValueError."""
        self._change(entity_type, entity_id, Entity(entity_type, entity_id, state, dict(attributes or {}), 0))

    def delete(self, entity_type: str, entity_id: str) -> None:
        """Have an entity be no more. Raises ValueError."""
        self._change(entity_type, entity_id, None)

    def enqueue(self, queue: str, message: object, *, key: str | None = None) -> None:
        """Have a message be made in a queue of the same space; key: one under which a message came before makes none.

        Raises CannotStore, ValueError.
        """
        if len(self._messages) == EFFECTS_MAX:
            raise ValueError(f"one run makes at most {EFFECTS_MAX} messages")
        _name("the name of a queue", queue)
        if key is not None:
            _key(key)
        self._messages.append(Posted(queue, _text(f"message for {queue}", message, TEXT_BYTES_MAX), key))

    def effects(self, result: object) -> Effects:
        """All that was recorded, with what the function returned. Raises CannotStore."""
        reads = tuple(
            Read(*key, None if found is None else found.version) for key, found in self._seen.items()
        )
        changes = tuple(_change(key, after) for key, after in self._changes.items())
        text = _text("what was returned", result, RESULT_BYTES_MAX)
        return Effects(reads, changes, tuple(self._messages), text)

    def _change(self, entity_type: str, entity_id: str, after: Entity | None) -> None:
        _name("the type of an entity", entity_type)
        _name("the id of an entity", entity_id)
        key = entity_type, entity_id
        before = self._at_first(key)  # so that two who change it do not undo each other's work
        _change(key, after)
        if after is not None:
            after = after._replace(version=1 if before is None else before.version + 1)
        self._changes[key] = after
        if len(self._changes) > EFFECTS_MAX:
            raise ValueError(f"one run changes at most {EFFECTS_MAX} entities")

    def _at_first(self, key: tuple[str, str]) -> Entity | None:
        if key not in self._seen:
            self._seen[key] = self._look(*key)
        return self._seen[key]


def _change(key: tuple[str, str], after: Entity | None) -> Change:
    if after is None:
        return Change(*key, None, None)
    if after.state is not None:
        _name(f"the state of {key[0]} {key[1]}", after.state)
    what = f"attributes of {key[0]} {key[1]}"
    return Change(*key, after.state, _text(what, after.attributes, TEXT_BYTES_MAX))


def _name(what: str, value: object) -> None:
    """Raises ValueError unless this is a text that can be a name."""
    if not isinstance(value, str) or not 1 <= len(value) <= ID_MAX or not _is_unicode(value):
        raise ValueError(f"{what} is a text of 1 to {ID_MAX} characters, not {value!a:.100}")


def _key(value: str) -> None:
    """Raises ValueError unless this can be a key."""
    try:
        check_idempotency_key(value)
    except EdgeQueuesError as error:
        raise ValueError(error.detail) from None


def _is_unicode(text: str) -> bool:
    """Has it no halves of surrogate pairs?"""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(what: str, value: object, bytes_max: int) -> str:
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        jsontext.check(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotStore(f"{what} cannot be stored: {error}") from None
    except InvalidJson as error:
        raise CannotStore(f"{what} cannot be stored: {error.detail}") from None
    if len(text) > bytes_max:
        raise CannotStore(f"{what} cannot be stored: {len(text)} bytes, at most {bytes_max} are kept")
    return text
