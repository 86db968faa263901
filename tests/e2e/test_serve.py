"""One server process: how it starts, serves, stops, and what it says when it cannot."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from edgequeues.client import Client, ConfigChange, NewEntry, QueueConfig, Refused, Retry, Unreachable

from .process import Running, command, first_line, lines, serving, spawn

pytestmark = pytest.mark.slow

Q = "dxn:queue:demo:log"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def test_it_says_ready_once_and_then_answers(data: Path) -> None:
    async with serving(data) as server:
        assert server.url.startswith("http://127.0.0.1:")
        async with Client(server.url, retry=Retry(attempts_max=1)) as client:
            assert (await client.health()).ready
        assert await server.stop() == 0
        assert server.process.stdout is not None
        assert await server.process.stdout.receive_some() == b""  # nothing after its one line


async def test_a_round_trip_with_every_verb(data: Path) -> None:
    async with serving(data) as server, Client(server.url) as client:
        raw = b'{ "half": "\\ud800", "long": 123456789012345678901234567890 }'
        answer = await client.append(Q, [{"n": 1}, raw, NewEntry("x", id="x", type="t", headers={"h": "v"})])
        assert [one.outcome for one in answer.results] == ["new", "new", "new"]
        page = await client.read(Q)
        assert [entry.raw for entry in page.entries] == [b'{"n":1}', raw, b'"x"']
        assert page.next_cursor == answer.cursor
        assert (await client.read(Q, after=answer.cursor)).entries == []
        assert [entry.data async for entry in client.iterate(Q, reverse=True, page_size=2, limit=1)] == ["x"]
        found = await client.get(Q, "x")
        assert (found.type, found.headers, found.data) == ("t", {"h": "v"}, "x")
        assert await client.configure(Q, QueueConfig(name="log", max_entries=10)) == await client.config(Q)
        assert (await client.reconfigure(Q, ConfigChange(mutable=False))).max_entries == 10
        with pytest.raises(Refused) as refused:
            await client.append(Q, [NewEntry("y", id="x")])
        assert refused.value.code == "exists"
        assert (await client.stats(Q)).entries == 3
        assert [queue.entries async for queue in client.queues("demo")] == [3]
        assert [space.id async for space in client.spaces()] == ["demo"]
        assert await client.delete(f"{Q}:x") == 1
        assert await client.delete(Q, through=answer.cursor) == 2
        with pytest.raises(Refused) as refused:
            await client.get(Q, "x")
        assert refused.value.code == "entry_not_found"


def test_the_client_works_on_asyncio(data: Path) -> None:
    async def on_asyncio(url: str) -> list[object]:
        async with Client(url) as client:
            await client.append(Q, [1])
            async with client.subscribe(Q) as entries:
                first = await anext(entries)
                waiting = asyncio.create_task(anext(entries))
                await client.append(Q, [2])
                return [first.data, (await asyncio.wait_for(waiting, 10)).data]

    async def main() -> None:
        async with serving(data) as server:
            seen = await trio.to_thread.run_sync(lambda: asyncio.run(on_asyncio(server.url)))
            assert seen == [1, 2]

    trio.run(main)


async def test_a_long_stream_is_confirmed_and_kept_in_order(data: Path) -> None:
    async with serving(data) as server, Client(server.url) as client:
        seen = [c async for c in client.append_stream(Q, range(30_000))]
        assert (seen[-1].through, seen[-1].appended, len(seen)) == (30_000, 30_000, 3)
        assert [entry.data async for entry in client.iterate(Q)] == [*range(30_000)]


async def test_a_restart_keeps_data_and_cursors(data: Path) -> None:
    async with serving(data) as server, Client(server.url) as client:
        first = await client.append(Q, [1, 2])
        await client.append(Q, [3])
        assert await server.stop() == 0
    async with serving(data) as server, Client(server.url) as client:
        assert [entry.data for entry in (await client.read(Q)).entries] == [1, 2, 3]
        assert [entry.data for entry in (await client.read(Q, after=first.cursor)).entries] == [3]
        assert (await client.append(Q, [4])).results[0].position == 4


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_in_order_even_with_clients_waiting(data: Path, signum: int) -> None:
    patient = serving(data, "--shutdown-grace-s", "60")
    async with patient as server, Client(server.url, retry=Retry(attempts_max=1)) as client:
        await client.append(Q, [1])
        async with trio.open_nursery() as nursery, client.tail(Q, retry=Retry(attempts_max=1)) as entries:

            async def follow() -> None:
                with pytest.raises(Unreachable):
                    await anext(entries)

            async def poll() -> None:
                assert (await client.read("dxn:queue:demo:quiet", wait_s=60)).entries == []

            nursery.start_soon(follow)
            nursery.start_soon(poll)
            await trio.sleep(0.3)  # both wait by now, most likely; the test holds either way
            assert await server.stop(signum) == 0


@asynccontextmanager
async def upload_under_way(server: Running) -> AsyncIterator[None]:
    """A request that the server cannot finish, since its body goes on and on."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        head = f"POST /v1/{Q} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-ndjson\r\n"
        body = 'transfer-encoding: chunked\r\n\r\nc\r\n{"data": 1}\n\r\n'
        await stream.send_all((head + body).encode())
        async with Client(server.url) as client:
            while not (await client.read(Q, wait_s=10)).entries:
                pass
        yield


