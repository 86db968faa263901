"""From a spec to settings: what each of its queues is, and by which rules its consumer is given messages."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from edgequeues.core.attrs import AttrType
from edgequeues.core.backoff import Backoff
from edgequeues.models import WORK_QUEUE, ConsumerConfig, QueueConfig
from edgequeues.spec.ir import CommandMapping, Delivery, Mapping, MessageType, QueueSpec, Spec


class Plan(NamedTuple):
    """A queue as a spec declares it, and the JSON in which that is kept with the queue.

    command: of the command that its messages are mapped to, where that is declared.
    """

    spec: QueueSpec
    config: QueueConfig
    rules: ConsumerConfig
    text: str
    command: str | None


def plans(spec: Spec) -> dict[str, Plan]:
    """The queues of a spec, by name."""
    graves = {name: grave_of(spec, name) for name in spec.queues}
    buried_in = set(graves.values())
    mapped = mappings(spec)
    return {
        name: _plan(
            spec,
            name,
            replace(one, map_to=mapped.get(name)),
            graves[name],
            is_grave=name in buried_in,
        )
        for name, one in spec.queues.items()
    }


def grave_of(spec: Spec, name: str) -> str | None:
    """The declared queue that takes the dead letters of another; None: one is made when it is needed."""
    implicit = f"{name}-dlq"
    return spec.queues[name].delivery.dead_letter_queue or (implicit if implicit in spec.queues else None)


def mappings(spec: Spec) -> dict[str, Mapping]:
    """What the messages of queues are mapped to: by themselves, or by a webhook that has a command beside them."""
    beside: dict[str, Mapping] = {
        one.queue: CommandMapping(one.on_type, one.command, one.input_map)
        for one in spec.webhooks.values()
        if one.queue is not None and one.on_type is not None and one.command is not None
    }
    return beside | {name: one.map_to for name, one in spec.queues.items() if one.map_to is not None}


def _declared(spec: Spec, mapping: Mapping | None) -> str | None:
    """JSON of the command that messages are mapped to, where the spec declares it."""
    if not isinstance(mapping, CommandMapping):
        return None
    found = spec.commands.get(f"{mapping.entity_type}.{mapping.command}")
    return None if found is None else msgspec.json.encode(found).decode()


def _plan(app: Spec, name: str, spec: QueueSpec, grave: str | None, *, is_grave: bool) -> Plan:
    retention, delivery = spec.retention, spec.delivery
    age_s = retention.max_age_seconds
    config = replace(
        WORK_QUEUE,
        name=name,
        max_age_ms=None if age_s is None else age_s * 1_000,
        depth_max=retention.max_depth,
        delay_ms=spec.delay_ms,
    )
    rules = ConsumerConfig(
        ordering=spec.ordering,
        lease_ms=delivery.lease_ms,
        batch=delivery.batch,
        attempts_max=delivery.max_attempts,
        backoff=Backoff(
            delivery.initial_backoff_ms, delivery.max_backoff_ms, delivery.backoff_ms, delivery.jitter
        ),
        dead_letters=grave,
    )
    if is_grave and delivery == Delivery():
        # Nothing is said of how dead letters are worked: then they are not given up a second time.
        rules = replace(rules, attempts_max=None, dead_letters="")
    return Plan(spec, config, rules, msgspec.json.encode(spec).decode(), _declared(app, spec.map_to))


def fields_changed(old: QueueSpec | None, new: QueueSpec) -> list[str]:
    """The fields of a queue's spec that are other than they were, as `retention.max_depth`."""
    if old is None:
        return []
    found = []
    for name in QueueSpec.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if before == after:
            continue
        if isinstance(before, msgspec.Struct) and type(before) is type(after):
            inner = type(before).__struct_fields__
            found += [f"{name}.{one}" for one in inner if getattr(before, one) != getattr(after, one)]
        else:
            found.append(name)
    return found


def takes_all(old: MessageType | None, new: MessageType | None) -> bool:
    """Is every message of the old type one of the new type, too?"""
    if new is None:
        return True
    if old is None or not old.keys() <= new.keys():
        return False
    fresh = [one for name, one in new.items() if name not in old]
    return all(_may_miss(one) for one in fresh) and all(_wider(old[name], new[name]) for name in old)


def _may_miss(attr: AttrType) -> bool:
    return attr.optional or attr.default is not None


def _wider(old: AttrType, new: AttrType) -> bool:
    if _may_miss(old) and not _may_miss(new):
        return False
    if new.type == "json" or (old.type, new.type) in (("int", "float"), ("enum", "string")):
        return True
    if old.type != new.type:
        return False
    if old.type == "enum":
        return set(old.values) <= set(new.values)
    return old.of == new.of or (old.of is not None and new.of is not None and _wider(old.of, new.of))
