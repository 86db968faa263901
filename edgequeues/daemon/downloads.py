"""Objects as streams: over a link that came with the event, or over a new one, from hosts that are allowed only."""

from __future__ import annotations

import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import httpx
import trio

from edgequeues.client.errors import Unreachable
from edgequeues.client.http import BEARER_TOKEN, ByteStream
from edgequeues.daemon.contract import Download, GiveUp, TryAgain
from edgequeues.daemon.sending.api import address, fetch
from edgequeues.events.event import BlobRef

PIECE_BYTES_MAX = 64 * 1024  # so that what a handler is given at once does not depend on the network
RESUMES_MAX = 5  # in a row, without a byte between them
TIMEOUT_S = 30.0  # for each step of a request
CONNECTIONS_MAX = 100
MARGIN = timedelta(seconds=5)  # a link that ends sooner is made anew at once

_RANGE: Final = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")
_HOST: Final = re.compile(r"[\w.:\[\]-]+")
_ENDED: Final = frozenset({403, 404, 410})  # what a link that has ended, or leads nowhere, is answered with


class Downloads:
    """Fetches objects. hosts: `host` for https, or `host:port`, that may be asked beside the endpoint's own.

    endpoint: where new links are asked for, `https://host/blobs/<space>`; None: links are used as they came.
    Events come from a queue that others may write to, so a link in one of them proves nothing.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        now: Callable[[], datetime],
        *,
        endpoint: str | None = None,
        token: str | None = None,
        hosts: Iterable[str] = (),
    ) -> None:
        self._client = client
        self._now = now
        self._endpoint = endpoint or None
        self._token = token or None
        if self._token and not BEARER_TOKEN.fullmatch(self._token):
            raise ValueError("BLOBS_TOKEN holds a space, a line break or another character that no token has")
        self._allowed = {_listed(host) for host in hosts}
        if self._endpoint:
            self._allowed.add(_origin(address(self._endpoint, "BLOBS_ENDPOINT")))

    @asynccontextmanager
    async def open(self, ref: BlobRef, *, start: int = 0, end: int | None = None) -> AsyncIterator[Download]:
        """An object, or its bytes from `start` to before `end`. It, and reading it, raise TryAgain, GiveUp."""
        if start < 0 or (end is not None and end < start):
            raise ValueError("a range of an object begins at 0 or later, and does not end before it begins")
        download = _Object(self, ref, start, end)
        try:
            await download.begin()
            yield download
        finally:
            await download.aclose()

    async def link(self, ref: BlobRef) -> str | None:
        """The link that came with the event, if it is still good. Raises GiveUp where it leads to no allowed host."""
        if ref.presigned_get_url is None:
            return None
        if has_ended(ref, self._now() + MARGIN):
            return None
        return self._checked(ref.presigned_get_url)

    async def renewed(self, ref: BlobRef) -> str:
        """A new link. Raises GiveUp where the object is gone, TryAgain where none could be had."""
        if self._endpoint is None:
            raise GiveUp(
                "the link to an object is missing or has ended; set BLOBS_ENDPOINT to have new ones made"
            )
        headers = {"authorization": f"Bearer {self._token}"} if self._token else {}
        request = self._client.build_request(
            "POST", self._endpoint, json={"bucket": ref.bucket, "key": ref.key}, headers=headers
        )
        try:
            status, answer, _ = await fetch(self._client, request)
        except httpx.TransportError as error:
            raise TryAgain(f"BLOBS_ENDPOINT cannot be reached ({type(error).__name__})") from None
        if status in (404, 410):
            raise GiveUp("the object is gone: BLOBS_ENDPOINT knows it no more")
        if status in (401, 403):
            raise TryAgain(f"BLOBS_ENDPOINT answered {status}: BLOBS_TOKEN may not make links")
        url = answer.get("presignedGetUrl")
        if not 200 <= status < 300 or not isinstance(url, str):
            raise TryAgain(f"BLOBS_ENDPOINT answered {status}, without a link")
        return self._checked(url)

    async def get(self, url: str, start: int, end: int | None, etag: str | None) -> httpx.Response:
        """Ask for the bytes of an object, without any credentials. The answer is open. Raises Unreachable."""
        headers = {"accept-encoding": "identity"}
        if start or end is not None:
            headers["range"] = f"bytes={start}-{'' if end is None else max(start, end - 1)}"
        if etag is not None:
            headers["if-match"] = etag
        try:
            return await self._client.send(
                self._client.build_request("GET", url, headers=headers), stream=True
            )
        except httpx.TransportError as error:
            raise _unreachable(error) from error

    def _checked(self, text: str) -> str:
        try:
            url = httpx.URL(text)
        except httpx.InvalidURL:
            raise GiveUp("the link to an object is not a URL") from None
        # A name and a password would be sent as credentials.
        if url.userinfo or url.scheme not in ("http", "https"):
            raise GiveUp("the link to an object is not a plain http or https URL")
        if _origin(url) not in self._allowed:
            raise GiveUp(
                "the link to an object leads to a host that is neither BLOBS_ENDPOINT's nor in BLOBS_HOSTS"
            )
        return text


class _Object:
    """A download under way, see `contract.Download`. What drops the connection is made good from where it stopped."""

    def __init__(self, downloads: Downloads, ref: BlobRef, start: int, end: int | None) -> None:
        self.size = -1  # until the first answer
        self.content_type = "application/octet-stream"
        self._downloads = downloads
        self._ref = ref
        self._at = start  # of the object; the next byte to be read
        self._end = end
        self._url: str | None = None
        self._etag: str | None = None
        self._stream: ByteStream | None = None  # of bytes, whatever they are
        self._skip = 0  # bytes that a server without ranges sends first
        self._held = b""
        self._failures = 0  # in a row

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._held:
            if self._left <= 0:
                raise StopAsyncIteration
            await self._more()
        piece, self._held = self._held[:PIECE_BYTES_MAX], self._held[PIECE_BYTES_MAX:]
        return piece

    async def read(self, limit: int = 64 * 1024 * 1024) -> bytes:
        left = len(self._held) + max(self._left, 0)
        if left > limit:
            raise GiveUp(f"{left} bytes of an object are left, and at most {limit} may be read at once")
        return b"".join([piece async for piece in self])

    async def begin(self) -> None:
        """Have the first answer. Raises TryAgain, GiveUp."""
        self._url = await self._downloads.link(self._ref)
        while self.size < 0:
            try:
                await self._open()
            except Unreachable as fault:
                await self._pause(fault)

    async def aclose(self) -> None:
        """Give the connection back."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            await stream.aclose()

    @property
    def _left(self) -> int:
        """Bytes yet to be read."""
        return (self.size if self._end is None else min(self._end, self.size)) - self._at

    async def _more(self) -> None:
        """Read on; where the connection was lost, from a new answer."""
        try:
            if self._stream is None:
                await self._open()
            assert self._stream is not None
            piece = await self._stream.receive()
            if piece is None:
                raise Unreachable("the answer ended early", maybe_done=False)
        except Unreachable as fault:
            await self._pause(fault)
            return
        skipped = min(self._skip, len(piece))
        self._skip -= skipped
        self._held = piece[skipped : skipped + self._left]
        self._at += len(self._held)
        if self._held:
            self._failures = 0

    async def _pause(self, fault: Unreachable) -> None:
        await self.aclose()
        self._failures += 1
        if self._failures > RESUMES_MAX:
            raise TryAgain(f"an object cannot be fetched: {fault}") from None
        await trio.sleep(0.1 * 2**self._failures)

    async def _open(self) -> None:
        """Ask for what is left. Raises Unreachable, TryAgain, GiveUp."""
        is_new = self._url is None
        if self._url is None:
            self._url = await self._downloads.renewed(self._ref)
        response = await self._downloads.get(self._url, self._at, self._end, self._etag)
        if response.status_code in _ENDED and not is_new:
            await _close(response)
            self._url = await self._downloads.renewed(self._ref)
            response = await self._downloads.get(self._url, self._at, self._end, self._etag)
        if response.status_code in (200, 206):
            self._stream = ByteStream(response, _unreachable)
        else:
            await _close(response)
        size = self._judge(response)
        if self.size not in (-1, size):
            raise TryAgain("an object changed its size while it was read")
        self.size = size
        self.content_type = response.headers.get("content-type", self.content_type)
        etag = response.headers.get("etag", "")
        self._etag = etag if etag.startswith('"') else None  # a weak one never matches

    def _judge(self, response: httpx.Response) -> int:
        """The size of the object. Raises unless the answer has what is left of it."""
        status, headers = response.status_code, response.headers
        part = _RANGE.fullmatch(headers.get("content-range", ""))
        if status == 206 and part and part[1] and int(part[1]) == self._at:
            self._skip = 0
            return int(part[2])
        if status == 200 and headers.get("content-length", "").isdecimal():
            self._skip = self._at
            return int(headers["content-length"])
        if status == 416:
            return int(part[2]) if part else self._at
        if status in (404, 410):
            raise GiveUp("the object is gone: a new link to it leads nowhere")
        if status == 429 or status >= 500:
            raise Unreachable(f"the object store answered {status}", maybe_done=False)
        if response.is_redirect:
            raise GiveUp("the link to an object leads elsewhere, and redirects are not followed")
        raise TryAgain(f"the object store answered {status} to a request for an object, or without its size")


