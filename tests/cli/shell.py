"""Command lines in this process: the real commands, client and app, with no socket between them."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from edgequeues.app import open_app
from edgequeues.cli.main import run
from edgequeues.cli.session import Surroundings
from edgequeues.client import Client, Transport
from edgequeues.settings import Settings

Q = "dxn:queue:demo:log"


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """What was printed, a JSON text a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Way(httpx.ASGITransport):
    """Requests to an app. lost: the ends of paths whose next answer does not come back; once for each."""

    def __init__(self, server: object, lost: list[str]) -> None:
        super().__init__(cast(Any, server))
        self._lost = lost

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        for end in self._lost:
            if request.url.path.endswith(end):
                self._lost.remove(end)
                raise httpx.ReadError("cut off")
        return answer


class Shell:
    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = Settings()  # of the server
        self.lost: list[str] = []
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *args: str, terminal: bool = False, stdin: bytes | None = None) -> Result:
        """Run a command line; stdin: what is piped into it."""
        piped = self.file("stdin", stdin or b"")
        with piped.open() as file, self._monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", file)
            code = run(args, Surroundings(self._connect, terminal))
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err
        return Result(code, out, err)

    def ok(self, *args: str, terminal: bool = False, stdin: bytes | None = None) -> Result:
        """Run a command line that must succeed."""
        result = self(*args, terminal=terminal, stdin=stdin)
        assert result.code == 0, result.err
        return result

    def file(self, name: str, content: bytes) -> Path:
        """Write a file for a command to read."""
        path = self.folder / name
        path.write_bytes(content)
        return path

    @asynccontextmanager
    async def _connect(self, url: str, token: str | None) -> AsyncIterator[Client]:
        async with open_app(self.data, self.settings) as server:
            transport = Transport(url, token=token, transport=Way(server, self.lost))
            async with Client(url, transport=transport) as client:
                yield client
