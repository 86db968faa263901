"""How much memory does reading a whole queue over HTTP take, however long it is?

A child process asks its own app for everything and drops each piece of the answer, as a socket would take it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import msgspec
import trio

from bench.figures import Against, Figure, figure
from bench.rig import QUEUE, Rig, fill, forget_peak, in_child, peak_mib, resident_mib
from edgequeues.app import open_app
from edgequeues.http.server import Server

ABOVE_IDLE_MIB_MAX = 64
SPACE = "long"
SIZES = (2_000, 1_000_000)  # bytes of one entry


def measure(rig: Rig) -> Iterator[Figure]:
    """Peak above idle while a queue of 200 MB goes by, in small entries and in large ones."""
    total = rig.pick(200_000_000, 200_000_000, 4_000_000)
    for each in SIZES:
        with rig.place() as folder:
            fill(folder, SPACE, total // each, data_bytes=each)
            found = [in_child("bench.memory", str(folder)) for _ in range(rig.pick(3, 1, 1))]
        above = [one["peak_mib"] - one["idle_mib"] for one in found]
        against = [Against(what="MiB", value=max(above), target=ABOVE_IDLE_MIB_MAX, at_most=True)]
        more = {"idle MiB": found[0]["idle_mib"], "MB": found[0]["bytes"] / 1e6, "s": found[0]["seconds"]}
        name = f"GET {total / 1e6:.0f} MB in entries of {each / 1000:,.0f} kB, peak above idle"
        yield figure("memory", name, above, "MiB", against=against, more=more)


async def get(app: Server, query: bytes) -> int:
    """Ask for the queue; return how long the answer was."""
    path = f"/v1/dxn:queue:{SPACE}:{QUEUE}"
    scope: MutableMapping[str, Any] = {
        "type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "root_path": "",
        "path": path, "raw_path": path.encode(), "query_string": query,
        "headers": [(b"host", b"127.0.0.1:8700")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8700),
    }  # fmt: skip
    sent = 0
    asked = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> MutableMapping[str, Any]:
        for message in asked:
            return message
        await trio.sleep_forever()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal sent
        assert message.get("status", 200) == 200, message
        sent += len(message.get("body", b""))
        await trio.lowlevel.checkpoint()

    await app(scope, receive, send)
    return sent


async def child(folder: Path) -> dict[str, float]:
    """Read all of the queue and tell the memory before, and the most there was."""
    async with open_app(folder) as app:
        await get(app, b"limit=1")
        idle = resident_mib()
        forget_peak()
        began = trio.current_time()
        size = await get(app, b"")
        seconds = trio.current_time() - began
        return {"idle_mib": idle, "peak_mib": peak_mib(), "bytes": size, "seconds": seconds}


if __name__ == "__main__":
    print(msgspec.json.encode(trio.run(child, Path(sys.argv[1]))).decode())
