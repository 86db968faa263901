"""Values that commands cross borders as: what is asked of them, and what they did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class Call(Struct, frozen=True):
    """A command to be carried out on an entity. input: its fields."""

    entity_type: str
    command: str
    input: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As specs write it: `Incident.CreateIncident`."""
        return f"{self.entity_type}.{self.command}"


class Read(Struct, frozen=True):
    """That an entity was looked at. version: as it was; None: there was none."""

    entity_type: str
    entity_id: str
    version: int | None


class Change(Struct, frozen=True):
    """What an entity is to be from now on. attributes: JSON object; None: it is to be removed."""

    entity_type: str
    entity_id: str
    state: str | None
    attributes: str | None


class Posted(Struct, frozen=True):
    """A message to be made in a queue, by id or name. data: JSON."""

    queue: str
    data: str
    idempotency_key: str | None = None


class Effects(Struct, frozen=True):
    """What a command did, to be taken as a whole or not at all. result: JSON, told to who sent the message."""

    reads: tuple[Read, ...] = ()
    changes: tuple[Change, ...] = ()
    messages: tuple[Posted, ...] = ()
    result: str = "null"
