"""Faults others reported of webhooks, each tried over HTTP."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote_plus

import pytest
import trio

from edgequeues.app import open_app
from edgequeues.settings import Settings
from edgequeues.spec.files import SpecError
from shards.testing import FaultyDisk, InlineDisk, TrioClock

from .asgi import Pairs, Reply
from .fronted import FrontName
from .hooking import (
    PAGERDUTY,
    SECRET,
    SECRETS,
    Hooked,
    event,
    github,
    hexed,
    hooked,
    one_hook,
    slack,
    written,
)

FORM = (b"content-type", b"application/x-www-form-urlencoded")
MINUTE = 60
HOUR, DAY = 60 * MINUTE, 24 * 60 * MINUTE


@pytest.fixture
async def alerts(tmp_path: Path, front: FrontName) -> AsyncIterator[Hooked]:
    async with hooked(tmp_path, PAGERDUTY, front) as found:
        yield found


# -- signatures ---------------------------------------------------------------------------------------------


async def test_wh_s01_the_signature_is_over_the_bytes_as_they_came(alerts: Hooked) -> None:
    texts = ['{"a":"\U0001f525"}', '{"a":"e\u0301"}', '{"a":"x\u2028y"}', '\ufeff{"a":1}', '{"a":\r\n2}\r\n']
    for text in texts:
        reply = await alerts.signed(text.encode())
        assert reply.status == 202, text
    payloads = [one["payload"]["a"] for one in await alerts.messages()]
    assert payloads == ["\U0001f525", "e\u0301", "x\u2028y", 1, 2]
    latin = await alerts.signed('{"a":"caf\xe9"}'.encode("latin-1"))
    assert (latin.status, latin.code) == (400, "invalid_json")


async def test_wh_s02_any_of_several_signatures_with_any_of_the_secrets_is_enough(alerts: Hooked) -> None:
    def given(number: int, form: str) -> tuple[bytes, Pairs]:
        body = event(number)
        good, old = hexed(SECRET, body), hexed(SECRETS["PD_OLD"], body)
        text = form.format(bad="0" * 64, good=good, old=old, upper=good.upper())
        return body, [(b"x-pagerduty-signature", one.encode()) for one in text.split("|")]

    taken = [
        "v1={bad},v1={good}",
        "v1={good},v1={bad}",
        "v1={bad}, v1={good}",
        "v2=zz,v1={good}",
        "v1={upper}",
        "v1={old}",
        "v1={bad}|v1={good}",
    ]
    for number, form in enumerate(taken):
        body, headers = given(number, form)
        assert (await alerts.send(body, *headers)).status == 202, form
    refused = ["v2={good}", "v1={bad}", "{good}", ",".join(["v1={bad}"] * 100) + ",v1={good}"]
    for number, form in enumerate(refused):
        body, headers = given(100 + number, form)
        assert (await alerts.send(body, *headers)).status == 401, form


async def test_wh_s03_whatever_the_header_holds_it_is_401_and_one_line_without_the_secret(
    tmp_path: Path, front: FrontName, caplog: pytest.LogCaptureFixture
) -> None:
    values = [
        "sha256=\u00e9".encode("latin-1"),
        b"",
        b"sha256=",
        b"sha256",
        b"sha256=" + b"a" * 63,
        b"sha256=" + b"a" * 10,
        b"sha256=" + b"QUJD" * 11,
        b"sha256=" + b"a" * 10_000,
        b"sha256=\xff\xff",
    ]
    caplog.set_level(logging.INFO)
    async with hooked(tmp_path, one_hook("gh", "hmac", "X-Hub-Signature-256", "GH"), front) as alerts:
        for value in values:
            caplog.clear()
            reply = await alerts.send(b"{}", (b"x-hub-signature-256", value), hook="gh")
            assert (reply.status, reply.code) == (401, "bad_signature"), value
            lines = [one for one in caplog.records if one.name == "edgequeues.hooks"]
            assert len(lines) == 1
            assert SECRETS["GH"] not in lines[0].getMessage()
            assert lines[0].exc_info is None


@pytest.mark.parametrize("value", [None, "", "   ", "secret\n", " secret"])
async def test_wh_s04_a_server_without_the_secret_does_not_start(tmp_path: Path, value: str | None) -> None:
    file = tmp_path / "ops.spec"
    file.write_text(f"app ops {{ {one_hook('gh', 'hmac', 'X-Hub-Signature-256', 'GH')} }}")
    environment = {} if value is None else {"GH": value}
    settings = Settings(spec=[str(file)], secrets_env=["GH"])
    with pytest.raises((SpecError, ExceptionGroup)) as caught:
        async with open_app(tmp_path / "data", settings, environment=environment, disk=InlineDisk()):
            pass
    text = repr(caught.value)
    assert "GH" in text
    assert "secret\\n" not in text


async def test_wh_s04_a_webhook_whose_secret_is_gone_is_503_and_said_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It was applied while the secret was there; the server starts anew without it."""
    async with hooked(tmp_path, one_hook("gh", "hmac", "X-Hub-Signature-256", "GH")):
        pass
    async with open_app(tmp_path / "data", Settings(), environment={}, disk=InlineDisk()) as server:
        from .asgi import Client

        client = Client(server)
        for headers in ([], [github(b"{}")], [github(b"{}", "")]):
            reply = await client.ask("POST", "/hook/gh", b"{}", headers=headers)
            assert (reply.status, reply.code) == (503, "hook_blocked")
        [listed] = (await client.get("/v1/hooks")).json()["hooks"]
        assert listed["state"] == "blocked"
        assert "GH" in listed["why"]
    assert any("GH" in one.getMessage() for one in caplog.records if one.levelname == "ERROR")


