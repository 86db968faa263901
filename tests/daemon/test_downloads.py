"""Objects as streams: ranges, connections that drop, links that end, and hosts that may not be asked."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest
import trio

from edgequeues.daemon.contract import GiveUp, TryAgain
from edgequeues.daemon.downloads import PIECE_BYTES_MAX, RESUMES_MAX, Downloads, open_downloads
from edgequeues.events.event import BlobRef

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ENDPOINT = "https://queues.example.com/blobs/demo"
DATA = random.Random(7).randbytes(300_000)
LINK = "https://queues.example.com/o?sig=1"
KEY = "email/2026/01/02/e/body.html"


def ref(
    url: str | None = "https://queues.example.com/o?sig=1", expires: datetime | None = NOON + timedelta(1)
) -> BlobRef:
    ends = None if expires is None else expires.isoformat().replace("+00:00", "Z")
    return BlobRef(bucket="switchboard-ingress", key=KEY, presigned_get_url=url, expires_at=ends)


class Broken(httpx.AsyncByteStream):
    """A body that ends with a fault."""

    def __init__(self, data: bytes, fault: Exception | None) -> None:
        self.closed = False
        self._data = data
        self._fault = fault

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._data), 10_000):
            yield self._data[at : at + 10_000]
        if self._fault is not None:
            raise self._fault

    async def aclose(self) -> None:
        self.closed = True


class Store:
    """Stands in for an object store and for the endpoint that makes links, `https://queues.example.com/new?n`."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.ranges = True
        self.good: Callable[[str], bool] = lambda query: True
        self.gone = False
        self.breaks: list[int] = []  # after so many bytes of an answer, in turn
        self.failing: list[int] = []  # statuses, in turn
        self.link: str | None = "https://queues.example.com/new?n"
        self.link_status = 200
        self.asked: list[httpx.Request] = []
        self.renewals: list[httpx.Request] = []
        self.bodies: list[Broken] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            self.renewals.append(request)
            return httpx.Response(
                self.link_status, json={"presignedGetUrl": self.link, "expiresAt": "2026-01-09T00:00:00Z"}
            )
        self.asked.append(request)
        if self.failing:
            return httpx.Response(self.failing.pop(0))
        if self.gone:
            return httpx.Response(404)
        if not self.good(request.url.query.decode()):
            return httpx.Response(403)
        return self._object(request)

    def _object(self, request: httpx.Request) -> httpx.Response:
        headers = {"content-type": "text/html", "etag": '"v1"'}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        start, status = 0, 200
        data = self.data
        if wanted and self.ranges:
            start, status = int(wanted[1]), 206
            end = min(int(wanted[2]) + 1 if wanted[2] else len(data), len(data))
            if start >= len(data):
                return httpx.Response(416, headers={"content-range": f"bytes */{len(data)}"})
            headers["content-range"] = f"bytes {start}-{end - 1}/{len(data)}"
            data = data[start:end]
        headers["content-length"] = str(len(data))
        fault = None
        if self.breaks:
            data, fault = data[: self.breaks.pop(0)], httpx.ReadError("reset")
        self.bodies.append(body := Broken(data, fault))
        return httpx.Response(status, headers=headers, stream=body)


@asynccontextmanager
async def downloading(
    store: Store, *, endpoint: str | None = ENDPOINT, hosts: tuple[str, ...] = (), now: datetime = NOON
) -> AsyncIterator[Downloads]:
    async with open_downloads(
        endpoint=endpoint, token="t", hosts=hosts, now=lambda: now, transport=httpx.MockTransport(store)
    ) as downloads:
        yield downloads
    assert all(body.closed for body in store.bodies)


async def fetched(store: Store, one: BlobRef, start: int = 0, end: int | None = None) -> bytes:
    async with downloading(store) as downloads, downloads.open(one, start=start, end=end) as download:
        return await download.read()


async def test_an_object_comes_in_pieces_with_its_size_and_type_and_without_our_credentials() -> None:
    store = Store()
    async with downloading(store) as downloads, downloads.open(ref()) as download:
        assert (download.size, download.content_type) == (len(DATA), "text/html")
        pieces = [piece async for piece in download]
    assert b"".join(pieces) == DATA
    assert max(map(len, pieces)) <= PIECE_BYTES_MAX
    [request] = store.asked
    assert "authorization" not in request.headers
    assert "cookie" not in request.headers


