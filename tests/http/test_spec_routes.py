"""Specs over HTTP: applied, looked at, removed; and what is said of those that cannot hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from edgequeues.app import open_app
from edgequeues.control import Control
from edgequeues.settings import Settings
from edgequeues.spec.files import SpecError
from shards.testing import InlineDisk

from .asgi import Client, Reply
from .fronted import FrontName
from .hooking import PAGERDUTY, SECRETS, Hooked, hooked, written
from .world import World, denied

VERIFY = {"hmac": {"header": "x-hub-signature-256", "secret_envs": ["GH"]}}
SHOP = {
    "version": 0,
    "app": "shop",
    "queues": {"orders": {"message_type": {"payload": {}}}},
    "webhooks": {"gh": {"verify": VERIFY, "queue": "orders"}},
}


class Specs:
    """Specs of the space `demo`."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def put(self, spec: dict[str, Any], query: str = "", app: str = "shop") -> Reply:
        return await self.client.ask("PUT", f"/v1/spaces/demo/specs/{app}{query}", written(spec))

    async def applied(self, spec: dict[str, Any], query: str = "") -> dict[str, str]:
        reply = await self.put(spec, query)
        assert reply.status == 200, reply.body
        return {one["queue"]: one["change"] for one in reply.json()["queues"]}

    async def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await self.client.get("/v1/spaces/demo/specs")).json()["specs"]
        return found


@pytest.fixture
async def specs(tmp_path: Path, front: FrontName) -> AsyncIterator[Specs]:
    async with hooked(tmp_path, PAGERDUTY, front) as found:
        yield Specs(found.client)


async def test_a_spec_that_is_sent_holds_and_is_given_back(specs: Specs) -> None:
    assert await specs.applied(SHOP, "?origin=shop.spec") == {"orders": "made"}
    assert (await specs.client.get("/v1/spaces/demo/specs/shop")).json() == SHOP
    [listed] = await specs.listed()
    assert listed["applied"] > 0
    assert {name: listed[name] for name in ("app", "origin", "queues", "webhooks", "blocked")} == {
        "app": "shop",
        "origin": "shop.spec",
        "queues": ["orders"],
        "webhooks": ["gh"],
        "blocked": None,
    }
    [stats] = (await specs.client.get("/v1/spaces/demo/queues")).json()["queues"]
    assert stats["config"]["name"] == "orders"
    assert await specs.applied(SHOP) == {"orders": "same"}
    assert (await specs.client.ask("POST", "/hook/gh", b"{}")).status == 401


async def test_a_webhook_that_is_declared_anew_goes_on_counting_its_calls(specs: Specs) -> None:
    await specs.applied(SHOP)
    for _ in range(2):
        assert (await specs.client.ask("POST", "/hook/gh", b"{}")).status == 401
        await specs.applied(SHOP)
    [found] = [one for one in (await specs.client.get("/v1/hooks")).json()["hooks"] if one["name"] == "gh"]
    assert found["counts"]["refused"] == 2
    assert [one["status"] for one in found["recent"]] == [401, 401]


async def test_a_dry_run_says_what_would_be(specs: Specs) -> None:
    assert await specs.applied(SHOP, "?dry_run=true") == {"orders": "made"}
    assert await specs.listed() == []
    assert (await specs.client.ask("POST", "/hook/gh", b"{}")).status == 404


async def test_a_spec_is_removed_with_its_webhooks(specs: Specs) -> None:
    await specs.applied(SHOP)
    push = "/v1/dxn:queue:demo:orders/push"
    assert (await specs.client.post(push, {"entries": [{"data": {"payload": 1}}]})).status == 200
    kept = await specs.client.ask("DELETE", "/v1/spaces/demo/specs/shop")
    assert (kept.status, kept.code) == (409, "spec_conflict")
    assert "queue orders: messages in it: 1;" in kept.json()["detail"]
    assert (await specs.client.delete("/v1/dxn:queue:demo:orders?through=" + await tail(specs))).status == 200
    gone = await specs.client.ask("DELETE", "/v1/spaces/demo/specs/shop")
    assert gone.json() == {"app": "shop", "queues": [{"queue": "orders", "change": "removed", "fields": []}]}
    assert (await specs.client.ask("POST", "/hook/gh", b"{}")).status == 404
    assert (await specs.client.get("/v1/spaces/demo/specs/shop")).code == "spec_not_found"
    assert (await specs.client.ask("DELETE", "/v1/spaces/demo/specs/shop")).code == "spec_not_found"


