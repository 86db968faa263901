"""Handlers that are URLs: each event is posted there, signed with a secret, and the answer is the result."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime

import httpx
import msgspec
import trio

from edgequeues import answers
from edgequeues.answers import AGAIN
from edgequeues.core.errors import reason
from edgequeues.core.signatures import standard_headers
from edgequeues.daemon.contract import Context, GiveUp, Handler, Result, TryAgain
from edgequeues.daemon.downloads import has_ended
from edgequeues.daemon.handlers.spec import HandlerSpec, Link, UnusableHandler
from edgequeues.events.event import Attachment, BlobRef, Content, SwitchboardEvent

ANSWER_BYTES_MAX = 1024 * 1024
WAIT_S_MAX = 86_400.0  # that a receiver may ask for with Retry-After


class Posting:
    """Posts events. now_s: unix time, which a signature holds."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        *,
        link: Link | None,
        secret: str | None,
        now_s: Callable[[], float],
    ) -> None:
        self._client = client
        self._url = url
        self._shown = url.partition("?")[0]  # there may be a secret behind that
        self._link = link
        self._secret = secret
        self._now_s = now_s

    async def handle(self, event: SwitchboardEvent, ctx: Context) -> Result:
        """See `contract.Handler`."""
        if self._link is not None:
            event = await with_links(event, self._link, ctx.now())
        body = msgspec.json.encode(event)
        headers = [
            ("content-type", "application/json"),
            ("user-agent", "edgequeues"),
            ("idempotency-key", event.id),
            ("x-attempt", str(ctx.attempt)),
        ]
        if self._secret is not None:
            headers += standard_headers(self._secret, event.id, int(self._now_s()), body)
        request = self._client.build_request("POST", self._url, content=body, headers=headers)
        try:
            response = await self._client.send(request, stream=True)
            try:
                return await self._result(response)
            finally:
                with trio.CancelScope(shield=True):
                    await response.aclose()
        except httpx.TransportError as fault:
            raise TryAgain(f"{self._shown} cannot be reached: {reason(fault)}") from None

    async def _result(self, response: httpx.Response) -> Result:
        status = response.status_code
        said = f"{self._shown} answered {status}"
        if response.is_redirect:
            raise TryAgain(f"{said}, and redirects are not followed: name the URL that it leads to")
        if 400 <= status < 500 and status not in AGAIN:
            raise GiveUp(said)
        if not response.is_success:
            raise TryAgain(said, delay_s=self._retry_after_s(response.headers.get("retry-after", "")))
        body = await answers.body(response, ANSWER_BYTES_MAX)
        if body is None:
            raise TryAgain(f"{said}, with more than {ANSWER_BYTES_MAX} bytes")
        if not body.strip():
            return Result()
        try:
            return msgspec.json.decode(body, type=Result | None) or Result()
        except msgspec.DecodeError as fault:
            raise TryAgain(f"{said}, with what is no result: {fault}; answer 204, or with JSON") from None

    def _retry_after_s(self, text: str) -> float | None:
        """https://www.rfc-editor.org/rfc/rfc9110.html#name-retry-after"""
        if text.isascii() and text.isdigit():
            return min(float(text[:9]), WAIT_S_MAX)
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        if moment.tzinfo is None:
            return None
        return min(max(0.0, moment.timestamp() - self._now_s()), WAIT_S_MAX)


@asynccontextmanager
async def open_posting(
    spec: HandlerSpec,
    *,
    link: Link | None = None,
    secret: str | None = None,
    now_s: Callable[[], float] = time.time,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Handler]:
    """Post over connections that are closed with the block. Raises UnusableHandler for a secret that will not do.

    transport: what carries requests, instead of sockets. Nothing of the environment changes where they lead.
    """
    if secret is not None:
        try:
            standard_headers(secret, "check", 0, b"")
        except ValueError as fault:
            raise UnusableHandler(f"HANDLER_SECRET: {fault}; write whsec_ and base64") from None
    limits = httpx.Limits(max_connections=spec.at_once, keepalive_expiry=30.0)
    async with httpx.AsyncClient(
        verify=ssl.create_default_context(), trust_env=False, limits=limits, timeout=None, transport=transport
    ) as client:
        yield Posting(client, spec.target, link=link, secret=secret, now_s=now_s)


async def with_links(event: SwitchboardEvent, link: Link, now: datetime) -> SwitchboardEvent:
    """The event with a link to each object that has none, or one that has ended. Raises TryAgain.

    An object that is gone keeps what it has: whether that matters is the handler's to say.
    """

    async def good(ref: BlobRef) -> BlobRef:
        if ref.presigned_get_url is not None and not has_ended(ref, now):
            return ref
        try:
            return await link(ref)
        except GiveUp:
            return ref

    content = event.content
    html = None if content.html_r2 is None else await good(content.html_r2)
    attachments: list[Attachment] = [
        msgspec.structs.replace(one, r2=await good(one.r2)) for one in content.attachments
    ]
    changed: Content = msgspec.structs.replace(content, html_r2=html, attachments=attachments)
    return msgspec.structs.replace(event, content=changed)
