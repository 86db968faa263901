"""Text messages become events, each once: docs/protocol/ingest.md."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import msgspec
import pytest
import trio

from edgequeues.events import check
from tests.core.captures import FOLDER

from .fronted import FrontName, only
from .ingesting import BASE, SMS, TOKEN, desk, media

PICTURE = b"\xff\xd8 a picture"


def pictures(request: httpx.Request) -> httpx.Response:
    """Each medium has its number in it."""
    return httpx.Response(200, content=PICTURE + request.url.path.encode())


async def test_a_text_message_becomes_an_event(tmp_path: Path, front: FrontName) -> None:
    async with desk(tmp_path, front) as it:
        reply = await it.sms(SMS)
        assert reply.status == 202
        assert reply.headers["content-type"].startswith("text/xml")
        assert reply.body.endswith(b"<Response></Response>")
        [event] = await it.events()
        check.read(msgspec.json.encode(event))
        assert event["source"] == "sms"
        assert event["participants"] == {"fromPhoneE164": "+15550100001", "toPhoneE164": "+15550100002"}
        assert event["content"] == {"text": SMS["Body"]}
        assert event["correlation"]["twilioMessageSid"] == SMS["MessageSid"]
        assert event["reply"] == {"channel": "sms", "toPhoneE164": "+15550100001"}


async def test_s0_25_the_same_text_message_becomes_one_event(tmp_path: Path) -> None:
    statuses: list[int] = []
    async with desk(tmp_path) as it:

        async def send() -> None:
            statuses.append((await it.sms(SMS)).status)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(send)
        assert sorted(statuses) == [200] * 4 + [202]
        assert len(await it.events()) == 1


async def test_media_lie_under_the_id_of_their_message(tmp_path: Path) -> None:
    async with desk(tmp_path, answer=pictures) as it:
        assert (await it.sms(media("image/jpeg", "text/x-vcard") | {"Body": ""})).status == 202
        [event] = await it.events()
        check.read(msgspec.json.encode(event))
        assert "text" not in event["content"]
        files = event["content"]["attachments"]
        day = event["receivedAt"][:10].replace("-", "/")
        assert [one["r2"]["key"] for one in files] == [
            f"sms/{day}/{media('a')['MessageSid']}/media-{n}" for n in (0, 1)
        ]
        assert [one["contentType"] for one in files] == ["image/jpeg", "text/x-vcard"]
        assert [await it.fetched(one["r2"]) for one in files] == [PICTURE + b"/0", PICTURE + b"/1"]


@only("app", why="the front takes no part in it")
async def test_a_captured_message_of_twilio_is_taken(tmp_path: Path, front: FrontName) -> None:
    """Its media are of a host that is not Twilio's, which an operator has listed."""
    body = b64decode(json.loads((FOLDER / "twilio.json").read_text())["body_b64"])
    fields = dict(parse_qsl(body.decode().replace("MMdummy0", "MMdummy"), keep_blank_values=True))
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.headers['host']} {request.url.raw_path.decode()}")
        return httpx.Response(200, content=PICTURE)

    class Public(trio.abc.HostnameResolver):
        async def getaddrinfo(self, host: bytes | None, port: bytes | str | int | None, *_: int) -> Any:
            return [(2, 1, 6, "", ("93.184.216.34", 443))]

        async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
            raise NotImplementedError

    trio.socket.set_custom_hostname_resolver(Public())
    async with desk(tmp_path, front, answer=answer, ingest_media_hosts=["media.example.com"]) as it:
        assert (await it.sms(fields)).status == 202
        [event] = await it.events()
        assert event["content"]["text"] == "Hi \U0001f600 100% + sure & caf\u00e9"
        assert len(event["content"]["attachments"]) == 2
        assert asked == ["media.example.com /1?x=1&y=2", "media.example.com /2"]
        for file in event["content"]["attachments"]:
            assert "1555" not in file["r2"]["key"]


