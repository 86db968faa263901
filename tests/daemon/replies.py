"""Events that are answered, the answers, and what stands in for those who take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import structlog
from structlog.testing import CapturingLogger

from edgequeues.daemon.contract import EmailReply, GiveUp, Reply, SmsReply, TryAgain
from edgequeues.daemon.outbox import Outgoing, outgoing
from edgequeues.daemon.sending.sender import Providers
from edgequeues.events.event import Content, Correlation, Participants, ReplyTo, SwitchboardEvent

ASKER = "ann@example.org"
ASKER_PHONE = "+15550100177"
TO_ASKER = ReplyTo(channel="email", to_email=[ASKER])
TO_ASKERS_PHONE = ReplyTo(channel="sms", to_phone_e164=ASKER_PHONE)
OURS = Providers(
    email_from="Shop <shop@example.com>",
    email_provider_api_key="key-of-the-shop",
    twilio_account_sid="AC" + "0" * 32,
    twilio_auth_token="token-of-the-shop",
    twilio_from_e164="+15550100123",
)


def mailed(
    *,
    id: str = "0190a0b1-mail",
    subject: str | None = "Where is my order?",
    message_id: str | None = "<q3@example.org>",
    in_reply_to: str | None = None,
    references: str | None = "<q1@example.org> <q2@example.com>",
    reply: ReplyTo | None = TO_ASKER,
) -> SwitchboardEvent:
    """A mail that came in."""
    return SwitchboardEvent(
        id=id,
        source="email",
        received_at="2026-01-02T03:04:05Z",
        participants=Participants(from_email=ASKER, to_email="shop@example.com"),
        content=Content(subject=subject, text="Hello?"),
        correlation=Correlation(
            thread_key="t1", message_id=message_id, in_reply_to=in_reply_to, references=references
        ),
        reply=reply,
    )


def texted(*, reply: ReplyTo | None = TO_ASKERS_PHONE) -> SwitchboardEvent:
    """A text message that came in."""
    return SwitchboardEvent(
        id="0190a0b1-text",
        source="sms",
        received_at="2026-01-02T03:04:05Z",
        participants=Participants(from_phone_e164=ASKER_PHONE, to_phone_e164="+15550100123"),
        content=Content(text="Hello?"),
        correlation=Correlation(thread_key="t2", twilio_message_sid="SM" + "0" * 32),
        reply=reply,
    )


MAIL = EmailReply(text="On its way.")
SMS = SmsReply(body="On its way.")


def answer(reply: Reply = MAIL) -> Outgoing:
    """What answers a mail or a text message, as the reply is one."""
    return outgoing(mailed() if isinstance(reply, EmailReply) else texted(), reply)


class Provider:
    """Stands in for whoever is asked over HTTP: keeps the requests, and answers in turn, at last as the last."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.asked: list[httpx.Request] = []
        self.transport = httpx.MockTransport(self._answer)
        self._answers = list(answers)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(given, Exception):
            raise given
        return given


class Counts(list[tuple[str, str]]):
    """What was counted: channel and outcome."""

    def __call__(self, channel: str, outcome: str) -> None:
        self.append((channel, outcome))


class Lines:
    """A structlog logger, and the lines that were logged."""

    def __init__(self) -> None:
        self._kept = CapturingLogger()
        self.logger: Any = structlog.wrap_logger(self._kept, processors=[])

    @property
    def said(self) -> list[dict[str, Any]]:
        return [call.kwargs for call in self._kept.calls]


def fault(send: Callable[[], Any]) -> TryAgain | GiveUp:
    """What it raises."""
    try:
        send()
    except (TryAgain, GiveUp) as error:
        return error
    raise AssertionError("nothing was raised")
