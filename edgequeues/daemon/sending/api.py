"""Providers that are asked over HTTP: a request, an answer of bounded size, and what its status means."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

import httpx
import msgspec
import trio

from edgequeues import answers
from edgequeues.answers import AGAIN
from edgequeues.core.hostnames import bare, is_loopback
from edgequeues.daemon.sending.faults import NOT_SENT, REFUSED, Unauthorized
from edgequeues.events.event import Source

ANSWER_BYTES_MAX = 64 * 1024
WAIT_S_MAX = 3_600  # that a provider may ask for with Retry-After


class Answer(NamedTuple):
    """What a provider said. value: its JSON object; empty where it is none, or too long."""

    status: int
    value: dict[str, Any]
    retry_after_s: float | None


class Api:
    """One provider. name: for people. auth_setting: what to mend where it does not take our credentials."""

    def __init__(self, client: httpx.AsyncClient, base_url: str, *, name: str, auth_setting: str) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")
        self._name = name
        self._auth_setting = auth_setting

    async def post(
        self, channel: Source, path: str, *, code: str = "", again: Container[int] = (), **content: Any
    ) -> None:
        """Have a reply taken. code: the member of an answer that says in a number what is wrong.

        again: which of these numbers may be another one later. Raises TryAgain, GiveUp with the codes of the channel.
        """
        answer = await self._post(channel, path, **content)
        if 200 <= answer.status < 300:
            return
        number = given if isinstance(given := answer.value.get(code), int) else None
        said = f"{self._name} answered {answer.status}" + (f", code {number}" if number is not None else "")
        if answer.status in (401, 403):
            raise Unauthorized(f"{said}; {self._auth_setting} may be wrong, or have no right to do this")
        if answer.status in AGAIN or answer.status >= 500 or (number is not None and number in again):
            raise NOT_SENT[channel](said, delay_s=answer.retry_after_s)
        raise REFUSED[channel](said)

    async def _post(self, channel: Source, path: str, **content: Any) -> Answer:
        try:
            return await fetch(
                self._client, self._client.build_request("POST", self._base_url + path, **content)
            )
        except httpx.TransportError as error:
            raise NOT_SENT[channel](f"{self._name} cannot be reached ({type(error).__name__})") from None


async def fetch(client: httpx.AsyncClient, request: httpx.Request) -> Answer:
    """Send a request, once. Raises httpx.TransportError."""
    response = await client.send(request, stream=True)
    try:
        return Answer(response.status_code, await _object(response), _retry_after_s(response.headers))
    finally:
        with trio.CancelScope(shield=True):
            await response.aclose()


def base_url(text: str, setting: str) -> str:
    """An address that a provider's credentials may be sent to. Raises ValueError that names the setting."""
    url = address(text, setting)
    if url.scheme != "https" and not is_loopback(bare(url.host)):
        raise ValueError(f"{setting} must begin with https://, as credentials are sent there")
    return text


def address(text: str, setting: str) -> httpx.URL:
    """An address of a service. Raises ValueError that names the setting."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query:
        raise ValueError(f"{setting} is not an address; expected something like https://send.example.com")
    return url


async def _object(response: httpx.Response) -> dict[str, Any]:
    body = await answers.body(response, ANSWER_BYTES_MAX)
    if body is None:
        return {}
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    text = headers.get("retry-after", "")
    return float(min(int(text[:9]), WAIT_S_MAX)) if text.isascii() and text.isdigit() else None
