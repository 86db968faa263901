"""`GET /metrics`: what the server counts, as Prometheus reads it."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families as parsed

from .asgi import Client
from .ingesting import PNG_MAIL, SMS, desk, mail
from .world import World


async def counted(client: Client) -> dict[str, float]:
    reply = await client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=")
    samples = [one for family in parsed(reply.body.decode()) for one in family.samples]
    return {f"{one.name} {one.labels.get('source')}": one.value for one in samples}


async def test_events_of_mails_and_texts_count_once_and_what_is_stored_of_them(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        at_first = await counted(it.client)
        assert at_first["ingress_events_total email"] == at_first["ingress_events_total sms"] == 0
        for raw in (mail(), mail(), PNG_MAIL):
            await it.email(raw)
        await it.sms(SMS)
        await it.sms(SMS)
        now = await counted(it.client)
        assert now["ingress_events_total email"] == 2
        assert now["ingress_events_total sms"] == 1
        assert now["ingress_media_bytes_total email"] == 8
        assert now["ingress_media_bytes_total sms"] == 0


async def test_what_is_no_event_does_not_count_as_one(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        reply = await it.sms({"From": "12345"})
        assert reply.status == 202
        assert len(await it.dead()) == 1
        assert (await counted(it.client))["ingress_events_total sms"] == 0


async def test_metrics_are_for_who_may_read_everything(world: World) -> None:
    everything, one_space = world.token("read"), world.token("read", spaces=["demo"], name="demo")
    client = await world.open()
    assert (await client.ask("GET", "/metrics")).status == 401
    assert (await client.ask("GET", "/metrics", headers=[one_space])).status == 403
    assert (await client.ask("GET", "/metrics", headers=[everything])).status == 200
