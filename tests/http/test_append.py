"""POST of a list of entries: one turn, all or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shards.testing import TrioClock

from .asgi import JSON, NDJSON, Client, Pairs

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"


async def test_an_append_makes_the_queue_and_answers_in_order(client: Client) -> None:
    reply = await client.append(Q, {"id": "a"}, {"id": "b"})
    assert list(reply.json()) == ["results", "cursor"]
    first, second = reply.json()["results"]
    assert list(first) == ["id", "position", "version", "outcome"]
    assert (first["id"], first["position"], first["outcome"]) == ("a", 1, "new")
    assert (second["id"], second["position"]) == ("b", 2)
    assert reply.json()["cursor"] == (await client.get(LOG)).json()["nextCursor"]


async def test_data_comes_back_byte_for_byte(client: Client) -> None:
    data = '{ "b":1.50e+2,\t"a":"\\u00e9\\ud800", "n":12345678901234567890123, "é":[ ] }'
    body = f'{{"entries":[{{"data":{data},"id":"x"}}]}}'.encode()
    assert (await client.ask("POST", LOG, body)).status == 200
    assert f'"data":{data}'.encode() in (await client.get(LOG)).body
    assert f'"data":{data}'.encode() in (await client.get(f"{LOG}:x")).body


async def test_an_entry_read_has_what_was_set_and_nothing_else(client: Client, clock: TrioClock) -> None:
    full = {"data": 1, "id": "a", "type": "T", "ttl_ms": 5, "key": "k", "headers": {"h": "1"}}
    reply = await client.post(LOG, {"entries": [full, {"data": 2, "id": "b"}]})
    versions = [one["version"] for one in reply.json()["results"]]
    now = clock.now_ms()
    common = {"created": now, "updated": now}
    assert (await client.get(LOG)).json()["entries"] == [
        {"id": "a", "position": 1, "version": versions[0], "type": "T", **common, "data": 1}
        | {"expires": now + 5, "key": "k", "headers": {"h": "1"}},
        {"id": "b", "position": 2, "version": versions[1], "type": None, **common, "data": 2},
    ]


async def test_outcomes_say_what_became_of_each_object(client: Client) -> None:
    first = (await client.append(Q, {"id": "a", "n": 1})).json()["results"][0]
    assert (await client.append(Q, {"id": "a", "n": 1})).json()["results"] == [first | {"outcome": "same"}]
    moved = (await client.append(Q, {"id": "a", "n": 2})).json()["results"][0]
    assert (moved["outcome"], moved["position"]) == ("moved", 2)
    assert moved["version"] > first["version"]
    entry = {"data": {"id": "a", "n": 3}, "if_version": first["version"]}
    stale = (await client.post(LOG, {"entries": [entry]})).json()["results"]
    assert stale == [moved | {"outcome": "stale"}]


async def test_the_actor_names_the_writer_in_versions(client: Client) -> None:
    reply = await client.post(f"{LOG}?actor=me-1", {"entries": [{"data": 1}]})
    assert reply.json()["results"][0]["version"].endswith("@me-1")


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"", "invalid_json", ""),
        (b"{", "invalid_json", ""),
        (b'{"entries":[{"data":\xff}]}', "invalid_json", ""),
        (b'{"entries":[{"data":NaN}]}', "invalid_json", ""),
        (b'{"entries":[{"data":1},{"data":1e400}]}', "invalid_json", "entries[1]"),
        (b'{"entries":[{"data":1,"data":2}]}', "invalid_json", "entries[0]"),
        (b'{"entries":[{"data":' + b"[" * 65 + b"]" * 65 + b"}]}", "invalid_json", "64"),
        (b'{"entries":[{"data":' + b"[" * 100_000 + b"}]}", "invalid_json", ""),
        (b"[]", "invalid_request", "object"),
        (b"{}", "invalid_request", "entries"),
        (b'{"entries":[]}', "invalid_request", "entries"),
        (b'{"entries":[],"more":1}', "invalid_request", "more"),
        (b'{"entries":[{"data":1},{}]}', "invalid_request", "entries[1].data"),
        (b'{"entries":[{"data":1,"tll_ms":1}]}', "invalid_request", "tll_ms"),
        (b'{"entries":[{"data":1,"ttl_ms":0}]}', "invalid_request", "ttl_ms"),
        (b'{"entries":[{"data":1,"id":"a b"}]}', "invalid_id", "entries[0]"),
        (b'{"entries":[{"data":1,"id":"a"},{"data":2,"id":"a"}]}', "duplicate_id", "'a'"),
        (b'{"entries":[{"data":1,"if_version":"1"}]}', "invalid_request", "version"),
        (b'{"entries":[{"data":1,"if_version":"ffffffffffffffff@a"}]}', "version_ahead", "version"),
    ],
)
async def test_a_bad_body_is_refused_whole(client: Client, body: bytes, code: str, said: str) -> None:
    reply = await client.ask("POST", LOG, body)
    assert (reply.status, reply.code) == (400, code)
    assert said in reply.json()["detail"]
    assert (await client.get(LOG)).json()["entries"] == []


async def test_a_bad_body_makes_no_space(client: Client) -> None:
    await client.ask("POST", LOG, b"{")
    assert (await client.get("/v1/spaces")).json()["spaces"] == []


async def test_too_much_at_once_is_413(client: Client) -> None:
    many = {"entries": [{"data": 1}] * 1_001}
    assert (await client.post(LOG, many)).code == "too_large"
    large = json.dumps({"entries": [{"data": "x" * (4 * 1024 * 1024)}]}).encode()
    assert (await client.ask("POST", LOG, large)).code == "too_large"
    reply = await client.ask("POST", LOG, b" " * (16 * 1024 * 1024 + 1))
    assert (reply.status, reply.code) == (413, "too_large")


async def test_an_entry_of_the_largest_size_is_taken(client: Client) -> None:
    data = "x" * (4 * 1024 * 1024 - 2)
    assert (await client.append(Q, data)).status == 200
    assert (await client.get(LOG)).json()["entries"][0]["data"] == data


@pytest.mark.parametrize(
    "headers",
    [
        [(b"content-type", b"text/plain")],
        [(b"content-type", b"application/x-www-form-urlencoded")],
        [(b"content-type", b"")],
        [JSON, (b"content-encoding", b"gzip")],
        [NDJSON, (b"content-encoding", b"gzip")],
    ],
)
async def test_other_media_are_415(client: Client, headers: Pairs) -> None:
    reply = await client.ask("POST", LOG, b'{"entries":[{"data":1}]}', headers=headers)
    assert (reply.status, reply.code) == (415, "unsupported_media_type")


async def test_json_may_be_said_in_other_words_or_not_at_all(client: Client) -> None:
    body = b'{"entries":[{"data":1}]}'
    said = [(b"content-type", b"Application/JSON; charset=utf-8")]
    assert (await client.ask("POST", LOG, body, headers=said)).status == 200
    async with client.open("POST", LOG) as exchange:
        exchange.end(body)
        assert await exchange.begun() == 200


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        (f"{LOG}?actr=a", "invalid_request", "actr"),
        (f"{LOG}?actor=", "invalid_request", "actor"),
        (f"{LOG}?actor=A", "invalid_id", "actor"),
        (f"{LOG}?actor=a&actor=b", "invalid_request", "actor"),
        (f"{LOG}:object", "invalid_dxn", "names an object"),
        ("/v1/dxn:queue:data:log", "invalid_dxn", "space"),
        ("/v1/dxn:other:demo:log", "invalid_dxn", "begins"),
        ("/v1/dxn:queue:demo:a%20b", "invalid_dxn", "queue"),
    ],
)
async def test_a_bad_address_or_parameter_is_named(client: Client, target: str, code: str, said: str) -> None:
    for headers in ([JSON], [NDJSON]):
        reply = await client.ask("POST", target, b'{"entries":[{"data":1}]}', headers=headers)
        assert (reply.status, reply.code) == (400, code)
        assert said in reply.json()["detail"]


@pytest.mark.parametrize(
    "dxn",
    [
        Q,
        "dxn:queue:data:demo:log",
        "dxn:edge:queue:demo:log",
        "dxn:edge:queue:data:demo:log",
        "echo:%2F%2Fdemo%2Flog",
    ],
)
async def test_every_form_of_an_address_reaches_the_same_queue(client: Client, dxn: str) -> None:
    await client.append(Q, {"id": "a"})
    assert [one["id"] for one in (await client.get(f"/v1/{dxn}")).json()["entries"]] == ["a"]


async def test_trace_queues_are_a_set_of_their_own(client: Client) -> None:
    trace = "dxn:queue:trace:demo:log"
    await client.append(trace, {"id": "t"})
    assert (await client.get(LOG)).json()["entries"] == []
    assert (await client.get(f"/v1/{trace}/stats")).json()["dxn"] == trace


async def test_an_immutable_queue_answers_409_to_other_content(client: Client) -> None:
    await client.put(f"{LOG}/config", {"mutable": False})
    await client.append(Q, {"id": "a", "n": 1})
    entries: list[Any] = [{"data": {"id": "b"}}, {"data": {"id": "a", "n": 2}}]
    reply = await client.post(LOG, {"entries": entries})
    assert (reply.status, reply.code) == (409, "exists")
    assert [one["id"] for one in (await client.get(LOG)).json()["entries"]] == ["a"]
