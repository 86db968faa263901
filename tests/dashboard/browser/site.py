"""A server that runs while a module's tests look at it, and what is put into it beforehand."""

from __future__ import annotations

import hmac
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "edgequeues.cli.main")
VARIABLE, SECRET = "SHOP_WEBHOOK_SECRET", "whk-browser-secret"  # of the webhook that is called
STOP_S = 40.0
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def environment() -> dict[str, str]:
    """This process's own, without what would change a server, and without a proxy."""
    left_out = ("EDGEQUEUES_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(left_out)}
    return {**kept, VARIABLE: SECRET}


@dataclass(frozen=True)
class Site:
    """A server that accepts requests. data: its folder."""

    url: str
    data: Path

    def ask(self, method: str, path: str, body: Any = None, *, token: str = "") -> Any:
        """Send JSON, and return what JSON says. Raises urllib's HTTPError where it is refused."""
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, headers, method=method)
        with OPENER.open(request, timeout=60) as reply:
            text = reply.read()
        return json.loads(text) if text else None

    def push(self, queue: str, *entries: dict[str, Any], space: str = "demo") -> list[str]:
        """Put messages into a queue; return their ids."""
        pushed = self.ask("POST", f"/v1/dxn:queue:{space}:{queue}/push", {"entries": list(entries)})
        return [one["id"] for one in pushed["results"]]

    def explain(self, queue: str, message: str, *, space: str = "demo") -> Any:
        return self.ask("GET", f"/v1/dxn:queue:{space}:{queue}/explain?id={message}")

    def peek(self, queue: str, *, space: str = "demo") -> Any:
        """Every message of a queue that is not finished."""
        return self.ask("GET", f"/v1/dxn:queue:{space}:{queue}/peek?limit=1000")["messages"]

    def letters(self, queue: str, more: str = "", *, space: str = "demo") -> Any:
        """Dead letters that come from a queue."""
        asked = f"/admin/queues/{queue}/dlq?tenant_id={space}&limit=1000{more}"
        return self.ask("GET", asked)["dead_letters"]

    def fail(
        self, queue: str, *, error: str, permanent: bool = True, batch: int = 100, space: str = "demo"
    ) -> int:
        """Hand out what is ready and have it fail; return how many that were."""
        address = f"/v1/dxn:queue:{space}:{queue}"
        pulled = self.ask("POST", f"{address}/pull", {"batch": batch, "worker": "worker-1"})["messages"]
        if pulled:
            retries = [{"lease": one["lease"], "error": error, "permanent": permanent} for one in pulled]
            self.ask("POST", f"{address}/retry", {"retries": retries})
        return len(pulled)

    def call(self, hook: str, payload: Any, *, signed: bool = True) -> int:
        """Call a webhook as its sender does; return the status."""
        body = json.dumps(payload).encode()
        signature = hmac.new(SECRET.encode() if signed else b"another", body, "sha256").hexdigest()
        headers = {"content-type": "application/json", "x-hub-signature-256": f"sha256={signature}"}
        request = urllib.request.Request(f"{self.url}/hook/{hook}", body, headers, method="POST")
        try:
            with OPENER.open(request, timeout=60) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def token(self, *words: str) -> str:
        """Run `edgequeues token`; return what it prints."""
        done = subprocess.run(
            [*PROGRAM, "token", *words, "--data", str(self.data)],
            capture_output=True,
            check=True,
            env=environment(),
            timeout=60,
        )
        return done.stdout.decode().strip()


@contextmanager
def serving(data: Path, *options: str) -> Iterator[Site]:
    """Run a server over the folder until the block ends."""
    log = data.with_name(data.name + ".log")
    command = [*PROGRAM, "serve", "--data", str(data), "--port", "0", "--secrets-env", VARIABLE, *options]
    with (
        log.open("ab") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment()) as process,
    ):
        try:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().decode().strip().partition(" ")
            assert word == "ready", log.read_text()
            yield Site(url, data)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
