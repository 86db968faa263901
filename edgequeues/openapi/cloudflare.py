"""What is said of the protocol of Cloudflare Queues. Its bodies are in the modules beside."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from edgequeues.core import errors
from edgequeues.http.cloudflare import PAGE_MAX
from edgequeues.openapi import cloudflare_answers as answers
from edgequeues.openapi import cloudflare_bodies as bodies
from edgequeues.openapi.op import JSON, Chapter, Op, Param, Text, json, ok
from edgequeues.openapi.spaces import SPACE

ACCOUNT = "/client/v4/accounts/{space}"
QUEUES = ACCOUNT + "/queues"
QUEUE = QUEUES + "/{queue_hex}"
CONSUMER = QUEUE + "/consumers/{consumer}"
MESSAGES = QUEUE + "/messages"
HEX = Annotated[str, Meta(pattern="^[0-9a-fA-F]{32}$")]

NO_QUEUE = (errors.QueueNotFound, errors.InvalidJson)
OF_CONSUMER = (*NO_QUEUE, errors.ConsumerNotFound)
PUSHED = (*NO_QUEUE, errors.TooLarge, errors.QueueFull, errors.InvalidMessage)
PULLED = (*NO_QUEUE, errors.NoConsumer, errors.ConsumerNotFound)


QUEUE_OPERATIONS = {
    f"GET {QUEUES}": Op(
        ok(answers.CfQueues),
        query=(
            Param("page", Annotated[int, Meta(ge=1)], "From 1; where it is not said, all are given."),
            Param("per_page", Annotated[int, Meta(ge=1, le=PAGE_MAX)], "At most so many in a page."),
            Param("name", str, "Only those of these names.", many=True),
        ),
    ),
    f"POST {QUEUES}": Op(
        ok(answers.CfQueueAnswer, "The queue."),
        body=json(bodies.CfNewQueue, {"queue_name": "orders"}),
        errors=(errors.NameTaken, errors.TooManySpaces, errors.RateLimited),
        statuses=(409,),
        id="create_queue",
    ),
    f"GET {QUEUE}": Op(ok(answers.CfQueueAnswer), errors=NO_QUEUE, id="get_queue"),
    f"PUT {QUEUE}": Op(
        ok(answers.CfQueueAnswer, "The queue as it is now."),
        body=json(bodies.CfQueueChange, {"queue_name": "orders"}),
        errors=(*NO_QUEUE, errors.ConfigConflict),
        statuses=(409,),
        id="replace_queue",
    ),
    f"PATCH {QUEUE}": Op(
        ok(answers.CfQueueAnswer, "The queue as it is now."),
        body=json(bodies.CfQueueChange, {"settings": {"delivery_delay": 5}}),
        errors=(*NO_QUEUE, errors.ConfigConflict),
        statuses=(409,),
        id="change_queue",
    ),
    f"DELETE {QUEUE}": Op(
        ok(answers.CfNothing), errors=(*NO_QUEUE, errors.ConfigConflict), id="delete_queue"
    ),
    f"POST {QUEUE}/purge": Op(
        ok(answers.CfPurging),
        body=json(bodies.CfPurge, {"delete_messages_permanently": True}),
        errors=NO_QUEUE,
    ),
    f"GET {QUEUE}/purge": Op(ok(answers.CfPurgeState), errors=NO_QUEUE),
    f"GET {QUEUE}/metrics": Op(ok(answers.CfMetricsAnswer), errors=NO_QUEUE),
    f"GET {ACCOUNT}/event_subscriptions/subscriptions": Op(ok(answers.CfSubscriptions)),
}

CONSUMER_OPERATIONS = {
    f"GET {QUEUE}/consumers": Op(ok(answers.CfConsumers), errors=NO_QUEUE),
    f"POST {QUEUE}/consumers": Op(
        ok(answers.CfConsumerAnswer),
        body=json(bodies.CfNewConsumer, {"type": "http_pull"}),
        errors=(*NO_QUEUE, errors.NameTaken, errors.ConfigConflict),
        statuses=(409,),
        id="create_consumer",
    ),
    f"GET {CONSUMER}": Op(ok(answers.CfConsumerAnswer), errors=OF_CONSUMER, id="get_consumer"),
    f"PUT {CONSUMER}": Op(
        ok(answers.CfConsumerAnswer, "The consumer as it is now."),
        body=json(bodies.CfNewConsumer, {"type": "http_pull", "settings": {"max_retries": 5}}),
        errors=(*OF_CONSUMER, errors.NameTaken, errors.ConfigConflict),
        id="change_consumer",
    ),
    f"DELETE {CONSUMER}": Op(ok(answers.CfNothing), errors=OF_CONSUMER, id="delete_consumer"),
}

MESSAGE_OPERATIONS = {
    f"POST {MESSAGES}": Op(
        ok(answers.CfPushed), body=json(bodies.CfMessage, {"body": {"order": 1}}), errors=PUSHED
    ),
    f"POST {MESSAGES}/batch": Op(
        ok(answers.CfPushed), body=json(bodies.CfBatch, {"messages": [{"body": {"order": 1}}]}), errors=PUSHED
    ),
    f"POST {MESSAGES}/pull": Op(
        ok(answers.CfPulled),
        body=json(bodies.CfPull, {"batch_size": 1}, required=False),
        errors=PULLED,
    ),
    f"POST {MESSAGES}/ack": Op(
        ok(answers.CfSettled),
        body=json(bodies.CfAck, {"acks": [{"lease_id": "a lease as a pull gave it"}]}, required=False),
        errors=(*PULLED, *PUSHED, errors.NameTaken, errors.IdempotencyMismatch),
    ),
    f"POST {MESSAGES}/extend": Op(
        ok(answers.CfExtended),
        body=json(bodies.CfExtend, {"extend": [{"lease_id": "a lease as a pull gave it"}]}, required=False),
        errors=PULLED,
    ),
    f"POST {MESSAGES}/peek": Op(
        ok(answers.CfPeeked), body=json(bodies.CfPeek, {"batch_size": 1}, required=False), errors=PULLED
    ),
    f"POST {MESSAGES}/preview": Op(
        ok(answers.CfPeeked), body=json(bodies.CfPeek, {"batch_size": 1}, required=False), errors=PULLED
    ),
    f"POST {MESSAGES}/purge": Op(
        ok(answers.CfDropped), body=json(bodies.CfDrop, {"refs": []}, required=False), errors=NO_QUEUE
    ),
    f"POST {MESSAGES}/preview/ack": Op(
        ok(answers.CfDropped),
        body=json(bodies.CfDropPreviewed, {"acks": []}, required=False),
        errors=NO_QUEUE,
    ),
}

CHAPTER = Chapter(
    "Cloudflare Queues: its SDKs and wrangler work unchanged; an account is a space. In words: "
    "`docs/protocol/cloudflare.md`.",
    QUEUE_OPERATIONS | CONSUMER_OPERATIONS | MESSAGE_OPERATIONS,
    {
        "space": SPACE._replace(says="An account: a space's id."),
        "queue_hex": Param("queue_hex", HEX, "A queue's id: 32 hex digits."),
        "consumer": Param("consumer", Text, "A consumer's id."),
    },
    strict=False,
    problem=answers.CfRefusal,
    problem_media=JSON,
    coded=False,
)
