"""The document at /openapi.json: complete, valid, and no other than what the routes do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
import schemathesis

from edgequeues.http.server import Server
from edgequeues.openapi.chapters import CHAPTERS
from edgequeues.openapi.document import Undescribed, document
from edgequeues.openapi.op import JSON, Op

from .asgi import Client, Pairs
from .fronted import FrontName

PATH = {
    "dxn": "dxn:queue:demo:jobs",
    "space": "demo",
    "consumer": "default",
    "app": "shop",
    "schedule": "nightly",
    "entity_type": "order",
    "entity_id": "o-1",
    "name": "jobs",
    "id": "one",
    "bucket": "some-bucket",
    "key": "one",
}
PROBES = {"GET /healthz", "GET /readyz"}  # whoever probes may add what defeats a cache
UNKNOWN = re.compile(r"unknown parameter 'no-such': there are (none here|[\w, -]+?)\. ")


@pytest.fixture
def front() -> FrontName:
    """What a document says does not depend on how it is sent."""
    return "app"


async def described(client: Client) -> Any:
    reply = await client.ask("GET", "/openapi.json")
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    return reply.json()


def operations(doc: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in doc["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(found := value.get("$ref"), str):
            yield found
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


STRICT = {name: op for one in CHAPTERS.values() if one.strict for name, op in one.operations.items()}


async def test_every_route_is_described_and_nothing_else_is(server: Server, client: Client) -> None:
    routes = {
        (route.method, route.template.replace("...}", "}"))
        for dialect in server.dialects
        for route in dialect.routes
    }
    told = {(method, path) for method, path, _ in operations(await described(client))}
    assert told == routes
    for dialect in server.dialects:
        of_routes = {f"{route.method} {route.template}" for route in dialect.routes}
        assert CHAPTERS[dialect.name].operations.keys() == of_routes


async def test_a_route_of_which_nothing_is_said_is_an_error(server: Server) -> None:
    native = CHAPTERS["native"]
    less = {name: op for name, op in native.operations.items() if name != "GET /v1/{dxn}"}
    dialects = [one for one in server.dialects if one.name == "native"]
    with pytest.raises(Undescribed, match=re.escape("GET /v1/{dxn}")):
        document(dialects, {"native": native._replace(operations=less)})
    with pytest.raises(Undescribed, match="dialects: native"):
        document(dialects, {})


async def test_it_is_valid(client: Client) -> None:
    """As schemathesis judges OpenAPI 3.1; it also follows each reference."""
    doc = await described(client)
    assert doc["openapi"] == "3.1.0"
    schemathesis.openapi.from_dict(doc).validate()
    for one in references(doc):
        at: Any = doc
        for part in one.removeprefix("#/").split("/"):
            at = at[part]


async def test_every_operation_says_what_a_client_needs(client: Client) -> None:
    found = list(operations(await described(client)))
    ids = [operation["operationId"] for _, _, operation in found]
    assert sorted(set(ids)) == sorted(ids)
    for _, path, operation in found:
        assert operation["summary"].endswith("."), operation
        named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path))
        assert operation["responses"]
        if "x-edgequeues-verb" in operation:
            assert {"401", "403"} <= operation["responses"].keys()


async def test_it_is_written_once_and_known_by_its_tag(client: Client) -> None:
    first = await client.ask("GET", "/openapi.json")
    tag = first.headers["etag"]
    again = await client.ask("GET", "/openapi.json", headers=[(b"if-none-match", tag.encode())])
    assert (again.status, again.body) == (304, b"")
    assert (await client.ask("GET", "/openapi.json")).body == first.body


@pytest.mark.parametrize(("name", "op"), list(STRICT.items()), ids=list(STRICT))
async def test_it_names_the_query_parameters_that_the_route_takes(name: str, op: Op, client: Client) -> None:
    method, _, template = name.partition(" ")
    path = re.sub(r"\{(\w+)(\.\.\.)?\}", lambda found: quote(PATH[found[1]]), template)
    media = next(iter(op.body.kinds)) if op.body is not None else JSON
    headers: Pairs = [(b"content-type", media.encode())]
    example = b"" if op.body is None or op.body.example is None else json.dumps(op.body.example).encode()
    query = "no-such=1"
    if path.startswith("/admin/"):
        await client.append("dxn:queue:demo:log", 1)
        query += "&tenant_id=demo"
    reply = await client.ask(method, f"{path}?{query}", example, headers=headers)
    if name in PROBES:
        assert (reply.status, op.query) == (200, ())
        return
    if name == "POST /ingest/sms":  # nothing is looked at before the signature
        assert (reply.status, op.query) == (503, ())
        return
    assert reply.status == 400
    found = UNKNOWN.search(reply.json()["detail"])
    assert found, reply.json()
    taken = set() if found[1] == "none here" else set(found[1].split(", "))
    assert taken == {one.name for one in op.query}
