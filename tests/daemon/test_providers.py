"""Providers that are asked over HTTP: what they are sent, and what their answers mean."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, parse_qsl

import httpx
import msgspec
import pytest
import trio
from twilio.rest import Client  # type: ignore[import-untyped]

from edgequeues.daemon.contract import EmailReply, GiveUp, Reply, SmsReply, TryAgain
from edgequeues.daemon.outbox import Outgoing
from edgequeues.daemon.sending.sender import SEND_S_MAX, Providers, open_sender

from .replies import ASKER, ASKER_PHONE, MAIL, OURS, SMS, Counts, Provider, answer

POSTMARK = msgspec.structs.replace(OURS, email_provider="postmark")
OUTBOUND = Providers(outbound_url="https://out.example.com/v1/", outbound_token="token-of-the-worker")
TAKEN = httpx.Response(200, json={"ErrorCode": 0, "MessageID": "1"})


async def sent(
    providers: Providers,
    reply: Reply | Outgoing,
    *answers: httpx.Response | Exception,
    counts: Counts | None = None,
) -> Provider:
    """Send one reply; returns what was asked. Raises what became of it."""
    provider = Provider(*answers or (TAKEN,))
    it = reply if isinstance(reply, Outgoing) else answer(reply)
    async with open_sender(
        providers, transport=provider.transport, count=Counts() if counts is None else counts
    ) as sender:
        await sender.send(it)
    return provider


async def test_postmark_is_given_the_mail_with_its_thread_and_a_message_id_that_it_keeps() -> None:
    provider = await sent(POSTMARK, EmailReply(text="On its way.", html="<b>On its way.</b>"))
    [request] = provider.asked
    assert str(request.url) == "https://api.postmarkapp.com/email"
    assert request.headers["x-postmark-server-token"] == "key-of-the-shop"
    body = json.loads(request.content)
    assert {header["Name"]: header["Value"] for header in body.pop("Headers")} == {
        "X-PM-KeepID": "true",
        "Message-ID": "<0190a0b1-mail~reply@example.com>",
        "In-Reply-To": "<q3@example.org>",
        "References": "<q1@example.org> <q2@example.com> <q3@example.org>",
        "Auto-Submitted": "auto-replied",
    }
    assert body == {
        "From": '"Shop" <shop@example.com>',
        "To": ASKER,
        "Subject": "Re: Where is my order?",
        "TextBody": "On its way.",
        "HtmlBody": "<b>On its way.</b>",
    }


async def test_answers_to_a_reply_go_where_the_settings_say() -> None:
    provider = await sent(msgspec.structs.replace(POSTMARK, email_reply_to="desk@example.com"), MAIL)
    assert json.loads(provider.asked[0].content)["ReplyTo"] == "desk@example.com"


class Recorded:
    """Stands in for the connections of Twilio's own library, and keeps what it asks."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any, Any]] = []

    def request(self, method: str, url: str, *, data: Any, auth: Any, **_: Any) -> Any:
        self.asked.append((method, url, data, auth))
        return SimpleNamespace(status_code=201, text=json.dumps({"sid": "SM" + "0" * 32}), headers={})


async def test_twilio_is_asked_what_its_own_library_would_ask() -> None:
    reply = SmsReply(
        body="On its way \u2603", media_urls=["https://example.com/a.png", "https://example.com/b.png"]
    )
    [request] = (await sent(OURS, reply, httpx.Response(201, json={}))).asked
    assert OURS.twilio_account_sid
    assert OURS.twilio_auth_token
    recorded = Recorded()
    theirs = Client(OURS.twilio_account_sid, OURS.twilio_auth_token, http_client=recorded)
    theirs.messages.create(
        to=ASKER_PHONE, from_=OURS.twilio_from_e164, body=reply.body, media_url=reply.media_urls
    )
    [(method, url, data, auth)] = recorded.asked
    form = parse_qsl(httpx.Request(method, url, data=data).content.decode())
    assert (request.method, str(request.url)) == (method, url)
    assert sorted(parse_qsl(request.content.decode())) == sorted(form)
    user_and_password = base64.b64encode(":".join(auth).encode()).decode()
    assert request.headers["authorization"] == f"Basic {user_and_password}"


async def test_an_outbound_worker_is_asked_for_both_with_a_key() -> None:
    [mail] = (await sent(OUTBOUND, MAIL)).asked
    [sms] = (await sent(OUTBOUND, SmsReply(body="x", media_urls=["https://example.com/a"]))).asked
    for request, path, key in ((mail, "email", "0190a0b1-mail:reply"), (sms, "sms", "0190a0b1-text:reply")):
        assert str(request.url) == f"https://out.example.com/v1/{path}"
        assert request.headers["authorization"] == "Bearer token-of-the-worker"
        assert request.headers["idempotency-key"] == key
    body = json.loads(mail.content)
    headers = body.pop("headers")
    assert body == {"to": [ASKER], "subject": "Re: Where is my order?", "text": "On its way."}
    assert headers["In-Reply-To"] == "<q3@example.org>"
    assert headers["Message-ID"] == "<0190a0b1-mail~reply@out.example.com>"
    assert json.loads(sms.content) == {"to": ASKER_PHONE, "body": "x", "mediaUrls": ["https://example.com/a"]}


