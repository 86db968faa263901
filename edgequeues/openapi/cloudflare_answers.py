"""Bodies of the Cloudflare dialect, out. They are written by hand; tests see that both say the same."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType


class CfEnvelope(Struct, frozen=True, kw_only=True):
    """What every answer is in."""

    success: Literal[True]
    errors: list[Any]
    messages: list[Any]


class CfInfo(Struct, frozen=True):
    """Which part of a list it is."""

    page: int
    per_page: int
    count: int
    total_count: int
    total_pages: int


class CfSettingsOut(Struct, frozen=True):
    """Settings of a queue. message_retention_period: null: no end."""

    delivery_delay: float
    delivery_paused: bool
    message_retention_period: float | None


class CfConsumerSettingsOut(Struct, frozen=True):
    """Settings of a consumer; which ones there are depends on its type."""

    batch_size: int
    max_retries: int | None
    retry_delay: float
    visibility_timeout_ms: int | UnsetType = UNSET
    max_wait_time_ms: int | UnsetType = UNSET
    max_concurrency: int | UnsetType | None = UNSET


class CfConsumer(Struct, frozen=True):
    """A consumer. dead_letter_queue: "" for none."""

    consumer_id: str
    queue_name: str
    created_on: str
    type: str
    dead_letter_queue: str
    settings: CfConsumerSettingsOut
    script: str | UnsetType = UNSET
    script_name: str | UnsetType = UNSET
    environment: str | UnsetType = UNSET


class CfQueue(Struct, frozen=True, kw_only=True):
    """A queue, its consumers and all."""

    queue_id: str
    queue_name: str
    created_on: str
    modified_on: str
    settings: CfSettingsOut
    producers: list[Any]
    producers_total_count: int
    consumers: list[CfConsumer]
    consumers_total_count: int


class CfQueuePurged(CfQueue, frozen=True, kw_only=True):
    """A queue whose purge was asked for."""

    started_at: str | None
    complete: bool


class CfPurgeInfo(Struct, frozen=True):
    """How far a purge has come; completed: `true` or `false`."""

    completed: Literal["true", "false"]
    started_at: str


class CfMetrics(Struct, frozen=True):
    """What is still to be done. edgequeues: in the answer to a pull, that more may be said in an ack."""

    backlog_count: int
    backlog_bytes: int
    oldest_message_timestamp_ms: int
    edgequeues: int | UnsetType = UNSET


class CfMetadata(Struct, frozen=True):
    """What goes with an answer."""

    metrics: CfMetrics


class CfMetadataOut(Struct, frozen=True):
    """What is told of a push."""

    metadata: CfMetadata


class CfMessageOut(Struct, frozen=True):
    """A message. lease_id: where it was pulled, or previewed; ref: where it was peeked at."""

    id: str
    timestamp_ms: int
    attempts: int
    body: Any
    metadata: dict[str, str]
    lease_id: str | UnsetType = UNSET
    ref: str | UnsetType = UNSET


class CfMessagesOut(Struct, frozen=True):
    """Messages that were pulled."""

    messages: list[CfMessageOut]
    message_backlog_count: int
    metadata: CfMetadata


class CfSeenOut(Struct, frozen=True):
    """Messages that were looked at."""

    messages: list[CfMessageOut]


class CfEmitted(Struct, frozen=True):
    """A message that was appended with an ack."""

    lease_id: str
    queue_id: str
    queue_name: str
    id: str


class CfSettledOut(Struct, frozen=True, rename="camel"):
    """How many were settled how. warnings: by lease, what is odd."""

    ack_count: int
    retry_count: int
    warnings: dict[str, str]
    permanent_count: int | UnsetType = UNSET
    release_count: int | UnsetType = UNSET
    emitted: list[CfEmitted] | UnsetType = UNSET


class CfMoved(Struct, frozen=True):
    """A lease that was extended, which stays what it was."""

    lease_id: str
    previous_lease_id: str


class CfExtendedOut(Struct, frozen=True):
    """Leases that were extended. warnings: by lease, why it was not."""

    messages: list[CfMoved]
    warnings: dict[str, str]


class CfDroppedOut(Struct, frozen=True):
    """warnings: by reference, why it was not deleted."""

    warnings: dict[str, str]
    errors: list[Any] | UnsetType = UNSET


class CfError(Struct, frozen=True):
    """Why not. code: a number of the service."""

    code: int
    message: str


class CfRefusal(Struct, frozen=True):
    """No."""

    success: Literal[False]
    errors: list[CfError]
    messages: list[Any]
    result: None


class CfNothing(CfEnvelope, frozen=True, kw_only=True):
    """It is done."""

    result: None


class CfQueues(CfEnvelope, frozen=True, kw_only=True):
    """Queues."""

    result: list[CfQueue]
    result_info: CfInfo


class CfQueueAnswer(CfEnvelope, frozen=True, kw_only=True):
    """A queue."""

    result: CfQueue


class CfPurging(CfEnvelope, frozen=True, kw_only=True):
    """A queue whose purge was asked for."""

    result: CfQueuePurged


class CfPurgeState(CfEnvelope, frozen=True, kw_only=True):
    """How far the last purge has come."""

    result: CfPurgeInfo


class CfMetricsAnswer(CfEnvelope, frozen=True, kw_only=True):
    """What is still to be done."""

    result: CfMetrics


class CfSubscriptions(CfEnvelope, frozen=True, kw_only=True):
    """Event subscriptions, of which there are none."""

    result: list[Any]
    result_info: CfInfo


class CfConsumers(CfEnvelope, frozen=True, kw_only=True):
    """Consumers."""

    result: list[CfConsumer]
    result_info: CfInfo


class CfConsumerAnswer(CfEnvelope, frozen=True, kw_only=True):
    """A consumer."""

    result: CfConsumer


class CfPushed(CfEnvelope, frozen=True, kw_only=True):
    """What is told of a push."""

    result: CfMetadataOut


class CfPulled(CfEnvelope, frozen=True, kw_only=True):
    """Messages."""

    result: CfMessagesOut


class CfPeeked(CfEnvelope, frozen=True, kw_only=True):
    """Messages that were looked at."""

    result: CfSeenOut


class CfSettled(CfEnvelope, frozen=True, kw_only=True):
    """What became of leases."""

    result: CfSettledOut


class CfExtended(CfEnvelope, frozen=True, kw_only=True):
    """Leases that were extended."""

    result: CfExtendedOut


class CfDropped(CfEnvelope, frozen=True, kw_only=True):
    """What was deleted."""

    result: CfDroppedOut
