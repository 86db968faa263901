"""Core IR v0: a spec as values, and as the JSON that is stored. docs/reference/spec.md explains each field.

Decoding checks form and ranges of single fields; what depends on several is the business of `edgequeues.spec.check`.
An expression is JSON of `edgequeues.core.expressions`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from edgequeues.core.attrs import AttrType
from edgequeues.core.backoff import DelayMs
from edgequeues.core.cron import CRON_MAX, UTC
from edgequeues.core.errors import InvalidRequest
from edgequeues.models import DEPTH_MAX, NAME_PATTERN, TTL_MS_MAX, Batch, LeaseMs, Ordering, PerSecond

SPEC_BYTES_MAX = 1024 * 1024  # of a spec, as text or as JSON
QUEUES_MAX = 1_000  # of one spec; so are webhooks, commands and schedules
FIELDS_MAX = 200  # of one message type, mapping or list

Name = Annotated[str, Meta(pattern=NAME_PATTERN)]
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,128}$")]
Variable = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,255}$")]  # of the environment
Expr = dict[str, Any]
Fields = Annotated[dict[Identifier, Expr], Meta(max_length=FIELDS_MAX)]
MessageType = Annotated[dict[Identifier, AttrType], Meta(max_length=FIELDS_MAX)]

OnInvalid = Literal["reject", "dead_letter"]
Algorithm = Literal["sha1", "sha256", "sha512"]
Encoding = Literal["hex", "base64"]
AnswerForm = Literal["json", "twiml"]
Missed = Literal["once", "skip", "all"]
Scheme = Literal["pagerduty", "github", "stripe", "slack", "twilio", "standard", "hmac"]


class Part(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What all parts of a spec have in common: unknown fields are refused, defaults are left out of the JSON."""


