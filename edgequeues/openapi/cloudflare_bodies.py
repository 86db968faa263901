"""Bodies of the Cloudflare dialect, in. They are read by hand; a test sees that both say the same."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from edgequeues.http.cloudflare_answers import EMITS_MAX, ERROR_CHARS_MAX
from edgequeues.http.cloudflare_codec import (
    BATCH_MAX,
    CONCURRENCY_MAX,
    DELAY_S_MAX,
    LEASES_MAX,
    RETENTION_S_MAX,
    RETENTION_S_MIN,
    RETRIES_MAX,
    WORKER_WAIT_MS_MAX,
)
from edgequeues.models import LEASE_MS_MAX, PULL_MAX

Seconds = Annotated[float, Meta(ge=0, le=DELAY_S_MAX)]
Delay = Seconds | None
LeaseTime = Annotated[int, Meta(ge=1, le=LEASE_MS_MAX)] | None
BatchSize = Annotated[int, Meta(ge=1, le=PULL_MAX)] | None
ContentType = Literal["json", "text", "bytes", "v8"] | None


class CfSettings(Struct, frozen=True):
    """Settings of a queue."""

    delivery_delay: Delay = None
    delivery_paused: bool | None = None
    message_retention_period: Annotated[float, Meta(ge=RETENTION_S_MIN, le=RETENTION_S_MAX)] | None = None


class CfNewQueue(Struct, frozen=True):
    """A queue to be made."""

    queue_name: Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
    settings: CfSettings | None = None


class CfQueueChange(Struct, frozen=True):
    """What is to be changed of a queue."""

    queue_name: Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None
    settings: CfSettings | None = None


class CfConsumerRules(Struct, frozen=True):
    """Settings of a consumer; max_wait_time_ms and max_concurrency are a Worker's."""

    batch_size: BatchSize = None
    max_retries: Annotated[int, Meta(ge=0, le=RETRIES_MAX)] | None = None
    retry_delay: Delay = None
    visibility_timeout_ms: LeaseTime = None
    max_wait_time_ms: Annotated[int, Meta(ge=0, le=WORKER_WAIT_MS_MAX)] | None = None
    max_concurrency: Annotated[int, Meta(ge=1, le=CONCURRENCY_MAX)] | None = None


class CfNewConsumer(Struct, frozen=True):
    """A consumer to be made, or its rules to be replaced. script_name: of a Worker."""

    type: Literal["http_pull", "worker"]
    dead_letter_queue: str | None = None
    script_name: str | None = None
    script: str | None = None
    environment_name: str | None = None
    environment: str | None = None
    settings: CfConsumerRules | None = None


class CfPurge(Struct, frozen=True):
    """That all of a queue is to be deleted."""

    delete_messages_permanently: Literal[True]


class CfMessage(Struct, frozen=True):
    """A message to push."""

    body: Any
    content_type: ContentType = None
    delay_seconds: Delay = None


class CfBatch(Struct, frozen=True):
    """Messages to push together."""

    messages: Annotated[list[CfMessage], Meta(min_length=1, max_length=BATCH_MAX)]
    delay_seconds: Delay = None


class CfPull(Struct, frozen=True):
    """What to pull."""

    batch_size: BatchSize = None
    visibility_timeout_ms: LeaseTime = None
    visibility_timeout: LeaseTime = None


class CfLease(Struct, frozen=True):
    """A lease."""

    lease_id: str


class CfRetry(Struct, frozen=True):
    """An attempt to give up."""

    lease_id: str
    delay_seconds: Delay = None


class CfEmit(Struct, frozen=True):
    """A message to append with the ack of a lease. key: by which a repeat is known."""

    lease_id: str
    queue: Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")]
    key: Annotated[str, Meta(min_length=1, max_length=256)]
    body: Any


class CfAck(Struct, frozen=True):
    """What became of messages. The service knows acks and retries; the rest is ours.

    permanent: not to be tried again. releases: back as if they had never been handed out. errors, results: by lease.
    """

    acks: Annotated[list[CfLease], Meta(max_length=LEASES_MAX)] | None = None
    retries: Annotated[list[CfRetry], Meta(max_length=LEASES_MAX)] | None = None
    permanent: Annotated[list[CfLease], Meta(max_length=LEASES_MAX)] | None = None
    releases: Annotated[list[CfLease], Meta(max_length=LEASES_MAX)] | None = None
    errors: dict[str, Annotated[str, Meta(max_length=ERROR_CHARS_MAX)]] | None = None
    results: dict[str, Any] | None = None
    emit: Annotated[list[CfEmit], Meta(max_length=EMITS_MAX)] | None = None


class CfExtend(Struct, frozen=True):
    """Leases, and for how long from now."""

    extend: Annotated[list[CfLease], Meta(max_length=LEASES_MAX)] | None = None
    visibility_timeout_ms: LeaseTime = None


class CfPeek(Struct, frozen=True):
    """How many messages to look at."""

    batch_size: BatchSize = None


class CfRef(Struct, frozen=True):
    """A message that was looked at."""

    ref: str


class CfDrop(Struct, frozen=True):
    """Messages to delete."""

    refs: Annotated[list[CfRef], Meta(max_length=LEASES_MAX)] | None = None


class CfDropPreviewed(Struct, frozen=True):
    """The same as it was called before."""

    acks: Annotated[list[CfLease], Meta(max_length=LEASES_MAX)] | None = None
