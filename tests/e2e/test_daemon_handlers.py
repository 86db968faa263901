"""Handlers that are no Python functions of trio, under the daemon as a process."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from .daemons import Inbox, consuming, inbox
from .process import Running, serving

pytestmark = pytest.mark.slow

COMMAND = """
import json, pathlib, sys

print(json.dumps({"type": "ready"}), flush=True)
for line in sys.stdin:
    said = json.loads(line)
    if said["type"] == "event":
        with pathlib.Path("trace").open("a") as trace:
            trace.write(f"{int(said['event']['id'][-4:])} {said['attempt']}\\n")
        print(json.dumps({"type": "result", "id": said["id"]}), flush=True)
    if said["type"] == "stop":
        break
"""
SYNC = """
import pathlib, time

def handle(event, ctx):
    time.sleep(0.01)
    ctx.metrics.count("seen")
    with pathlib.Path("trace").open("a") as trace:
        trace.write(f"{int(event.id[-4:])} {ctx.attempt}\\n")
"""
ASYNCIO = (
    SYNC.replace("def handle", "async def handle")
    .replace("time.sleep", "await asyncio.sleep")
    .replace("import pathlib, time", "import asyncio, pathlib")
)
COUNT = 20


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path / "data") as running:
        yield running


async def handled(box: Inbox, *options: str) -> None:
    """Have the events handled by what the options name."""
    await box.push_events(COUNT)
    async with consuming(box, *options) as daemon:
        await box.until_backlog(0)
        assert await daemon.stop() == 0, daemon.log.read_text()


@pytest.mark.parametrize(
    ("code", "options"),
    [
        (SYNC, ("--handler", "shop:handle")),
        (ASYNCIO, ("--handler", "shop:handle", "--loop", "asyncio")),
        (COMMAND, ("--command", f"{sys.executable} shop.py")),
    ],
    ids=["sync", "asyncio", "command"],
)
async def test_functions_of_every_kind_and_commands_handle_events(
    server: Running, tmp_path: Path, code: str, options: tuple[str, ...]
) -> None:
    async with inbox(server.url, tmp_path / "shop", code) as box:
        await handled(box, *options)
        assert sorted(box.trace()) == [(n, 1) for n in range(1, COUNT + 1)]


@contextmanager
def receiver() -> Iterator[tuple[str, list[Any]]]:
    """An HTTP server that takes whatever is posted to it."""
    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # as http.server calls it
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/handle", got
        finally:
            http.shutdown()
            thread.join()


async def test_events_are_posted_to_a_url(server: Running, tmp_path: Path) -> None:
    with receiver() as (url, got):
        async with inbox(server.url, tmp_path / "shop", "") as box:
            await handled(box, "--url", url)
    assert sorted(one["id"] for one in got) == [f"event-{n:04}" for n in range(1, COUNT + 1)]


async def test_what_handlers_count_is_on_the_page_of_the_daemon(server: Running, tmp_path: Path) -> None:
    async with inbox(server.url, tmp_path / "shop", SYNC) as box:
        await box.push_events(COUNT)
        async with consuming(box, METRICS_ENABLE="true", METRICS_PORT="0") as daemon:
            await box.until_backlog(0)
            first = json.loads(daemon.log.read_text().splitlines()[0])
            async with httpx.AsyncClient(trust_env=False) as http:
                page = (await http.get(f"http://127.0.0.1:{first['port']}/metrics")).text
            assert await daemon.stop() == 0
    assert f"handler_seen_total {COUNT}.0" in page
    assert f"handle_duration_seconds_count {COUNT}.0" in page
