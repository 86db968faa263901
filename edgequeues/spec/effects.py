"""The commands that every space knows, by their names: what they do to an entity, and what their input must say."""

from __future__ import annotations

from typing import Literal

ENTITY_ID = "entity_id"  # of a command's input: which entity is meant
STATE = "state"  # of a command's input: the state that the entity is in from then on

Effect = Literal["create", "update", "upsert", "delete"]
EFFECTS: tuple[Effect, ...] = ("create", "update", "upsert", "delete")


def effect_of(entity_type: str, command: str) -> Effect | None:
    """What a command does by its name, as `CreateIncident` of an Incident, or `Create`; None: it is none of these."""
    for effect in EFFECTS:
        if command.casefold() in (effect, effect + entity_type.casefold()):
            return effect
    return None
