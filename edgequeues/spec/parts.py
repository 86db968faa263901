"""Queues, webhooks, commands and schedules out of their blocks: what each key of the text is in a spec."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

from edgequeues.spec import ir
from edgequeues.spec.building import MISSING, UNLIMITED, Building
from edgequeues.spec.faults import Path, listed, suggest
from edgequeues.spec.keys import KEYS
from edgequeues.spec.tree import Block, Entry, Value

S = TypeVar("S", bound=Struct)

PRIORITIES = {"low": 1, "normal": 4, "high": 7}
UNLIMITED_KEYS = frozenset({"max_attempts", "max_age_seconds"})
EXPRESSIONS = frozenset({"key"})  # of the blocks of plain settings


def queue(making: Building, path: Path, block: Block) -> ir.QueueSpec:
    """`queue Name { ... }`."""
    found = making.keys(block.body, "queue", path)
    made: dict[str, Any] = {}
    for key, item in found.items():
        at = (*path, key)
        if isinstance(item, Block):
            made[key] = _queue_block(making, at, item)
        elif key == "ordering":
            made |= _ordering(making, path, item.value)
        elif key == "priority":
            made[key] = _priority(making, at, item.value)
        elif key == "map_to":
            made[key] = mapping(making, at, item.value)
        elif key in ("delay_ms", "on_invalid"):
            made[key] = making.setting(at, item.value, _type(ir.QueueSpec, key))
        else:
            made[key] = making.expression(at, item.value)
    return _struct(ir.QueueSpec, made)


def webhook(making: Building, path: Path, block: Block) -> ir.WebhookSpec:
    """`webhook Name { ... }`."""
    found = making.keys(block.body, "webhook", path)
    made: dict[str, Any] = {"verify": _verify(making, path, found)}
    for key, item in found.items():
        at = (*path, key)
        if key == "message" and isinstance(item, Block):
            making.mark(at, item.key)
            made[key] = making.fields(at, [one for one in item.body if isinstance(one, Entry)])
        elif not isinstance(item, Entry) or key == "verify":
            continue
        elif key == "queue":
            made[key] = making.name(at, item.value)
        elif key == "on":
            made |= _on(making, path, item.value)
        elif key in ("allow_ips", "headers", "answer"):
            made[key] = making.setting(at, item.value, _type(ir.WebhookSpec, key))
        else:
            made[key] = making.expression(at, item.value)
    return _struct(ir.WebhookSpec, made)


def command(making: Building, path: Path, block: Block) -> ir.CommandSpec:
    """`command Entity.Command { ... }`."""
    found = making.keys(block.body, "command", path)
    made: dict[str, Any] = {}
    for key, item in found.items():
        at = (*path, key)
        if isinstance(item, Block):
            making.mark(at, item.key)
            made[key] = making.message_type(at, item.typed or [])
        elif key == "run":
            made |= _run(making, path, item.value)
        else:
            made[key] = making.setting(at, item.value, _type(ir.CommandSpec, key))
    return _struct(ir.CommandSpec, made)


def schedule(making: Building, path: Path, block: Block) -> ir.ScheduleSpec:
    """`schedule Name { ... }`. What it cannot do without is blamed where it is not there, and left empty."""
    found = making.keys(block.body, "schedule", path)
    made: dict[str, Any] = {"cron": "", "queue": ""}
    for key, item in found.items():
        at = (*path, key)
        if isinstance(item, Block):
            making.mark(at, item.key)
            made[key] = making.fields(at, [one for one in item.body if isinstance(one, Entry)])
        elif key == "queue":
            made[key] = making.name(at, item.value) or ""
        else:
            given = making.setting(at, item.value, _type(ir.ScheduleSpec, key))
            made[key] = made.get(key, MISSING) if given is MISSING else given
    for key, remedy in (("cron", 'Write `cron: "0 3 * * *"`.'), ("queue", "Write `queue: Name`.")):
        meant = {item.key.text for item in block.body}
        if key not in meant | {suggest(word, KEYS["schedule"]) for word in meant}:
            making.blame((*path, key), block.key, f"`schedule` lacks `{key}`", remedy)
    return _struct(ir.ScheduleSpec, made)


def _queue_block(making: Building, path: Path, block: Block) -> Any:
    key = path[-1]
    if block.typed is not None:
        making.mark(path, block.key)
        return making.message_type(path, block.typed)
    kinds: dict[str, type[Struct]] = {"rate_limit": ir.RateLimit, "retention": ir.Retention}
    return _settings(making, path, block, kinds.get(str(key), ir.Delivery))


def _settings(making: Building, path: Path, block: Block, kind: type[Struct]) -> Any:
    """A block of plain settings, named as the fields of `kind`. MISSING: what it cannot do without is not there."""
    name = block.key.text
    making.mark(path, block.key)
    found = making.keys(block.body, name, path)
    made: dict[str, Any] = {}
    for key, item in found.items():
        assert isinstance(item, Entry)
        if key in EXPRESSIONS:
            made[key] = making.expression((*path, key), item.value)
        elif key == "dead_letter_queue":
            made[key] = making.name((*path, key), item.value)
        elif key == "secret_env":
            made["secret_envs"] = _secrets(making, (*path, "secret_envs"), item.value)
        else:
            wanted = _type(kind, key)
            unlimited = key in UNLIMITED_KEYS
            made[key] = making.setting((*path, key), item.value, wanted, unlimited=unlimited)
    needed = [name for name, field in ir.fields_of(kind).items() if field.required]
    if kind is ir.Retention:
        needed.append("max_age_seconds")
    strange = {suggest(item.key.text, KEYS[name]) for item in block.body if item.key.text not in KEYS[name]}
    for key in needed:
        word = "secret_env" if key == "secret_envs" else key
        if key in made or word in strange:  # it is there, and blamed
            continue
        remedy = f"Write `{word}: ...`."
        if kind is ir.Retention:
            remedy = f"Write `{word}: 345600`, or `{word}: {UNLIMITED}` to keep messages for ever."
        making.blame((*path, word), block.key, f"`{name}` lacks `{word}`", remedy)
    if any(made.get(key, MISSING) is MISSING for key in needed):
        return MISSING
    return _struct(kind, made)


def _secrets(making: Building, path: Path, value: Value) -> Any:
    """One name of a variable, or a list of them."""
    text = making.text_of(value)
    if text is None:
        return making.setting(path, value, _type(ir.Hmac, "secret_envs"))
    found = making.setting(path, value, ir.Variable)
    return found if found is MISSING else (found,)


def _ordering(making: Building, path: Path, value: Value) -> dict[str, Any]:
    """`fifo`, `per_key(payload.id)`."""
    at = (*path, "ordering")
    call = value.expression.ast.get("call", {}) if value.expression else {}
    if call.get("fn") != "per_key" or value.expression is None:
        return {"ordering": making.setting(at, value, _type(ir.QueueSpec, "ordering"))}
    making.mark(at, value)
    kids = value.expression.kids
    if len(kids) != 1:
        making.blame(at, value, "per_key takes one expression", "Write `per_key(payload.id)`.")
        return {}
    key = kids[0][1]
    inner = Value(key.start, key.end, key)
    return {"ordering": "per_key", "ordering_key": making.expression((*path, "ordering_key"), inner)}


def _priority(making: Building, path: Path, value: Value) -> Any:
    """An expression, or one of the words for numbers."""
    bare = value.expression.bare if value.expression else None
    if bare in PRIORITIES:
        making.mark(path, value)
        return {"lit": {"int": PRIORITIES[bare]}}
    return making.expression(path, value)


def mapping(making: Building, path: Path, value: Value) -> Any:
    """`command Entity.Command { ... }`, `queue Name { ... }`."""
    making.mark(path, value)
    if making.troubles(path, value.troubles):
        return MISSING
    names = [word.text for word in value.name]
    wanted = "Write `command Entity.Command { field: ... }` or `queue Name`."
    if value.target == "command":
        if len(names) != 2 or not all(name.isidentifier() for name in names):
            making.blame(path, value, "a command is named `Entity.Command`", wanted)
            return MISSING
        fields_ = making.fields((*path, "input_map"), _entries(value))
        return ir.CommandMapping(names[0], names[1], fields_)
    if value.target == "queue" and len(names) == 1:
        making.mark((*path, "queue"), value.name[0])
        return ir.QueueMapping(names[0], making.fields((*path, "message"), _entries(value)))
    making.blame(path, value, "map_to leads to a command or a queue", wanted)
    return MISSING


def _on(making: Building, path: Path, value: Value) -> dict[str, Any]:
    """`Entity.Command { ... }`."""
    expression = value.expression
    shown = "".join(making.lines.text[expression.start : expression.end].split()) if expression else ""
    entity, _, name = shown.partition(".")
    for key in ("on_type", "command", "input_map"):
        making.mark((*path, key), value)
    if not (entity.isidentifier() and name.isidentifier() and shown.isascii()):
        remedy = "Write `on: Entity.Command { field: ... }`."
        making.blame((*path, "on"), value, "`on` wants a command", remedy)
        return {}
    fields_ = making.fields((*path, "input_map"), _entries(value))
    return {"on_type": entity, "command": name, "input_map": fields_}


def _verify(making: Building, path: Path, found: dict[str, Entry | Block]) -> ir.Verify:
    """What the three keys say. Which of them may stand together is checked later."""
    at = (*path, "verify")
    made: dict[str, Any] = {}
    for key, name, kind in (("verify_hmac", "hmac", ir.Hmac), ("verify_token", "token", ir.SharedToken)):
        block = found.get(key)
        if isinstance(block, Block):
            making.mark(at, block.key)
            made[name] = _settings(making, (*at, name), block, kind)
            if made[name] is MISSING:
                made["none"] = True  # it is blamed already: no more of it
    plain = found.get("verify")
    if isinstance(plain, Entry):
        making.mark(at, plain.value)
        expression = plain.value.expression
        if expression is not None and expression.bare == "none":
            made["none"] = True
        else:
            remedy = "Write `verify: none`, `verify_hmac { ... }` or `verify_token { ... }`."
            making.blame(at, plain.value, "`verify` can be `none` alone", remedy)
    return _struct(ir.Verify, made)


def _run(making: Building, path: Path, value: Value) -> dict[str, Any]:
    """`python "module:function"`, `http "https://..."`."""
    making.mark((*path, "run"), value)
    word, text = value.run or ("", "")
    if word not in ("python", "http"):
        remedy = 'Write `python "module:function"` or `http "https://..."`.'
        making.blame((*path, "run"), value, f"`run` is {listed(('python', 'http'))} with a text", remedy)
        return {}
    making.mark((*path, word), value)
    if making.troubles((*path, word), value.troubles):
        return {}
    return {word: making.converted((*path, word), value, text, _type(ir.CommandSpec, word))}


def _entries(value: Value) -> list[Entry]:
    return value.fields.entries if value.fields is not None else []


def _type(kind: type[Struct], name: str) -> Any:
    return ir.fields_of(kind)[name].type


def _struct(kind: type[S], made: dict[str, Any]) -> S:
    """A struct of what will do; the rest is blamed already, and left at its default."""
    return kind(**{key: value for key, value in made.items() if value is not MISSING})
