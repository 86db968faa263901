"""What of the queues of a spec does not fit together."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from edgequeues.core import attrs, ids
from edgequeues.core.attrs import AttrType
from edgequeues.core.errors import InvalidId
from edgequeues.spec import ir, planning
from edgequeues.spec.checking import INT, JSON, KEY, MOMENT, NUMBER, STRING, TIME, Checking
from edgequeues.spec.effects import EFFECTS, ENTITY_ID, effect_of
from edgequeues.spec.faults import Path, listed
from edgequeues.spec.working import runner_of

# What a dead letter has for fields.
ENVELOPE: dict[str, AttrType] = {
    "original_message": JSON,
    "original_queue": STRING,
    "original_message_id": STRING,
    "consumer": STRING,
    "reason": STRING,
    "error": STRING,
    "last_error": STRING,
    "attempts": INT,
    "failed_at": TIME,
    "first_seen_at": TIME,
    "last_seen_at": TIME,
}
_KEEP_APART = "Name it in `delivery { dead_letter_queue: ... }`, or rename one of the two."


def check_queues(checking: Checking) -> None:
    """Look at each queue, and at what they say of each other."""
    queues = checking.spec.queues
    _check_names(checking)
    for name, queue in queues.items():
        path: Path = ("queues", name)
        check_types(checking, (*path, "message_type"), queue.message_type)
        _check_order(checking, path, queue)
        _check_expressions(checking, path, name, queue)
        _check_delivery(checking, path, name, queue)
        _check_mapping(checking, path, name, queue)
    _check_pace(checking)
    letters = _letters(queues)
    _check_cycles(checking, "dead letters", ("delivery", "dead_letter_queue"), letters)
    targets = {
        name: queue.map_to.queue
        for name, queue in queues.items()
        if isinstance(queue.map_to, ir.QueueMapping)
    }
    _check_cycles(checking, "messages", ("map_to", "queue"), targets)
    _check_mixed_ring(checking, letters, targets)


def check_types(checking: Checking, path: Path, declared: Mapping[str, AttrType] | None) -> None:
    """Blame declarations of types that make no sense."""
    for name, attr in (declared or {}).items():
        fault = attrs.check_type(attr)
        if fault is not None:
            checking.blame((*path, name), fault, "Correct the type.")


def _check_names(checking: Checking) -> None:
    first: dict[str, str] = {}
    for name in checking.spec.queues:
        path: Path = ("queues", name)
        try:
            ids.check_name(name)
        except InvalidId as error:
            checking.blame(path, error.detail, "Give the queue another name.")
        other = first.setdefault(ids.snake(name), name)
        if other != name:
            what = (
                f"`{name}` and `{other}` count as the same name: both are `{ids.snake(name)}` in snake_case"
            )
            checking.blame(path, what, "Rename one of them.")
    for name, queue in checking.spec.queues.items():
        own = f"{name}-dlq"
        other = first.get(ids.snake(own), own)
        if queue.delivery.dead_letter_queue is None and other != own:
            what = f"dead letters of `{name}` go to `{own}`, which counts as the same name as `{other}`"
            checking.blame(("queues", name), what, _KEEP_APART)


def _check_order(checking: Checking, path: Path, queue: ir.QueueSpec) -> None:
    if queue.ordering == "per_key" and queue.ordering_key is None:
        checking.blame((*path, "ordering"), "per_key lacks the key", "Write `ordering: per_key(payload.id)`.")
    if queue.ordering != "per_key" and queue.ordering_key is not None:
        what = f"a key has no meaning where the ordering is {queue.ordering}"
        checking.blame((*path, "ordering_key"), what, "Write `ordering: per_key(...)`, or leave it out.")
    if queue.ordering == "fifo" and queue.priority is not None:
        what = "messages in the order of their arrival have no priority"
        checking.blame((*path, "priority"), what, "Leave it out, or write another `ordering`.")


def _check_expressions(checking: Checking, path: Path, name: str, queue: ir.QueueSpec) -> None:
    scope = checking.scope(name)
    checking.expression((*path, "ordering_key"), queue.ordering_key, scope, KEY)
    checking.expression((*path, "priority"), queue.priority, scope, NUMBER)
    checking.expression((*path, "idempotency_key"), queue.idempotency_key, scope, KEY)
    checking.expression((*path, "filter"), queue.filter, scope)
    checking.expression((*path, "schedule"), queue.schedule, scope, MOMENT)
    if queue.rate_limit is not None:
        checking.expression((*path, "rate_limit", "key"), queue.rate_limit.key, scope, KEY)
    constant = (queue.priority or {}).get("lit")
    number = constant.get("int") if isinstance(constant, dict) else None
    if isinstance(number, int) and not 0 <= number <= 9:
        checking.blame((*path, "priority"), f"there is no priority {number}", "Write a number from 0 to 9.")


def _check_delivery(checking: Checking, path: Path, name: str, queue: ir.QueueSpec) -> None:
    delivery, at = queue.delivery, (*path, "delivery")
    if not delivery.backoff_ms and delivery.initial_backoff_ms > delivery.max_backoff_ms:
        what = f"the first wait, {delivery.initial_backoff_ms} ms, is over the longest, {delivery.max_backoff_ms} ms"
        checking.blame((*at, "initial_backoff_ms"), what, "Write it no larger than `max_backoff_ms`.")
    letters = delivery.dead_letter_queue
    if letters is None:
        letters = f"{name}-dlq"
    elif letters == name:
        what = "a queue cannot take its own dead letters"
        checking.blame((*at, "dead_letter_queue"), what, "Name another, or leave it out.")
        return
    elif not checking.known_queue((*at, "dead_letter_queue"), letters):
        return
    target = checking.message_type(letters)
    if target is not None:
        path_to = (*at, "dead_letter_queue") if delivery.dead_letter_queue else ("queues", letters)
        whose = f"queue `{letters}` of dead letters"
        checking.fit(path_to, ENVELOPE, target, whose, "Declare", partly=True)


def _check_pace(checking: Checking) -> None:
    """Blame what is said of how fast queues are worked that the space does not work, or works one at a time."""
    mapped, commands = planning.mappings(checking.spec), checking.spec.commands
    for name, queue in checking.spec.queues.items():
        path: Path = ("queues", name)
        mapping = mapped.get(name)
        if queue.rate_limit is not None and mapping is None:
            what = "a `rate_limit` has no meaning: the queue is mapped to nothing, so its workers have their own pace"
            checking.blame((*path, "rate_limit"), what, "Leave it out, or write `map_to`.")
        outside = isinstance(mapping, ir.CommandMapping) and runner_of(
            commands.get(f"{mapping.entity_type}.{mapping.command}")
        )
        if queue.delivery.concurrency is not None and outside not in ("python", "http"):
            what = "`concurrency` has no meaning: no function and no request is run for this queue's messages"
            remedy = "Leave it out, or map the queue to such a command."
            checking.blame((*path, "delivery", "concurrency"), what, remedy)


def _check_mapping(checking: Checking, path: Path, name: str, queue: ir.QueueSpec) -> None:
    mapping, scope = queue.map_to, checking.scope(name)
    if isinstance(mapping, ir.CommandMapping):
        check_command(
            checking, (*path, "map_to"), mapping.entity_type, mapping.command, mapping.input_map, scope
        )
    elif isinstance(mapping, ir.QueueMapping) and checking.known_queue(
        (*path, "map_to", "queue"), mapping.queue
    ):
        target = checking.message_type(mapping.queue)
        whose = f"queue `{mapping.queue}`"
        if mapping.message:
            checking.fields((*path, "map_to", "message"), mapping.message, scope, target, whose)
        elif target is not None and queue.message_type is not None:
            how = "Map the fields one by one, or declare"
            checking.fit((*path, "map_to"), scope, target, whose, how, partly=False)


def check_command(
    checking: Checking, path: Path, entity: str, command: str, given: ir.Fields, scope: Mapping[str, AttrType]
) -> None:
    """Blame a command that nobody can carry out, and input that it does not take."""
    name = f"{entity}.{command}"
    declared = checking.spec.commands.get(name)
    if declared is None or (declared.python is None and declared.http is None):
        effect = effect_of(entity, command)
        if effect is None:
            how = "declared nowhere" if declared is None else "declared without saying how it is run"
            what = f"`{name}` is {how}, and it is not built in"
            remedy = f"Declare `command {name} {{ run: ... }}`; built in are {_built_in(entity)}."
            checking.blame((*path, "command"), what, remedy)
        elif effect != "create" and ENTITY_ID not in given:
            what = f"`{name}` is not told which {entity} is meant"
            checking.blame((*path, "input_map"), what, f"Give its `{ENTITY_ID}`.")
    checking.fields((*path, "input_map"), given, scope, checking.input(name), f"command `{name}`")


def _built_in(entity: str) -> str:
    return listed([f"{effect.capitalize()}{entity}" for effect in EFFECTS], "and")


def _letters(queues: Mapping[str, ir.QueueSpec]) -> dict[str, str]:
    """Where the dead letters of each queue go, as far as the spec has that queue."""
    named = {name: queue.delivery.dead_letter_queue or f"{name}-dlq" for name, queue in queues.items()}
    return {name: target for name, target in named.items() if target in queues and target != name}


def _check_mixed_ring(checking: Checking, letters: Mapping[str, str], targets: Mapping[str, str]) -> None:
    """Blame a ring in which a queue's dead letters become messages of that queue again."""
    ways = {name: [one[name] for one in (letters, targets) if name in one] for name in checking.spec.queues}
    try:
        TopologicalSorter(ways).prepare()
    except CycleError as error:
        ring: list[str] = error.args[1][::-1]
        kinds = [one for one in (letters, targets) if all(one.get(a) == b for a, b in pairwise(ring))]
        if not kinds:  # else it was blamed as one of those
            what = f"dead letters become messages again in a ring: {' -> '.join(ring)}"
            checking.blame(("queues", ring[0]), what, "Let one of them end it.")


def _check_cycles(checking: Checking, what: str, at: Path, targets: Mapping[str, str]) -> None:
    """Blame the first queue of each ring of queues, each of which leads to the next."""
    done: set[str] = set()
    for name in targets:
        chain: list[str] = []
        here: str | None = name
        while here is not None and here not in done:
            done.add(here)
            chain.append(here)
            here = targets.get(here)
        if here in chain:
            ring = chain[chain.index(here) :]
            shown = " -> ".join([*ring, ring[0]]) if len(ring) <= 8 else f"{listed(ring[:8], 'and')} and more"
            checking.blame(
                ("queues", ring[0], *at), f"{what} go round in a ring: {shown}", "Let one of them end it."
            )