def refusal(status: int, **body: Any) -> httpx.Response:
    return httpx.Response(status, json={"message": f"not to {ASKER} or {ASKER_PHONE}", **body})


CODES = [
    (POSTMARK, MAIL, refusal(422, ErrorCode=406), GiveUp, "REPLY_EMAIL_SEND_FAILED", "406"),
    (POSTMARK, MAIL, refusal(422, ErrorCode=300), GiveUp, "REPLY_EMAIL_SEND_FAILED", "300"),
    (POSTMARK, MAIL, refusal(422, ErrorCode=405), TryAgain, "REPLY_EMAIL_SEND_FAILED", "405"),
    (POSTMARK, MAIL, refusal(401, ErrorCode=10), GiveUp, "OUTBOUND_UNAUTHORIZED", "EMAIL_PROVIDER_API_KEY"),
    (POSTMARK, MAIL, refusal(429), TryAgain, "REPLY_EMAIL_SEND_FAILED", "429"),
    (POSTMARK, MAIL, refusal(503), TryAgain, "REPLY_EMAIL_SEND_FAILED", "503"),
    (POSTMARK, MAIL, httpx.ConnectError("x"), TryAgain, "REPLY_EMAIL_SEND_FAILED", "ConnectError"),
    (POSTMARK, MAIL, httpx.Response(422, text="<p>no"), GiveUp, "REPLY_EMAIL_SEND_FAILED", "422"),
    (
        POSTMARK,
        MAIL,
        httpx.Response(302, headers={"location": "/"}),
        GiveUp,
        "REPLY_EMAIL_SEND_FAILED",
        "302",
    ),
    (OURS, SMS, refusal(400, code=21610), GiveUp, "REPLY_SMS_SEND_FAILED", "21610"),
    (OURS, SMS, refusal(401, code=20003), GiveUp, "OUTBOUND_UNAUTHORIZED", "TWILIO_AUTH_TOKEN"),
    (OURS, SMS, refusal(403), GiveUp, "OUTBOUND_UNAUTHORIZED", "403"),
    (OURS, SMS, refusal(429, code=20429), TryAgain, "REPLY_SMS_SEND_FAILED", "20429"),
    (OURS, SMS, refusal(500), TryAgain, "REPLY_SMS_SEND_FAILED", "500"),
    (OURS, SMS, httpx.ReadTimeout("x"), TryAgain, "REPLY_SMS_SEND_FAILED", "ReadTimeout"),
    (OUTBOUND, SMS, refusal(400), GiveUp, "REPLY_SMS_SEND_FAILED", "400"),
    (OUTBOUND, MAIL, refusal(403), GiveUp, "OUTBOUND_UNAUTHORIZED", "OUTBOUND_TOKEN"),
    (OUTBOUND, MAIL, refusal(409), TryAgain, "REPLY_EMAIL_SEND_FAILED", "409"),
]


@pytest.mark.parametrize(("providers", "reply", "said", "kind", "code", "told"), CODES)
async def test_a_refusal_has_its_code_and_tells_nobodys_address(
    providers: Providers,
    reply: Reply,
    said: httpx.Response | Exception,
    kind: type[TryAgain] | type[GiveUp],
    code: str,
    told: str,
) -> None:
    counts = Counts()
    with pytest.raises(kind) as raised:
        await sent(providers, reply, said, counts=counts)
    assert raised.value.code == code
    assert told in str(raised.value)
    assert not any(personal in str(raised.value) for personal in (ASKER, ASKER_PHONE, "of-the-shop"))
    assert [outcome for _, outcome in counts] == ["again" if kind is TryAgain else "refused"]


async def test_a_pause_that_is_asked_for_is_told() -> None:
    with pytest.raises(TryAgain) as raised:
        await sent(OURS, SMS, httpx.Response(429, headers={"retry-after": "17"}))
    assert raised.value.delay_s == 17


async def test_an_answer_of_any_size_is_not_kept() -> None:
    with pytest.raises(GiveUp):
        await sent(OURS, SMS, httpx.Response(400, content=b'{"code": 7, "x": "' + b"x" * 1_000_000 + b'"}'))


async def test_a_provider_that_never_ends_its_answer_is_not_waited_for() -> None:
    async def slowly(request: httpx.Request) -> httpx.Response:
        await trio.sleep_forever()
        raise AssertionError

    async with open_sender(OURS, transport=httpx.MockTransport(slowly)) as sender:
        began_s = trio.current_time()
        with pytest.raises(TryAgain) as raised:
            await sender.send(answer(SMS))
    assert raised.value.code == "REPLY_SMS_SEND_FAILED"
    assert trio.current_time() - began_s == SEND_S_MAX


