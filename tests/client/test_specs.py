from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from edgequeues.client import Applied, Client, QueueChange, Refused
from edgequeues.spec import ir

from .script import scripted
from .working import Way, serving

NONE = ir.Verify(none=True)
SHOP = ir.Spec(
    version=0,
    app="shop",
    queues={"orders": ir.QueueSpec(ordering="fifo"), "mails": ir.QueueSpec()},
    webhooks={"paid": ir.WebhookSpec(verify=NONE, queue="orders")},
)
ORDERS = "dxn:queue:demo:orders"


class Served:
    def __init__(self, client: Client, way: Way) -> None:
        self.client = client
        self.way = way

    async def apply(self, spec: ir.Spec = SHOP, *, dry_run: bool = False) -> dict[str, str]:
        done = await self.client.apply_spec(
            "demo", spec.app, ir.encode(spec), origin="shop & more.spec", dry_run=dry_run
        )
        assert done.app == spec.app
        return {one.queue: one.change for one in done.queues}

    async def call(self, body: bytes) -> httpx.Response:
        """Call the webhook, as others do."""
        async with httpx.AsyncClient(transport=self.way, base_url="http://127.0.0.1:8700") as sender:
            return await sender.post("/hook/paid", content=body)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as (client, way):
        yield Served(client, way)


async def test_a_spec_that_was_applied_holds_and_is_given_back(served: Served) -> None:
    assert await served.apply() == {"orders": "made", "mails": "made"}
    assert ir.decode(await served.client.spec("demo", "shop")) == SHOP
    [listed] = await served.client.specs("demo")
    assert (listed.app, listed.origin, listed.blocked) == ("shop", "shop & more.spec", None)
    assert (listed.queues, listed.webhooks, listed.applied > 0) == (["orders", "mails"], ["paid"], True)
    assert await served.client.specs("other") == []


async def test_a_change_names_the_queues_and_the_fields(served: Served) -> None:
    await served.apply()
    later = ir.QueueSpec(ordering="fifo", delay_ms=5, delivery=ir.Delivery(batch=3))
    changed = ir.Spec(version=0, app="shop", queues={"orders": later})
    done = await served.client.apply_spec("demo", "shop", ir.encode(changed))
    assert done == Applied(
        "shop",
        [
            QueueChange("orders", "changed", ["delay_ms", "delivery.batch"]),
            QueueChange("mails", "removed", []),
        ],
    )


async def test_a_dry_run_changes_nothing(served: Served) -> None:
    assert await served.apply(dry_run=True) == {"orders": "made", "mails": "made"}
    assert await served.client.specs("demo") == []
    await served.apply()
    done = await served.client.remove_spec("demo", "shop", dry_run=True)
    assert {one.change for one in done.queues} == {"removed"}
    assert len(await served.client.specs("demo")) == 1


async def test_a_spec_that_was_removed_holds_no_more(served: Served) -> None:
    await served.apply()
    done = await served.client.remove_spec("demo", "shop")
    assert {one.queue: one.change for one in done.queues} == {"orders": "removed", "mails": "removed"}
    assert await served.client.hooks() == []
    with pytest.raises(Refused, match="spec_not_found"):
        await served.client.spec("demo", "shop")
    with pytest.raises(Refused, match="spec_not_found"):
        await served.client.remove_spec("demo", "shop")


async def test_what_cannot_hold_is_refused_with_its_code(served: Served) -> None:
    await served.apply()
    nowhere = {"paid": ir.WebhookSpec(verify=NONE, queue="nowhere")}
    with pytest.raises(Refused, match="invalid_spec"):
        await served.apply(ir.Spec(version=0, app="shop", webhooks=nowhere))
    with pytest.raises(Refused, match="hook_taken"):
        await served.apply(ir.Spec(version=0, app="other", queues=SHOP.queues, webhooks=SHOP.webhooks))
    await served.client.push("dxn:queue:demo:mails", [1])
    with pytest.raises(Refused, match="spec_conflict"):
        await served.apply(ir.Spec(version=0, app="shop", queues={"orders": ir.QueueSpec(ordering="fifo")}))


async def test_webhooks_are_listed_with_what_became_of_their_calls(served: Served) -> None:
    await served.apply()
    [hook] = await served.client.hooks()
    assert (hook.name, hook.space, hook.app, hook.queue) == ("paid", "demo", "shop", "orders")
    assert (hook.state, hook.why, hook.counts) == ("open", None, {})
    for body in (b'{"n":1}', b'{"n":1}', b'{"n":2}'):
        await served.call(body)
    [hook] = await served.client.hooks()
    assert hook.counts == {"queued": 2, "duplicate": 1}


async def test_what_came_of_a_message_is_told_to_who_sends_it_again(served: Served) -> None:
    await served.apply()
    for body in (b'{"n":1}', b'{"n":2}'):
        assert (await served.call(body)).status_code == 202
    pulled = await served.client.pull(ORDERS, batch=1)
    pulled_next = await served.client.pull(ORDERS, batch=1)
    [first] = [one.lease for one in pulled.messages]
    assert pulled_next.messages == []  # fifo: the first is held
    [answer] = await served.client.ack(ORDERS, [first], results={first: {"ticket": [7, None]}})
    assert answer.outcome == "done"
    again = (await served.call(b'{"n":1}')).json()
    assert (again["state"], again["result"]) == ("processed", {"ticket": [7, None]})
    [second] = [one.lease for one in (await served.client.pull(ORDERS, batch=1)).messages]
    await served.client.ack(ORDERS, [second])
    again = (await served.call(b'{"n":2}')).json()
    assert (again["state"], "result" in again) == ("finished", False)


async def test_only_the_results_of_the_leases_of_a_call_go_with_it() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        leases = json.loads(request.content)["leases"]
        return httpx.Response(200, json={"results": [{"lease": one, "outcome": "done"} for one in leases]})

    client, script = scripted(answer, answer)
    leases = [f"L{n}" for n in range(1_500)]
    await client.ack(ORDERS, leases, results={"L1": 1, "L1499": None})
    sent = [json.loads(request.content).get("results") for request in script.requests]
    assert sent == [{"L1": 1}, {"L1499": None}]


async def test_applying_is_repeated_when_the_answer_is_lost_and_removing_is_not() -> None:
    lost = httpx.ReadError("cut")
    client, script = scripted(lost, httpx.Response(200, json={"app": "shop", "queues": []}))
    assert await client.apply_spec("a b", "shop", b"{}", origin="x", dry_run=True) == Applied("shop", [])
    assert [request.url.raw_path for request in script.requests] == [
        b"/v1/spaces/a%20b/specs/shop?origin=x&dry_run=true"
    ] * 2
    client, script = scripted(lost)
    with pytest.raises(Exception, match="cut"):
        await client.remove_spec("demo", "shop")
    assert len(script.requests) == 1
