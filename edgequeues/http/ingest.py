"""Mails and text messages over HTTP, at `/ingest`. docs/protocol/ingest.md is the contract.

What may pass by itself is a 5xx, so that the sender repeats it. After the token, or the signature, nothing that a
stranger can write into a message is a 4xx: it is an event, or a dead letter that says why it is none.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Struct

from edgequeues.core.errors import InvalidRequest, TwilioSignatureInvalid
from edgequeues.core.signatures import Signed, Verifier
from edgequeues.http import codec, hook_body, params, problems
from edgequeues.http.hook_body import FORM
from edgequeues.http.hooks import TWIML
from edgequeues.http.problems import NotReady
from edgequeues.http.routes import Dialect, Request, Response, Route, media
from edgequeues.ingest import mail_headers, sms
from edgequeues.workers.mailroom import Mailroom, Received
from edgequeues.workers.media import Account
from shards.clock import Clock

MAIL = ("message/rfc822", "application/octet-stream")
PARSING_TAKES = 4  # times the bytes of a mail, while it is taken apart
SENDER, RECIPIENT = b"edgequeues-envelope-from", b"edgequeues-envelope-to"

log = logging.getLogger("edgequeues.ingress")


class Twilio(NamedTuple):
    """How Twilio is known. token_env: the environment's variable with the auth token, whose value is `token`.

    account: whose messages are taken; "": of any account that signs with the token.
    """

    token_env: str
    token: str
    verifier: Verifier | None
    account: str


class Doors(NamedTuple):
    """What the routes have to do with. base_url: as for webhooks."""

    mailroom: Mailroom
    twilio: Twilio
    clock: Clock
    email_bytes_max: int
    form_bytes_max: int
    base_url: str


class TakenOut(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What became of a mail. error: it is a dead letter, and why."""

    event_id: str
    duplicate: bool | msgspec.UnsetType = msgspec.UNSET
    thread_key: str | None = None
    error: str | None = None


def dialect(doors: Doors) -> Dialect:
    """The table."""

    def inbox(_: Request) -> tuple[str | None, str | None]:
        return doors.mailroom.inbox

    async def email(request: Request) -> Response:
        """Take a mail; 2xx: it is on disk, or it was before."""
        params.only(request.query, ())
        media(request, *MAIL)
        sent_by, sent_to = _envelope(request.headers)
        raw = await request.body(doors.email_bytes_max)
        request.hold(PARSING_TAKES * len(raw))
        return _answer(await doors.mailroom.email(raw, sent_by, sent_to))

    async def text_message(request: Request) -> Response:
        """Take a text message; 2xx: it is on disk, or it was before. What is answered has Twilio say nothing."""
        body = await _signed(doors, request)
        try:
            message = sms.parse(body)
        except InvalidRequest as error:
            received = await doors.mailroom.unfit_sms(body, error)
        else:
            if doors.twilio.account not in ("", message.account):
                raise TwilioSignatureInvalid("AccountSid is not that of the setting ingest_sms_account")
            account = Account(message.account, doors.twilio.token)
            received = await doors.mailroom.sms(message, account)
        return Response(TWIML, status=200 if received.duplicate else 202, media=b"text/xml; charset=utf-8")

    return Dialect(
        "ingest",
        ("/ingest/",),
        [
            Route("POST", "/ingest/email", email, "ingest", place=inbox),
            Route("POST", "/ingest/sms", text_message, None),
        ],
        problems.refuse,
    )


async def _signed(doors: Doors, request: Request) -> bytes:
    """A form that Twilio has signed. Raises NotReady, TooLarge, UnsupportedMedia, TwilioSignatureInvalid."""
    twilio = doors.twilio
    if twilio.verifier is None:
        raise NotReady(f"text messages are not taken: set {twilio.token_env} to the account's auth token")
    media(request, FORM)
    body = await request.body(doors.form_bytes_max)
    signed = Signed(request.head.headers, body, hook_body.url_of(doors.base_url, request), is_form=True)
    refused = twilio.verifier.check(signed, doors.clock.now_ms() / 1_000)
    if refused is not None:
        log.warning("a text message: refused, %s: %s", refused.kind, refused.detail)
        raise TwilioSignatureInvalid("a text message")
    return body


def _envelope(headers: Mapping[bytes, bytes]) -> tuple[str | None, str | None]:
    """Addresses of the envelope. Raises InvalidRequest, which repeats none."""
    sender, recipient = (headers.get(name, b"").decode("utf-8", "replace") for name in (SENDER, RECIPIENT))
    return (
        mail_headers.envelope(sender, "header Edgequeues-Envelope-From"),
        mail_headers.envelope(recipient, "header Edgequeues-Envelope-To"),
    )


def _answer(received: Received) -> Response:
    said = TakenOut(received.event_id, received.duplicate, received.thread_key, received.error)
    return Response(codec.encode(said), status=200 if received.duplicate else 202)