RANGES = [
    (0, 1),
    (5, 5),
    (10, 100_000),
    (299_999, None),
    (1, None),
    (0, 10**9),
    (300_000, None),
    (400_000, 500_000),
]


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
@pytest.mark.parametrize(("start", "end"), RANGES)
async def test_a_range_is_just_these_bytes_whether_the_server_has_ranges_or_not(
    start: int, end: int | None, ranges: bool
) -> None:
    store = Store()
    store.ranges = ranges
    assert await fetched(store, ref(), start, end) == DATA[start:end]


@pytest.mark.parametrize(("start", "end"), [(-1, None), (5, 4)])
async def test_a_range_that_is_none_is_a_mistake_of_the_handler(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="range"):
        await fetched(Store(), ref(), start, end)


async def test_what_drops_the_connection_is_made_good_from_where_it_stopped() -> None:
    store = Store()
    store.breaks = [120_000, 0, 30_000]
    assert await fetched(store, ref(), 7, 250_000) == DATA[7:250_000]
    assert [request.headers["range"] for request in store.asked] == [
        "bytes=7-249999", "bytes=120007-249999", "bytes=120007-249999", "bytes=150007-249999",
    ]  # fmt: skip
    assert [request.headers.get("if-match") for request in store.asked] == [None, '"v1"', '"v1"', '"v1"']


async def test_an_answer_that_ends_early_without_a_fault_is_no_whole_object() -> None:
    class Short(Store):
        def _object(self, request: httpx.Request) -> httpx.Response:
            response = super()._object(request)
            if len(self.asked) == 1:
                self.bodies[-1] = Broken(DATA[:10_000], None)
                return httpx.Response(200, headers=response.headers, stream=self.bodies[-1])
            return response

    assert await fetched(Short(), ref()) == DATA


async def test_a_store_that_cannot_answer_is_asked_a_few_times_and_then_again_later() -> None:
    store = Store()
    store.failing = [503, 429]
    assert await fetched(store, ref()) == DATA
    store.failing = [500] * 100
    with pytest.raises(TryAgain):
        await fetched(store, ref())
    assert len(store.failing) == 100 - 1 - RESUMES_MAX


@pytest.mark.parametrize(
    "one",
    [ref(None, None), ref(expires=NOON - timedelta(seconds=1)), ref(expires=NOON + timedelta(seconds=1))],
)
async def test_a_link_that_is_missing_or_has_ended_is_made_anew(one: BlobRef) -> None:
    store = Store()
    assert await fetched(store, one) == DATA
    [request] = store.renewals
    assert str(request.url) == ENDPOINT
    assert request.headers["authorization"] == "Bearer t"
    assert json.loads(request.content) == {"bucket": "switchboard-ingress", "key": KEY}
    assert [str(request.url) for request in store.asked] == [store.link]


async def test_a_link_that_ends_by_the_stores_clock_is_made_anew_once_also_midway() -> None:
    store = Store()
    store.good = lambda query: query == "n"
    assert await fetched(store, ref()) == DATA
    assert len(store.renewals) == 1

    store = Store()
    store.breaks = [50_000]
    store.good = lambda query: query == "n" or len(store.asked) == 1
    assert await fetched(store, ref()) == DATA
    assert len(store.renewals) == 1


async def test_an_object_that_is_gone_is_given_up() -> None:
    store = Store()
    store.gone = True
    with pytest.raises(GiveUp, match="gone"):
        await fetched(store, ref())
    assert len(store.renewals) == 1
    store.link_status = 404
    with pytest.raises(GiveUp, match="gone"):
        await fetched(store, ref(None, None))


@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_where_no_link_can_be_had_the_event_comes_again(status: int) -> None:
    store = Store()
    store.link_status = status
    with pytest.raises(TryAgain, match=str(status)):
        await fetched(store, ref(None, None))


async def test_an_endpoint_that_answers_without_a_link_is_asked_again_later() -> None:
    store = Store()
    store.link = None
    with pytest.raises(TryAgain, match="without a link"):
        await fetched(store, ref(None, None))


