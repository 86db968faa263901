"""Where replies leave: the provider of each channel, as the settings have it."""

from __future__ import annotations

import hashlib
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final, Literal, Protocol

import httpx
import msgspec
import trio
from msgspec import Struct

from edgequeues.client.http import BEARER_TOKEN
from edgequeues.daemon.contract import GiveUp, TryAgain
from edgequeues.daemon.outbox import Outgoing
from edgequeues.daemon.sending import message, policy, postmark, smtp, twilio
from edgequeues.daemon.sending.api import Api, base_url
from edgequeues.daemon.sending.faults import NOT_SENT
from edgequeues.daemon.sending.outbound import OutboundPost
from edgequeues.daemon.sending.postmark import PostmarkPost
from edgequeues.daemon.sending.smtp import SmtpPost
from edgequeues.daemon.sending.twilio import TwilioPost
from edgequeues.events.event import Phone, Source

SEND_S_MAX = 120  # however many steps it takes
REMEMBERED_MAX = 10_000  # replies known to have left

EmailProvider = Literal["none", "smtp", "ses", "postmark", "outbound"]
Count = Callable[[Source, str], None]  # channel, outcome: sent, repeat, again, refused


class Post(Protocol):
    """One provider."""

    async def send(self, outgoing: Outgoing) -> None:
        """Have it take a reply. Raises TryAgain, GiveUp."""


class Providers(Struct, frozen=True, kw_only=True):
    """Which providers there are; each member is the setting of that name in capitals, "" or None if it is not set.

    email_provider: `none`: the outbound worker, if there is one. `ses` is `smtp` to the endpoint that SES has for it.
    Text messages leave over Twilio where there is an account, else over the outbound worker.
    timeout_s: for each step of a request.
    """

    email_provider: EmailProvider = "none"
    email_from: str | None = None
    email_reply_to: str | None = None
    smtp_url: str | None = None
    email_provider_api_key: str | None = None
    twilio_account_sid: str | None = None
    twilio_auth_token: str | None = None
    twilio_from_e164: str | None = None
    outbound_url: str | None = None
    outbound_token: str | None = None
    timeout_s: float = 30.0
    postmark_url: str = postmark.URL
    twilio_url: str = twilio.URL

    def __repr__(self) -> str:
        return "Providers(...)"  # some of it is secret

    def require(self, setting: str, reason: str) -> str:
        """The value of a setting. Raises ValueError that names it where it is missing."""
        value: str | None = getattr(self, setting)
        if not value:
            raise ValueError(f"{setting.upper()} is missing: {reason}")
        return value

    def token(self, setting: str, reason: str) -> str:
        """A value that a header can hold. Raises ValueError that names the setting, and does not show it."""
        value = self.require(setting, reason)
        if not BEARER_TOKEN.fullmatch(value):
            raise ValueError(
                f"{setting.upper()} holds a space, a line break or another character that no token has"
            )
        return value


class Sender:
    """Sends replies. One that left in this process is not sent a second time, as after an ack that was lost."""

    def __init__(self, posts: dict[Source, Post], count: Count) -> None:
        self._posts = posts
        self._count = count
        self._left: OrderedDict[bytes, None] = OrderedDict()
        self._leaving: set[bytes] = set()

    async def send(self, outgoing: Outgoing) -> None:
        """Have a provider take a reply, at least once. Raises TryAgain, GiveUp with a code of the catalogue."""
        channel = outgoing.channel
        digest = hashlib.sha256(msgspec.json.encode(outgoing)).digest()
        if digest in self._left:
            self._count(channel, "repeat")
            return
        try:
            await self._send(outgoing, digest)
        except TryAgain:
            self._count(channel, "again")
            raise
        except GiveUp:
            self._count(channel, "refused")
            raise
        self._count(channel, "sent")
        self._left[digest] = None
        if len(self._left) > REMEMBERED_MAX:
            self._left.popitem(last=False)

    async def _send(self, outgoing: Outgoing, digest: bytes) -> None:
        policy.check(outgoing.reply)
        post = self._posts.get(outgoing.channel)
        if post is None:
            settings = "EMAIL_PROVIDER" if outgoing.channel == "email" else "TWILIO_ACCOUNT_SID"
            raise GiveUp(f"nothing is set up to send {outgoing.channel}: set {settings} or OUTBOUND_URL")
        if digest in self._leaving:
            raise NOT_SENT[outgoing.channel]("the same reply is being sent at this moment")
        self._leaving.add(digest)
        try:
            with trio.move_on_after(SEND_S_MAX) as scope:
                await post.send(outgoing)
        finally:
            self._leaving.remove(digest)
        if scope.cancelled_caught:
            raise NOT_SENT[outgoing.channel](f"it was not taken within {SEND_S_MAX} s")


