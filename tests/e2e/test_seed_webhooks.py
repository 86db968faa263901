"""The rows of the seed's test plan about webhooks, by their names, on a real server with the seed's sample.

Nobody works the queue in most of them, so that what came in can be looked at: the sample without its mapping.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.client import Client, Entry, Message

from .process import Running, serving
from .senders import SAMPLE, SECRET, VARIABLE, event, options, sending, unworked

SPACE = "IncidentManagement"
QUEUE = f"dxn:queue:{SPACE}:WebhookIngress"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SECRET)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path / "data", *options(unworked(tmp_path))) as running:
        yield running


def data_of(one: Entry | Message) -> Any:
    return one.data


async def payloads(url: str) -> list[Any]:
    async with Client(url) as client:
        return [data_of(entry)["payload"] async for entry in client.iterate(QUEUE)]


async def test_criterion_1_a_webhook_with_a_queue_answers_202_not_200(server: Running) -> None:
    async with sending(server) as one:
        answer = await one.send(event(1))
    assert answer.status == 202
    assert answer.json()["queued"] is True
    assert answer.json()["idempotency_key"] == "e1"


async def test_row_enqueue_a_webhook_post_is_a_message_in_the_queue_table(server: Running) -> None:
    async with sending(server) as one:
        answer = await one.send(event(1, text="caf\u00e9"), headers={"User-Agent": "PagerDuty-Webhook/V3.0"})
    async with Client(server.url) as client:
        [entry] = [found async for found in client.iterate(QUEUE)]
    assert entry.id == answer.json()["message_id"]
    data = data_of(entry)
    assert data["payload"] == {"event": {"id": "e1"}, "text": "caf\u00e9"}
    assert data["headers"]["user-agent"] == "PagerDuty-Webhook/V3.0"
    assert data["source_ip"] == "127.0.0.1"
    assert data["received_at"] == pytest.approx(entry.created / 1_000, abs=5)


async def test_row_idempotency_the_second_of_two_equal_keys_gets_the_stored_result(server: Running) -> None:
    async with sending(server) as one, Client(server.url) as client:
        first = await one.send(event(1))
        again = await one.send(event(1))
        assert (again.status, again.json()["duplicate"]) == (202, True)
        [message] = (await client.pull(QUEUE)).messages
        await client.ack(QUEUE, [message.lease], results={message.lease: {"incident": "INC-1"}})
        done = await one.send(event(1))
        assert done.status == 200
        assert done.json()["result"] == {"incident": "INC-1"}
        assert done.json()["message_id"] == first.json()["message_id"]
        assert (await client.pull(QUEUE)).messages == []


async def test_row_ordering_a_fifo_queue_keeps_the_order_of_each_source(server: Running) -> None:
    """Five senders at once: what each sent, in the order in which it was answered, is in that order."""

    async def source(name: str) -> None:
        async with sending(server) as one:
            for number in range(40):
                assert (await one.send(event(f"{name}-{number}"))).status == 202

    async with trio.open_nursery() as nursery:
        for name in "abcde":
            nursery.start_soon(source, name)
    given: dict[str, list[int]] = {}
    async with Client(server.url) as client:
        while messages := (await client.pull(QUEUE, batch=100)).messages:
            for message in messages:
                name, _, number = data_of(message)["payload"]["event"]["id"].removeprefix("e").partition("-")
                given.setdefault(name, []).append(int(number))
            await client.ack(QUEUE, [message.lease for message in messages])
    assert given == {name: list(range(40)) for name in "abcde"}


async def test_row_backpressure_at_the_maximum_depth_new_webhooks_are_rejected_503(tmp_path: Path) -> None:
    small = unworked(tmp_path, "max_depth: 10000", "max_depth: 3")
    async with serving(tmp_path / "data", *options(small)) as server, sending(server) as one:
        for number in range(3):
            assert (await one.send(event(number))).status == 202
        answer = await one.send(event(3))
        assert answer.status == 503
        assert int(answer.headers["retry-after"]) > 0
        assert answer.json()["code"] == "queue_full"
        assert (await one.send(event(0))).status == 202  # it is safe already
        assert (await one.send(event(4), signed=False)).status == 401
        async with Client(server.url) as client:
            [message] = (await client.pull(QUEUE)).messages
            await client.ack(QUEUE, [message.lease])
        assert (await one.send(event(3))).status == 202


async def test_a_thousand_alerts_at_once_are_buffered_and_none_is_dropped(server: Running) -> None:
    """Nobody works the queue meanwhile."""

    async def alerts(numbers: range) -> None:
        async with sending(server) as one:
            for number in numbers:
                assert (await one.send(event(number))).status == 202

    async with trio.open_nursery() as nursery:
        for first in range(0, 1_000, 50):
            nursery.start_soon(alerts, range(first, first + 50))
    found = {payload["event"]["id"] for payload in await payloads(server.url)}
    assert found == {f"e{number}" for number in range(1_000)}


async def test_a_spec_that_will_not_do_ends_the_start_with_every_place(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.spec"
    wrong.write_text(
        SAMPLE.read_text().replace("ordering: fifo", "orderng: fifo").replace("WebhookDLQ\n", "Nowhere\n")
    )
    with pytest.raises(AssertionError) as caught:
        async with serving(tmp_path / "data", *options(wrong)):
            pass
    said = str(caught.value)
    assert "wrong.spec:11:5:" in said
    assert "Did you mean `ordering`?" in said
    assert "Nowhere" in said
    assert "Traceback" not in said