async def test_a_stopping_server_gives_requests_under_way_its_grace_and_no_more(data: Path) -> None:
    async with serving(data, "--shutdown-grace-s", "1.5") as server, upload_under_way(server):
        began = trio.current_time()
        assert await server.stop() == 0
        assert trio.current_time() - began > 1.4


async def test_a_second_signal_does_not_wait_for_requests(data: Path) -> None:
    async with serving(data, "--shutdown-grace-s", "60") as server, upload_under_way(server):
        server.process.send_signal(signal.SIGTERM)
        with trio.move_on_after(1.0):
            await server.process.wait()
        assert server.process.returncode is None
        assert await server.stop() == 0


async def test_a_second_server_on_the_folder_is_refused_in_one_line(data: Path) -> None:
    async with serving(data):
        second = await command("serve", "--data", str(data), "--port", "0")
    assert (second.returncode, second.stdout) == (1, b"")
    [line] = lines(second.stderr)
    assert str(data) in line
    assert "Another process already serves this folder" in line


async def test_a_port_that_is_taken_is_one_line(data: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = await command("serve", "--data", str(data), "--port", str(port))
    assert (refused.returncode, refused.stdout) == (1, b"")
    [line] = lines(refused.stderr)
    assert line.startswith(f"edgequeues: cannot listen on 127.0.0.1:{port}: ")
    assert "--port" in line


async def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = await command("serve", "--data", str(tmp_path / "file" / "data"), "--port", "0")
    assert (refused.returncode, refused.stdout) == (1, b"")
    [line] = lines(refused.stderr)
    assert line.startswith("edgequeues: cannot use the folder ")


async def test_settings_come_from_a_file_and_flags_win(tmp_path: Path) -> None:
    config = tmp_path / "edgequeues.toml"
    config.write_text(f'data = "{tmp_path / "from-file"}"\nhost = "localhost"\nport = 1\n')
    process = await spawn(tmp_path / "log", tmp_path / "from-flag", "--config", str(config), "--port", "0")
    assert (await first_line(process)).startswith("ready http://127.0.0.1:")
    process.terminate()
    assert await process.wait() == 0
    assert (tmp_path / "from-flag").is_dir()
    assert not (tmp_path / "from-file").exists()


async def test_hints_show_requests_that_work(data: Path) -> None:
    async with serving(data, "--hints") as server:
        await server.stop()
        shown = server.log.read_text()
    assert f"curl {server.url}/v1/{Q}\n" in shown
    text = next(line for line in shown.splitlines() if "--json" in line)
    assert json.loads(text.split("'")[1]) == {"entries": [{"data": {"hello": "world"}}]}