async def tail(specs: Specs) -> str:
    stats = (await specs.client.get("/v1/dxn:queue:demo:orders/stats")).json()
    cursor: str = stats["cursor"]
    return cursor


async def test_a_webhook_that_another_spec_declares_is_refused_naming_where(specs: Specs) -> None:
    taken = SHOP | {"webhooks": {"alert": {"verify": VERIFY, "queue": "orders"}}}
    reply = await specs.put(taken, "?origin=mine.spec")
    assert (reply.status, reply.code) == (409, "hook_taken")
    assert "mine.spec" in reply.json()["detail"]
    assert "ops.spec" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"queues": {"orders": {"delivery": {"dead_letter_queue": "nowhere"}}}}, "nowhere"),
        ({"webhooks": {"gh": {"verify": {"none": True}, "queue": "missing"}}}, "missing"),
        (
            {
                "webhooks": {
                    "gh": {"verify": {"token": {"header": "x-t", "secret_envs": ["PATH"]}}, "queue": "orders"}
                }
            },
            "PATH",
        ),
        ({"queues": {"orders": {"priority": {"lit": {"string": "x"}}}}}, "priority"),
    ],
)
async def test_a_spec_that_will_not_do_is_refused_with_the_reason(
    specs: Specs, change: dict[str, Any], words: str
) -> None:
    reply = await specs.put(SHOP | change)
    assert (reply.status, reply.code) == (400, "invalid_spec")
    assert words in reply.json()["detail"]
    assert await specs.listed() == []


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"version":1,"app":"shop"}', b'{"version":0,"app":"shop","quues":{}}']
)
async def test_what_is_no_spec_is_refused(specs: Specs, body: bytes) -> None:
    reply = await specs.client.ask("PUT", "/v1/spaces/demo/specs/shop", body)
    assert reply.status == 400


async def test_the_path_and_the_spec_name_the_same_app(specs: Specs) -> None:
    assert (await specs.put(SHOP, app="other")).code == "invalid_spec"


async def test_specs_hold_after_a_restart(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY) as first:
        await first.taken(b'{"event":{"id":"1"}}')
    settings = Settings(secrets_env=list(SECRETS))
    async with open_app(
        tmp_path / "data", settings, clock=first.clock, environment=SECRETS, disk=InlineDisk()
    ) as server:
        again = Hooked(Client(server), server, first.clock)
        assert (await again.taken(b'{"event":{"id":"1"}}'))["duplicate"] is True
        assert "duplicate" not in await again.taken(b'{"event":{"id":"2"}}')


async def test_a_spec_of_another_version_is_left_out_and_said_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with hooked(tmp_path, PAGERDUTY):
        pass
    with Control.open(tmp_path / "data") as control:
        [row] = control.specs()
        control.put_spec(row._replace(ir='{"version":0,"app":"ops","of_tomorrow":1}'))
    settings = Settings(secrets_env=list(SECRETS))
    async with open_app(tmp_path / "data", settings, environment=SECRETS, disk=InlineDisk()) as server:
        assert (await Client(server).ask("POST", "/hook/alert", b"{}")).status == 404
    assert any("of app ops in space ops is left out" in one.getMessage() for one in caplog.records)


async def test_a_changed_file_holds_from_the_next_start_with_messages_in_flight(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY) as first:
        await first.taken(b'{"event":{"id":"1"}}')
        [held] = await first.pull()
        clock = first.clock
    wider = PAGERDUTY.replace("received_at: time }", "received_at: time  more: string? }")
    async with hooked(tmp_path, wider, clock=clock) as second:
        assert (await second.ack(held)).json()["results"] == [{"lease": held["lease"], "outcome": "done"}]
        await second.taken(b'{"event":{"id":"2"}}')
    narrower = PAGERDUTY.replace("source_ip: string ", "")
    with pytest.raises(
        SpecError, match=r"ops.spec: queue Incoming: unfinished messages that are not of the new"
    ):
        async with hooked(tmp_path, narrower, clock=clock):
            pass
    async with hooked(tmp_path, wider, clock=clock) as third:
        assert [one["payload"]["event"]["id"] for one in await third.messages()] == ["2"]


async def test_a_spec_needs_the_verb_in_its_space(world: World) -> None:
    token = world.token("spec", spaces=["demo"])
    other = world.token("spec", spaces=["other"])
    client = await world.open()
    empty = written({"version": 0, "app": "shop"})
    assert (
        denied(await client.ask("PUT", "/v1/spaces/demo/specs/shop", empty, headers=[other])) == "forbidden"
    )
    assert (await client.ask("PUT", "/v1/spaces/demo/specs/shop", empty, headers=[token])).status == 200
