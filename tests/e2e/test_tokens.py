"""A real server and `edgequeues token` beside it, in processes of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from edgequeues.client import Client, Refused

from .process import Running, command, lines, serving

pytestmark = pytest.mark.slow

Q = "dxn:queue:demo:log"
HEEDED_S = 30.0  # a second is promised; this machine may be busy


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def server(data: Path) -> AsyncIterator[Running]:
    async with serving(data) as running:
        yield running


async def token(data: Path, *args: str) -> str:
    """What `edgequeues token` prints."""
    done = await command("token", *args, "--data", str(data))
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().removesuffix("\n")


async def refused(url: str, text: str | None = None) -> Refused:
    """Wait until a read is refused."""
    with trio.fail_after(HEEDED_S):
        async with Client(url, token=text) as client:
            while True:
                try:
                    await client.read(Q)
                except Refused as error:
                    return error
                await trio.sleep(0.05)


async def test_tokens_are_made_and_revoked_beside_a_server_that_runs(data: Path, server: Running) -> None:
    assert (await command("append", Q, "1", url=server.url)).returncode == 0
    made = await token(data, "create", "laptop")
    assert (await refused(server.url)).status == 401
    read = await command("read", Q, "--token", made, url=server.url)
    assert (read.returncode, len(lines(read.stdout))) == (0, 1)
    await token(data, "revoke", "laptop")
    assert (await refused(server.url, made)).status == 401
    read = await command("read", Q, "--token", made, url=server.url)
    assert (read.returncode, read.stdout) == (1, b"")
    assert b"--token or EDGEQUEUES_TOKEN" in read.stderr
    assert made.encode() not in read.stderr


async def test_tokens_outlive_the_server(data: Path) -> None:
    made = await token(data, "create", "laptop")
    for _ in range(2):
        async with serving(data) as server:
            assert (await refused(server.url)).status == 401
            async with Client(server.url, token=made) as client:
                await client.read(Q)
            assert await server.stop() == 0
            assert made not in server.log.read_text()


async def test_a_subscription_ends_soon_after_its_token_was_revoked(data: Path, server: Running) -> None:
    reader, owner = [await token(data, "create", name) for name in ("reader", "owner")]
    async with Client(server.url, token=owner) as client:
        await client.append(Q, [1])
        async with await trio.open_tcp_stream("127.0.0.1", int(server.port)) as stream:
            head = (
                f"GET /v1/{Q}/subscribe HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {reader}\r\n\r\n"
            )
            await stream.send_all(head.encode())
            seen = b""
            while b"event: entry" not in seen:
                seen += await stream.receive_some()
            await token(data, "revoke", "reader")
            await refused(server.url, reader)
            await client.append(Q, ["unseen"])
            with trio.fail_after(HEEDED_S):
                while piece := await stream.receive_some():
                    seen += piece
            assert b"unseen" not in seen


async def test_a_server_others_reach_starts_only_with_a_token_or_when_told_to(data: Path) -> None:
    options = ("serve", "--data", str(data), "--host", "0.0.0.0", "--port", "0")
    stopped = await command(*options)
    assert (stopped.returncode, stopped.stdout) == (1, b"")
    [line] = lines(stopped.stderr)
    assert line.startswith("edgequeues: other machines reach 0.0.0.0")
    assert "`edgequeues token create NAME`" in line
    assert "--insecure" in line
    async with serving(data, "--host", "0.0.0.0", "--insecure") as server, Client(local(server)) as client:
        await client.append(Q, [1])
    made = await token(data, "create", "laptop")
    async with serving(data, "--host", "0.0.0.0") as server:
        assert (await refused(local(server))).status == 401
        async with Client(local(server), token=made) as client:
            assert len((await client.read(Q)).entries) == 1


def local(server: Running) -> str:
    """A loopback address of a server that listens everywhere."""
    return f"http://127.0.0.1:{server.port}"