@asynccontextmanager
async def open_downloads(
    *,
    endpoint: str | None = None,
    token: str | None = None,
    hosts: Iterable[str] = (),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Downloads]:
    """Fetch over connections that are closed with the block; see Downloads. Raises ValueError, naming a setting.

    transport: what carries requests, instead of sockets.
    """
    async with httpx.AsyncClient(
        verify=ssl.create_default_context(),
        trust_env=False,
        timeout=TIMEOUT_S,
        limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
        transport=transport,
    ) as client:
        yield Downloads(client, now, endpoint=endpoint, token=token, hosts=hosts)


async def _close(response: httpx.Response) -> None:
    with trio.CancelScope(shield=True):
        await response.aclose()


def _listed(host: str) -> tuple[str, int]:
    try:
        url = httpx.URL(f"https://{host}/")
    except httpx.InvalidURL:
        url = httpx.URL("")
    if not url.host or not _HOST.fullmatch(host):
        raise ValueError(f"BLOBS_HOSTS lists {host!r}, which is no host; write r2.example.com, or host:port")
    return _origin(url)


def _origin(url: httpx.URL) -> tuple[str, int]:
    return url.host.lower().removesuffix("."), url.port or {"http": 80}.get(url.scheme, 443)


def has_ended(ref: BlobRef, now: datetime) -> bool:
    """Has the end of a link been reached at that time? One whose end is no time counts as ended."""
    if ref.expires_at is None:
        return False
    try:
        return datetime.fromisoformat(ref.expires_at) <= now
    except ValueError:
        return True


def _unreachable(fault: httpx.TransportError) -> Unreachable:
    return Unreachable(f"no whole answer of the object store ({type(fault).__name__})", maybe_done=False)
