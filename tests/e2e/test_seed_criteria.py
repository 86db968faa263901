"""The acceptance criteria of the seed and the rest of its test plan, by their names, on a real server.

What webhooks alone do is in test_seed_webhooks.py; the load test of the eighth criterion in test_kill_commands.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from .process import serving
from .senders import SAMPLE, SECRET, VARIABLE, Sender, options, sending, unworked

pytestmark = pytest.mark.slow

SPACE = "IncidentManagement"
WAITS_MS = [100, 200, 400, 800]  # a tenth of the sample's
GUARD_S = 60.0


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


def failing(folder: Path) -> Path:
    """The sample with waits of a tenth, whose command changes incidents: it fails until there is one."""
    text = SAMPLE.read_text()
    for old, new in (
        ("initial_backoff_ms: 1000", "initial_backoff_ms: 100"),
        ("Incident.CreateIncident {", "Incident.UpdateIncident { entity_id: payload.incident.id"),
    ):
        assert old in text
        text = text.replace(old, new)
    opened = "queue Opened { map_to: command Incident.UpsertIncident { entity_id: id } }"
    path = folder / "failing.spec"
    path.write_text(text.rstrip().removesuffix("}") + opened + "}")
    return path


def incident(number: int) -> bytes:
    found = {"title": f"disk {number}", "urgency": "high", "id": f"P{number}"}
    return json.dumps({"event": {"id": f"e{number}"}, "incident": found}).encode()


class Ops:
    """A server as an operator sees it."""

    def __init__(self, http: httpx.AsyncClient, sender: Sender) -> None:
        self._http = http
        self.sender = sender

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        reply = await self._http.request(method, path, json=body, params={"tenant_id": SPACE})
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def v1(self, verb: str, body: object = None, queue: str = "WebhookIngress") -> Any:
        """A verb of a queue of the native protocol."""
        path = f"/v1/dxn:queue:{SPACE}:{queue}/{verb}"
        reply = await self._http.request("GET" if body is None else "POST", path, json=body)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def queue(self, name: str = "WebhookIngress") -> Any:
        [found] = [one for one in (await self.ask("GET", "/admin/queues"))["queues"] if one["name"] == name]
        return found

    async def letters(self) -> list[Any]:
        found: list[Any] = (await self.ask("GET", "/admin/queues/WebhookIngress/dlq"))["dead_letters"]
        return found

    async def incident(self, name: str) -> Any:
        reply = await self._http.get(f"/v1/spaces/{SPACE}/entities/Incident/{name}")
        return reply.json() if reply.status_code == 200 else None


@asynccontextmanager
async def operated(folder: Path, spec: Path) -> AsyncIterator[Ops]:
    async with (
        serving(folder / "data", *options(spec)) as server,
        sending(server) as sender,
        httpx.AsyncClient(base_url=server.url, timeout=GUARD_S) as http,
    ):
        yield Ops(http, sender)


async def until(what: Callable[[], Awaitable[Any]]) -> Any:
    """What is waited for, once it is there."""
    with trio.fail_after(GUARD_S):
        while not (found := await what()):  # noqa: ASYNC110 - the server does it
            await trio.sleep(0.02)
    return found


async def test_criterion_2_a_message_is_visible_in_the_queue_when_its_receipt_is_told(tmp_path: Path) -> None:
    """Sooner than within any time: `edgequeues bench visible` has the figures."""
    async with operated(tmp_path, unworked(tmp_path)) as ops:
        for number in range(20):
            answer = await ops.sender.send(incident(number))
            [message] = (await ops.v1("pull", {"batch": 1}))["messages"]
            assert message["id"] == answer.json()["message_id"]
            await ops.v1("ack", {"leases": [message["lease"]]})


async def test_criterion_3_failed_messages_are_tried_five_times_with_exponential_back_off(
    tmp_path: Path,
) -> None:
    async with operated(tmp_path, failing(tmp_path)) as ops:
        await ops.sender.send(incident(1))
        [letter] = await until(ops.letters)
        found = await ops.ask("GET", f"/admin/queues/WebhookIngress/dlq/{letter['id']}")
    errors = found["letter"]["errors"]
    assert [one["attempt"] for one in errors] == [1, 2, 3, 4, 5]
    ends = [one["at"] for one in errors]
    waits = [after - before for before, after in pairwise(ends)]
    assert all(wait >= least for wait, least in zip(waits, WAITS_MS, strict=True))


async def test_criterion_4_after_its_last_attempt_a_message_is_a_dead_letter_with_its_error(
    tmp_path: Path,
) -> None:
    async with operated(tmp_path, failing(tmp_path)) as ops:
        await ops.sender.send(incident(1))
        [letter] = await until(ops.letters)
        assert set(letter) == {"id", "failed_at", "error", "attempts", "preview"}
        assert letter["attempts"] == 5
        assert letter["error"] == "command failed: UpdateIncident: there is no Incident P1"
        assert letter["preview"]["payload"]["incident"]["title"] == "disk 1"
        assert (await ops.queue())["depth"] == 0


async def test_criterion_5_a_key_prevents_a_second_processing(tmp_path: Path) -> None:
    """For how long is told by the virtual clock of tests/space/test_ingest.py."""
    async with operated(tmp_path, SAMPLE) as ops:
        first = await ops.sender.send(incident(1))
        made = await until(lambda: ops.incident(first.json()["message_id"]))
        again = await ops.sender.send(incident(1))
        assert (again.status, again.json()["state"]) == (200, "processed")
        assert again.json()["result"]["entity_id"] == made["id"]
        assert (await ops.incident(made["id"]))["version"] == 1


async def test_criterion_6_the_depth_of_a_queue_is_told_by_the_admin_api(tmp_path: Path) -> None:
    async with operated(tmp_path, unworked(tmp_path)) as ops:
        for number in range(5):
            await ops.sender.send(incident(number))
        [message] = (await ops.v1("pull", {"batch": 1}))["messages"]
        found = await ops.queue()
        assert (found["depth"], found["in_flight"], found["messages_per_minute"]) == (4, 1, 5)
        assert found["oldest_message_age_seconds"] >= 0
        await ops.v1("ack", {"leases": [message["lease"]]})
        assert (await ops.queue())["in_flight"] == 0


async def test_criterion_7_and_row_replay_a_dead_letter_becomes_a_new_entry_that_is_processed(
    tmp_path: Path,
) -> None:
    async with operated(tmp_path, failing(tmp_path)) as ops:
        await ops.sender.send(incident(1))
        [letter] = await until(ops.letters)
        await ops.v1("push", {"entries": [{"data": {"id": "P1"}}]}, queue="Opened")
        await until(lambda: ops.incident("P1"))
        replayed = await ops.ask("POST", f"/admin/queues/WebhookIngress/dlq/{letter['id']}/replay")
        assert replayed["ok"] is True
        assert replayed["new_message_id"] != letter["id"]

        async def changed() -> bool:
            return bool((await ops.incident("P1"))["version"] == 2)

        await until(changed)
        again = await ops.ask("POST", f"/admin/queues/WebhookIngress/dlq/{letter['id']}/replay")
        assert again["new_message_id"] == replayed["new_message_id"]
        assert (await ops.ask("DELETE", f"/admin/queues/WebhookIngress/dlq/{letter['id']}"))["ok"] is True
        assert await ops.letters() == []


async def test_row_dequeue_a_worker_that_polls_receives_the_visible_message(tmp_path: Path) -> None:
    async with operated(tmp_path, unworked(tmp_path)) as ops:
        assert (await ops.v1("pull", {"batch": 1}))["messages"] == []
        answer = await ops.sender.send(incident(1))
        [message] = (await ops.v1("pull", {"batch": 1}))["messages"]
        assert message["id"] == answer.json()["message_id"]
        assert message["data"]["payload"]["incident"]["id"] == "P1"


async def test_row_visibility_timeout_a_message_is_hidden_from_other_workers_until_it_ends(
    tmp_path: Path,
) -> None:
    async with operated(tmp_path, unworked(tmp_path)) as ops:
        await ops.sender.send(incident(1))
        [message] = (await ops.v1("pull", {"batch": 1, "lease_ms": 1_000}))["messages"]
        assert (await ops.v1("pull", {"batch": 1}))["messages"] == []

        async def pulled() -> list[Any]:
            found: list[Any] = (await ops.v1("pull", {"batch": 1}))["messages"]
            return found

        [again] = await until(pulled)
        assert again["id"] == message["id"]
        assert again["attempts"] == 2


async def test_row_retry_a_failed_processing_counts_and_delays_the_next(tmp_path: Path) -> None:
    async with operated(tmp_path, unworked(tmp_path)) as ops:
        await ops.sender.send(incident(1))
        [message] = (await ops.v1("pull", {"batch": 1}))["messages"]
        await ops.v1("retry", {"retries": [{"lease": message["lease"], "error": "busy"}]})
        [told] = (await ops.v1(f"explain?id={message['id']}"))["consumers"]
        assert (told["state"], told["attempts"], told["why"]) == ("backoff", 1, "backing_off")
        assert told["until"] >= message["until"] - 30_000 + 1_000


async def test_row_dlq_when_its_attempts_are_spent_a_message_is_moved_to_the_dead_letters(
    tmp_path: Path,
) -> None:
    async with operated(tmp_path, failing(tmp_path)) as ops:
        await ops.sender.send(incident(1))
        [letter] = await until(ops.letters)
        assert letter["attempts"] == 5
        assert (await ops.queue("WebhookDLQ"))["depth"] == 1
        queue = await ops.queue()
        assert (queue["depth"], queue["in_flight"]) == (0, 0)
