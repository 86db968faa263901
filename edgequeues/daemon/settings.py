"""Every setting of the consumer daemon: the environment, and flags over it, checked once and all faults told at once.

The docs table comes from the fields, see `settings_table`. What is secret has no flag, as others see those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, NamedTuple, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct, inspect

from edgequeues.core.hostnames import is_loopback
from edgequeues.daemon import wire

VISIBILITY_S_MAX = 43_200
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750
_SECONDS = re.compile(r"[0-9]{1,5}")


class SettingsError(Exception):
    """Settings that cannot be used. The message names each variable, and what would do."""


class DaemonSettings(Struct, frozen=True, kw_only=True):
    """The settings of one daemon. A field's name in upper case is its variable."""

    queue_http_endpoint: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Address of the queue: `https://HOST/client/v4/accounts/ACCOUNT/queues/QUEUE`, where QUEUE "
            "is an id or a name. Required.",
        ),
    ] = ""
    queue_http_token: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Token that may read, pull and ack the queue. Required, but for a service on this machine.",
            extra={"secret": True},
        ),
    ] = ""
    queue_max_batch: Annotated[int, Meta(ge=1, le=100, description="Messages of one pull.")] = 32
    queue_visibility_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=VISIBILITY_S_MAX,
            description="How long a message that was pulled is hidden from others; extended while it is held here. "
            "0: the budget and the margin together, which is the least it can be.",
        ),
    ] = 0
    processing_budget_seconds: Annotated[
        int, Meta(ge=1, le=VISIBILITY_S_MAX, description="How long a handler may take for one message.")
    ] = 20
    visibility_margin_seconds: Annotated[
        int, Meta(ge=1, le=VISIBILITY_S_MAX, description="What is left to say what became of it.")
    ] = 10
    queue_max_attempts: Annotated[
        int,
        Meta(
            ge=1, le=1_000_000, description="A message whose attempt of this number fails is a dead letter."
        ),
    ] = 10
    queue_max_concurrent_batches: Annotated[
        int, Meta(ge=1, le=100, description="Batches that are worked on at once.")
    ] = 4
    max_batch_concurrency: Annotated[
        int, Meta(ge=1, le=100, description="Messages of one batch that are handled at once. 1: one by one.")
    ] = 1
    queue_dlq_endpoint: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Address of the queue for dead letters, where the service is not edgequeues, which has its "
            "own. Without it, the service's rules are all there is.",
        ),
    ] = ""
    on_error: Annotated[
        str,
        Meta(
            description="When a message that failed comes again: `timeout`, when it would have without a word; "
            "`backoff`, as its consumer has it; or after so many seconds.",
        ),
    ] = "timeout"
    dedup_size: Annotated[
        int, Meta(ge=1, le=10_000_000, description="Events that were handled and are remembered.")
    ] = 10_000
    shutdown_grace_seconds: Annotated[
        int, Meta(ge=0, le=3_600, description="What running handlers are given when the daemon is to stop.")
    ] = 20
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="The least that is logged.")
    ] = "info"
    tracing: Annotated[
        bool,
        Meta(
            description="Send a span of each attempt by OpenTelemetry, in the trace that its message carries; where "
            "to, OTEL_EXPORTER_OTLP_ENDPOINT says. Needs `edgequeues[otel]`."
        ),
    ] = False
    metrics_enable: Annotated[bool, Meta(description="Serve metrics on 127.0.0.1.")] = False
    metrics_port: Annotated[int, Meta(ge=0, le=65_535, description="Port of the metrics; 0: a free one.")] = (
        9464
    )
    email_provider: Annotated[
        Literal["none", "smtp", "ses", "postmark", "outbound"],
        Meta(
            description="What mail leaves through; `ses` is its SMTP endpoint, `outbound` the worker below."
        ),
    ] = "none"
    email_from: Annotated[
        str, Meta(max_length=1_024, description="Whom mail is from, as `Shop <shop@example.com>`.")
    ] = ""
    email_reply_to: Annotated[
        str, Meta(max_length=1_024, description="Where answers to that mail go, if elsewhere.")
    ] = ""
    smtp_url: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="`smtps://USER:PASSWORD@HOST:465` or `smtp://HOST:587`, for `smtp` and `ses`.",
            extra={"secret": True},
        ),
    ] = ""
    email_provider_api_key: Annotated[
        str, Meta(max_length=2_048, description="Key of the mail provider's API.", extra={"secret": True})
    ] = ""
    twilio_account_sid: Annotated[
        str, Meta(max_length=64, description="Account that text messages leave by.")
    ] = ""
    twilio_auth_token: Annotated[
        str, Meta(max_length=2_048, description="Token of that account.", extra={"secret": True})
    ] = ""
    twilio_from_e164: Annotated[
        str,
        Meta(
            pattern=r"^(\+[1-9][0-9]{1,14})?$",
            description="Number that text messages are from, as `+15550001111`.",
        ),
    ] = ""
    outbound_url: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Worker that sends mail and text messages instead: `POST /email`, `/sms`.",
        ),
    ] = ""
    outbound_token: Annotated[
        str, Meta(max_length=2_048, description="Token for that worker.", extra={"secret": True})
    ] = ""
    blobs_endpoint: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Where objects get new links, `https://HOST/blobs/SPACE`. Without it, where the queue is, "
            "with its token; at Cloudflare, links are used as they came, while they are good.",
        ),
    ] = ""
    blobs_token: Annotated[
        str, Meta(max_length=2_048, description="Token for that.", extra={"secret": True})
    ] = ""
    blobs_hosts: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Other hosts that objects may be fetched from, with commas: `host` or `host:port`.",
        ),
    ] = ""
    handler_secret: Annotated[
        str,
        Meta(
            max_length=2_048,
            description="Signs what is posted to a handler that is a URL, as Standard Webhooks has it.",
            extra={"secret": True},
        ),
    ] = ""

    def __repr__(self) -> str:
        """No values: some are secret."""
        return "DaemonSettings(...)"

    @property
    def visibility_s(self) -> int:
        """Seconds that a message is hidden from others at a time."""
        return (
            self.queue_visibility_seconds or self.processing_budget_seconds + self.visibility_margin_seconds
        )

    def faults(self) -> Iterator[str]:
        """What is wrong, though each value by itself will do."""
        least_s = self.processing_budget_seconds + self.visibility_margin_seconds
        if not least_s <= self.visibility_s <= VISIBILITY_S_MAX:
            yield (
                f"QUEUE_VISIBILITY_SECONDS: {self.visibility_s} will not do; PROCESSING_BUDGET_SECONDS and "
                f"VISIBILITY_MARGIN_SECONDS make {least_s}, it is at least that and at most {VISIBILITY_S_MAX}"
            )
        if self.on_error not in ("timeout", "backoff") and not (
            _SECONDS.fullmatch(self.on_error) and int(self.on_error) <= 86_400
        ):
            yield "ON_ERROR: write `timeout`, `backoff`, or seconds up to 86400"
        yield from self._queue_faults()
        yield from self._sending_faults()

    def _queue_faults(self) -> Iterator[str]:
        if not self.queue_http_endpoint:
            yield "QUEUE_HTTP_ENDPOINT: missing; write https://HOST/client/v4/accounts/ACCOUNT/queues/QUEUE"
        for name in ("queue_http_endpoint", "queue_dlq_endpoint"):
            try:
                if text := getattr(self, name):
                    wire.endpoint(text)
            except ValueError as error:
                yield f"{name.upper()}: {error}"
        host = _host(self.queue_http_endpoint)
        if self.queue_http_token and not _TOKEN.fullmatch(self.queue_http_token):
            yield "QUEUE_HTTP_TOKEN: has a space, a line break or another character that no token has"
        if not self.queue_http_token and host and not is_loopback(host):
            yield f"QUEUE_HTTP_TOKEN: missing; write the token that {host} gave for this queue"

    def _sending_faults(self) -> Iterator[str]:
        needs = [
            ("EMAIL_PROVIDER", self.email_provider in ("smtp", "ses", "postmark"), ("email_from",)),
            ("EMAIL_PROVIDER", self.email_provider in ("smtp", "ses"), ("smtp_url",)),
            ("EMAIL_PROVIDER", self.email_provider == "postmark", ("email_provider_api_key",)),
            ("EMAIL_PROVIDER", self.email_provider == "outbound", ("outbound_url",)),
            ("TWILIO_ACCOUNT_SID", self.twilio_account_sid, ("twilio_auth_token", "twilio_from_e164")),
            ("OUTBOUND_URL", self.outbound_url, ("outbound_token",)),
        ]
        for why, holds, names in needs:
            for name in names if holds else ():
                if not getattr(self, name):
                    yield f"{name.upper()}: missing; {why} needs it"
        for name in ("outbound_url", "blobs_endpoint"):
            if (text := getattr(self, name)) and not _host(text):
                yield f"{name.upper()}: write an address that begins with https:// or http://"


