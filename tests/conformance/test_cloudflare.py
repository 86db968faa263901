"""Clients others made, against a real server: SDKs, wrangler, Workers under workerd and under `wrangler dev`."""

from __future__ import annotations

import base64
import json
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import cloudflare
import httpx
import pytest
import trio

from tests.e2e.process import environment, serving
from tests.guides.test_guides import CLOUDFLARE, examples

BOTH_FRONTS = True

HERE = Path(__file__).parent
SUITE = HERE / "vendor" / "cloudflare"
PACKAGES = SUITE / "node_modules"
EXAMPLES = HERE.parents[1] / "examples"
WORKERD = PACKAGES / "workerd" / "bin" / "workerd"
WRANGLER = PACKAGES / "wrangler" / "bin" / "wrangler.js"
CASES = 66
COMMANDS = 31
SUITE_S = 300.0
START_S = 60.0
ACCOUNT = "demo"

CASE = re.compile(r"^FAIL .*$", re.MULTILINE)

needs_packages = pytest.mark.skipif(
    not PACKAGES.is_dir(), reason="wrangler and workerd are not installed: make conformance"
)


async def run(*args: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end."""
    with trio.fail_after(SUITE_S):
        return await trio.run_process(
            args,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            check=False,
            cwd=SUITE,
            env={**environment(), **variables},
        )


def verdict(ended: subprocess.CompletedProcess[bytes], summary: str) -> None:
    """Check that a suite printed its summary and no failure."""
    printed = ended.stdout.decode()
    failed = CASE.findall(printed)
    assert not failed, "\n".join(failed)
    assert summary in printed, printed
    assert ended.returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def program(log: Path, *args: str, cwd: Path, **variables: str) -> AsyncIterator[trio.Process]:
    """Run a program beside the test; at the end it and all it started are killed."""
    with log.open("wb") as out:
        process = await trio.lowlevel.open_process(
            args,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=cwd,
            env={**environment(), **variables},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            await run("kill", "-KILL", "--", f"-{process.pid}")
            await process.wait()


async def answer(url: str, log: Path) -> Any:
    """Ask until there is an answer, and return its JSON."""
    async with httpx.AsyncClient(timeout=START_S) as client:
        with trio.move_on_after(START_S):
            while True:
                try:
                    response = await client.get(url)
                except httpx.TransportError:
                    await trio.sleep(0.1)
                    continue
                assert response.status_code == 200, re.sub(r"<[^>]*>|\s+", " ", response.text)[-3000:]
                return response.json()
    raise AssertionError(await trio.Path(log).read_text())


def pulled(server: str, name: str) -> list[tuple[str | None, str | None]]:
    """Pull with the real SDK all that is ready, ack it, and return content types and bodies."""
    client = cloudflare.Cloudflare(api_token="test-token", base_url=f"{server}/client/v4", max_retries=0)
    [queue] = [one for one in client.queues.list(account_id=ACCOUNT) if one.queue_name == name]
    assert queue.queue_id is not None
    messages = client.queues.messages
    given = messages.pull(queue.queue_id, account_id=ACCOUNT, batch_size=100)
    assert given is not None
    found = given.messages or []
    acked = messages.ack(
        queue.queue_id, account_id=ACCOUNT, acks=[{"lease_id": str(m.lease_id)} for m in found]
    )
    assert acked is not None
    assert acked.ack_count == len(found)
    return [((one.metadata or {}).get("CF-Content-Type"), one.body) for one in found]  # type: ignore[attr-defined]


def encoded(value: object) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


@pytest.mark.slow
async def test_every_case_of_the_suite_passes_through_the_python_sdk(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        ended = await run(sys.executable, str(SUITE / "conformance.py"), server.url, "--slow")
    verdict(ended, f"\n{CASES} passed, 0 failed")


async def test_what_the_guide_shows_of_the_sdk_is_true(tmp_path: Path) -> None:
    [(block, shown)] = examples(CLOUDFLARE)
    async with serving(tmp_path / "data") as server:
        base = f"{server.url}/client/v4"
        async with httpx.AsyncClient(base_url=f"{base}/accounts/{ACCOUNT}/") as client:
            queue = (await client.post("queues", json={"queue_name": "jobs"})).json()["result"]["queue_id"]
            (await client.post(f"queues/{queue}/consumers", json={"type": "http_pull"})).raise_for_status()
        ended = await run(
            sys.executable,
            "-c",
            block,
            CLOUDFLARE_BASE_URL=base,
            CLOUDFLARE_ACCOUNT_ID=ACCOUNT,
            CLOUDFLARE_API_TOKEN="local",
        )
    assert ended.stdout.decode() == shown


@pytest.mark.slow
@needs_packages
async def test_every_command_of_wrangler_works(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        ended = await run("bash", str(SUITE / "wrangler.sh"), server.url, WRANGLER=f"node {WRANGLER}")
    verdict(ended, f"wrangler: {COMMANDS} passed, 0 failed")


@pytest.mark.slow
@needs_packages
async def test_the_javascript_sdk_works(tmp_path: Path) -> None:
    script = await trio.Path(HERE / "consumer.mjs").read_bytes()
    async with serving(tmp_path / "data") as server:
        with trio.fail_after(START_S):
            ended = await trio.run_process(
                ["node", "--input-type=module", "-", server.url, ACCOUNT],
                stdin=script,
                capture_stdout=True,
                cwd=SUITE,
                env=environment(),
            )
    seen = json.loads(ended.stdout)
    assert seen == {"body": {"n": 1}, "acked": 1, "names": ["from-js"], "paused": True}


@pytest.mark.slow
@needs_packages
async def test_a_worker_under_plain_workerd_produces_what_the_sdk_pulls(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "workerd.log"
    config = str(EXAMPLES / "workerd" / "config.capnp")
    async with serving(tmp_path / "data") as server:
        addresses = (f"--socket-addr=http=127.0.0.1:{port}", f"--external-addr=jobs=127.0.0.1:{server.port}")
        async with program(log, str(WORKERD), "serve", config, *addresses, cwd=tmp_path):
            assert await answer(f"http://127.0.0.1:{port}/orders/7", log) == {"path": "/orders/7"}
            metrics = await answer(f"http://127.0.0.1:{port}/metrics", log)
        seen = await trio.to_thread.run_sync(pulled, server.url, "jobs")
    assert metrics["backlogCount"] == 4
    assert seen == [("json", encoded({"path": "/orders/7"})), ("text", "as text"), ("bytes", "AP8=")]


@pytest.mark.slow
@needs_packages
async def test_a_worker_under_wrangler_dev_produces_what_the_sdk_pulls(tmp_path: Path) -> None:
    """As examples/wrangler says: its binding is bound to the shim, which sends to the server."""
    log = tmp_path / "wrangler.log"
    port, inspector = free_port(), free_port()
    async with serving(tmp_path / "data") as server:
        variables = {
            "CLOUDFLARE_API_BASE_URL": f"{server.url}/client/v4",
            "CLOUDFLARE_ACCOUNT_ID": ACCOUNT,
            "CLOUDFLARE_API_TOKEN": "local",
            "WRANGLER_SEND_METRICS": "false",
            "CI": "1",
            "HOME": str(tmp_path),
        }
        for words in (["create", "jobs"], ["consumer", "http", "add", "jobs"]):
            ended = await run("node", str(WRANGLER), "queues", *words, **variables)
            assert ended.returncode == 0, ended.stdout.decode()
        configs = []
        for worker in ("producer", "shim"):  # in a copy: wrangler writes beside its configuration
            folder = tmp_path / worker
            folder.mkdir()
            for file in (EXAMPLES / "wrangler" / worker).iterdir():
                if file.is_file():
                    text = file.read_text().replace("http://127.0.0.1:8700", server.url)
                    (folder / file.name).write_text(text)
            configs += ["-c", str(folder / "wrangler.jsonc")]
        options = ["-e", "local", "--port", str(port), "--inspector-port", str(inspector)]
        dev = ["node", str(WRANGLER), "dev", *configs, *options]
        async with program(log, *dev, cwd=tmp_path, **variables):
            order = await answer(f"http://127.0.0.1:{port}/orders/7", log)
        seen = await trio.to_thread.run_sync(pulled, server.url, "jobs")
    assert order["path"] == "/orders/7"
    assert seen == [("json", encoded(order)), ("text", "as text")]