@pytest.mark.parametrize("limits", [{"ingest_media_file_bytes_max": 15}, {"ingest_media_bytes_max": 30}])
async def test_media_that_are_too_large_are_left_out_and_the_text_is_not(
    tmp_path: Path, limits: dict[str, Any]
) -> None:
    """The first is as large as may be, the next one byte larger than what is left, or may be."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"x" * (15 if request.url.path == "/0" else 16))

    async with desk(tmp_path, answer=answer, **limits) as it:
        assert (await it.sms(media("image/png", "image/png"))).status == 202
        [event] = await it.events()
        assert event["content"]["text"] == SMS["Body"]
        assert event["tags"] == ["media-too-large"]
        assert [one["size"] for one in event["content"]["attachments"]] == [15]


async def test_more_media_than_are_fetched_are_left_out(tmp_path: Path) -> None:
    async with desk(tmp_path, answer=pictures) as it:
        await it.sms(media(*["image/png"] * 11))
        [event] = await it.events()
        assert len(event["content"]["attachments"]) == 10
        assert event["tags"] == ["media-too-many"]


async def test_media_that_are_stored_are_not_fetched_again(tmp_path: Path) -> None:
    """Twilio may give other bytes the second time, and stored ones do not change."""
    inbox = "/v1/dxn:queue:switchboard:switchboard-inbox/config"
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, content=b"%d" % len(asked))

    async with desk(tmp_path, answer=answer) as it:
        await it.sms(SMS)
        await it.client.ask("PATCH", inbox, b'{"depth_max":1}')
        assert (await it.sms(media("image/png", "image/png"))).code == "QUEUE_PUBLISH_FAILED"
        await it.client.ask("PATCH", inbox, b'{"depth_max":null}')
        await trio.sleep(86_400)
        assert (await it.sms(media("image/png", "image/png"))).status == 202
        assert asked == ["/0", "/1"]
        files = (await it.events())[1]["content"]["attachments"]
        assert [await it.fetched(one["r2"]) for one in files] == [b"1", b"2"]


async def test_media_that_cannot_be_fetched_are_told_and_nothing_is_queued(tmp_path: Path) -> None:
    works = False

    def answer(request: httpx.Request) -> httpx.Response:
        return pictures(request) if works or request.url.path == "/0" else httpx.Response(500)

    async with desk(tmp_path, answer=answer) as it:
        reply = await it.sms(media("image/png", "image/png"))
        assert (reply.status, reply.code) == (503, "MMS_FETCH_FAILED")
        assert reply.headers["retry-after"]
        assert await it.events() == []
        works = True
        assert (await it.sms(media("image/png", "image/png"))).status == 202
        assert len(await it.events()) == 1


@pytest.mark.parametrize(
    ("secret", "url"), [("another", f"{BASE}/ingest/sms"), (TOKEN, f"{BASE}/ingest/other")]
)
async def test_what_is_not_signed_by_twilio_is_refused(
    tmp_path: Path, secret: str, url: str, front: FrontName
) -> None:
    async with desk(tmp_path, front) as it:
        reply = await it.sms(SMS, secret, url)
        assert (reply.status, reply.code) == (401, "TWILIO_SIGNATURE_INVALID")
        unsigned = await it.form(b"Body=hello", [])
        assert unsigned.code == "TWILIO_SIGNATURE_INVALID"
        assert await it.events() == []


async def test_without_a_token_of_twilio_nothing_is_taken_and_what_to_set_is_said(tmp_path: Path) -> None:
    async with desk(tmp_path, environment={}, ingest_sms_token_env="MY_TWILIO") as it:
        reply = await it.sms(SMS, "")
        assert (reply.status, reply.code) == (503, "not_ready")
        assert "MY_TWILIO" in reply.json()["detail"]


async def test_messages_of_other_accounts_are_refused_where_one_is_set(tmp_path: Path) -> None:
    async with desk(tmp_path, ingest_sms_account=SMS["AccountSid"]) as it:
        assert (await it.sms(SMS | {"AccountSid": "AC" + "9" * 32})).code == "TWILIO_SIGNATURE_INVALID"
        assert (await it.sms(SMS)).status == 202


@pytest.mark.parametrize("field", [{"From": "12345"}, {"MessageSid": "XX1"}, {"NumMedia": "2"}])
async def test_a_signed_form_that_no_event_can_be_made_of_is_a_dead_letter(
    tmp_path: Path, field: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """As from a short code, which is no telephone number of the world's."""
    async with desk(tmp_path) as it:
        assert (await it.sms(SMS | field)).status == 202
        assert (await it.sms(SMS | field)).status == 200
        [letter] = await it.dead()
        assert letter["lastError"].startswith("MALFORMED_EVENT: form: the field")
        assert letter["originalMessage"]["form"]["Body"] == SMS["Body"]
        assert "5550100001" not in letter["lastError"]
        assert "5550100001" not in caplog.text


async def test_s0_10_a_full_queue_is_told_and_the_repeat_is_taken(tmp_path: Path) -> None:
    inbox = "/v1/dxn:queue:switchboard:switchboard-inbox/config"
    other = SMS | {"MessageSid": "SM" + "0" * 31 + "9"}
    async with desk(tmp_path) as it:
        await it.sms(SMS)
        await it.client.ask("PATCH", inbox, b'{"depth_max":1}')
        reply = await it.sms(other)
        assert (reply.status, reply.code) == (503, "QUEUE_PUBLISH_FAILED")
        assert reply.headers["retry-after"]
        assert len(await it.events()) == 1
        await it.client.ask("PATCH", inbox, b'{"depth_max":null}')
        assert (await it.sms(other)).status == 202


async def test_an_inbox_that_is_a_log_takes_events_too(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        await it.client.ask("PUT", "/v1/dxn:queue:switchboard:switchboard-inbox/config", b'{"kind":"log"}')
        assert (await it.sms(SMS)).status == 202
        assert (await it.sms(SMS)).status == 200
