"""The consumer daemon as a process, over the server as a process: killed, stopped, restarted, and given rubbish."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import trio

from edgequeues.core.ids import hex_to_ulid

from .daemons import FAILS, SLEEPS, STEPS, Inbox, consuming, inbox
from .process import Running, command, lines, serving

pytestmark = pytest.mark.slow

BRIEF = {"PROCESSING_BUDGET_SECONDS": "2", "VISIBILITY_MARGIN_SECONDS": "1"}
DEAD = "dxn:queue:demo:inbox-dlq"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Running]:
    async with serving(tmp_path / "data") as running:
        yield running


class Stalling:
    """What is between a daemon and its server, and can be told to carry nothing to the server any more."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.stalled = False

    async def serve(self, client: trio.SocketStream) -> None:
        server = await trio.open_tcp_stream("127.0.0.1", self._port)
        async with client, server, trio.open_nursery() as nursery:
            nursery.start_soon(self._carry, client, server, True)
            nursery.start_soon(self._carry, server, client, False)

    async def _carry(self, source: trio.SocketStream, target: trio.SocketStream, up: bool) -> None:
        try:
            while piece := await source.receive_some(65_536):
                if up and self.stalled:
                    continue
                await target.send_all(piece)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


async def test_cd_s01_what_a_killed_daemon_had_not_acked_comes_again_and_the_rest_never(
    server: Running, tmp_path: Path
) -> None:
    """32 pulled; killed when 10 are handled, and 7 of those acked."""
    stalling = Stalling(int(server.port))
    async with (
        inbox(server.url, tmp_path / "shop", STEPS) as box,
        trio.open_nursery() as nursery,
    ):
        [listener] = await nursery.start(partial(trio.serve_tcp, host="127.0.0.1"), stalling.serve, 0)
        await box.push_events(32)
        port = listener.socket.getsockname()[1]
        way = box.url.replace(f":{server.port}/", f":{port}/")
        async with consuming(box, url=way, **BRIEF) as daemon:
            box.plan("7")
            await box.until_backlog(25)
            stalling.stalled = True
            box.plan("10")
            await box.until_traced(10)
            await daemon.stop(signal.SIGKILL)
        assert await box.backlog() == 25
        box.plan("32")
        async with consuming(box, **BRIEF) as daemon:
            await box.until_backlog(0)
            assert await daemon.stop() == 0
        nursery.cancel_scope.cancel()
    runs = Counter(one[0] for one in box.trace())
    assert {number for number, count in runs.items() if count == 2} == {8, 9, 10}
    assert set(runs) == {*range(1, 33)}
    attempts = {number: attempt for number, attempt in box.trace()[10:]}  # noqa: C416
    assert attempts == dict.fromkeys(range(8, 33), 2)


@pytest.mark.parametrize(("grace_s", "left"), [("5", 0), ("1", 5)])
async def test_cd_s02_a_daemon_that_is_to_stop_finishes_what_it_can_and_gives_back_the_rest(
    server: Running, tmp_path: Path, grace_s: str, left: int
) -> None:
    handler = SLEEPS.replace("float(PLAN.read_text())", "0.2 if number <= 3 else 3")
    rules = {"MAX_BATCH_CONCURRENCY": "8", "SHUTDOWN_GRACE_SECONDS": grace_s}
    async with inbox(server.url, tmp_path / "shop", handler) as box:
        await box.push_events(8)
        async with consuming(box, **rules) as daemon:
            await box.until_traced(3)
            assert await daemon.stop() == 0
        assert await box.backlog() == await box.ready() == left
        assert len(box.trace()) == 8 - left


async def test_cd_s03_after_each_of_many_restarts_no_message_is_without_an_owner(
    server: Running, tmp_path: Path
) -> None:
    async with inbox(server.url, tmp_path / "shop", SLEEPS, max_retries=99) as box:
        box.plan("0.1")
        await box.push_events(100)
        for _ in range(5):
            rules = {"SHUTDOWN_GRACE_SECONDS": "0", "QUEUE_MAX_BATCH": "10", "QUEUE_MAX_ATTEMPTS": "100"}
            async with consuming(box, **rules) as daemon:
                await trio.sleep(0.2)
                assert await daemon.stop() == 0
            assert await box.ready() == await box.backlog()
        assert 0 < await box.backlog() < 100


async def test_a_second_signal_ends_it_at_once(server: Running, tmp_path: Path) -> None:
    async with inbox(server.url, tmp_path / "shop", SLEEPS) as box:
        box.plan("3600")
        await box.push_events(3)
        async with consuming(box, PROCESSING_BUDGET_SECONDS="3600", SHUTDOWN_GRACE_SECONDS="3600") as daemon:
            await box.until_taken()
            daemon.process.send_signal(signal.SIGTERM)
            await trio.sleep(0.2)
            assert await daemon.stop() == 0
        assert await box.ready() == 3