async def test_wh_s05_json_in_a_form_is_unwrapped_after_it_was_verified(
    tmp_path: Path, front: FrontName
) -> None:
    spec = one_hook("gh", "hmac", "X-Hub-Signature-256", "GH")
    inner = '{"zen": "a b+c%20\u00e9"}'
    body = b"payload=" + quote_plus(inner).encode() + b"&extra=1"
    async with hooked(tmp_path, spec, front) as alerts:

        async def send(body: bytes, *headers: tuple[bytes, bytes]) -> Reply:
            return await alerts.send(body, github(body), *headers, hook="gh")

        charset = (FORM[0], FORM[1] + b"; charset=UTF-8")
        assert (await send(body, charset)).status == 202
        [message] = await alerts.messages()
        assert message["payload"] == {"zen": "a b+c%20\u00e9"}
        again = await send(body, FORM)
        assert again.json()["duplicate"] is True
        for wrong in (b"extra=1", b"payload=1&payload=2", b"payload=%zz", b"payload=%7B", b""):
            assert (await send(wrong, FORM)).status == 400, wrong
        assert (await send(b"<a/>", (b"content-type", b"application/xml"))).status == 415
        assert (await send(b'{"zen":"bare"}', (b"content-type", b""))).status == 202
        assert len(await alerts.entries()) == 2


async def test_wh_s06_nothing_an_unsigned_call_carries_gets_it_past_the_signature(
    tmp_path: Path, front: FrontName
) -> None:
    async with hooked(tmp_path, one_hook("slack", "hmac", "X-Slack-Signature", "SLACK"), front) as alerts:
        body = b'{"event_id":"Ev1"}'
        first = await alerts.send(body, *slack(body, alerts.now_s), hook="slack")
        assert first.status == 202
        challenge = b'{"type":"url_verification","challenge":"x"}'
        for text, *headers in (
            (body, (b"x-slack-retry-num", b"1"), (b"x-slack-retry-reason", b"http_timeout")),
            (body,),
            (challenge,),
            (body, (b"idempotency-key", b"Ev1")),
        ):
            assert (await alerts.send(text, *headers, hook="slack")).status == 401
        # A retry whose first attempt never came is a new event.
        late = b'{"event_id":"Ev2"}'
        headers = [*slack(late, alerts.now_s), (b"x-slack-retry-num", b"3")]
        reply = await alerts.send(late, *headers, hook="slack")
        assert (reply.status, "duplicate" in reply.json()) == (202, False)


async def test_wh_s14_a_clock_that_is_off_is_told_apart_in_the_log(
    tmp_path: Path, front: FrontName, caplog: pytest.LogCaptureFixture
) -> None:
    async with hooked(tmp_path, one_hook("slack", "hmac", "X-Slack-Signature", "SLACK"), front) as alerts:
        for off_s in (-600, 600):
            caplog.clear()
            reply = await alerts.send(b"{}", *slack(b"{}", alerts.now_s + off_s), hook="slack")
            assert (reply.status, reply.code) == (401, "bad_signature")
            assert "window" not in reply.json()["detail"]
            [line] = [one.getMessage() for one in caplog.records if one.name == "edgequeues.hooks"]
            assert "timestamp outside" in line
            assert "300 s" in line
        assert (await alerts.counts("slack"))["refused_stale"] == 2
        near = await alerts.send(b"{}", *slack(b"{}", alerts.now_s - 299), hook="slack")
        assert near.status == 202


