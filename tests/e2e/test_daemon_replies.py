"""Replies of handlers, from the event to a real mail server, with every part a process of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.daemon.smtp_server import Mails, mail_server
from tests.daemon.working import event

from .daemons import PATIENCE_S, consuming, inbox
from .process import Running, serving

pytestmark = pytest.mark.slow

REPLIES = """
import pathlib
from edgequeues.daemon.contract import EmailReply, Result

async def handle(event, ctx):
    with pathlib.Path("trace").open("a") as trace:
        trace.write(f"{int(event.id[-4:])} {ctx.attempt}\\n")
    return Result(reply=EmailReply(text="We have it."))
"""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path / "data") as running:
        yield running


def mail(number: int) -> dict[str, object]:
    """An event made of a mail that wants an answer."""
    return event(
        number,
        content={"subject": "An order", "text": "Two, please"},
        correlation={
            "threadKey": "t",
            "messageId": f"<m{number}@example.com>",
            "references": "<m0@example.com>",
        },
        reply={"channel": "email", "toEmail": ["ann@example.com"]},
    )


def provider(mails: Mails) -> dict[str, str]:
    return {
        "EMAIL_PROVIDER": "smtp",
        "EMAIL_FROM": "Shop <shop@example.com>",
        "SMTP_URL": f"smtp://127.0.0.1:{mails.port}",
    }


async def until_arrived(mails: Mails, count: int) -> None:
    with trio.fail_after(PATIENCE_S):
        while True:
            if len(mails.raw) >= count:
                return
            await trio.sleep(0.02)


async def test_a_reply_arrives_once_and_in_its_thread(server: Running, tmp_path: Path) -> None:
    with mail_server() as mails:
        async with inbox(server.url, tmp_path / "shop", REPLIES) as box:
            await box.push(*[mail(n) for n in range(1, 11)])
            async with consuming(box, **provider(mails)) as daemon:
                await box.until_backlog(0)
                await until_arrived(mails, 10)
                assert await daemon.stop() == 0
        found = {str(one["In-Reply-To"]): one for one in mails.parsed}
        assert set(found) == {f"<m{n}@example.com>" for n in range(1, 11)}
        assert len(mails.raw) == 10
        one = found["<m3@example.com>"]
        assert (one["Subject"], one["To"], one["From"]) == (
            "Re: An order",
            "ann@example.com",
            "Shop <shop@example.com>",
        )
        assert str(one["References"]).split() == ["<m0@example.com>", "<m3@example.com>"]


async def test_a_mail_server_that_is_away_keeps_no_event_waiting_and_a_later_daemon_sends(
    server: Running, tmp_path: Path
) -> None:
    """The reply is with the server: the daemon that took the event cannot send it and ends, another one can."""
    with mail_server() as mails:
        away = provider(mails) | {"SMTP_URL": "smtp://127.0.0.1:1"}
        async with inbox(server.url, tmp_path / "shop", REPLIES) as box:
            await box.push(mail(1))
            async with consuming(box, **away) as daemon:
                await box.until_backlog(0)
                assert await daemon.stop() == 0
            assert mails.raw == []
            async with consuming(box, **provider(mails)) as daemon:
                await until_arrived(mails, 1)
                assert await daemon.stop() == 0
        assert len(mails.raw) == 1
        assert len(box.trace()) == 1
        assert "ann@example.com" not in (box.folder / "daemon.log").read_text()


async def test_a_difference_in_attempts_is_told_at_the_start(server: Running, tmp_path: Path) -> None:
    async with inbox(server.url, tmp_path / "shop", REPLIES, max_retries=4) as box:
        async with consuming(box) as daemon:
            assert await daemon.stop() == 0
        said = [json.loads(line) for line in (box.folder / "daemon.log").read_text().splitlines()]
        [told] = [line for line in said if "do not agree" in line["msg"]]
        assert (told["level"], told["consumer"], told["setting"]) == ("warning", 5, 10)