class Setting(NamedTuple):
    """One setting, as flags and docs need it. allowed: type and bounds in words."""

    name: str
    default: str
    allowed: str
    help: str
    secret: bool

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return self.name.upper()

    @property
    def flag(self) -> str | None:
        """Its flag on the command line; None: it is secret."""
        return None if self.secret else "--" + self.name.replace("_", "-")


def load(environment: Mapping[str, str], flags: Mapping[str, object] | None = None) -> DaemonSettings:
    """The settings; flags, by field name, win over the environment. Raises SettingsError, which shows no value."""
    given: dict[str, object] = {}
    for setting in settings():
        if environment.get(setting.variable, "") != "":
            given[setting.name] = environment[setting.variable].strip()
    given.update({name: value for name, value in (flags or {}).items() if value is not None})
    faults, values = [], {}
    types = get_type_hints(DaemonSettings, include_extras=True)
    for name, value in given.items():
        try:
            values[name] = msgspec.convert(value, types[name], strict=False)
        except msgspec.ValidationError as error:
            faults.append(f"{name.upper()}: {_reason(error)}")
    found = DaemonSettings(**values)
    told = {fault.partition(":")[0] for fault in faults}
    faults += [fault for fault in found.faults() if fault.partition(":")[0] not in told]
    if faults:
        raise SettingsError("\n".join(faults))
    return found