async def test_without_an_endpoint_a_link_that_has_ended_is_given_up_with_what_to_set() -> None:
    store = Store()
    async with downloading(store, endpoint=None, hosts=("queues.example.com",)) as downloads:
        async with downloads.open(ref()) as download:
            assert await download.read() == DATA
        with pytest.raises(GiveUp, match="BLOBS_ENDPOINT"):
            async with downloads.open(ref(None, None)):
                pass


FOREIGN = [
    "https://evil.example/o",
    "https://queues.example.com.evil.example/o",
    "https://queues.example.com:8443/o",
    "http://queues.example.com/o",
    "http://169.254.169.254/latest/meta-data",
    "https://127.0.0.1/o",
    "https://queues.example.com@evil.example/o",
    "https://user:word@queues.example.com/o",
    "file:///etc/passwd",
    "//queues.example.com/o",
    "https://",
    "https://queues.example.com\\@evil.example/",
]


@pytest.mark.parametrize("url", FOREIGN)
async def test_a_link_to_another_host_is_refused_and_nobody_asked(url: str) -> None:
    """An event proves nothing: whoever may write to the queue could have the daemon ask what only it can reach."""
    store = Store()
    with pytest.raises(GiveUp) as raised:
        await fetched(store, ref(url))
    assert raised.value.code == "POLICY_VIOLATION"
    assert (store.asked, store.renewals) == ([], [])


async def test_a_new_link_may_lead_no_further_than_one_of_an_event() -> None:
    store = Store()
    store.link = "http://169.254.169.254/"
    with pytest.raises(GiveUp, match="BLOBS_HOSTS"):
        await fetched(store, ref(None, None))
    assert store.asked == []


async def test_a_host_that_is_listed_may_be_asked_and_a_redirect_is_not_followed() -> None:
    async def elsewhere(request: httpx.Request) -> httpx.Response:
        assert request.url.host == "r2.example.com"
        return httpx.Response(302, headers={"location": "http://169.254.169.254/"})

    async with open_downloads(
        hosts=["r2.example.com", "127.0.0.1:9000"], now=lambda: NOON, transport=httpx.MockTransport(elsewhere)
    ) as downloads:
        with pytest.raises(GiveUp, match="redirect"):
            async with downloads.open(ref("https://R2.example.com/o")):
                pass
        with pytest.raises(GiveUp, match="BLOBS_HOSTS"):
            async with downloads.open(ref("http://127.0.0.1:9001/o")):
                pass


@pytest.mark.parametrize("host", ["", "a b", "https://r2.example.com", "a/b", "u@a"])
async def test_a_list_of_hosts_that_cannot_be_is_refused_at_the_start(host: str) -> None:
    with pytest.raises(ValueError, match="BLOBS_HOSTS"):
        async with open_downloads(hosts=[host]):
            pass


@pytest.mark.parametrize(
    ("setting", "endpoint", "token"),
    [("BLOBS_ENDPOINT", "queues.example.com", "t"), ("BLOBS_TOKEN", ENDPOINT, "secret\r\nx: y")],
)
async def test_an_endpoint_that_cannot_be_asked_is_refused_at_the_start(
    setting: str, endpoint: str, token: str
) -> None:
    with pytest.raises(ValueError, match=setting) as raised:
        async with open_downloads(endpoint=endpoint, token=token):
            pass
    assert "secret" not in str(raised.value)


async def test_more_than_a_handler_wants_at_once_is_not_read() -> None:
    store = Store()
    async with downloading(store) as downloads, downloads.open(ref()) as download:
        with pytest.raises(GiveUp, match="300000"):
            await download.read(299_999)
        assert await download.read(300_000) == DATA


async def test_a_handler_may_stop_reading_whenever_it_likes() -> None:
    store = Store()
    async with downloading(store) as downloads:
        async with downloads.open(ref()) as download:
            async for _ in download:
                break
        with trio.CancelScope() as scope:
            async with downloads.open(ref()) as download:
                await anext(aiter(download))
                scope.cancel()
                await trio.lowlevel.checkpoint()
    assert len(store.bodies) == 2


async def test_an_object_that_changes_while_it_is_read_is_not_mixed_with_what_it_was() -> None:
    store = Store()
    store.breaks = [10_000]
    async with downloading(store) as downloads, downloads.open(ref()) as download:
        await anext(aiter(download))
        store.data = DATA + b"more"
        with pytest.raises(TryAgain, match="changed"):
            await download.read()
