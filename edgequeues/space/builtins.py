"""The commands that every space knows, carried out: an entity is made, changed or removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import apsw

from edgequeues.core import jsontext
from edgequeues.core.errors import CommandRejected
from edgequeues.core.jsonwords import kind
from edgequeues.space import entities
from edgequeues.space.entities import Entity
from edgequeues.spec.calling import Call
from edgequeues.spec.effects import ENTITY_ID, STATE, effect_of

ID_MAX = 256  # characters


class Done(NamedTuple):
    """What a command did. version: of the entity afterwards."""

    entity_type: str
    entity_id: str
    version: int
    state: str | None

    def json(self) -> str:
        """As it is told to who sent the message."""
        return jsontext.write(self._asdict()).decode()


def carry_out(db: apsw.Connection, call: Call, default_id: str, at: int) -> Done:
    """Do what a command says at unix ms `at`. default_id: of the entity, where the input names none.

    Raises CommandRejected, and then nothing is changed.
    """
    effect = effect_of(call.entity_type, call.command)
    if effect is None:
        raise CommandRejected(f"{call.entity_type}.{call.command}: no command of this name is known here")
    entity_id = _text(call, ENTITY_ID)
    if entity_id is None and effect != "create":
        raise CommandRejected(
            f"{call.command}: its input has no {ENTITY_ID}, so it is not known what it is about"
        )
    entity_id = entity_id or default_id
    found = entities.get(db, call.entity_type, entity_id)
    if effect == "create" and found is not None:
        raise CommandRejected(f"{call.command}: {call.entity_type} {entity_id} is there already")
    if effect in ("update", "delete") and found is None:
        raise CommandRejected(f"{call.command}: there is no {call.entity_type} {entity_id}")
    after = _after(call, entity_id, found, at)
    if effect == "delete":
        entities.remove(db, call.entity_type, entity_id)
    else:
        entities.put(db, after)
    return Done(after.entity_type, after.entity_id, after.version, after.state)


def _after(call: Call, entity_id: str, before: Entity | None, at: int) -> Entity:
    """The entity when the input has been merged into it."""
    given = {name: value for name, value in call.input.items() if name not in (ENTITY_ID, STATE)}
    state = _text(call, STATE)
    if before is None:
        return Entity(call.entity_type, entity_id, state, _json(given), 1, at, at)
    attributes = _json({**_attributes(before), **given})
    return before._replace(
        state=state or before.state, attributes=attributes, version=before.version + 1, updated=at
    )


def _attributes(entity: Entity) -> Mapping[str, Any]:
    value: Mapping[str, Any] = jsontext.value(entity.attributes)
    return value


def _text(call: Call, name: str) -> str | None:
    value = call.input.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 1 <= len(value) <= ID_MAX:
        what = f"a text of {len(value)} characters" if isinstance(value, str) else kind(value)
        raise CommandRejected(f"{call.command}: {name}: {what} where a text of 1 to {ID_MAX} is needed")
    return value


def _json(value: Mapping[str, Any]) -> str:
    return jsontext.write(value).decode()
