"""What is said of the routes that workerd's own binding asks for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from edgequeues.core import errors
from edgequeues.http.cloudflare_codec import BATCH_MAX, DELAY_S_MAX
from edgequeues.openapi.cloudflare_answers import CfRefusal
from edgequeues.openapi.op import ANYTHING, JSON, Answer, Body, Chapter, Op, Param, json, ok

Kind = Literal["json", "text", "bytes", "v8"]
Address = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}/[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")]
Delay = Annotated[int, Meta(ge=0, le=DELAY_S_MAX)]


class BindingMessage(Struct, frozen=True, rename="camel"):
    """A message. body: base64 of its bytes."""

    body: Annotated[str, Meta(pattern="^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$")]
    content_type: Kind | None = None
    delay_secs: Delay | None = None


class BindingBatch(Struct, frozen=True):
    """Messages to append, all or none."""

    messages: Annotated[list[BindingMessage], Meta(min_length=1, max_length=BATCH_MAX)]


class BindingMetrics(Struct, frozen=True, rename="camel"):
    """What is still to be done."""

    backlog_count: int
    backlog_bytes: int
    oldest_message_timestamp: int


class BindingMetadata(Struct, frozen=True):
    """What goes with an answer."""

    metrics: BindingMetrics


class BindingPushed(Struct, frozen=True):
    """What is told of a push."""

    metadata: BindingMetadata


QUEUE = Param("edgequeues-queue", Address, "Which queue: SPACE/QUEUE.", required=True, example="demo/jobs")
DELAY = Param("x-msg-delay-secs", Delay, "Not to be handed out before so many seconds.")
PUSHED = (
    errors.TooLarge,
    errors.QueueFull,
    errors.QueueNotFound,
    errors.InvalidMessage,
    errors.TooManySpaces,
    errors.RateLimited,
)

CHAPTER = Chapter(
    "What workerd's own `queue` binding asks for; and Prometheus, at `/metrics`. In words: "
    "`docs/protocol/cloudflare.md`.",
    {
        "POST /message": Op(
            ok(BindingPushed),
            headers=(QUEUE, Param("x-msg-fmt", Kind, "What the body is; `v8` where it is not said."), DELAY),
            body=Body({"application/octet-stream": ANYTHING}, required=False),
            errors=PUSHED,
        ),
        "POST /batch": Op(
            ok(BindingPushed),
            headers=(QUEUE, DELAY),
            body=json(BindingBatch, {"messages": [{"body": "e30=", "contentType": "json"}]}),
            errors=PUSHED,
        ),
        "GET /metrics": Op(
            {
                200: Answer(
                    "With the header: what is still to be done. Without: what the server counts, for Prometheus.",
                    {JSON: BindingMetrics, "text/plain": {"type": "string"}},
                )
            },
            headers=(QUEUE._replace(required=False),),
            errors=(errors.QueueNotFound,),
        ),
    },
    {},
    strict=False,
    problem=CfRefusal,
    problem_media=JSON,
    coded=False,
)
