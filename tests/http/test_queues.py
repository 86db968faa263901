"""Settings, counts, lists of queues and spaces, health."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.app import open_app
from edgequeues.settings import Settings
from shards.testing import InlineDisk, TrioClock

from .asgi import Client
from .fronted import FrontName, behind

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
ULID = "01HF7YAT00231RDEY43S0MRD1W"
DEFAULTS = {
    "name": "log",
    "kind": "log",
    "max_age_ms": None,
    "max_entries": None,
    "mutable": True,
    "on_ack": "keep",
    "retain_acked_ms": 0,
    "delay_ms": 0,
    "depth_max": None,
    "paused": False,
    "sessions": False,
}


# -- settings --------------------------------------------------------------------------------------------


async def test_put_makes_the_queue_and_replaces_all_settings(client: Client) -> None:
    reply = await client.put(f"{LOG}/config", {"max_entries": 5})
    assert (reply.status, reply.json()) == (200, DEFAULTS | {"max_entries": 5})
    reply = await client.put(f"{LOG}/config", {"mutable": False})
    assert reply.json() == DEFAULTS | {"mutable": False}
    assert (await client.get(f"{LOG}/config")).json() == DEFAULTS | {"mutable": False}


async def test_patch_changes_only_what_it_names_and_null_clears(client: Client) -> None:
    await client.put(f"{LOG}/config", {"max_entries": 5, "mutable": False})
    assert (await client.patch(f"{LOG}/config", {"max_age_ms": 9})).json() == DEFAULTS | {
        "max_entries": 5,
        "mutable": False,
        "max_age_ms": 9,
    }
    assert (await client.patch(f"{LOG}/config", {"max_entries": None})).json()["max_entries"] is None
    assert (await client.patch(f"{LOG}/config", {})).json()["max_age_ms"] == 9


async def test_an_appended_queue_has_the_defaults(client: Client) -> None:
    await client.append(Q, 1)
    assert (await client.get(f"{LOG}/config")).json() == DEFAULTS


async def test_settings_take_effect(client: Client) -> None:
    await client.put(f"{LOG}/config", {"max_entries": 2, "max_age_ms": 1_000})
    await client.append(Q, *range(5))
    assert [one["data"] for one in (await client.get(LOG)).json()["entries"]] == [3, 4]
    await trio.sleep(2)
    assert (await client.get(LOG)).json()["entries"] == []


async def test_a_queue_is_renamed_and_then_answers_to_its_id_and_new_name(client: Client) -> None:
    await client.append(Q, 1)
    queue_id = (await client.get(f"{LOG}/stats")).json()["id"]
    assert (await client.patch(f"{LOG}/config", {"name": "diary"})).json()["name"] == "diary"
    assert (await client.get(f"{LOG}/config")).status == 404
    for queue in ("diary", queue_id):
        stats = (await client.get(f"/v1/dxn:queue:demo:{queue}/stats")).json()
        assert (stats["id"], stats["dxn"]) == (queue_id, "dxn:queue:demo:diary")


async def test_a_queue_made_by_its_id_has_no_name(client: Client) -> None:
    reply = await client.put(f"/v1/dxn:queue:demo:{ULID}/config", {})
    assert reply.json()["name"] is None
    stats = (await client.get(f"/v1/dxn:queue:demo:{ULID}/stats")).json()
    assert (stats["id"], stats["dxn"]) == (ULID, f"dxn:queue:demo:{ULID}")


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"", "invalid_json", ""),
        (b"{", "invalid_json", ""),
        (b'{"name":"\xff"}', "invalid_json", ""),
        (b'{"x":' + b"[" * 30_000 + b"}", "invalid_json", ""),
        (b'{"mutable":true,"mutable":true}', "invalid_json", "mutable"),
        (b"[]", "invalid_request", "object"),
        (b'{"max_ages":1}', "invalid_request", "max_ages"),
        (b'{"max_age_ms":0}', "invalid_request", "max_age_ms"),
        (b'{"max_entries":"5"}', "invalid_request", "max_entries"),
        (b'{"mutable":null}', "invalid_request", "mutable"),
        (b'{"kind":"heap"}', "invalid_request", "kind"),
        (b'{"name":"a b"}', "invalid_request", "name"),
        (b'{"name":"' + ULID.encode() + b'"}', "invalid_request", "name"),
    ],
)
async def test_bad_settings_are_refused_by_name(client: Client, body: bytes, code: str, said: str) -> None:
    await client.append(Q, 1)
    for method in ("PUT", "PATCH"):
        reply = await client.ask(method, f"{LOG}/config", body)
        assert (reply.status, reply.code) == (400, code)
        assert said in reply.json()["detail"]
    assert (await client.get(f"{LOG}/config")).json() == DEFAULTS


async def test_a_taken_name_and_a_fixed_kind_are_409(client: Client) -> None:
    await client.append(Q, 1)
    await client.append("dxn:queue:demo:other", 1)
    reply = await client.patch(f"{LOG}/config", {"name": "Other"})
    assert (reply.status, reply.code) == (409, "name_taken")
    reply = await client.patch(f"{LOG}/config", {"kind": "work"})
    assert (reply.status, reply.code) == (409, "config_conflict")


async def test_settings_are_json_of_bounded_size(client: Client) -> None:
    reply = await client.ask("PUT", f"{LOG}/config", b"{}", headers=[(b"content-type", b"text/plain")])
    assert reply.code == "unsupported_media_type"
    reply = await client.ask("PATCH", f"{LOG}/config", b" " * 65_537)
    assert reply.code == "too_large"


@pytest.mark.parametrize("what", ["config", "stats"])
@pytest.mark.parametrize("address", ["dxn:queue:demo:unknown", "dxn:queue:nowhere:log"])
async def test_an_unknown_queue_is_404(client: Client, address: str, what: str) -> None:
    await client.append(Q, 1)
    reply = await client.get(f"/v1/{address}/{what}")
    assert (reply.status, reply.code) == (404, "queue_not_found")
    assert (await client.patch(f"/v1/{address}/config", {})).code == "queue_not_found"
    assert len((await client.get("/v1/spaces")).json()["spaces"]) == 1


@pytest.mark.parametrize("what", ["config", "stats"])
async def test_an_object_has_neither_settings_nor_counts_and_they_take_no_parameters(
    client: Client, what: str
) -> None:
    await client.append(Q, {"id": "a"})
    assert (await client.get(f"{LOG}:a/{what}")).code == "invalid_dxn"
    assert (await client.get(f"{LOG}/{what}?x=1")).code == "invalid_request"
    assert (await client.post(f"{LOG}/{what}", {})).code == "method_not_allowed"


# -- counts ----------------------------------------------------------------------------------------------


async def test_stats_count_what_is_there(client: Client, clock: TrioClock) -> None:
    made = clock.now_ms()
    await client.append(Q, "é", 1)
    await trio.sleep(5)
    reply = await client.post(LOG, {"entries": [{"data": 1, "ttl_ms": 1_000}]})
    stats = (await client.get(f"{LOG}/stats")).json()
    assert stats == {
        "id": stats["id"],
        "dxn": Q,
        "config": DEFAULTS,
        "created": made,
        "entries": 3,
        "bytes": 10,  # escaped, as the client sent it
        "oldest": made,
        "cursor": reply.json()["cursor"],
    }
    await trio.sleep(2)
    assert (await client.get(f"{LOG}/stats")).json()["entries"] == 2


# -- lists -----------------------------------------------------------------------------------------------


async def listed(client: Client, target: str, what: str) -> list[Any]:
    """All pages of a list."""
    found: list[Any] = []
    after = ""
    while True:
        page = (await client.get(target + after)).json()
        assert list(page) == [what, "resume"]
        found += page[what]
        if page["resume"] is None:
            return found
        after = f"&after={page['resume']}"


async def test_spaces_are_listed_page_by_page(client: Client) -> None:
    expected = []
    for n in range(5):
        await client.append(f"dxn:queue:space{n}:q", 1)
        expected.append({"id": f"space{n}", "tag": "data"})
    await client.append("dxn:queue:trace:space2:q", 1)
    expected.insert(3, {"id": "space2", "tag": "trace"})
    for limit in (1, 2, 5, 6, 7):
        assert await listed(client, f"/v1/spaces?limit={limit}", "spaces") == expected
    assert (await client.get("/v1/spaces")).json() == {"spaces": expected, "resume": None}


async def test_queues_are_listed_page_by_page(client: Client) -> None:
    for n in range(5):
        await client.append(f"dxn:queue:demo:q{n}", n)
    all_stats = [(await client.get(f"/v1/dxn:queue:demo:q{n}/stats")).json() for n in range(5)]
    all_stats.sort(key=lambda stats: stats["id"])
    for limit in (1, 2, 5, 6):
        assert await listed(client, f"/v1/spaces/demo/queues?limit={limit}", "queues") == all_stats


async def test_trace_queues_are_listed_by_their_tag(client: Client) -> None:
    await client.append("dxn:queue:trace:demo:t", 1)
    await client.append("dxn:queue:demo:d", 1)
    for tag, name in (("data", "d"), ("trace", "t")):
        [stats] = (await client.get(f"/v1/spaces/demo/queues?tag={tag}")).json()["queues"]
        assert stats["config"]["name"] == name
    assert (await client.get("/v1/spaces/nowhere/queues")).json() == {"queues": [], "resume": None}


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("/v1/spaces?limit=0", "invalid_request", "limit"),
        ("/v1/spaces?limit=1001", "invalid_request", "limit"),
        ("/v1/spaces?tag=data", "invalid_request", "tag"),
        ("/v1/spaces/demo/queues?limit=x", "invalid_request", "limit"),
        ("/v1/spaces/demo/queues?tag=other", "invalid_request", "tag"),
        ("/v1/spaces/demo/queues?name=x", "invalid_request", "name"),
        ("/v1/spaces/data/queues", "invalid_id", "space"),
        ("/v1/spaces/a%20b/queues", "invalid_id", "space"),
    ],
)
async def test_a_bad_listing_is_refused_by_name(client: Client, target: str, code: str, said: str) -> None:
    reply = await client.get(target)
    assert (reply.status, reply.code) == (400, code)
    assert said in reply.json()["detail"]


async def test_more_spaces_than_the_server_holds_are_507(
    tmp_path: Path, clock: TrioClock, front: FrontName
) -> None:
    folder = tmp_path / "small"
    chance = random.Random(1)
    few = Settings(spaces_max=2)
    async with open_app(folder, few, clock=clock, disk=InlineDisk(), randomness=chance) as server:
        client = Client(behind(front, server))
        for n in range(2):
            await client.append(f"dxn:queue:s{n}:q", 1)
        for reply in (
            await client.post("/v1/dxn:queue:s2:q", {"entries": [{"data": 1}]}),
            await client.put("/v1/dxn:queue:s2:q/config", {}),
        ):
            assert (reply.status, reply.code) == (507, "too_many_spaces")
        await client.append("dxn:queue:s1:q", 2)


# -- health and pages ------------------------------------------------------------------------------------


async def test_a_healthy_server_says_so(client: Client) -> None:
    for path in ("/healthz", "/readyz"):
        reply = await client.get(path)
        assert (reply.status, reply.json()) == (200, {"status": "ok"})
        assert (await client.ask("POST", path, b"")).status == 405


async def test_the_front_page_says_what_this_is_and_links_what_it_can(client: Client) -> None:
    reply = await client.get("/")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for path in ("/v1/spaces", "/healthz", "/readyz"):
        assert f'href="{path}"'.encode() in reply.body
        assert (await client.get(path)).status == 200


async def test_other_paths_are_problems_too(client: Client) -> None:
    for path in ("/nope", "/v1", "/v1/nocolon", f"{LOG}/nope", "/v1/spaces/", "/favicon.ico"):
        reply = await client.get(path)
        assert (reply.status, reply.code) == (404, "not_found")
    reply = await client.ask("POST", "/", b"{}")
    assert (reply.status, reply.code) == (405, "method_not_allowed")
    assert "GET" in reply.headers["allow"]


async def test_a_server_that_has_closed_answers_503(
    tmp_path: Path, clock: TrioClock, front: FrontName
) -> None:
    async with open_app(tmp_path / "data", clock=clock, disk=InlineDisk()) as server:
        pass
    reply = await Client(behind(front, server)).post(LOG, {"entries": [{"data": 1}]})
    assert (reply.status, reply.code) == (503, "shutting_down")
    assert reply.json()["retryable"]
    assert "retry-after" in reply.headers