@asynccontextmanager
async def open_sender(
    providers: Providers,
    *,
    count: Count = lambda channel, outcome: None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    tls: ssl.SSLContext | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Sender]:
    """Send over connections that are closed with the block. Raises ValueError, naming what is wrong in the settings.

    tls: whom to believe, instead of the system's authorities. transport: what carries requests, instead of sockets.
    """
    async with httpx.AsyncClient(
        verify=tls or ssl.create_default_context(),
        trust_env=False,
        timeout=providers.timeout_s,
        transport=transport,
    ) as client:
        posts: dict[Source, Post] = {}
        if email := _email(providers, client, now, tls):
            posts["email"] = email
        if sms := _sms(providers, client):
            posts["sms"] = sms
        yield Sender(posts, count)


_ASKED_FOR: Final = "EMAIL_PROVIDER asks for it"


def _email(
    providers: Providers, client: httpx.AsyncClient, now: Callable[[], datetime], tls: ssl.SSLContext | None
) -> Post | None:
    provider = providers.email_provider
    if provider == "outbound" or (provider == "none" and providers.outbound_url):
        return _outbound(providers, client)
    if provider == "none":
        return None
    sender = message.mailbox(providers.require("email_from", "mails must be from someone"), "EMAIL_FROM")
    answers = providers.email_reply_to
    reply_to = message.mailbox(answers, "EMAIL_REPLY_TO") if answers else None
    if provider == "postmark":
        token = providers.token("email_provider_api_key", _ASKED_FOR)
        url = base_url(providers.postmark_url, "POSTMARK_URL")
        api = Api(client, url, name="Postmark", auth_setting="EMAIL_PROVIDER_API_KEY")
        return PostmarkPost(api, token, sender, reply_to)
    at = smtp.server(providers.require("smtp_url", _ASKED_FOR))
    return SmtpPost(at, sender, reply_to, now=now, timeout_s=providers.timeout_s, tls=tls)


def _sms(providers: Providers, client: httpx.AsyncClient) -> Post | None:
    if not providers.twilio_account_sid:
        return _outbound(providers, client) if providers.outbound_url else None
    if not twilio.ACCOUNT.fullmatch(providers.twilio_account_sid):
        raise ValueError("TWILIO_ACCOUNT_SID is not an account; expected AC and 32 hex digits")
    token = providers.require("twilio_auth_token", "TWILIO_ACCOUNT_SID needs it")
    number = providers.require("twilio_from_e164", "text messages must be from a number of yours")
    try:
        msgspec.convert(number, Phone)
    except msgspec.ValidationError:
        raise ValueError("TWILIO_FROM_E164 is not a number; expected something like +15550100123") from None
    url = base_url(providers.twilio_url, "TWILIO_URL")
    return TwilioPost(
        Api(client, url, name="Twilio", auth_setting="TWILIO_AUTH_TOKEN"),
        providers.twilio_account_sid,
        token,
        number,
    )


def _outbound(providers: Providers, client: httpx.AsyncClient) -> Post:
    url = base_url(providers.require("outbound_url", _ASKED_FOR), "OUTBOUND_URL")
    token = providers.token("outbound_token", "OUTBOUND_URL needs it")
    api = Api(client, url, name="the outbound worker", auth_setting="OUTBOUND_TOKEN")
    if providers.email_from:
        domain = message.mailbox(providers.email_from, "EMAIL_FROM").domain
    else:
        domain = httpx.URL(url).host
    return OutboundPost(api, token, domain)
