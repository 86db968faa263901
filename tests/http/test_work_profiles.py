"""Queues made by profile: what is set where nothing is said, and that all of it can be said."""

from __future__ import annotations

from typing import Any

import pytest

from .asgi import Client
from .work_queue import JOBS, pull, push, said


async def made(client: Client, **settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Make the queue; its settings, and the rules of its consumer."""
    reply = await client.put(f"{JOBS}/config", settings)
    assert reply.status == 200, reply.body
    [one] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    assert one["name"] == "default"
    return reply.json(), one["config"]


async def test_switchboard(client: Client) -> None:
    """Leases of 30 s, batches of 32, ten attempts, the failed at once again, envelopes as bodies."""
    config, rules = await made(client, profile="switchboard")
    assert (config["kind"], config["on_ack"], config["mutable"]) == ("work", "delete", False)
    wanted = {
        "ordering": "unordered",
        "lease_ms": 30_000,
        "batch": 32,
        "attempts_max": 10,
        "dead_letter_body": "envelope",
    }
    assert {name: rules[name] for name in wanted} == wanted
    await push(client, *({"data": n} for n in range(40)))
    assert len(await pull(client)) == 32
    [last] = (await pull(client))[-1:]
    for attempt in range(1, 11):
        assert last["attempts"] == attempt
        await said(client, "retry", {"retries": [{"lease": last["lease"], "error": "no"}]})
        if attempt < 10:
            [last] = await pull(client, batch=1)
    [letter] = (await client.get("/v1/dxn:queue:demo:jobs-dlq/dead")).json()["letters"]
    assert (letter["letter"]["attempts"], letter["letter"]["lastError"]) == (10, "no")


async def test_webhook(client: Client) -> None:
    config, rules = await made(client, profile="webhook")
    assert (config["max_age_ms"], config["depth_max"]) == (86_400_000, 10_000)
    assert (rules["ordering"], rules["batch"], rules["attempts_max"]) == ("fifo", 10, 5)
    assert (rules["backoff"]["initial_ms"], rules["backoff"]["max_ms"]) == (1_000, 60_000)
    await push(client, {"data": 1}, {"data": 2})
    assert [one["data"] for one in await pull(client)] == [1]


async def test_work_is_what_a_push_makes(client: Client) -> None:
    by_profile = await made(client, profile="work")
    await client.delete(f"{JOBS}/config")
    await push(client, {"data": 1})
    config = (await client.get(f"{JOBS}/config")).json()
    [one] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    assert by_profile == (config, one["config"])


async def test_every_field_can_be_said(client: Client) -> None:
    rules = {"lease_ms": 5_000, "batch": 3, "backoff": {"initial_ms": 7, "max_ms": 70}}
    config, got = await made(client, profile="switchboard", depth_max=9, mutable=True, consumer=rules)
    assert (config["depth_max"], config["mutable"], config["on_ack"]) == (9, True, "delete")
    assert (got["lease_ms"], got["batch"], got["backoff"]["initial_ms"]) == (5_000, 3, 7)
    assert (got["attempts_max"], got["dead_letter_body"]) == (10, "envelope")


async def test_a_consumer_is_made_by_profile_too(client: Client) -> None:
    await push(client, {"data": 1})
    body = {"profile": "switchboard", "batch": 5, "start": "beginning"}
    reply = await client.put(f"{JOBS}/consumers/switch", body)
    config = reply.json()["config"]
    assert (reply.status, config["batch"], config["attempts_max"]) == (200, 5, 10)


async def test_rules_can_be_said_when_the_queue_is_made_without_a_profile(client: Client) -> None:
    config, rules = await made(client, consumer={"ordering": "per_key"})
    assert (config["kind"], rules["ordering"], rules["batch"]) == ("work", "per_key", 1)


async def test_a_queue_that_is_there_is_set_anew(client: Client) -> None:
    await made(client, profile="work", depth_max=5, consumer={"batch": 4})
    await push(client, {"data": 1})
    config, rules = await made(client, profile="switchboard")
    assert (config["depth_max"], config["name"], rules["batch"]) == (None, "jobs", 32)
    assert [one["data"] for one in await pull(client)] == [1]


async def test_a_pull_that_does_not_say_takes_what_the_consumer_has(client: Client) -> None:
    await made(client, profile="work", consumer={"batch": 2})
    await push(client, *({"data": n} for n in range(6)))
    assert [len(await pull(client)), len(await pull(client, batch=3)), len(await pull(client))] == [2, 3, 1]


@pytest.mark.parametrize(
    ("body", "status", "code", "about"),
    [
        ('{"profile":"nonsense"}', 400, "invalid_request", "switchboard"),
        ('{"profile":null}', 400, "invalid_request", "profile"),
        ('{"profile":["work"]}', 400, "invalid_request", "profile"),
        ('{"profile":"work","kind":"log"}', 400, "invalid_request", "kind"),
        ('{"profile":"work","lease_ms":5}', 400, "invalid_request", "lease_ms"),
        ('{"profile":"work","depth_max":0}', 400, "invalid_request", "depth_max"),
        ('{"consumer":{"batch":101}}', 400, "invalid_request", "batch"),
        ('{"consumer":{"batch":0}}', 400, "invalid_request", "batch"),
        ('{"consumer":{"dead_letter_body":"both"}}', 400, "invalid_request", "both"),
        ('{"consumer":{"dead_letters":"nowhere"}}', 400, "invalid_request", "nowhere"),
        ('{"consumer":{"dead_letters":"jobs"}}', 400, "invalid_request", "jobs"),
        ('{"consumer":{"depth_max":1}}', 400, "invalid_request", "depth_max"),
        ('{"consumer":[]}', 400, "invalid_request", "array"),
        ('{"profile":"work","profile":"webhook"}', 400, "invalid_json", "profile"),
        ('{"consumer":{"batch":1,"batch":2}}', 400, "invalid_json", "batch"),
    ],
)
async def test_what_cannot_be_is_refused_and_makes_nothing(
    client: Client, body: str, status: int, code: str, about: str
) -> None:
    reply = await client.ask("PUT", f"{JOBS}/config", body.encode())
    assert (reply.status, reply.code) == (status, code)
    assert about in reply.json()["detail"]
    assert (await client.get(f"{JOBS}/config")).code == "queue_not_found"


async def test_what_is_fixed_stays_and_the_rest_with_it(client: Client) -> None:
    before = await made(client, profile="work")
    reply = await client.put(f"{JOBS}/config", {"profile": "webhook"})
    assert (reply.status, reply.code) == (400, "invalid_request")
    assert "ordering" in reply.json()["detail"]
    await client.append("dxn:queue:demo:log", 1)
    assert (await client.put("/v1/dxn:queue:demo:log/config", {"profile": "work"})).code == "config_conflict"
    [one] = (await client.get(f"{JOBS}/consumers")).json()["consumers"]
    assert ((await client.get(f"{JOBS}/config")).json(), one["config"]) == before
