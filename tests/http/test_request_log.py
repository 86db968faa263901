"""A line for each request: enough to see what goes on, nothing of what somebody sent."""

from __future__ import annotations

import io
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from edgequeues.app import open_app
from edgequeues.http.observing import Served, Watchers
from edgequeues.http.request_log import RequestLog, Wanted
from edgequeues.logs import Lines
from shards.testing import InlineDisk, TrioClock

from .asgi import Client

NOW_MS = 1_795_835_461_027
SERVED = Served("native", "/v1/{dxn}/push", "POST", 200, 0.0015, "01JABC")


def lines_to(file: io.StringIO, *, level: str = "info", text: bool = False) -> Lines:
    return Lines(file, level=level, redact=dict, now_ms=lambda: NOW_MS, component="server", text=text)


@asynccontextmanager
async def logged(folder: Path, wanted: Wanted) -> AsyncIterator[tuple[Client, list[dict[str, Any]]]]:
    """A client of a server that logs, and the lines, which are there when the block has ended."""
    file, said = io.StringIO(), list[dict[str, Any]]()
    opened = open_app(
        folder,
        clock=TrioClock(),
        disk=InlineDisk(),
        randomness=random.Random(1),
        watchers=Watchers([RequestLog(lines_to(file), wanted)]),
    )
    async with opened as app:
        yield Client(app), said
    said += [json.loads(line) for line in file.getvalue().splitlines()]


async def test_a_line_tells_of_a_request_and_not_what_was_in_it(tmp_path: Path) -> None:
    async with logged(tmp_path, "all") as (client, said):
        await client.append("dxn:queue:demo:log", {"secret": "hush"})
        await client.get("/v1/dxn:queue:demo:log:anna@example.com?wait=0")
        await client.get("/v1/dxn:queue:demo:log/peek?where=hush", (b"authorization", b"Bearer hush"))
    assert [(one["method"], one["route"], one["status"], one["who"]) for one in said] == [
        ("POST", "/v1/{dxn}", 200, "loopback"),
        ("GET", "/v1/{dxn}", 400, "loopback"),
        ("GET", "/v1/{dxn}/peek", 400, "loopback"),
    ]
    assert all(one["ms"] >= 0 and one["ts"] == "2026-11-28T03:11:01.027Z" for one in said)
    assert not {"hush", "demo", "anna"} & set(json.dumps(said).replace('"', " ").split())
    assert "anna" not in json.dumps(said)
    assert "hush" not in json.dumps(said)


async def test_errors_alone_where_that_is_wanted(tmp_path: Path) -> None:
    async with logged(tmp_path, "errors") as (client, said):
        await client.append("dxn:queue:demo:log", {"n": 1})
        await client.get("/v1/dxn:queue:demo:log:nothing")
    assert [(one["status"], one["level"]) for one in said] == [(404, "info")]


def test_faults_of_the_server_are_errors() -> None:
    file = io.StringIO()
    log = RequestLog(lines_to(file, level="error"), "all")
    log(SERVED)
    log(SERVED._replace(status=503))
    [line] = file.getvalue().splitlines()
    assert (json.loads(line)["status"], json.loads(line)["level"]) == (503, "error")


def test_lines_of_a_kind_differ_in_their_times_alone() -> None:
    file = io.StringIO()
    log = RequestLog(lines_to(file), "all")
    log(SERVED)
    log(SERVED._replace(seconds=2.0))
    first, second = (json.loads(line) for line in file.getvalue().splitlines())
    assert (first.pop("ms"), second.pop("ms")) == (1.5, 2000.0)
    assert first == second
    assert first["msg"] == "request"


def test_people_get_text() -> None:
    file = io.StringIO()
    RequestLog(lines_to(file, text=True), "all")(SERVED)
    assert file.getvalue() == (
        "2026-11-28T03:11:01.027Z info    request method=POST route=/v1/{dxn}/push dialect=native status=200 "
        "who=01JABC ms=1.5\n"
    )


def test_text_cannot_forge_lines() -> None:
    file = io.StringIO()
    lines_to(file, text=True).write(
        "info", {"msg": "a fault", "name": 'x"\nready', "err": "Traceback\n  here"}
    )
    assert file.getvalue().splitlines() == [
        r'2026-11-28T03:11:01.027Z info    a fault name="x\"\nready"',
        "Traceback",
        "  here",
    ]
