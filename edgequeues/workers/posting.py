"""Commands that are HTTP requests: posted at least once, signed by Standard Webhooks, to hosts that are allowed.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import httpx
import trio

from edgequeues import answers
from edgequeues.answers import AGAIN
from edgequeues.core import jsontext, signatures, times
from edgequeues.core.errors import CommandFailed, CommandRejected, InvalidJson, reason
from edgequeues.workers import reaching
from edgequeues.workers.pipe import Job
from edgequeues.workers.reaching import Unreachable, shown

ANSWER_BYTES_MAX = 64 * 1024  # of an answer that is kept as the result
CONNECTIONS_MAX = 100
REMEDY = "the setting commands_http_allow must list its network"
WAIT_MS_MAX = 3_600_000  # that a receiver may ask for with Retry-After


class Postponed(CommandFailed):
    """The receiver says when to try again. delay_ms: from now."""

    def __init__(self, detail: str, delay_ms: int) -> None:
        super().__init__(detail)
        self.delay_ms = delay_ms


class Target(NamedTuple):
    """Where a command is posted to, and the secret that signs it."""

    url: str
    secret: str


class Poster:
    """Posts commands. allowed: hosts, and networks whose addresses these may have although they are not public."""

    def __init__(self, client: httpx.AsyncClient, allowed: Sequence[str]) -> None:
        self._client = client
        self._networks = reaching.networks(allowed)

    async def run(self, job: Job, target: Target, timeout_s: float) -> str:
        """Post a command; return the answer, JSON. Raises CommandRejected, CommandFailed."""
        with trio.move_on_after(timeout_s):
            return await self._post(job, target)
        raise CommandFailed(f"{shown(target.url)} did not answer within {timeout_s * 1_000:.0f} ms")

    async def _post(self, job: Job, target: Target) -> str:
        url = httpx.URL(target.url)
        try:
            address = await reaching.address(url, self._networks, REMEDY)
        except Unreachable as error:
            raise CommandFailed(str(error)) from error
        request = self._client.build_request(
            "POST",
            url.copy_with(host=address),
            content=(body := _body(job)),
            headers=[("host", url.netloc.decode()), *_headers(job, target.secret, body)],
            extensions={
                "sni_hostname": url.host
            },  # the address was looked at, so no other may be connected to
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                return await _answer(target.url, response)
            finally:
                with trio.CancelScope(shield=True):
                    await response.aclose()
        except httpx.TransportError as error:
            raise CommandFailed(f"{shown(target.url)} cannot be reached: {reason(error)}") from error


@asynccontextmanager
async def open_poster(allowed: Sequence[str]) -> AsyncIterator[Poster]:
    """Post over connections that are closed with the block. Nothing of the environment changes where they lead."""
    limits = httpx.Limits(max_connections=CONNECTIONS_MAX, keepalive_expiry=30.0)
    async with httpx.AsyncClient(
        verify=ssl.create_default_context(), trust_env=False, limits=limits, timeout=None
    ) as client:
        yield Poster(client, allowed)


def _body(job: Job) -> bytes:
    """The same for every attempt."""
    return jsontext.write(
        {"type": job.call.name, "timestamp": times.utc(job.created), "data": job.call.input}
    )


def _headers(job: Job, secret: str, body: bytes) -> list[tuple[str, str]]:
    return [
        ("content-type", "application/json"),
        ("user-agent", "edgequeues"),
        ("idempotency-key", job.id),
        *signatures.standard_headers(secret, job.id, job.at // 1_000, body),
    ]


async def _answer(url: str, response: httpx.Response) -> str:
    status = response.status_code
    if response.is_success:
        return await _result(response)
    said = f"{shown(url)} answered {status}"
    if response.is_redirect:
        where = response.headers.get("location", "elsewhere")
        raise CommandFailed(
            f"{said}, to {shown(where)}; redirects are not followed, so have the spec name that"
        )
    if 400 <= status < 500 and status not in AGAIN:
        raise CommandRejected(said)
    wait_s = response.headers.get("retry-after", "")
    if wait_s.isascii() and wait_s.isdigit():
        raise Postponed(said, min(int(wait_s[:9]) * 1_000, WAIT_MS_MAX))
    raise CommandFailed(said)


async def _result(response: httpx.Response) -> str:
    """The body, where it is JSON of a size that is kept; else only how it was answered."""
    body = await answers.body(response, ANSWER_BYTES_MAX)
    if body is not None:
        with suppress(InvalidJson):
            jsontext.check(body)
            return body.decode()
    return f'{{"status":{response.status_code}}}'
