"""Media of text messages, fetched from where Twilio keeps them, and from nowhere else.

A URL in a message is a stranger's: only listed hosts are asked, over TLS, and at public addresses; a redirect is
looked at like the first URL. Twilio's password goes to Twilio's API alone. What comes is counted while it comes.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import httpx
import trio

from edgequeues import answers
from edgequeues.core.errors import MmsFetchFailed, MmsMediaTooLarge, reason
from edgequeues.workers import reaching
from edgequeues.workers.reaching import Unreachable, shown

API = "https://api.twilio.com"  # the only place that the password goes to
REDIRECTS_MAX = 3
CONNECTIONS_MAX = 20
PAUSE_S = 5.0  # a host may be silent for so long
REMEDY = "media are fetched from public addresses only"


class Account(NamedTuple):
    """Who we are to Twilio."""

    sid: str
    token: str


class Media:
    """Fetches media. hosts: names, with a port where it is not 443; `http://` before one: without TLS, for tests."""

    def __init__(self, client: httpx.AsyncClient, hosts: Sequence[str]) -> None:
        self._client = client
        self._places = {place(host) for host in hosts}

    async def fetch(self, url: str, account: Account, bytes_max: int) -> bytes:
        """The bytes of a medium. Raises MmsMediaTooLarge above `bytes_max`, MmsFetchFailed."""
        for _ in range(REDIRECTS_MAX + 1):
            answer = await self._ask(url, account, bytes_max)
            if isinstance(answer, bytes):
                return answer
            url = answer
        raise MmsFetchFailed(f"{shown(url)}: more than {REDIRECTS_MAX} redirects")

    async def _ask(self, given: str, account: Account, bytes_max: int) -> bytes | str:
        """The bytes, or the URL where they are instead."""
        url = self._checked(given)
        try:
            address = await reaching.address(url, (), REMEDY)
        except Unreachable as error:
            raise MmsFetchFailed(str(error)) from error
        is_api = place(str(url)) == API
        request = self._client.build_request(
            "GET",
            url.copy_with(host=address),
            headers={"host": url.netloc.decode(), "accept-encoding": "identity", "user-agent": "edgequeues"},
            extensions={
                "sni_hostname": url.host
            },  # the address was looked at, so no other may be connected to
        )
        auth = httpx.BasicAuth(account.sid, account.token) if is_api else None
        try:
            response = await self._client.send(request, stream=True, auth=auth, follow_redirects=False)
            try:
                if response.is_redirect:
                    return str(url.join(response.headers.get("location", "")))
                return await _bytes(response, shown(str(url)), bytes_max)
            finally:
                with trio.CancelScope(shield=True):
                    await response.aclose()
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise MmsFetchFailed(f"{shown(str(url))} cannot be reached: {reason(error)}") from error

    def _checked(self, given: str) -> httpx.URL:
        """A URL that may be asked. Raises MmsFetchFailed."""
        try:
            url = httpx.URL(given)
            found = place(given)
        except (httpx.InvalidURL, ValueError) as error:
            raise MmsFetchFailed("the URL of a medium is none") from error
        if found not in self._places or url.userinfo:
            raise MmsFetchFailed(f"{found}: the setting ingest_media_hosts does not list it")
        return url


@asynccontextmanager
async def open_media(
    hosts: Sequence[str], transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Media]:
    """Fetch over connections that are closed with the block. Nothing of the environment changes where they lead.

    transport: instead of the network, in tests.
    """
    async with httpx.AsyncClient(
        verify=ssl.create_default_context(),
        trust_env=False,
        limits=httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=30.0),
        timeout=PAUSE_S,
        transport=transport,
    ) as client:
        yield Media(client, hosts)


def place(text: str) -> str:
    """Scheme, host and port of a URL or of an entry of the setting, in the one form they are compared in.

    Raises ValueError.
    """
    try:
        url = httpx.URL(text if "://" in text else f"https://{text}")
    except httpx.InvalidURL as error:
        raise ValueError(f"{text!r} is no host") from error
    if url.scheme not in ("https", "http") or not url.host:
        raise ValueError(f"{text!r} is no host of https:// or http://")
    return f"{url.scheme}://{url.netloc.decode().lower()}"


async def _bytes(response: httpx.Response, where: str, bytes_max: int) -> bytes:
    """The body, which is not packed, so that its bytes are those that came over the wire."""
    if response.status_code != 200:
        raise MmsFetchFailed(f"{where} answered {response.status_code}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise MmsFetchFailed(f"{where} answered with a body that is packed, though none was asked for")
    stated = response.headers.get("content-length", "")
    if stated.isascii() and stated.isdigit() and int(stated[:19]) > bytes_max:
        raise MmsMediaTooLarge(f"a medium of more than {bytes_max} bytes")
    body = await answers.body(response, bytes_max)
    if body is None:
        raise MmsMediaTooLarge(f"a medium of more than {bytes_max} bytes")
    return body