# -- once ---------------------------------------------------------------------------------------------------


async def test_wh_s07_twenty_copies_at_once_are_one_message(alerts: Hooked) -> None:
    replies: list[Reply] = []
    body = event(1)

    async def copy(number: int) -> None:
        headers = [(b"x-request-id", b"r%d" % number), (b"date", b"d%d" % number), (b"user-agent", b"u")]
        replies.append(await alerts.signed(body, *headers))

    async with trio.open_nursery() as nursery:
        for number in range(20):
            nursery.start_soon(copy, number)
    assert Counter(one.status for one in replies) == {202: 20}
    assert {one.json()["idempotency_key"] for one in replies} == {"e1"}
    assert sum("duplicate" not in one.json() for one in replies) == 1
    assert len(await alerts.entries()) == 1


@pytest.mark.parametrize("name", ["half \\ud83d", "a nul \\u0000", "x" * 300, ""])
async def test_an_id_that_cannot_be_kept_is_none(alerts: Hooked, name: str) -> None:
    """The digest stands in; nothing fails."""
    body = f'{{"event": {{"id": "{name}"}}}}'.encode()
    assert (await alerts.taken(body))["idempotency_key"].startswith("sha256:")
    assert (await alerts.taken(body))["duplicate"] is True


async def test_wh_s08_what_could_not_be_stored_burns_no_key(tmp_path: Path, front: FrontName) -> None:
    async with hooked(tmp_path, PAGERDUTY.replace("max_depth: 1000", "max_depth: 1"), front) as alerts:
        await alerts.taken(event(1))
        assert (await alerts.signed(event(2))).status == 503
        [held] = await alerts.pull()
        await alerts.ack(held)
        assert "duplicate" not in await alerts.taken(event(2))


async def test_wh_s08_a_full_disk_burns_no_key_either(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY):
        pass
    disk, clock = FaultyDisk(tmp_path / "data"), TrioClock()
    settings = Settings(secrets_env=list(SECRETS), reserve_bytes=0)
    async with open_app(tmp_path / "data", settings, clock=clock, disk=disk, environment=SECRETS) as server:
        from .asgi import Client

        alerts = Hooked(Client(server), server, clock)
        await alerts.taken(event(1))
        disk.fill(200_000)
        number, reply = 2, await alerts.signed(event(2, big="x" * 50_000))
        while reply.status == 202:
            number += 1
            reply = await alerts.signed(event(number, big="x" * 50_000))
        assert (reply.status, reply.code) == (503, "disk_full")
        disk.fill(100_000_000)
        await trio.sleep(1.1)  # room is looked for once a second
        assert "duplicate" not in await alerts.taken(event(number, big="x" * 50_000))
    disk.close()


async def test_wh_s09_a_key_is_known_for_24_hours_over_a_restart_and_among_many(tmp_path: Path) -> None:
    clock = TrioClock()
    body = event(1)

    async def send(alerts: Hooked) -> bool:
        return "duplicate" in (await alerts.signed(body)).json()

    async with hooked(tmp_path, PAGERDUTY, clock=clock) as alerts:
        assert not await send(alerts)
        for pause_s in (0.001, 1):
            await trio.sleep(pause_s)
            assert await send(alerts)
        for first in range(10, 2_010, 500):
            items = [{"id": str(number)} for number in range(first, first + 500)]
            for item in items[::100]:
                await alerts.signed(written({"event": item}))
    async with hooked(tmp_path, PAGERDUTY, clock=clock) as alerts:
        await trio.sleep(DAY - MINUTE - 1)
        assert await send(alerts)
        await trio.sleep(2 * MINUTE)
        assert not await send(alerts)


def test_every_case_of_this_area_is_here_or_beside_it() -> None:
    """WH-S12's killed servers and WH-S15's fates of messages are tried in tests of their own."""
    root = Path(__file__).parents[1]
    texts = "".join(one.read_text() for one in root.rglob("test_*.py"))
    for number in range(1, 16):
        assert f"def test_wh_s{number:02}_" in texts, number
