"""Bodies of the Cloudflare dialect are read by hand: each field that is described is one that is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import inspect

from edgequeues.http import cloudflare_codec as codec
from edgequeues.http.cloudflare_answers import answers
from edgequeues.http.cloudflare_codec import Wire
from edgequeues.http.cloudflare_errors import Refused
from edgequeues.openapi import cloudflare_bodies as bodies

Read = Callable[[bytes], object]
WIRE = Wire()
LEASE = {"lease_id": "l"}

# How a body is read, and one that is right in which every list has an element.
READ: dict[type, tuple[Read, dict[str, Any]]] = {
    bodies.CfNewQueue: (codec.new_queue, {"queue_name": "orders", "settings": {}}),
    bodies.CfQueueChange: (lambda body: codec.queue_changes(body, replacing=True), {"settings": {}}),
    bodies.CfNewConsumer: (
        lambda body: codec.consumer(body, WIRE),
        {"type": "worker", "script": "w", "settings": {}},
    ),
    bodies.CfMessage: (lambda body: codec.message(body, WIRE), {"body": {}}),
    bodies.CfBatch: (lambda body: codec.messages(body, WIRE), {"messages": [{"body": {}}]}),
    bodies.CfPull: (codec.pull, {}),
    bodies.CfAck: (
        answers,
        {
            "acks": [LEASE],
            "retries": [{"lease_id": "m"}],
            "permanent": [{"lease_id": "n"}],
            "releases": [{"lease_id": "o"}],
            "emit": [LEASE | {"queue": "q", "key": "k", "body": {}}],
        },
    ),
    bodies.CfExtend: (codec.extension, {"extend": [LEASE]}),
    bodies.CfDrop: (lambda body: codec.references(body, "refs", "ref"), {"refs": [{"ref": "r"}]}),
    bodies.CfDropPreviewed: (lambda body: codec.references(body, "acks", "lease_id"), {"acks": [LEASE]}),
}
ANY = {"body"}  # any JSON is right there, and it must be there


def wrong(right: Any, kind: inspect.Type) -> Iterator[tuple[str, Any]]:
    """The body with one field after the other of a type that it cannot have, those of objects in it too."""
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        name = field.encode_name
        if name in ANY:
            yield name, {key: value for key, value in right.items() if key != name}
            continue
        yield name, right | {name: 1e9 + 0.5}  # no text, no flag, no array, too large, and not whole
        types = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        for one in types:
            if isinstance(one, inspect.StructType):
                for below, made in wrong(right[name], one):
                    yield f"{name}.{below}", right | {name: made}
            elif isinstance(one, inspect.ListType):
                for below, made in wrong(right[name][0], one.item_type):
                    yield f"{name}[0].{below}", right | {name: [made]}


CASES = [
    pytest.param(read, body, id=f"{kind.__name__}.{name}")
    for kind, (read, right) in READ.items()
    for name, body in wrong(right, inspect.type_info(kind))
]


@pytest.mark.parametrize(("read", "right"), READ.values(), ids=[kind.__name__ for kind in READ])
def test_what_is_right_is_taken(read: Read, right: dict[str, Any]) -> None:
    read(json.dumps(right).encode())


@pytest.mark.parametrize(("read", "body"), CASES)
def test_a_field_that_is_described_is_read(read: Read, body: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        read(json.dumps(body).encode())
