"""Mails become events, each once: docs/protocol/ingest.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from edgequeues.events import check
from edgequeues.http.problems import TABLE
from shards.disk import Wal
from shards.testing import InlineDisk, TrioClock

from .fronted import FrontName, only
from .ingesting import desk, mail, with_parts
from .world import World

ENVELOPE = b"edgequeues-envelope-to"
PNG = "Content-Type: image/png\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment"
DAY_MS = 86_400_000


def keys_of(event: dict[str, Any]) -> list[str]:
    return [one["r2"]["key"] for one in event["content"].get("attachments", [])]


async def test_a_mail_becomes_an_event_with_its_blobs(tmp_path: Path, front: FrontName) -> None:
    raw = with_parts(
        "Content-Type: text/plain; charset=utf-8\r\n\r\nThe printer smokes. \u2615",
        "Content-Type: text/html\r\n\r\n<p>The <b>printer</b> smokes.</p>",
        f"{PNG}; filename=smoke.png\r\n\r\niVBORw0KGgo=",
        headers=(
            "Importance: high",
            "In-Reply-To: <m0@example.org>",
            "References: <r@example.org> <m0@example.org>",
        ),
    )
    async with desk(tmp_path, front) as it:
        reply = await it.email(raw)
        [event] = await it.events()
        assert reply.status == 202
        assert reply.json() == {
            "eventId": event["id"],
            "threadKey": event["correlation"]["threadKey"],
            "duplicate": False,
        }
        check.read(msgspec.json.encode(event))
        assert event["source"] == "email"
        assert event["priority"] == "high"
        assert event["participants"] == {
            "fromEmail": "ann@example.com",
            "fromName": "Ann",
            "toEmail": "desk@example.org",
        }
        assert event["content"]["subject"] == "Question"
        assert event["content"]["text"] == "The printer smokes. \u2615"
        assert event["correlation"]["messageId"] == "<m1@example.com>"
        assert event["correlation"]["inReplyTo"] == "<m0@example.org>"
        assert event["correlation"]["references"] == "<r@example.org> <m0@example.org>"
        assert event["reply"] == {"channel": "email", "toEmail": ["ann@example.com"]}
        [file] = event["content"]["attachments"]
        assert (file["filename"], file["contentType"], file["size"]) == ("smoke.png", "image/png", 8)
        assert await it.fetched(file["r2"]) == b"\x89PNG\r\n\x1a\n"
        day = event["receivedAt"][:10].replace("-", "/")
        assert event["content"]["htmlR2"]["key"] == f"email/{day}/{event['id']}/body.html"
        assert keys_of(event) == [f"email/{day}/{event['id']}/att/1-smoke.png"]
        assert await it.fetched(event["content"]["htmlR2"]) == b"<p>The <b>printer</b> smokes.</p>"
        assert {one["eventId"] for one in await it.stored(event["id"])} == {event["id"]}


async def test_the_inbox_is_made_as_a_switchboards(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        await it.taken(mail())
        [consumer] = (await it.client.get("/v1/dxn:queue:switchboard:switchboard-inbox/consumers")).json()[
            "consumers"
        ]
        rules = consumer.get("config", consumer)
        assert (rules["lease_ms"], rules["batch"], rules["attempts_max"]) == (30_000, 32, 10)


async def test_s0_25_the_same_mail_becomes_one_event_whoever_remembers_it(tmp_path: Path) -> None:
    """Nobody pulls here, so no consumer's memory has a part in it."""
    async with desk(tmp_path) as it:
        first = await it.email(mail())
        again = await it.email(mail("Received: by another relay"))
        assert (first.status, again.status) == (202, 200)
        assert again.json() == first.json() | {"duplicate": True}
        assert len(await it.events()) == 1


async def test_the_same_mail_at_once_becomes_one_event(tmp_path: Path) -> None:
    statuses: list[int] = []
    raw = with_parts(f"{PNG}; filename=a.png\r\n\r\nAAAA")
    async with desk(tmp_path) as it:

        async def send() -> None:
            statuses.append((await it.email(raw)).status)

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(send)
        assert sorted(statuses) == [200] * 9 + [202]
        assert len(await it.events()) == 1


