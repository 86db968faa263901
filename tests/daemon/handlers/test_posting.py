"""Handlers that are URLs: what is posted, and what is made of the answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from email.utils import format_datetime

import httpx
import msgspec
import pytest
import trio
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from edgequeues.daemon.contract import GiveUp, Result, TryAgain
from edgequeues.daemon.handlers.posting import ANSWER_BYTES_MAX, WAIT_S_MAX, open_posting
from edgequeues.daemon.handlers.spec import HandlerSpec, Link, UnusableHandler
from edgequeues.events.event import BlobRef, SwitchboardEvent
from tests.daemon.handlers.given import LINK, REF, FakeContext, event, link
from tests.daemon.handlers.opened import one, spec
from tests.daemon.handlers.receiver import receiver

URL = "https://shop.example/events?key=hidden"
SECRET = "whsec_" + "c2VjcmV0" * 4
Answer = Callable[[httpx.Request], httpx.Response]


class Posted:
    """What a handler asked of a receiver that gives one answer."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[httpx.Request] = []
        self._answer = answer

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self._answer(request)


async def post(
    answer: httpx.Response | Answer, what: SwitchboardEvent | None = None, now_s: float = 0.0
) -> Result:
    posted = Posted(answer if callable(answer) else lambda _: answer)
    target = HandlerSpec(kind="url", target=URL)
    async with open_posting(
        target, link=link, now_s=lambda: now_s, transport=httpx.MockTransport(posted)
    ) as handler:
        try:
            return await handler.handle(what or event("nothing"), FakeContext())
        finally:
            assert len(posted.asked) == 1


@pytest.mark.parametrize("attempt", [1, 4])
async def test_what_is_posted_names_the_event_and_the_attempt(attempt: int) -> None:
    with receiver() as (url, asked):
        async with one(spec("url", url)) as it:
            await it.handle("nothing", attempt=attempt)
    [(headers, body)] = asked
    assert headers["idempotency-key"] == json.loads(body)["id"] == "event-0001"
    assert headers["x-attempt"] == str(attempt)
    assert headers["content-type"] == "application/json"
    assert "webhook-signature" not in headers


async def test_what_is_posted_is_signed_as_standard_webhooks_has_it() -> None:
    with receiver() as (url, asked):
        async with one(spec("url", url), secret=SECRET) as it:
            await it.handle("nothing")
    [(headers, body)] = asked
    assert Webhook(SECRET).verify(body, headers)["id"] == headers["webhook-id"] == "event-0001"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body + b" ", headers)


async def test_a_secret_that_will_not_do_is_refused_before_anything_is_posted_and_is_not_told() -> None:
    with pytest.raises(UnusableHandler, match=r"^HANDLER_SECRET: .*; write whsec_ and base64$") as raised:
        async with one(HandlerSpec(kind="url", target=URL), secret="whsec_hidden!"):
            raise AssertionError("it was opened")
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("12", 12.0),
        ("0", 0.0),
        ("999999999999", WAIT_S_MAX),
        (format_datetime(datetime.fromtimestamp(1_030, UTC), usegmt=True), 30.0),
        (format_datetime(datetime.fromtimestamp(900, UTC), usegmt=True), 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
    ],
)
async def test_a_receiver_says_when_to_try_again(status: int, text: str, delay_s: float | None) -> None:
    with pytest.raises(TryAgain) as raised:
        await post(httpx.Response(status, headers={"retry-after": text}), now_s=1_000.0)
    assert raised.value.delay_s == delay_s


@pytest.mark.parametrize(
    ("status", "raises"),
    [
        *((status, GiveUp) for status in (400, 404, 410)),
        *((status, TryAgain) for status in (408, 409, 423, 425, 500, 502)),
    ],
)
async def test_a_status_says_whether_there_is_use_in_trying_again(
    status: int, raises: type[Exception]
) -> None:
    with pytest.raises(raises, match=f"https://shop.example/events answered {status}$") as raised:
        await post(httpx.Response(status))
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    """`post` sees that there was one request."""
    with pytest.raises(TryAgain, match=f"answered {status}, and redirects are not followed"):
        await post(httpx.Response(status, headers={"location": "https://elsewhere.example/"}))


async def test_a_receiver_that_cannot_be_reached_is_tried_again() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(TryAgain, match="cannot be reached") as raised:
        await post(refuse)
    assert "hidden" not in str(raised.value)


class Endless(httpx.AsyncByteStream):
    """An answer that does not end; what was read of it is counted."""

    def __init__(self) -> None:
        self.sent = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await trio.lowlevel.checkpoint()
            self.sent += 65_536
            yield b" " * 65_536


async def test_an_answer_is_read_no_further_than_its_limit() -> None:
    answer = Endless()
    with pytest.raises(TryAgain, match=f"more than {ANSWER_BYTES_MAX} bytes"):
        await post(httpx.Response(200, stream=answer))
    assert answer.sent <= ANSWER_BYTES_MAX + 2 * 65_536


async def test_an_answer_as_long_as_its_limit_is_read() -> None:
    assert await post(httpx.Response(200, content=b"null".ljust(ANSWER_BYTES_MAX))) == Result()


@pytest.mark.parametrize("body", [b"", b" \n", b"null", b"{}"])
async def test_an_answer_that_says_nothing_is_success(body: bytes) -> None:
    assert await post(httpx.Response(200, content=body)) == Result()


@pytest.mark.parametrize("body", [b"<p>fine</p>", b"[]", b'{"repl": 1}', b"\xff", b"{"])
async def test_an_answer_that_is_no_result_is_a_failed_attempt(body: bytes) -> None:
    with pytest.raises(TryAgain, match=r"with what is no result: .*; answer 204, or with JSON"):
        await post(httpx.Response(200, content=body))


@pytest.mark.parametrize(
    ("url", "ends", "posted"),
    [
        (None, None, LINK),
        ("https://objects.example/old", "2025-09-21T11:59:59Z", LINK),
        ("https://objects.example/old", "2025-09-21T12:00:00Z", LINK),
        ("https://objects.example/good", "2025-09-21T12:00:01Z", "https://objects.example/good"),
    ],
)
async def test_a_link_that_has_ended_is_made_anew(url: str | None, ends: str | None, posted: str) -> None:
    ref = msgspec.structs.replace(REF, presigned_get_url=url, expires_at=ends)
    assert await _links(ref) == [posted, posted]


async def test_an_object_that_is_gone_keeps_the_link_that_it_has() -> None:
    async def gone(ref: BlobRef) -> BlobRef:
        raise GiveUp("the object is gone")

    assert await _links(REF, gone) == [None, None]


async def _links(ref: BlobRef, make: Link = link) -> list[str | None]:
    """Of the mail's HTML and the attachment, as they were posted."""
    given = event("nothing")
    attachment = msgspec.structs.replace(given.content.attachments[0], r2=ref)
    content = msgspec.structs.replace(given.content, html_r2=ref, attachments=[attachment])
    posted = Posted(lambda _: httpx.Response(204))
    async with open_posting(
        HandlerSpec(kind="url", target=URL), link=make, transport=httpx.MockTransport(posted)
    ) as handler:
        await handler.handle(msgspec.structs.replace(given, content=content), FakeContext())
    [request] = posted.asked
    body = json.loads(request.content)["content"]
    return [one.get("presignedGetUrl") for one in (body["htmlR2"], body["attachments"][0]["r2"])]
