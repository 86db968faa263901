"""What a handler is given beside the event."""

from __future__ import annotations

import httpx
import pytest

from edgequeues.daemon.context import Contexts
from edgequeues.daemon.contract import Context, EmailReply, GiveUp, SmsReply
from edgequeues.daemon.downloads import open_downloads
from edgequeues.daemon.outbox import Outgoing
from edgequeues.events.event import SwitchboardEvent

from .replies import ASKER, ASKER_PHONE, MAIL, SMS, Lines, mailed, texted
from .test_downloads import DATA, ENDPOINT, NOON, Store, ref


class Sent(list[Outgoing]):
    """Keeps what is to be sent."""

    async def send(self, outgoing: Outgoing) -> None:
        self.append(outgoing)


class Counted:
    """Keeps what is counted."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    def count(self, name: str, amount: float = 1.0, **labels: str) -> None:
        self.seen.append((name, amount))

    def observe(self, name: str, value: float, **labels: str) -> None:
        self.seen.append((name, value))


async def context(
    event: SwitchboardEvent, attempt: int = 1, *, sent: Sent | None = None, lines: Lines | None = None
) -> Context:
    async with open_downloads(now=lambda: NOON) as downloads:
        contexts = Contexts(
            Sent() if sent is None else sent, downloads, lambda: NOON, (lines or Lines()).logger, Counted()
        )
        return contexts.of(event, attempt)


async def test_the_time_is_that_of_the_clock_it_was_given() -> None:
    assert (await context(mailed())).now() == NOON


async def test_every_line_of_the_log_names_the_event() -> None:
    lines = Lines()
    ctx = await context(mailed(), 3, lines=lines)
    ctx.logger.info("looking", order=7)
    assert lines.said == [
        {"event": "looking", "eventId": "0190a0b1-mail", "source": "email", "attempt": 3, "order": 7}
    ]
    assert ctx.attempt == 3


async def test_each_call_has_a_key_of_its_own_that_stays_in_later_attempts() -> None:
    sent = Sent()
    for attempt in (1, 2):
        ctx = await context(mailed(), attempt, sent=sent)
        await ctx.send_email(MAIL)
        await ctx.send_sms(SmsReply(body="x", to=ASKER_PHONE))
    assert [one.key() for one in sent] == ["0190a0b1-mail:1", "0190a0b1-mail:2"] * 2
    assert sent[:2] == sent[2:]


async def test_what_is_sent_directly_is_in_the_thread_too() -> None:
    sent = Sent()
    await (await context(mailed(), sent=sent)).send_email(MAIL)
    await (await context(texted(), sent=sent)).send_sms(SMS)
    mail, sms = sent
    assert (mail.in_reply_to, mail.channel) == ("<q3@example.org>", "email")
    assert isinstance(mail.reply, EmailReply)
    assert mail.reply.to == [ASKER]
    assert isinstance(sms.reply, SmsReply)
    assert sms.reply.to == ASKER_PHONE


async def test_nothing_is_sent_that_has_nowhere_to_go() -> None:
    sent = Sent()
    with pytest.raises(GiveUp):
        await (await context(texted(), sent=sent)).send_email(MAIL)
    assert sent == []


async def test_an_object_and_its_metrics_are_at_hand() -> None:
    counted, store = Counted(), Store()
    async with open_downloads(
        endpoint=ENDPOINT, now=lambda: NOON, transport=httpx.MockTransport(store)
    ) as downloads:
        ctx = Contexts(Sent(), downloads, lambda: NOON, Lines().logger, counted).of(mailed(), 1)
        async with ctx.download(ref(), start=3, end=9) as download:
            assert await download.read() == DATA[3:9]
    ctx.metrics.count("orders")
    ctx.metrics.observe("seconds", 0.5)
    assert counted.seen == [("orders", 1.0), ("seconds", 0.5)]
