"""Bodies of the Cloudflare dialect, in: what was sent, as values of ours. Names that are not known say nothing."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edgequeues.core import ids, jsontext
from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import InvalidId
from edgequeues.http import cloudflare_errors as errors
from edgequeues.http.cloudflare_errors import Refused
from edgequeues.models import (
    LEASE_MS_MAX,
    PULL_MAX,
    WORK_QUEUE,
    ConsumerConfig,
    NewEntry,
    Pull,
    QueueConfig,
)

CONTENT_TYPES = ("json", "text", "bytes", "v8")

MESSAGE_BYTES_MAX = 128_000
BATCH_BYTES_MAX = 256_000
BATCH_MAX = 100
LEASES_MAX = 1_000
DELAY_S_MAX = 86_400
RETENTION_S = 345_600
RETENTION_S_MIN, RETENTION_S_MAX = 60, 1_209_600
RETRIES, RETRIES_MAX = 3, 100
WORKER_WAIT_MS, WORKER_WAIT_MS_MAX = 5_000, 60_000
CONCURRENCY_MAX = 250
WORKER_BATCH = 10
LEASE_MS = 30_000
DELAY_HEADER = "CF-msg-delay-secs"
SOURCE_HEADER = "CF-sourceMessageSource"

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class Wire(Struct, frozen=True):
    """What the service's documents leave open, as the operator wants it. See the settings of these names."""

    json_body: Literal["base64", "plain"] = "base64"
    max_retries: Literal["retries", "deliveries"] = "retries"
    backlog: Literal["unfinished", "ready"] = "unfinished"
    content_type: Literal["json", "text"] = "json"
    batch_size: int = 5

    def attempts_max(self, retries: int) -> int:
        """Deliveries in all of a message that may be retried so often."""
        return retries + 1 if self.max_retries == "retries" else max(retries, 1)

    def retries(self, attempts_max: int | None) -> int | None:
        """The other way round."""
        if attempts_max is None:
            return None
        return attempts_max - 1 if self.max_retries == "retries" else attempts_max


class Fields:
    """The members of a JSON object, the body or what is at `place` in it. What is null counts as absent.

    number: of the error where a member is wrong.
    """

    def __init__(self, text: bytes, number: int, place: str = "") -> None:
        where = place or "the body"
        if not text.lstrip(b" \t\n\r").startswith(b"{"):
            raise Refused(number, f"{where}: expected an object")
        found = jsontext.members(text)
        self._members = dict(found)
        self._number = number
        self._before = f"{place}." if place else ""
        if len(self._members) < len(found):
            raise Refused(number, f"{where}: a name is given twice")

    @classmethod
    def of_body(cls, body: bytes, number: int = errors.SCHEMA) -> Fields:
        """Those of a whole body; an empty one has none. Raises InvalidJson, Refused."""
        if not body.strip():
            return cls(b"{}", number)
        jsontext.check(body)
        return cls(body, number)

    def raw(self, name: str) -> bytes | None:
        """The JSON of a member, be it null."""
        return self._members.get(name)

    def whole(self, name: str, low: int, high: int, number: int | None = None) -> int | None:
        """A whole number."""
        value = self._value(name)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value != int(value) or not low <= value <= high:
            raise self.refusal(
                name, f"must be a whole number from {low} to {high}, not {_told(value)}", number
            )
        return int(value)

    def seconds(self, name: str, high: int, number: int | None = None) -> int | None:
        """Milliseconds, of seconds from 0 on, fractions allowed."""
        value = self._value(name)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= high:
            raise self.refusal(
                name, f"must be a number of seconds from 0 to {high}, not {_told(value)}", number
            )
        milliseconds: int = round(value * 1_000)
        return milliseconds

    def text(self, name: str) -> str | None:
        """A string."""
        value = self._value(name)
        if value is None or isinstance(value, str):
            return value
        raise self.refusal(name, "must be a string")

    def flag(self, name: str) -> bool | None:
        """True or false."""
        value: Any = self._value(name)
        if value is None or isinstance(value, bool):
            return value
        raise self.refusal(name, f"must be true or false, not {_told(value)}")

    def object(self, name: str, number: int) -> Fields:
        """An object, empty where it is absent."""
        return Fields(self._given(name) or b"{}", number, self._before + name)

    def objects(self, name: str) -> list[Fields]:
        """Objects of an array, none where it is absent."""
        value = self._given(name) or b"[]"
        if not value.startswith(b"["):
            raise self.refusal(name, "must be an array")
        return [
            Fields(one, self._number, f"{self._before}{name}[{index}]")
            for index, one in enumerate(jsontext.elements(value))
        ]

    def refusal(self, name: str, why: str, number: int | None = None, status: int = 400) -> Refused:
        """The error to raise where a member is wrong."""
        return Refused(number or self._number, f"{self._before}{name} {why}", status)

    def _given(self, name: str) -> bytes | None:
        raw = self._members.get(name)
        return None if raw == b"null" else raw

    def _value(self, name: str) -> Any:
        raw = self._members.get(name)
        return None if raw is None else json.loads(raw)