async def test_a_repeat_is_known_after_the_event_was_worked_and_for_seven_days(tmp_path: Path) -> None:
    inbox = "/v1/dxn:queue:switchboard:switchboard-inbox"
    async with desk(tmp_path) as it:
        await it.taken(mail())
        [message] = (await it.client.ask("POST", f"{inbox}/pull", b"{}")).json()["messages"]
        acked = await it.client.ask("POST", f"{inbox}/ack", b'{"leases":["%b"]}' % message["lease"].encode())
        assert acked.status == 200
        await trio.sleep(7 * 86_400 - 60)
        assert (await it.email(mail())).status == 200
        await trio.sleep(61)
        assert (await it.email(mail())).status == 202


async def test_a_mail_that_nobody_worked_for_a_week_is_still_the_same(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        await it.taken(mail())
        await trio.sleep(8 * 86_400)
        assert (await it.email(mail("Received: later"))).status == 200
        assert len(await it.events()) == 1


async def test_bl_s04_a_retry_after_midnight_has_the_keys_of_the_first_try(tmp_path: Path) -> None:
    """The queue was full the first time, so the blobs were there and the event was not."""
    same = [f"{PNG}; filename={name}\r\n\r\nAAA{n}" for n, name in enumerate(("image.png",) * 3)]
    nameless = f"{PNG}\r\n\r\nAAAE"
    other_case = f"{PNG}; filename=IMAGE.PNG\r\n\r\nAAAF"
    raw = with_parts(*same, nameless, other_case, headers=("Message-ID: <five@example.com>",))
    clock = TrioClock()
    async with desk(tmp_path, clock=clock) as it:
        until_midnight_ms = DAY_MS - clock.now_ms() % DAY_MS
        await it.taken(mail())
        inbox = "/v1/dxn:queue:switchboard:switchboard-inbox/config"
        assert (await it.client.ask("PATCH", inbox, b'{"depth_max":1}')).status == 200
        refused = await it.email(raw)
        assert (refused.status, refused.code) == (503, "QUEUE_PUBLISH_FAILED")
        assert refused.headers["retry-after"]
        assert len(await it.events()) == 1  # nothing of it

        await trio.sleep(until_midnight_ms / 1_000 + 60)
        assert (await it.client.ask("PATCH", inbox, b'{"depth_max":null}')).status == 200
        event = await it.taken(raw)
        stored = await it.stored(event["id"])
        keys = keys_of(event)
        assert len(set(keys)) == 5
        assert sorted(keys) == sorted(one["key"] for one in stored)
        assert len({one["sha256"] for one in stored}) == 5
        assert [one["filename"] for one in event["content"]["attachments"]] == [
            *("image.png", "image.png", "image.png", "", "IMAGE.PNG")
        ]
        for key in keys:
            assert re.fullmatch(r"email/\d{4}/\d\d/\d\d/[0-9a-f-]{36}/att/[1-5]-[A-Za-z0-9._-]+", key)


async def test_another_mail_under_the_id_of_one_that_never_came_in_is_taken(tmp_path: Path) -> None:
    clock = TrioClock()
    async with desk(tmp_path, clock=clock) as it:
        await it.taken(mail())
        inbox = "/v1/dxn:queue:switchboard:switchboard-inbox/config"
        await it.client.ask("PATCH", inbox, b'{"depth_max":1}')
        forged = with_parts(f"{PNG}; filename=a.png\r\n\r\nAAAA", headers=("Message-ID: <x@example.com>",))
        assert (await it.email(forged)).status == 503
        await it.client.ask("PATCH", inbox, b'{"depth_max":null}')
        event = await it.taken(forged.replace(b"AAAA", b"BBBB"))
        assert await it.fetched(event["content"]["attachments"][0]["r2"]) == b"\x04\x10\x41"


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "header"),
        (b"just some words", "header"),
        (b"Subject: no sender\r\n\r\nHello", "From"),
        (b"From: ann@example.com\r\n\r\nHello", "To"),
        (mail("To: undisclosed-recipients:;"), "To"),
    ],
)
async def test_what_is_no_mail_is_a_dead_letter_with_its_bytes_beside_it(
    tmp_path: Path, raw: bytes, why: str
) -> None:
    async with desk(tmp_path) as it:
        reply = await it.email(raw)
        assert reply.status == 202
        assert reply.json()["error"].startswith("EMAIL_PARSE_FAILED")
        [letter] = await it.dead()
        assert letter["lastError"].startswith("EMAIL_PARSE_FAILED")
        assert why in letter["lastError"]
        assert await it.events() == []
        where = letter["originalMessage"]["raw"]
        found = await it.client.get(f"/blobs/switchboard/{where['bucket']}/{where['key']}")
        assert found.body == raw
        again = await it.email(raw)
        assert (again.status, again.json()["duplicate"]) == (200, True)
        assert len(await it.dead()) == 1


