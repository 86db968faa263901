"""A spec as text, in one form for each: what is said by default is left out, keys stand in the order of ir.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from edgequeues.core.attrs import AttrType, show
from edgequeues.core.expression_nodes import ExprFault, check
from edgequeues.core.jsonwords import quoted
from edgequeues.spec import ir
from edgequeues.spec.parts import PRIORITIES, UNLIMITED_KEYS
from edgequeues.spec.wording import text as wording

INDENT = "  "
RESERVED = frozenset({"true", "false", "null", "in", "now"})  # as the first name of a path: in backquotes

WORDS = frozenset(
    {"ordering", "on_invalid", "scheme", "algo", "encoding", "answer", "missed"}
)  # whose values are words,
NAMES = frozenset({"dead_letter_queue", "queue", "on_type", "command"})  # and whose are names

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUEUE_EXPRESSIONS = ("idempotency_key", "filter", "schedule")
_WEBHOOK_EXPRESSIONS = ("filter", "idempotency_key", "for_each")


def fmt(spec: ir.Spec) -> str:
    """The text of a spec. Reading it gives the spec again, if that has no faults. Raises nothing."""
    blocks = [_block("queue " + name_text(name), _queue(queue)) for name, queue in spec.queues.items()]
    blocks += [_block("webhook " + name_text(name), _webhook(hook)) for name, hook in spec.webhooks.items()]
    blocks += [_block("command " + name, _command(command)) for name, command in spec.commands.items()]
    blocks += [_block("schedule " + name_text(name), _schedule(one)) for name, one in spec.schedules.items()]
    lines: list[str] = []
    for block in blocks:
        lines += [*([""] if lines else []), *block]
    return "\n".join(_block(f"app {name_text(spec.app)}", lines)) + "\n"


def expression(expr: ir.Expr) -> str:
    """An expression as text; one that is none, as its JSON."""
    try:
        check(expr)
        return wording(_guarded(expr))
    except ExprFault:
        return repr(expr)


def message_type(declared: Mapping[str, AttrType]) -> list[str]:
    """The fields of a message type, a line each."""
    return [f"{name}: {show(attr)}" for name, attr in declared.items()]


def _block(head: str, body: Iterable[str]) -> list[str]:
    lines = [f"{INDENT}{line}" if line else "" for line in body]
    return [f"{head} {{", *lines, "}"] if lines else [f"{head} {{}}"]


def name_text(name: str) -> str:
    """A name, in quotes where it would not be read as one."""
    return name if _NAME.fullmatch(name) and name not in RESERVED else quoted(name)


def _queue(queue: ir.QueueSpec) -> Iterator[str]:
    if queue.message_type is not None:
        yield from _block("message_type", message_type(queue.message_type))
    if queue.ordering_key is not None:
        yield f"ordering: {queue.ordering}({expression(queue.ordering_key)})"
    elif queue.ordering != "unordered":
        yield f"ordering: {queue.ordering}"
    if queue.priority is not None:
        yield f"priority: {priority_text(queue.priority)}"
    yield from _expressions(queue, _QUEUE_EXPRESSIONS)
    yield from _settings(queue, ("delay_ms", "on_invalid"))
    if queue.rate_limit is not None:
        key = [f"key: {expression(queue.rate_limit.key)}"] if queue.rate_limit.key is not None else []
        yield from _block("rate_limit", [*_settings(queue.rate_limit, ("per_second", "burst")), *key])
    if queue.retention != ir.QueueSpec().retention:
        age = queue.retention.max_age_seconds
        shown = "unlimited" if age is None else str(age)
        yield from _block(
            "retention", [f"max_age_seconds: {shown}", *_settings(queue.retention, ("max_depth",))]
        )
    if queue.delivery != ir.Delivery():
        yield from _block("delivery", _settings(queue.delivery, _names(ir.Delivery)))
    if isinstance(queue.map_to, ir.CommandMapping):
        head = f"map_to: command {queue.map_to.entity_type}.{queue.map_to.command}"
        yield from _with_fields(head, queue.map_to.input_map)
    elif queue.map_to is not None:
        yield from _with_fields(f"map_to: queue {name_text(queue.map_to.queue)}", queue.map_to.message)


def _webhook(webhook: ir.WebhookSpec) -> Iterator[str]:
    for key, part in (("verify_hmac", webhook.verify.hmac), ("verify_token", webhook.verify.token)):
        if part is not None:
            yield from _block(key, _settings(part, _names(type(part))))
    if webhook.verify.none:
        yield "verify: none"
    if webhook.queue is not None:
        yield f"queue: {name_text(webhook.queue)}"
    if webhook.on_type is not None:
        yield from _with_fields(f"on: {webhook.on_type}.{webhook.command}", webhook.input_map)
    yield from _settings(webhook, ("allow_ips", "headers"))
    yield from _expressions(webhook, _WEBHOOK_EXPRESSIONS)
    yield from _settings(webhook, ("answer",))
    if webhook.message is not None:
        yield from _block("message", _fields(webhook.message))


def _command(command: ir.CommandSpec) -> Iterator[str]:
    if command.input is not None:
        yield from _block("input", message_type(command.input))
    for way, where in (("python", command.python), ("http", command.http)):
        if where is not None:
            yield f"run: {way} {quoted(where)}"
    yield from _settings(command, ("secret_env", "timeout_ms"))


def _schedule(schedule: ir.ScheduleSpec) -> Iterator[str]:
    yield from _settings(schedule, ("cron", "queue", "timezone"))
    if schedule.message:
        yield from _block("message", _fields(schedule.message))
    yield from _settings(schedule, ("missed",))


def _with_fields(head: str, given: ir.Fields) -> list[str]:
    return _block(head, _fields(given)) if given else [head]


def _fields(given: ir.Fields) -> list[str]:
    return [f"{name}: {expression(expr)}" for name, expr in given.items()]


def _expressions(part: Struct, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        expr = getattr(part, name)
        if expr is not None:
            yield f"{name}: {expression(expr)}"


def _settings(part: Struct, names: Iterable[str]) -> Iterator[str]:
    """Plain settings, without those that are as they are by default."""
    known = ir.fields_of(type(part))
    for name in names:
        value = getattr(part, name)
        if value == known[name].default:
            continue
        key = "secret_env" if name == "secret_envs" else name
        yield f"{key}: {plain(name, value)}"


def plain(name: str, value: Any) -> str:
    """The value of the setting `name`."""
    if name == "secret_envs" and len(value) == 1:
        [value] = value
    if isinstance(value, tuple):
        shown = f"[{', '.join(plain('', one) for one in value)}]"
    elif value is None and name in UNLIMITED_KEYS:
        shown = "unlimited"
    elif isinstance(value, float):
        shown = str(int(value)) if value.is_integer() else repr(value)
    elif isinstance(value, bool):
        shown = str(value).lower()
    elif name in NAMES:
        shown = name_text(value)
    else:
        shown = quoted(value) if isinstance(value, str) and name not in WORDS else str(value)
    return shown


def priority_text(expr: ir.Expr) -> str:
    """A priority; one that is a field called like one of the words stands in parentheses."""
    shown = expression(expr)
    return f"({shown})" if shown in PRIORITIES else shown


def _names(kind: type[Struct]) -> list[str]:
    return list(ir.fields_of(kind))


def _guarded(node: Any) -> Any:
    """The same expression, with backquotes around fields whose name would mean something else."""
    if isinstance(node, list):
        return [_guarded(one) for one in node]
    if not isinstance(node, dict) or "lit" in node:
        return node
    variable = node.get("var")
    if isinstance(variable, dict) and len(node) == 1:
        name = variable.get("input", {}).get("field")
        return {"var": {"input": {"field": f"`{name}`"}}} if name in RESERVED else node
    if "obj" in node and len(node) == 1:
        return {"obj": {key: _guarded(part) for key, part in node["obj"].items()}}
    if "map_enum" in node and len(node) == 1:
        value = node["map_enum"]
        return {
            "map_enum": {**{key: _guarded(part) for key, part in value.items()}, "mapping": value["mapping"]}
        }
    return {key: _guarded(value) for key, value in node.items()}