def _told(value: object) -> str:
    return json.dumps(value)[:80]


# -- queues and consumers -----------------------------------------------------------------------------------


def new_queue(body: bytes) -> QueueConfig:
    """The settings of a queue to be made. Raises InvalidJson, Refused."""
    fields = Fields.of_body(body, errors.REQUEST)
    changes = _settings(fields) | {"name": queue_name(fields.text("queue_name") or "")}
    return replace(WORK_QUEUE, **({"max_age_ms": RETENTION_S * 1_000} | changes))


def queue_changes(body: bytes, *, replacing: bool) -> dict[str, object]:
    """The settings of a queue that change. replacing: what is not named is as if it was new, but for the name."""
    fields = Fields.of_body(body, errors.REQUEST)
    changes = _settings(fields)
    if replacing:
        changes = {"delay_ms": 0, "paused": False, "max_age_ms": RETENTION_S * 1_000} | changes
    name = fields.text("queue_name")
    if name is not None:
        changes["name"] = queue_name(name)
    return changes


def _settings(fields: Fields) -> dict[str, object]:
    settings = fields.object("settings", errors.QUEUE_SETTINGS)
    retention_s = settings.whole("message_retention_period", RETENTION_S_MIN, RETENTION_S_MAX)
    given = {
        "delay_ms": settings.seconds("delivery_delay", DELAY_S_MAX),
        "paused": settings.flag("delivery_paused"),
        "max_age_ms": None if retention_s is None else retention_s * 1_000,
    }
    return {name: value for name, value in given.items() if value is not None}


def queue_name(text: str) -> str:
    """The name of a queue itself. Raises Refused."""
    if _NAME.fullmatch(text) is None:
        raise Refused(
            errors.QUEUE_NAME,
            f"Invalid queue name: invalid queue name: {text[:80]}. Must match ^{_NAME.pattern}$",
        )
    try:
        return ids.check_name(text)
    except InvalidId as error:
        raise Refused(errors.QUEUE_NAME, f"Invalid queue name: {error.detail}") from error


class NewConsumer(NamedTuple):
    """Rules for a consumer; the queue of its dead letters is still a name, "" for none."""

    rules: ConsumerConfig
    grave: str


def consumer(body: bytes, wire: Wire) -> NewConsumer:
    """The rules of a consumer, defaults where the body says nothing. Raises InvalidJson, Refused."""
    fields = Fields.of_body(body, errors.REQUEST)
    kind = fields.text("type")
    if kind not in ("http_pull", "worker"):
        raise Refused(errors.REQUEST, "type must be http_pull or worker")
    settings = fields.object("settings", errors.CONSUMER_SETTINGS)
    facts = {"type": kind}
    batch = settings.whole("batch_size", 1, PULL_MAX)
    if kind == "worker":
        script = fields.text("script_name") or fields.text("script")
        if not script:
            raise Refused(errors.REQUEST, "script_name is missing: which Worker is it?")
        wait_ms = settings.whole("max_wait_time_ms", 0, WORKER_WAIT_MS_MAX)
        facts["script"] = script
        facts["environment"] = fields.text("environment_name") or fields.text("environment") or ""
        facts["max_wait_time_ms"] = str(WORKER_WAIT_MS if wait_ms is None else wait_ms)
        concurrency = settings.whole("max_concurrency", 1, CONCURRENCY_MAX)
        facts |= {} if concurrency is None else {"max_concurrency": str(concurrency)}
    if batch is None:
        batch = WORKER_BATCH if kind == "worker" else wire.batch_size
    retries = settings.whole("max_retries", 0, RETRIES_MAX)
    lease_ms = settings.whole("visibility_timeout_ms", 1, LEASE_MS_MAX)
    delay_ms = settings.seconds("retry_delay", DELAY_S_MAX) or 0
    rules = ConsumerConfig(
        lease_ms=LEASE_MS if lease_ms is None else lease_ms,
        batch=batch,
        attempts_max=wire.attempts_max(RETRIES if retries is None else retries),
        backoff=Backoff(list_ms=(delay_ms,)),
        lapse_delay_ms=delay_ms,
        dead_letters="",
        facts=facts,
    )
    return NewConsumer(rules, fields.text("dead_letter_queue") or "")


# -- messages -----------------------------------------------------------------------------------------------


def message(body: bytes, wire: Wire) -> NewEntry:
    """A message to push. Raises InvalidJson, Refused."""
    return _message(Fields.of_body(body), wire, None)[0]


