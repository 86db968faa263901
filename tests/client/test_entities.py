from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest
import trio

from edgequeues.client import Client, Refused
from edgequeues.spec import ir
from edgequeues.spec.load import load

from .script import scripted
from .working import serving

TEXT = b"""
app shop {
  queue orders {
    message_type { order: string  n: int }
    map_to: command Order.UpsertOrder { entity_id: order  n: n }
  }
}
"""


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a server that keeps an order for each id that was pushed: a to d, and d once more."""
    found = load(TEXT, "shop.spec")
    assert found.spec is not None, found.render()
    async with serving(tmp_path) as (client, _):
        await client.apply_spec("demo", "shop", ir.encode(found.spec))
        messages = [{"order": name, "n": n} for n, name in enumerate("abcdd")]
        await client.push("dxn:queue:demo:orders", messages)
        await trio.sleep(0.1)
        yield client


async def test_entities_come_page_by_page_or_one_after_the_other(client: Client) -> None:
    page = await client.entities("demo", "Order", limit=3)
    assert [(one.id, one.attributes, one.version) for one in page.entities] == [
        ("a", {"n": 0}, 1),
        ("b", {"n": 1}, 1),
        ("c", {"n": 2}, 1),
    ]
    assert page.resume == "c"
    page = await client.entities("demo", "Order", after=page.resume)
    assert ([one.id for one in page.entities], page.resume) == (["d"], None)
    all_ids = [one.id async for one in client.iterate_entities("demo", "Order", page_size=1)]
    assert all_ids == ["a", "b", "c", "d"]
    assert [one.id async for one in client.iterate_entities("demo", "Order", after="b")] == ["c", "d"]


async def test_one_entity_and_its_history(client: Client) -> None:
    one = await client.entity("demo", "Order", "d")
    assert (one.raw, one.version, one.state) == (b'{"n":4}', 2, None)
    first = await client.entity_history("demo", "Order", "d", limit=1)
    rest = await client.entity_history("demo", "Order", "d", after=first.resume)
    told = [(did.version, did.command, did.queue) for did in (*first.commands, *rest.commands)]
    assert told == [(1, "UpsertOrder", "orders"), (2, "UpsertOrder", "orders")]
    assert rest.resume is None


async def test_an_entity_that_is_not_there_is_refused_by_its_code(client: Client) -> None:
    with pytest.raises(Refused) as refused:
        await client.entity("demo", "Order", "x")
    assert (refused.value.code, refused.value.status) == ("entity_not_found", 404)


async def test_names_are_parts_of_the_path_whatever_they_hold() -> None:
    entity = {"id": "a/b", "state": None, "version": 1, "created": 1, "updated": 1}
    client, script = scripted(httpx.Response(200, content=_json(entity, b'{"t":"\\ud800"}')))
    found = await client.entity("demo", "Order", "a/b?c")
    assert script.requests[0].url.raw_path == b"/v1/spaces/demo/entities/Order/a%2Fb%3Fc"
    assert (found.raw, found.attributes) == (b'{"t":"\\ud800"}', {"t": "\ud800"})
    with pytest.raises(ValueError, match="at least one character"):
        await client.entity("demo", "Order", "")


def _json(fields: Mapping[str, object], attributes: bytes) -> bytes:
    return json.dumps(fields).encode()[:-1] + b',"attributes":' + attributes + b"}"
