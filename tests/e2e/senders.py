"""Senders of webhooks: each a connection of its own that is kept, and opened anew where it broke."""

from __future__ import annotations

import hmac
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import trio

from .process import Running

SECRET = "whk-e2e-secret"
VARIABLE = "PAGERDUTY_WEBHOOK_SECRET"
READ = 64 * 1024
SENDERS = 20
SAMPLE = Path(__file__).parents[1] / "spec" / "data" / "incident.spec"


def options(spec: Path = SAMPLE) -> list[str]:
    """Of `edgequeues serve`, with the seed's sample or a spec like it."""
    return ["--spec", str(spec), "--secrets-env", VARIABLE]


def unworked(folder: Path, old: str = "", new: str = "") -> Path:
    """The sample without its mapping, and with `new` for `old`."""
    text, found = re.subn(r"map_to: [^{]*\{[^}]*\}", "", SAMPLE.read_text())
    assert found == 1
    assert old in text
    path = folder / "unworked.spec"
    path.write_text(text.replace(old, new))
    return path


def event(number: object, **more: object) -> bytes:
    return json.dumps({"event": {"id": f"e{number}"}, **more}).encode()


def signature(body: bytes, secret: str = SECRET) -> str:
    return "v1=" + hmac.new(secret.encode(), body, "sha256").hexdigest()


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Sender:
    """One connection to a server's webhook."""

    port: int
    hook: str = "PagerDutyAlert"
    stream: trio.SocketStream | None = None
    buffer: bytes = field(default=b"")

    async def send(
        self, body: bytes, *, signed: bool = True, headers: Mapping[str, str] = MappingProxyType({})
    ) -> Answer:
        """Send once. Raises trio.BrokenResourceError, OSError where nobody answers."""
        if self.stream is None:
            self.stream, self.buffer = await trio.open_tcp_stream("127.0.0.1", self.port), b""
        named = {"X-PagerDuty-Signature": signature(body)} if signed else {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in {**named, **headers}.items())
        head = (
            f"POST /hook/{self.hook} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n{lines}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            await self.stream.send_all(head.encode() + body)
            return await self._answer()
        except BaseException:
            stream, self.stream = self.stream, None
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)
            raise

    async def _answer(self) -> Answer:
        while b"\r\n\r\n" not in self.buffer:
            await self._more()
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers["content-length"])
        self.buffer = rest
        while len(self.buffer) < length:
            await self._more()
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        return Answer(int(first.split()[1]), headers, body)

    async def _more(self) -> None:
        assert self.stream is not None
        data = await self.stream.receive_some(READ)
        if not data:
            raise trio.BrokenResourceError
        self.buffer += data

    async def close(self) -> None:
        if self.stream is not None:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self.stream)


@asynccontextmanager
async def sending(server: Running, hook: str = "PagerDutyAlert") -> AsyncIterator[Sender]:
    """A sender, whose connection is closed at the end."""
    one = Sender(int(server.port), hook)
    try:
        yield one
    finally:
        await one.close()


class Load:
    """Senders that share a number of webhooks; each is sent until it is answered 202, or 200 if it was worked before.

    body: of each, by its number.
    """

    def __init__(self, numbers: range, port: int, body: Callable[[int], bytes] = event) -> None:
        self._body = body
        self.left = iter(numbers)
        self.port = port
        self.answered: dict[int, str] = {}  # the id of the message of each
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        self._wanted = 0
        self._reached = trio.Event()

    async def run(self) -> None:
        """Send with all senders, until all are answered."""
        async with trio.open_nursery() as nursery:
            for _ in range(SENDERS):
                nursery.start_soon(self._send_some)

    async def until(self, count: int) -> None:
        """Wait until so many are answered."""
        self._wanted, self._reached = count, trio.Event()
        self._look()
        await self._reached.wait()

    def _look(self) -> None:
        if len(self.answered) >= self._wanted:
            self._reached.set()

    async def _send_some(self) -> None:
        one = Sender(self.port)
        try:
            for number in self.left:
                await self._deliver(one, number)
        finally:
            await one.close()

    async def _deliver(self, one: Sender, number: int) -> None:
        while True:
            try:
                answer = await one.send(self._body(number))
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
                self.broken += 1
                await trio.sleep(0.02)
                continue
            self.statuses[answer.status] += 1
            if answer.status in (200, 202):
                self.answered[number] = answer.json()["message_id"]
                self._look()
                return
