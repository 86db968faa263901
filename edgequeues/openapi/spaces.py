"""What is said of the native protocol about spaces: specs, webhooks, schedules, entities, health."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from edgequeues.core import errors
from edgequeues.core.dxn import Tag
from edgequeues.http import problems
from edgequeues.http.codec import Stats
from edgequeues.http.entities import NAME_CHARS_MAX, ReceiptOut
from edgequeues.models import Appended
from edgequeues.openapi.op import Op, Page, Param, Text, Whole, json, ok
from edgequeues.spec.ir import Spec
from edgequeues.spec.values import QueueChange, ScheduleChange, ScheduleList
from edgequeues.specs import HookInfo

SPACE = Param(
    "space", Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")], "A space's id.", example="demo"
)
_ENTITY_NAME = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
PATHS = {
    "space": SPACE,
    "app": Param(
        "app", Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")], "The app of a spec."
    ),
    "schedule": Param("schedule", Annotated[str, Meta(min_length=1, max_length=128)], "A schedule's name."),
    "entity_type": Param("entity_type", _ENTITY_NAME, "A type of entity."),
    "entity_id": Param("entity_id", _ENTITY_NAME, "An entity's id."),
}


class SpaceOut(Struct, frozen=True):
    """A space as listed."""

    id: str
    tag: Tag


class SpacesOut(Struct, frozen=True):
    """Spaces by name. resume: pass it as `after`; null at the end."""

    spaces: list[SpaceOut]
    resume: str | None


class QueuesOut(Struct, frozen=True):
    """Queues by id. resume: pass it as `after`; null at the end."""

    queues: list[Stats]
    resume: str | None


class Health(Struct, frozen=True):
    """All is well."""

    status: Literal["ok"]


class SpecRow(Struct, frozen=True):
    """A spec as listed. applied: unix ms. blocked: why its webhooks are not served; null: they are."""

    app: str
    origin: str
    applied: int
    queues: list[str]
    webhooks: list[str]
    schedules: list[str]
    blocked: str | None


class SpecsOut(Struct, frozen=True):
    """The specs that hold in a space."""

    specs: list[SpecRow]


class AppliedOut(Struct, frozen=True):
    """What a spec did, or would do."""

    app: str
    queues: list[QueueChange]
    schedules: list[ScheduleChange] = []


class HooksOut(Struct, frozen=True):
    """The webhooks of the server."""

    hooks: list[HookInfo]


class EntityShown(Struct, frozen=True):
    """An entity. attributes: as the commands left them. created, updated: unix ms."""

    id: str
    state: str | None
    version: int
    created: int
    updated: int
    attributes: Any


class EntitiesOut(Struct, frozen=True):
    """Entities by id. resume: pass it as `after`; null at the end."""

    entities: list[EntityShown]
    resume: str | None


class HistoryOut(Struct, frozen=True):
    """Commands on an entity, the oldest first. resume: pass it as `after`; null at the end."""

    commands: list[ReceiptOut]
    resume: int | None


LIMIT = Param("limit", Page, "At most so many; 100 where it is not said.")
AFTER = Param("after", Text, "The `resume` of the page before.")
DRY_RUN = Param("dry_run", bool, "Only say what it would do.")
OF_SPEC = (errors.SpecNotFound, errors.SpecConflict, problems.NotReady)

OPERATIONS = {
    "GET /v1/spaces": Op(ok(SpacesOut), query=(AFTER, LIMIT)),
    "GET /v1/spaces/{space}/queues": Op(
        ok(QueuesOut),
        query=(AFTER, LIMIT, Param("tag", Tag, "The space's own queues, or those of its traces.")),
    ),
    "GET /healthz": Op(ok(Health, "The process answers.")),
    "GET /readyz": Op(ok(Health, "It takes work."), errors=(problems.NotReady,)),
    "GET /v1/spaces/{space}/specs": Op(ok(SpecsOut)),
    "GET /v1/spaces/{space}/specs/{app}": Op(ok(Spec, "The spec."), errors=(errors.SpecNotFound,)),
    "PUT /v1/spaces/{space}/specs/{app}": Op(
        ok(AppliedOut, "What it did, or would do."),
        query=(
            DRY_RUN,
            Param("origin", Text, "Where it is from, as it is to be listed; 256 characters are kept."),
        ),
        body=json(Spec, {"version": 0, "app": "shop", "queues": {"orders": {}}}),
        errors=(
            *OF_SPEC,
            errors.UnsupportedMedia,
            errors.InvalidSpec,
            errors.HookTaken,
            errors.TooManySpaces,
            errors.RateLimited,
        ),
    ),
    "DELETE /v1/spaces/{space}/specs/{app}": Op(
        ok(AppliedOut, "What it did, or would do."), query=(DRY_RUN,), errors=OF_SPEC
    ),
    "GET /v1/hooks": Op(ok(HooksOut)),
    "GET /v1/spaces/{space}/schedules": Op(
        ok(ScheduleList),
        query=(
            Param(
                "after",
                Annotated[str, Meta(min_length=1, max_length=128)],
                "The `resume` of the page before.",
            ),
            LIMIT,
        ),
    ),
    "POST /v1/spaces/{space}/schedules/{schedule}/run": Op(
        ok(Appended, "The message that was made."),
        body=json({"type": "object", "maxProperties": 0}, {}, required=False),
        errors=(errors.ScheduleNotFound, errors.InvalidMessage, errors.QueueFull, errors.QueueNotFound),
    ),
    "GET /v1/spaces/{space}/entities/{entity_type}": Op(ok(EntitiesOut), query=(AFTER, LIMIT)),
    "GET /v1/spaces/{space}/entities/{entity_type}/{entity_id}": Op(
        ok(EntityShown), errors=(errors.EntityNotFound,)
    ),
    "GET /v1/spaces/{space}/entities/{entity_type}/{entity_id}/history": Op(
        ok(HistoryOut),
        query=(Param("after", Whole, "The `resume` of the page before."), LIMIT),
        errors=(errors.EntityNotFound,),
    ),
}