async def test_what_is_no_mail_and_too_large_to_keep_is_refused(tmp_path: Path) -> None:
    async with desk(tmp_path, blobs_file_bytes_max=100) as it:
        reply = await it.email(b"no mail " * 100)
        assert (reply.status, reply.code) == (422, "EMAIL_PARSE_FAILED")


async def test_the_envelope_says_to_whom_a_mail_goes(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        event = await it.taken(mail("To: undisclosed-recipients:;"), (ENVELOPE, b"<Sales@example.org>"))
        assert event["participants"]["toEmail"] == "Sales@example.org"
        refused = await it.email(mail(), (ENVELOPE, b"a@example.org, b@example.org"))
        assert (refused.status, refused.code) == (400, "invalid_request")
        assert b"example.org" not in refused.body


async def test_files_that_are_too_large_or_of_a_kind_that_is_refused_are_left_out(tmp_path: Path) -> None:
    raw = with_parts(
        "Content-Type: text/plain\r\n\r\nSee the files.",
        f"{PNG}; filename=big.png\r\n\r\n{'A' * 4_000}",
        f"{PNG.replace('image/png', 'application/x-msdownload')}; filename=run.exe\r\n\r\nAAAA",
        f"{PNG}; filename=small.png\r\n\r\nAAAA",
    )
    async with desk(tmp_path, ingest_attachment_bytes_max=1_000, blobs_types=["image/*"]) as it:
        event = await it.taken(raw)
        assert [one["filename"] for one in event["content"]["attachments"]] == ["small.png"]
        assert event["tags"] == ["attachment-too-large", "attachment-refused"]
        assert event["content"]["text"] == "See the files."


async def test_a_kind_that_is_not_listed_is_kept_as_bytes_where_bytes_are(tmp_path: Path) -> None:
    raw = with_parts(f"{PNG.replace('image/png', 'application/x-msdownload')}; filename=run.exe\r\n\r\nAAAA")
    async with desk(tmp_path) as it:
        event = await it.taken(raw)
        [stored] = await it.stored(event["id"])
        assert stored["contentType"] == "application/octet-stream"
        assert event["content"]["attachments"][0]["contentType"] == "application/x-msdownload"


async def test_a_long_text_is_a_blob_and_the_event_has_its_beginning(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        text = "\u00e9" * 100_000
        event = await it.taken(mail("Content-Type: text/plain; charset=utf-8", body=text))
        [file] = event["content"]["attachments"]
        assert (file["filename"], event["tags"]) == ("body.txt", ["text-cut"])
        assert (await it.fetched(file["r2"])).decode() == text
        assert text.startswith(event["content"]["text"])
        assert len(msgspec.json.encode(event)) < 32 * 1024


async def test_an_event_stays_below_the_size_of_a_message_whatever_its_mail_holds(tmp_path: Path) -> None:
    name = "\U0001f600" * 60
    parts = [
        f'{PNG}; filename="{name}{n}.png"\r\n\r\nAAA{chr(65 + n % 26)}{"A" * 4 * (n // 26)}'
        for n in range(50)
    ]
    async with desk(tmp_path) as it:
        event = await it.taken(with_parts("Content-Type: text/plain\r\n\r\n" + '"' * 20_000, *parts[:49]))
        assert len(event["content"]["attachments"]) == 50
        assert len(msgspec.json.encode(event)) < 128_000


async def test_s0_10_an_object_store_that_is_down_is_told_and_nothing_is_queued(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / "blobs").write_text("in the way of the folder")
        reply = await it.email(with_parts(f"{PNG}; filename=a.png\r\n\r\nAAAA"))
        assert (reply.status, reply.code) == (503, "R2_PUT_FAILED")
        assert reply.headers["retry-after"]
        assert await it.events() == []


class BadWal:
    """A -wal of which one flush fails when its disk is bad; the repair of the file is not to meet that."""

    def __init__(self, disk: BadDisk, wal: Wal) -> None:
        self._disk, self._wal = disk, wal

    def sync(self) -> None:
        if self._disk.bad:
            self._disk.bad = False
            raise OSError(5, "Input/output error")
        self._wal.sync()

    def close(self) -> None:
        self._wal.close()


class BadDisk(InlineDisk):
    bad = False

    def open_wal(self, database: Path) -> Wal:
        return BadWal(self, super().open_wal(database))


async def test_s0_10_a_disk_that_refuses_a_flush_is_told_and_the_repeat_is_one_event(tmp_path: Path) -> None:
    """Nobody can know whether the event is there; the key that is written with it does."""
    disk = BadDisk()
    async with desk(tmp_path, disk=disk) as it:
        await it.taken(mail())
        other = mail("Message-ID: <m2@example.com>")
        disk.bad = True
        reply = await it.email(other)
        assert (reply.status, reply.code) == (503, "QUEUE_PUBLISH_FAILED")
        assert not disk.bad
        await trio.sleep(60)
        assert (await it.email(other)).status in (200, 202)
        assert len(await it.events()) == 2


async def test_nothing_answers_a_mail_that_nobody_sent(tmp_path: Path) -> None:
    async with desk(tmp_path) as it:
        event = await it.taken(mail("Auto-Submitted: auto-replied"))
        assert "reply" not in event
        assert event["tags"] == ["auto-submitted"]


async def test_a_mail_needs_a_token_that_may_ingest_into_the_inbox(world: World) -> None:
    client = await world.open(auth="required")
    path, headers = "/ingest/email", [(b"content-type", b"message/rfc822")]
    assert (await client.ask("POST", path, mail(), headers=headers)).status == 401
    for name, token, status in (
        ("a", world.token("push", "append", name="a"), 403),
        ("b", world.token("ingest", spaces=["other"], name="b"), 403),
        ("c", world.token("ingest", spaces=["switchboard"], queues=["switchboard-inbox"], name="c"), 202),
    ):
        await trio.sleep(1)
        reply = await client.ask("POST", path, mail(), headers=[*headers, token])
        assert reply.status == status, name


@only("app", why="the front takes no part in it")
async def test_what_is_asked_for_otherwise_is_refused(tmp_path: Path, front: FrontName) -> None:
    async with desk(tmp_path, front, ingest_email_bytes_max=2_000) as it:
        assert (await it.email(mail(), media=b"application/json")).status == 415
        assert (await it.email(mail(), media=b"application/octet-stream")).status == 202
        assert (await it.email(mail(body="x" * 2_000))).code == "too_large"
        path = "/ingest/email?to=desk@example.org"
        reply = await it.client.ask("POST", path, mail(), headers=[(b"content-type", b"message/rfc822")])
        assert (reply.status, reply.code) == (400, "invalid_request")


def test_each_code_that_a_sender_may_repeat_is_a_5xx_that_says_when() -> None:
    kinds = {fault.code: fault for fault in TABLE.values()}
    for code in ("QUEUE_PUBLISH_FAILED", "R2_PUT_FAILED", "MMS_FETCH_FAILED"):
        assert kinds[code].status == 503
        assert kinds[code].retry_after_s


async def test_no_key_and_no_log_line_names_anybody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    raw = with_parts(
        f'{PNG}; filename="ann@example.com +15550100001.png"\r\n\r\nAAAA',
        headers=("Message-ID: <15550100001.ann@example.com>",),
    )
    async with desk(tmp_path) as it:
        event = await it.taken(raw)
        [key] = keys_of(event)
        assert "@" not in key
        assert "5550100001" not in key
        assert "ann" not in event["id"]
        await it.email(b"From: ann@example.com\r\n\r\nHello")
        assert "example.com" not in caplog.text