async def test_a_reply_that_is_on_its_way_is_not_sent_beside_itself() -> None:
    asked, go_on = trio.Event(), trio.Event()
    counts = Counts()

    async def slowly(request: httpx.Request) -> httpx.Response:
        asked.set()
        await go_on.wait()
        return TAKEN

    async with (
        open_sender(OURS, transport=httpx.MockTransport(slowly), count=counts) as sender,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(sender.send, answer(SMS))
        await asked.wait()
        with pytest.raises(TryAgain):
            await sender.send(answer(SMS))
        go_on.set()
    assert [outcome for _, outcome in counts] == ["again", "sent"]


@pytest.mark.parametrize(
    "reply",
    [
        SmsReply(body="x", to=ASKER_PHONE, media_urls=["https://example.org/a"] * 11),
        SmsReply(body="x", to=ASKER_PHONE, media_urls=["http://169.254.169.254/"]),
        SmsReply(body="x" * 1_601, to=ASKER_PHONE),
        EmailReply(to=[ASKER], subject="a\nBcc: b@example.net", text="x"),
    ],
)
async def test_what_may_not_be_sent_is_no_call_to_any_provider(reply: Reply) -> None:
    """Entries of an outbox queue, which others may write to, are judged like replies of a handler."""
    it = Outgoing(id="k", event_id="e", source="sms", reply=reply)
    provider, counts = Provider(TAKEN), Counts()
    async with open_sender(OUTBOUND, transport=provider.transport, count=counts) as sender:
        with pytest.raises(GiveUp) as raised:
            await sender.send(it)
    assert raised.value.code == "POLICY_VIOLATION"
    assert provider.asked == []
    assert [outcome for _, outcome in counts] == ["refused"]


@pytest.mark.parametrize("reply", [MAIL, SMS])
async def test_without_a_provider_a_reply_is_given_up_with_what_to_set(reply: Reply) -> None:
    with pytest.raises(GiveUp, match="OUTBOUND_URL"):
        await sent(Providers(), reply)


async def test_what_is_set_up_wins_over_an_outbound_worker() -> None:
    both = msgspec.structs.replace(POSTMARK, outbound_url="https://out.example.com", outbound_token="t")
    [mail], [sms] = (await sent(both, MAIL)).asked, (await sent(both, SMS)).asked
    assert (mail.url.host, sms.url.host) == ("api.postmarkapp.com", "api.twilio.com")
    assert parse_qs(sms.content.decode())["To"] == [ASKER_PHONE]


WRONG = {
    "EMAIL_FROM": [
        Providers(email_provider="postmark", email_provider_api_key="k"),
        Providers(email_provider="postmark", email_provider_api_key="k", email_from="Shop"),
        Providers(email_provider="postmark", email_provider_api_key="k", email_from="a@b\r\nBcc: c@d"),
        Providers(email_provider="postmark", email_provider_api_key="k", email_from=f"a@{'b' * 70}.example"),
    ],
    "EMAIL_REPLY_TO": [msgspec.structs.replace(POSTMARK, email_reply_to="desk")],
    "EMAIL_PROVIDER_API_KEY": [
        Providers(email_provider="postmark", email_from="a@b.example"),
        msgspec.structs.replace(POSTMARK, email_provider_api_key="a\nb"),
    ],
    "SMTP_URL": [
        msgspec.structs.replace(OURS, email_provider="smtp"),
        msgspec.structs.replace(OURS, email_provider="ses", smtp_url="email.eu-west-1.amazonaws.com"),
        msgspec.structs.replace(OURS, email_provider="smtp", smtp_url="smtp://a:p%C3%A4ss@mail.example.com"),
    ],
    "TWILIO_ACCOUNT_SID": [msgspec.structs.replace(OURS, twilio_account_sid="AC1/../../x")],
    "TWILIO_AUTH_TOKEN": [msgspec.structs.replace(OURS, twilio_auth_token="")],
    "TWILIO_FROM_E164": [
        msgspec.structs.replace(OURS, twilio_from_e164=None),
        msgspec.structs.replace(OURS, twilio_from_e164="0800 123"),
    ],
    "OUTBOUND_URL": [
        Providers(email_provider="outbound"),
        Providers(outbound_url="http://out.example.com", outbound_token="t"),
        Providers(outbound_url="ftp://out.example.com", outbound_token="t"),
        Providers(outbound_url="https://user:word@out.example.com", outbound_token="t"),
    ],
    "OUTBOUND_TOKEN": [
        Providers(outbound_url="https://out.example.com"),
        Providers(outbound_url="https://out.example.com", outbound_token="a b"),
    ],
}


@pytest.mark.parametrize(
    ("setting", "providers"), [(setting, one) for setting, many in WRONG.items() for one in many]
)
async def test_settings_that_cannot_be_are_refused_at_the_start_by_name(
    setting: str, providers: Providers
) -> None:
    with pytest.raises(ValueError, match=setting) as raised:
        async with open_sender(providers):
            pass
    assert not any(secret in str(raised.value) for secret in (":word", "of-the-shop", "p%C3"))
    assert repr(providers) == "Providers(...)"