def messages(body: bytes, wire: Wire) -> list[NewEntry]:
    """Messages to push together. Raises InvalidJson, Refused."""
    fields = Fields.of_body(body)
    delay_ms = fields.seconds("delay_seconds", DELAY_S_MAX, errors.BATCH_DELAY)
    sent = fields.objects("messages")
    check_count(len(sent))
    made = [_message(one, wire, delay_ms) for one in sent]
    check_size(sum(size for _, size in made))
    return [entry for entry, _ in made]


def check_count(count: int) -> None:
    """Raises Refused for a batch of none or of too many."""
    if not count:
        raise Refused(errors.SCHEMA, "messages: empty, at least one is needed")
    if count > BATCH_MAX:
        raise Refused(errors.BATCH_COUNT, f"messages: {count}, at most {BATCH_MAX}", 413)


def check_size(size: int) -> None:
    """Raises Refused for a batch whose bodies have too many bytes."""
    if size > BATCH_BYTES_MAX:
        raise Refused(errors.BATCH_SIZE, f"messages: {size} bytes, at most {BATCH_BYTES_MAX}", 413)


def _message(fields: Fields, wire: Wire, batch_delay_ms: int | None) -> tuple[NewEntry, int]:
    """A message, and how many bytes its body has."""
    kind = fields.text("content_type") or wire.content_type
    if kind not in CONTENT_TYPES:
        raise fields.refusal("content_type", f"must be one of {', '.join(CONTENT_TYPES)}", errors.METADATA)
    delay_ms = fields.seconds("delay_seconds", DELAY_S_MAX, errors.METADATA)
    raw = fields.raw("body")
    if raw is None:
        raise fields.refusal("body", "is missing")
    size = len(raw) if kind == "json" else _size_of_text(fields, raw, kind)
    if size > MESSAGE_BYTES_MAX:
        why = f"has {size} bytes, at most {MESSAGE_BYTES_MAX} are taken"
        raise fields.refusal("body", why, errors.MESSAGE_SIZE, 413)
    return entry(raw.decode(), kind, {}, delay_ms, batch_delay_ms), size


def _size_of_text(fields: Fields, raw: bytes, kind: str) -> int:
    """Bytes of a body that is a JSON string: of UTF-8, or of what the base64 in it stands for."""
    text = json.loads(raw) if raw.startswith(b'"') else None
    if text is None:
        raise fields.refusal("body", f"must be a string where content_type is {kind}")
    if kind == "text":
        return len(text.encode(errors="surrogatepass"))
    try:
        return len(b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        raise fields.refusal("body", f"must be base64 where content_type is {kind}") from None


def entry(
    data: str, kind: str, headers: dict[str, str], delay_ms: int | None, batch_delay_ms: int | None
) -> NewEntry:
    """What to append for a message of this content type. Its own delay wins over that of its batch."""
    if delay_ms is not None:
        headers = headers | {DELAY_HEADER: f"{delay_ms / 1_000:g}"}
    return NewEntry(
        data,
        content_type=None if kind == "json" else kind,
        headers=msgspec.json.encode(headers).decode() if headers else None,
        delay_ms=batch_delay_ms if delay_ms is None else delay_ms,
    )


def pull(body: bytes) -> Pull:
    """What a pull asks for. Raises InvalidJson, Refused."""
    fields = Fields.of_body(body)
    lease_ms = fields.whole("visibility_timeout_ms", 1, LEASE_MS_MAX)
    if lease_ms is None:
        lease_ms = fields.whole("visibility_timeout", 1, LEASE_MS_MAX)  # as documents once said
    return Pull(fields.whole("batch_size", 1, PULL_MAX), lease_ms)


def extension(body: bytes) -> tuple[list[str], int | None]:
    """Leases, and how long they are to last from now; None: as the consumer has it. Raises InvalidJson, Refused."""
    fields = Fields.of_body(body)
    leases = [required(one, "lease_id") for one in few(fields, "extend")]
    return leases, fields.whole("visibility_timeout_ms", 1, LEASE_MS_MAX)


def references(body: bytes, list_name: str, name: str) -> list[str]:
    """References that a peek gave. Raises InvalidJson, Refused."""
    return [required(one, name) for one in few(Fields.of_body(body), list_name)]


def few(fields: Fields, name: str) -> list[Fields]:
    """Objects of an array of bounded length."""
    found = fields.objects(name)
    if len(found) > LEASES_MAX:
        raise Refused(errors.BATCH_COUNT, f"{name}: {len(found)}, at most {LEASES_MAX}", 413)
    return found


def required(fields: Fields, name: str) -> str:
    """A string that must be there. Raises Refused."""
    value = fields.text(name)
    if value is None:
        raise fields.refusal(name, "is missing")
    return value
