"""Webhooks under pressure, faults others reported: what senders do after a refusal, and what is lost by one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from .fronted import FrontName
from .hooking import PAGERDUTY, Hooked, event, hooked, written


class PagerDuty:
    """A sender that gives up after 4xx, is switched off by three of them in a row, and tries 5xx five times."""

    def __init__(self, alerts: Hooked) -> None:
        self.alerts = alerts
        self.dropped = 0
        self.in_a_row = 0

    @property
    def is_off(self) -> bool:
        return self.in_a_row >= 3

    async def deliver(self, body: bytes) -> bool:
        for pause_s in (0, 15, 60, 300, 900):
            await trio.sleep(pause_s)
            reply = await self.alerts.signed(body)
            if reply.status < 300:
                self.in_a_row = 0
                return True
            if 400 <= reply.status < 500 and reply.status != 429:
                self.dropped += 1
                self.in_a_row += 1
                return False
            assert "retry-after" in reply.headers
        return False


async def test_wh_s10_no_event_makes_the_sender_switch_the_webhook_off(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY.replace("max_depth: 1000", "max_depth: 4")) as alerts:
        sender = PagerDuty(alerts)
        kinds = ["incident.annotated", "service.created", "pagey.ping", "no such kind"]
        for number, kind in enumerate(kinds):
            assert await sender.deliver(event(number, event_type=kind))

        async def drain() -> None:
            await trio.sleep(100)
            await alerts.ack(*await alerts.pull())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain)
            assert await sender.deliver(event("more"))
        assert (sender.dropped, sender.is_off) == (0, False)


@pytest.fixture
async def alerts(tmp_path: Path, front: FrontName) -> AsyncIterator[Hooked]:
    async with hooked(tmp_path, PAGERDUTY, front) as found:
        yield found


async def test_wh_s11_a_full_queue_sheds_what_is_new_alone(alerts: Hooked) -> None:
    await alerts.client.ask(
        "PATCH", "/v1/dxn:queue:ops:Incoming/config", written({"depth_max": 1}), headers=[]
    )
    await alerts.taken(event(1))
    refused = await alerts.signed(event(2))
    assert (refused.status, "retry-after" in refused.headers) == (503, True)
    assert (await alerts.taken(event(1)))["duplicate"] is True
    assert (await alerts.send(event(3))).status == 401
    assert len(await alerts.entries()) == 1
    assert (await alerts.counts())["shed"] == 1
    [held] = await alerts.pull()
    await alerts.ack(held)
    assert "duplicate" not in await alerts.taken(event(2))


async def test_wh_s12_a_full_queue_is_an_error_on_every_road(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY.replace("max_depth: 1000", "max_depth: 1")) as alerts:
        await alerts.taken(event(1))
        message = {"payload": {}, "headers": {}, "source_ip": "", "received_at": 1}
        queue = "/v1/dxn:queue:ops:Incoming"
        stats = (await alerts.client.get(f"{queue}/stats")).json()
        short = "/client/v4/accounts/ops/queues"
        listed = (await alerts.client.get(short)).json()["result"]
        [queue_id] = [one["queue_id"] for one in listed if one["queue_name"] == "Incoming"]
        roads: list[tuple[str, Any]] = [
            (f"{queue}/push", {"entries": [{"data": message}]}),
            (queue, {"entries": [{"data": message}]}),
            (f"{short}/{queue_id}/messages", {"body": message, "content_type": "json"}),
            (f"{short}/{queue_id}/messages/batch", {"messages": [{"body": message}, {"body": message}]}),
        ]
        for target, body in roads:
            reply = await alerts.client.ask("POST", target, written(body))
            assert reply.status in (429, 503), (target, reply.body)
        assert (await alerts.client.get(f"{queue}/stats")).json()["entries"] == stats["entries"] == 1


async def test_wh_s13_null_in_an_optional_field_is_neither_dropped_nor_taken_for_another(
    tmp_path: Path,
) -> None:
    """The rule is written down: what is optional may be null; what is not, and is missing, is a dead letter that says
    where."""
    spec = """
      queue Jobs {
        message_type { link: string? }  on_invalid: dead_letter  delivery { dead_letter_queue: Graves }
      }
      queue Graves { retention { max_age_seconds: 60 } }
      webhook alert { queue: Jobs  verify: none  message { link: payload.payment.link } }
    """
    async with hooked(tmp_path, spec) as alerts:
        fine = [
            b'{"payment":{"link":null}}',
            b'{"payment":{}}',
            b'{"payment":{"link":""}}',
            b'{"payment":null}',
            b"{}",
        ]
        for body in (*fine, b'{"payment":[]}'):
            assert (await alerts.send(body)).status == 202
        assert [one["link"] for one in await alerts.messages("Jobs")] == [None, None, "", None, None, None]
        wrong = await alerts.send(b'{"payment":{"link":7}}')
        assert wrong.json()["state"] == "dead"
        [letter] = await alerts.letters()
        assert "message.link" in letter["lastError"]
        assert (await alerts.counts()) == {"queued": 6, "dead": 1}