def settings() -> list[Setting]:
    """Describe every setting, in order."""
    info = inspect.type_info(DaemonSettings)
    assert isinstance(info, inspect.StructType)
    return [_describe(field) for field in info.fields]


def settings_table() -> str:
    """The Markdown table of docs/guides/consumer-daemon.md."""
    rows = [
        f"| `{one.variable}` | {one.allowed} | {f'`{one.default}`' if one.default else 'none'} | {one.help} |"
        for one in settings()
    ]
    return "\n".join(["| variable | allowed | default | what it does |", "|---|---|---|---|", *rows]) + "\n"


def _describe(field: inspect.Field) -> Setting:
    kind: inspect.Type = field.type
    description, secret = "", False
    if isinstance(kind, inspect.Metadata):
        description = (kind.extra_json_schema or {}).get("description", "")
        secret = (kind.extra or {}).get("secret", False)
        kind = kind.type
    default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return Setting(field.name, default, _allowed(kind), description, secret)


def _allowed(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.LiteralType):
        return ", ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.BoolType):
        return "`true`, `false`"
    if isinstance(kind, inspect.IntType):
        return f"integer, {kind.ge} to {kind.le}"
    return "text"


def _host(address: str) -> str:
    url = urlsplit(address)
    return (url.hostname or "") if url.scheme in ("http", "https") else ""


def _reason(error: msgspec.ValidationError) -> str:
    """Why a value will not do. Of a Literal msgspec shows the value, and a secret may stand in the wrong place."""
    text = str(error)
    if "enum value" in text:
        return "not one of the values it may have"
    return text[0].lower() + text[1:]