class Retention(Part, frozen=True):
    """How long messages are kept, and how many unfinished ones there may be. None: no end."""

    max_age_seconds: Annotated[int, Meta(ge=1, le=TTL_MS_MAX // 1000)] | None = None
    max_depth: Annotated[int, Meta(ge=1, le=DEPTH_MAX)] | None = None


class Delivery(Part, frozen=True):
    """How messages are handed out and tried again. backoff_ms: the waits one by one, instead of doubling ones.

    max_attempts: deliveries in all; None: no end. dead_letter_queue: a queue of the same spec; None: one that is made
    when it is needed, `<queue>-dlq`. concurrency: messages that are worked at once by what runs outside of the space.
    """

    max_attempts: Annotated[int, Meta(ge=1, le=1_000_000)] | None = 5
    initial_backoff_ms: DelayMs = 1_000
    max_backoff_ms: DelayMs = 60_000
    backoff_ms: Annotated[tuple[DelayMs, ...], Meta(max_length=64)] = ()
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.0
    dead_letter_queue: Name | None = None
    lease_ms: LeaseMs = 30_000
    batch: Batch = 10
    concurrency: Annotated[int, Meta(ge=1, le=1_000)] | None = None


class RateLimit(Part, frozen=True):
    """How many messages a second are worked, `burst` of them at once; for each value of `key`, if there is one."""

    per_second: PerSecond
    burst: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    key: Expr | None = None


class CommandMapping(Part, frozen=True, tag="command", tag_field="to"):
    """Each message becomes a call of a command of an entity; its input is computed from the message."""

    entity_type: Identifier
    command: Identifier
    input_map: Fields = {}


class QueueMapping(Part, frozen=True, tag="queue", tag_field="to"):
    """Each message becomes one of another queue. No fields: the message as it is."""

    queue: Name
    message: Fields = {}


Mapping = CommandMapping | QueueMapping


class QueueSpec(Part, frozen=True):
    """A work queue. message_type: None takes any JSON.

    ordering_key: for `per_key`. priority, idempotency_key, filter, schedule: computed from each message where its
    sender says nothing. schedule: not handed out before that time. filter: what it does not hold for is not kept.
    """

    message_type: MessageType | None = None
    ordering: Ordering = "unordered"
    ordering_key: Expr | None = None
    priority: Expr | None = None
    idempotency_key: Expr | None = None
    filter: Expr | None = None
    schedule: Expr | None = None
    delay_ms: DelayMs = 0
    on_invalid: OnInvalid = "reject"
    rate_limit: RateLimit | None = None
    retention: Retention = Retention(max_age_seconds=345_600)
    delivery: Delivery = Delivery()
    map_to: Mapping | None = None


class Hmac(Part, frozen=True):
    """A signature over the body. secret_envs: any of these secrets will do, so that one can follow another.

    scheme: None: as the name of the header tells. The rest is for `hmac` alone, but tolerance_seconds, which schemes
    with a signed time heed, too.
    """

    header: HeaderName
    secret_envs: Annotated[tuple[Variable, ...], Meta(min_length=1, max_length=8)]
    scheme: Scheme | None = None
    algo: Algorithm = "sha256"
    encoding: Encoding = "hex"
    prefix: Annotated[str, Meta(max_length=64)] = ""
    timestamp_header: HeaderName | None = None
    tolerance_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 300


class SharedToken(Part, frozen=True):
    """A secret that the sender puts into a header as it is."""

    header: HeaderName
    secret_envs: Annotated[tuple[Variable, ...], Meta(min_length=1, max_length=8)]


class Verify(Part, frozen=True):
    """How it is known who sent a request. Exactly one is given; `none`: it is not, anybody may."""

    hmac: Hmac | None = None
    token: SharedToken | None = None
    none: bool = False


class WebhookSpec(Part, frozen=True):
    """Requests to /hook/<name> that become messages of `queue`, or calls of a command.

    headers: names besides the usual ones that are kept. for_each: an array in the body, each element a message; it is
    `item` in the expressions. message: the message, field by field; None: what of payload, headers, source_ip and
    received_at the queue's message_type has. answer: how a sender is told that its request was taken: in JSON, or as
    the empty TwiML that Twilio wants.
    """

    verify: Verify
    queue: Name | None = None
    on_type: Identifier | None = None
    command: Identifier | None = None
    input_map: Fields = {}
    allow_ips: Annotated[tuple[str, ...], Meta(max_length=FIELDS_MAX)] = ()
    headers: Annotated[tuple[HeaderName, ...], Meta(max_length=64)] = ()
    filter: Expr | None = None
    idempotency_key: Expr | None = None
    for_each: Expr | None = None
    answer: AnswerForm = "json"
    message: Fields | None = None


class CommandSpec(Part, frozen=True):
    """A command `Entity.Command` that something else than the built-in store carries out, or whose input has types.

    python: `module:function`. http: a URL that is posted to, signed with the secret of `secret_env`.
    """

    input: MessageType | None = None
    python: Annotated[str, Meta(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$", max_length=256)] | None = None
    http: Annotated[str, Meta(min_length=8, max_length=2_048)] | None = None
    secret_env: Variable | None = None
    timeout_ms: Annotated[int, Meta(ge=1, le=600_000)] = 10_000


class ScheduleSpec(Part, frozen=True):
    """A message that is made again and again, at the times of a cron expression in a time zone.

    message: its fields; `now` is the time at which it was due. missed: what becomes of times that passed while nobody
    could make a message: the latest alone counts, none does, or all do.
    """

    cron: Annotated[str, Meta(max_length=CRON_MAX)]
    queue: Name
    timezone: Annotated[str, Meta(max_length=64)] = UTC
    message: Fields = {}
    missed: Missed = "once"


class Spec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An app: its queues, webhooks, commands and schedules by name."""

    version: Literal[0]
    app: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
    queues: Annotated[dict[Name, QueueSpec], Meta(max_length=QUEUES_MAX)] = {}
    webhooks: Annotated[dict[Name, WebhookSpec], Meta(max_length=QUEUES_MAX)] = {}
    commands: Annotated[dict[str, CommandSpec], Meta(max_length=QUEUES_MAX)] = {}
    schedules: Annotated[dict[Name, ScheduleSpec], Meta(max_length=QUEUES_MAX)] = {}


def encode(spec: Spec) -> bytes:
    """The JSON of a spec, on one line, names as they were declared. Equal specs have equal JSON."""
    return msgspec.json.encode(_settled(spec))


def decode(text: bytes) -> Spec:
    """The spec of a JSON text. Raises InvalidRequest, which names the path of the field that will not do."""
    if len(text) > SPEC_BYTES_MAX:
        raise InvalidRequest(f"the spec has {len(text)} bytes, at most {SPEC_BYTES_MAX} are taken")
    try:
        return msgspec.json.decode(text, type=Spec)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"spec: {error}") from error


@lru_cache(maxsize=64)
def fields_of(kind: type[Struct]) -> dict[str, FieldInfo]:
    """The fields of a part by name. Remembered: msgspec evaluates annotations each time it is asked."""
    return {field.name: field for field in fields(kind)}


def _settled(value: Any) -> Any:
    """The same with each default as the object that it is by default: msgspec leaves out no other."""
    if isinstance(value, Struct):
        given = {
            name: (getattr(value, name), field.default) for name, field in fields_of(type(value)).items()
        }
        return type(value)(
            **{name: _settled(one) for name, (one, default) in given.items() if one != default}
        )
    if isinstance(value, dict) and value and isinstance(next(iter(value.values())), Struct):
        return {name: _settled(one) for name, one in value.items()}
    return value
