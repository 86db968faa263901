"""Media of text messages: from listed hosts, at public addresses, within bounds; the password for Twilio alone."""

from __future__ import annotations

import gzip
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
import trio

from edgequeues.core.errors import MmsFetchFailed, MmsMediaTooLarge
from edgequeues.workers.media import Account, open_media

ACCOUNT = Account("AC1", "hidden-token")
PUBLIC = "93.184.216.34"


class Names(trio.abc.HostnameResolver):
    """Every name is at these addresses, one more with each question."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.asked = 0

    async def getaddrinfo(self, host: bytes | None, port: bytes | str | int | None, *_: int) -> Any:
        address = self._addresses[min(self.asked, len(self._addresses) - 1)]
        self.asked += 1
        return [(2, 1, 6, "", (address, 443))]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        raise NotImplementedError


Answer = Callable[[httpx.Request], httpx.Response]


async def fetched(url: str, answer: Answer, *hosts: str, bytes_max: int = 100) -> bytes:
    async with open_media(hosts or ("api.twilio.com",), httpx.MockTransport(answer)) as media:
        return await media.fetch(url, ACCOUNT, bytes_max)


async def test_the_password_goes_to_twilios_api_and_not_to_where_that_leads() -> None:
    names = Names(PUBLIC)
    trio.socket.set_custom_hostname_resolver(names)
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.headers["host"] == "api.twilio.com":
            return httpx.Response(307, headers={"location": "https://mms.twiliocdn.com/x?signed=1"})
        return httpx.Response(200, content=b"picture")

    url = "https://api.twilio.com/2010-04-01/Media/ME1"
    assert await fetched(url, answer, "api.twilio.com", "mms.twiliocdn.com") == b"picture"
    first, second = seen
    assert b64decode(first.headers["authorization"].removeprefix("Basic ")) == b"AC1:hidden-token"
    assert "authorization" not in second.headers
    assert [one.url.host for one in seen] == [PUBLIC, PUBLIC]
    assert [one.extensions["sni_hostname"] for one in seen] == ["api.twilio.com", "mms.twiliocdn.com"]
    assert names.asked == 2  # once a host: the address that was looked at is the one that is asked


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::"),
        *("224.0.0.1", "ff02::1", "::"),
    ],
)
async def test_an_address_that_is_not_public_is_never_asked(address: str) -> None:
    trio.socket.set_custom_hostname_resolver(Names(address))
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200)

    with pytest.raises(MmsFetchFailed, match="not public"):
        await fetched("https://api.twilio.com/x", answer)
    assert not asked


async def test_a_name_that_means_another_address_after_it_was_looked_at_gains_nothing() -> None:
    trio.socket.set_custom_hostname_resolver(Names(PUBLIC, "127.0.0.1"))

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=request.url.host.encode())

    assert await fetched("https://api.twilio.com/x", answer) == PUBLIC.encode()


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "https://api.twilio.com.evil.example/x",
        "https://evil.example/api.twilio.com",
        "https://api.twilio.com@evil.example/x",
        "https://user:pass@api.twilio.com/x",
        "https://api.twilio.com:8443/x",
        "http://api.twilio.com/x",
        "ftp://api.twilio.com/x",
        "file:///etc/passwd",
        "https://127.0.0.1/x",
        "https://2130706433/x",
        "https://[::1]/x",
        "//api.twilio.com/x",
        "https://",
        "https://api.twilio.com\\@evil.example/",
        "",
        "\x00",
    ],
)
@pytest.mark.parametrize("redirected", [False, True])
async def test_only_listed_hosts_are_asked(url: str, redirected: bool) -> None:
    trio.socket.set_custom_hostname_resolver(Names(PUBLIC))
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["host"])
        return httpx.Response(302, headers=[(b"location", url.encode())])

    start = "https://api.twilio.com/start" if redirected else url
    with pytest.raises(MmsFetchFailed):
        await fetched(start, answer)
    assert set(asked) <= {"api.twilio.com"}


async def test_redirects_have_an_end() -> None:
    trio.socket.set_custom_hostname_resolver(Names(PUBLIC))
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(302, headers={"location": f"{request.url.path}x"})

    with pytest.raises(MmsFetchFailed, match="more than 3 redirects"):
        await fetched("https://api.twilio.com/", answer)
    assert len(asked) == 4


@pytest.mark.parametrize("status", [204, 400, 401, 404, 500])
async def test_other_answers_than_200_are_failures_that_tell_no_query(status: int) -> None:
    trio.socket.set_custom_hostname_resolver(Names(PUBLIC))
    with pytest.raises(MmsFetchFailed, match=f"answered {status}") as caught:
        await fetched("https://api.twilio.com/x?secret=1", lambda _: httpx.Response(status))
    assert "secret" not in str(caught.value)


async def test_a_packed_body_is_refused_whatever_it_would_become() -> None:
    trio.socket.set_custom_hostname_resolver(Names(PUBLIC))
    packed = gzip.compress(b"0" * 1_000_000)

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, content=packed, headers={"content-encoding": "gzip"})

    with pytest.raises(MmsFetchFailed, match="packed"):
        await fetched("https://api.twilio.com/x", answer, bytes_max=10_000)


class Host:
    """A host of media on this machine. stated: a Content-Length that may lie; None: there is none."""

    def __init__(self) -> None:
        self.body = b"picture"
        self.stated: int | None = None
        self.sent = 0
        self.pause_s = 0.0
        host = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                time.sleep(host.pause_s)
                self.send_response(200)
                if host.stated is not None:
                    self.send_header("content-length", str(host.stated))
                self.end_headers()
                try:
                    for at in range(0, len(host.body), 65_536):
                        self.wfile.write(host.body[at : at + 65_536])
                        host.sent = at
                except OSError:
                    pass

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    async def fetch(self, bytes_max: int) -> bytes:
        async with open_media([self.url]) as media:
            return await media.fetch(f"{self.url}/x", ACCOUNT, bytes_max)


@pytest.fixture
def host() -> Iterator[Host]:
    it = Host()
    thread = threading.Thread(target=it.server.serve_forever, args=(0.02,))
    thread.start()
    yield it
    it.server.shutdown()
    thread.join()
    it.server.server_close()


@pytest.mark.parametrize("stated", [None, 7])
async def test_s1_40_a_medium_of_just_the_size_is_taken_and_one_byte_more_is_not(
    host: Host, stated: int | None
) -> None:
    host.stated = stated
    assert await host.fetch(7) == b"picture"
    with pytest.raises(MmsMediaTooLarge):
        await host.fetch(6)


async def test_s1_41_a_stream_without_an_end_is_cut_short(host: Host) -> None:
    host.body = b"x" * 50_000_000
    with pytest.raises(MmsMediaTooLarge):
        await host.fetch(100_000)
    assert host.sent < 40_000_000


async def test_a_body_that_is_shorter_than_was_said_is_a_failure(host: Host) -> None:
    host.stated = 100
    with pytest.raises(MmsFetchFailed, match="cannot be reached"):
        await host.fetch(1_000)


async def test_a_host_that_is_gone_is_a_failure(host: Host) -> None:
    async with open_media(["http://127.0.0.1:1"]) as media:
        with pytest.raises(MmsFetchFailed, match="cannot be reached"):
            await media.fetch("http://127.0.0.1:1/x", ACCOUNT, 10)
