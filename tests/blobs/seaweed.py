"""SeaweedFS, a real S3 server, in a process of its own on this machine. It checks signatures."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from edgequeues.blobs.s3 import Bucket

KEY_ID, SECRET, BUCKET = "objects", "not-a-secret", "objects"
READY_S = 60.0
SERVERS = ("master", "volume", "filer", "s3", "admin")


@contextmanager
def seaweed(folder: Path) -> Iterator[Bucket]:
    """Run a server until the block ends, with an empty bucket."""
    folder.mkdir()
    config = folder / "s3.json"
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY_ID, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List"],
    }
    config.write_text(json.dumps({"identities": [identity]}))
    numbers = free_ports(2 * len(SERVERS))
    ports = [f"-{name}.port={numbers[2 * at]}" for at, name in enumerate(SERVERS)]
    ports += [f"-{name}.port.grpc={numbers[2 * at + 1]}" for at, name in enumerate(SERVERS)]
    others = ["-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    where = [
        f"-dir={folder}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-s3.config={config}",
        f"-bucket={BUCKET}",
    ]
    weed = Path(sys.executable).parent / "weed"
    endpoint = f"http://127.0.0.1:{numbers[2 * SERVERS.index('s3')]}"
    with (folder / "log").open("wb") as log:
        command = [
            str(weed) if weed.exists() else shutil.which("weed") or "weed",
            "mini",
            *where,
            *ports,
            *others,
        ]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wait(endpoint, process, folder / "log")
        yield Bucket(endpoint, BUCKET, "us-east-1", KEY_ID, SECRET)
    finally:
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def wait(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the bucket is there: nobody may look into it without a signature."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until and process.poll() is None:
        try:
            if (
                httpx.get(f"{endpoint}/{BUCKET}").status_code == 403
                and b"running and ready" in log.read_bytes()
            ):
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise AssertionError(f"no S3 server: {log.read_text(errors='replace')[-2000:]}")