async def letters(server: Running) -> list[dict[str, object]]:
    """The dead letters, as the command line shows them."""
    shown = await command("dlq", "list", DEAD, "--limit", "2000", url=server.url)
    assert shown.returncode == 0, shown.stderr
    return [json.loads(line)["letter"] for line in lines(shown.stdout)]


async def settled(box: Inbox) -> None:
    """Let a daemon work until nothing is left."""
    async with consuming(box, ON_ERROR="0", QUEUE_MAX_ATTEMPTS="3") as daemon:
        await box.until_backlog(0)
        assert await daemon.stop() == 0


@pytest.mark.parametrize("amount", [1, 32, 1_000])
async def test_malformed_events_are_as_many_dead_letters_each_with_its_error(
    server: Running, tmp_path: Path, amount: int
) -> None:
    async with inbox(server.url, tmp_path / "shop", SLEEPS) as box:
        await box.push(*[{"id": n} for n in range(amount)])
        await settled(box)
        found = await letters(server)
        assert len(found) == amount
        assert all(str(letter["lastError"]).startswith("MALFORMED_EVENT") for letter in found)
        assert box.trace() == []


async def test_a_raising_handler_ends_in_the_dlq_after_its_last_attempt(
    server: Running, tmp_path: Path
) -> None:
    async with inbox(server.url, tmp_path / "shop", FAILS) as box:
        await box.push_events(2)
        await settled(box)
        found = await letters(server)
        assert sorted(box.trace()) == [(1,), (1,), (1,), (2,), (2,), (2,)]
        assert [(letter["attempts"], letter["lastError"]) for letter in found] == [
            (3, "CONSUMER_HANDLER_ERROR: ValueError: no such order")
        ] * 2


async def test_the_log_of_a_run_holds_no_address(server: Running, tmp_path: Path) -> None:
    async with inbox(server.url, tmp_path / "shop", FAILS.replace("no such order", "ann@example.com")) as box:
        await box.push_events(1)
        await settled(box)
        log = [json.loads(line) for line in (box.folder / "daemon.log").read_text().splitlines()]
        assert {"ready", "stopped"} <= {line["msg"] for line in log}
        about = [line for line in log if line.get("eventId") == "event-0001"]
        assert [line["attempt"] for line in about if "outcome" in line] == [1, 2, 3]
        assert "ann@example.com" not in (box.folder / "daemon.log").read_text()


async def test_what_cannot_be_run_is_told_at_once(server: Running, tmp_path: Path) -> None:
    async with inbox(server.url, tmp_path / "shop", SLEEPS) as box:
        told = await command("consume", "--handler", "shop:nothing", "--queue-http-endpoint", box.url)
        assert told.returncode == 2
        assert b"Traceback" not in told.stderr
        for arguments in ((), ("--handler", "a:b", "--url", "http://127.0.0.1:1/"), ("--url", "nowhere")):
            told = await command("consume", *arguments, "--queue-http-endpoint", box.url)
            assert told.returncode == 2, told.stderr
        gone = box.url.rpartition("/")[0] + "/nothing"
        told = await command("consume", "--url", "http://127.0.0.1:1/", "--queue-http-endpoint", gone)
        assert (told.returncode, b"there is no queue nothing" in told.stderr) == (1, True)


async def test_a_token_that_may_pull_the_inbox_is_enough_and_none_is_not(
    server: Running, tmp_path: Path
) -> None:
    async def token(*args: str) -> str:
        made = await command("token", "create", *args, "--data", str(tmp_path / "data"))
        assert made.returncode == 0, made.stderr
        return made.stdout.decode().strip()

    async with inbox(server.url, tmp_path / "shop", SLEEPS) as box:
        await box.push_events(3)
        box.show(await token("owner"))
        hex_id = box.url.rpartition("/")[2]
        queue = hex_to_ulid(hex_id)
        mine = await token("daemon", "--space", "demo", "--queue", queue, "--verbs", "pull")
        told = await command("consume", "--url", "http://127.0.0.1:1/", "--queue-http-endpoint", box.url)
        assert (told.returncode, b"QUEUE_HTTP_TOKEN" in told.stderr) == (1, True)
        async with consuming(box, name=hex_id, QUEUE_HTTP_TOKEN=mine) as daemon:
            await box.until_backlog(0)
            assert await daemon.stop() == 0
        log = daemon.log.read_text()
        assert "its rules are not checked" in log
        assert mine not in log
