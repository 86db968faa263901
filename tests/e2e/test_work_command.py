"""`edgequeues work` in a process of its own, against a real server: exit codes, signals, kills, restarts."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.client import Client, NewEntry

from .commands import ended, printed, says, started
from .process import command, lines, serving

pytestmark = pytest.mark.slow

J = "dxn:queue:demo:jobs"
SOON_S = 60.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


class Handler:
    """A shell command that writes down which messages it began and ended, and waits for a file before it ends."""

    def __init__(self, folder: Path) -> None:
        self.begun, self.ended, self.go = (folder / name for name in ("begun", "ended", "go"))
        begun, over, go = (shlex.quote(str(path)) for path in (self.begun, self.ended, self.go))
        self.text = (
            f'echo "$EDGEQUEUES_ID" >> {begun}; while [ ! -e {go} ]; do sleep 0.05; done; '
            f'echo "$EDGEQUEUES_ID" >> {over}'
        )

    def read(self, path: Path) -> list[str]:
        return path.read_text().split() if path.exists() else []

    async def begins(self, count: int = 1) -> None:
        """Wait until it has begun so many messages."""
        await until(lambda: len(self.read(self.begun)) >= count)


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(SOON_S):
        while True:
            if holds():
                return
            await trio.sleep(0.02)


async def stand(client: Client, *wanted: tuple[str, str, int]) -> None:
    """Wait until the messages stand so: id, state, attempts."""

    async def now() -> list[tuple[str, str, int]]:
        return [(one.id, one.state, one.attempts) for one in (await client.peek(J)).messages]

    with trio.move_on_after(SOON_S):
        while True:
            if await now() == list(wanted):
                return
            await trio.sleep(0.02)
    assert await now() == list(wanted)


async def push(client: Client, *names: str) -> None:
    await client.push(J, [NewEntry(name, id=name) for name in names])


def work(url: str, text: str, *more: str) -> tuple[str, ...]:
    return ("work", J, "--exec", text, "--server", url, *more)


async def test_exit_codes_ack_retry_and_bury(data: Path) -> None:
    script = 'read -r code || true; case $code in 0) exit 0;; *) echo "no: $code" >&2; exit $code;; esac'
    async with serving(data) as server, Client(server.url) as client:
        await client.push(J, [NewEntry(0, id="a"), NewEntry(1, id="b"), NewEntry(65, id="c")])
        done = await command("work", J, "--exec", script, "--drain", url=server.url)
        assert done.returncode == 0, done.stderr
        told = [json.loads(line) for line in lines(done.stdout)]
        assert [(one["id"], one["did"], one["error"]) for one in told] == [
            ("a", "acked", None),
            ("b", "retried", "no: 1"),
            ("c", "given_up", "no: 65"),
        ]
        [left] = (await client.peek(J)).messages
        assert (left.id, left.last_error) == ("b", "no: 1")
        assert left.state in ("backoff", "ready")  # by now
        [letter] = (await client.dead_letters(f"{J}-dlq")).letters
        assert (letter.original_id, letter.reason, letter.last_error) == ("c", "permanent", "no: 65")
        await stand(client, ("b", "ready", 1))  # the back-off is over, so it comes again
        await command("work", J, "--exec", "true", "--drain", url=server.url)
        assert (await client.peek(J)).messages == []


async def test_a_worker_killed_in_the_middle_of_a_batch_gives_its_messages_to_others(
    data: Path, tmp_path: Path
) -> None:
    handler = Handler(tmp_path)
    async with serving(data) as server, Client(server.url) as client:
        await push(client, "a", "b", "c")
        async with started(*work(server.url, handler.text, "--batch", "3", "--lease", "3s")) as process:
            await handler.begins()
            await stand(client, ("a", "leased", 1), ("b", "leased", 1), ("c", "leased", 1))
            process.kill()
            await process.wait()
        await stand(client, ("a", "ready", 1), ("b", "ready", 1), ("c", "ready", 1))
        handler.go.touch()
        done = await command("work", J, "--exec", "true", "--drain", url=server.url)
        told = [json.loads(line) for line in lines(done.stdout)]
        assert [(one["id"], one["attempts"], one["did"]) for one in told] == [
            (name, 2, "acked") for name in ("a", "b", "c")
        ]
        [consumer] = await client.consumers(J)
        assert (consumer.total_lapsed, consumer.unfinished) == (3, 0)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_gives_back_what_has_not_begun_and_lets_the_rest_finish(
    data: Path, tmp_path: Path, signum: int
) -> None:
    handler = Handler(tmp_path)
    async with serving(data) as server, Client(server.url) as client:
        await push(client, "a", "b", "c")
        async with started(*work(server.url, handler.text, "--batch", "3")) as process:
            await handler.begins()
            await stand(client, ("a", "leased", 1), ("b", "leased", 1), ("c", "leased", 1))
            process.send_signal(signum)
            await stand(client, ("a", "leased", 1), ("b", "ready", 0), ("c", "ready", 0))
            handler.go.touch()
            code, said = await ended(process)
        assert code == 0, said
        assert b"1 acked, 2 released" in said
        assert handler.read(handler.ended) == ["a"]
        await stand(client, ("b", "ready", 0), ("c", "ready", 0))


async def test_what_outlasts_the_grace_is_ended_with_its_children_and_given_back(
    data: Path, tmp_path: Path
) -> None:
    handler = Handler(tmp_path)
    async with serving(data) as server, Client(server.url) as client:
        await push(client, "a")
        async with started(*work(server.url, f"({handler.text}) & wait", "--grace", "100ms")) as process:
            await handler.begins()
            process.send_signal(signal.SIGTERM)
            code, said = await ended(process)
        assert (code, b"1 released" in said) == (0, True)
        await stand(client, ("a", "ready", 0))
        handler.go.touch()
        await trio.sleep(0.5)  # a child that was left would see the file
        assert handler.read(handler.ended) == []


async def test_a_second_signal_does_not_wait_for_commands(data: Path, tmp_path: Path) -> None:
    handler = Handler(tmp_path)
    async with serving(data) as server, Client(server.url) as client:
        await push(client, "a")
        async with started(*work(server.url, handler.text, "--grace", "1h")) as process:
            await handler.begins()
            process.send_signal(signal.SIGTERM)
            assert process.stderr is not None
            assert b"stopping" in await process.stderr.receive_some()
            process.send_signal(signal.SIGTERM)
            assert (await ended(process))[0] == 0
        await stand(client, ("a", "ready", 0))


async def test_a_command_may_take_longer_than_its_lease(data: Path) -> None:
    async with serving(data) as server, Client(server.url) as client:
        await push(client, "a")
        done = await command(*("work", J, "--exec", "sleep 7", "--lease", "3s", "--drain"), url=server.url)
        assert [json.loads(line)["did"] for line in lines(done.stdout)] == ["acked"]
        [consumer] = await client.consumers(J)
        assert (consumer.total_attempts, consumer.total_lapsed) == (1, 0)


async def test_it_outlasts_a_killed_server_and_acks_what_ran_meanwhile(data: Path, tmp_path: Path) -> None:
    handler = Handler(tmp_path)
    async with AsyncExitStack() as stack:
        async with serving(data) as server, Client(server.url) as client:
            await push(client, "a")
            process = await stack.enter_async_context(started(*work(server.url, handler.text)))
            await handler.begins()
            await server.stop(signal.SIGKILL)
        handler.go.touch()
        await until(lambda: handler.read(handler.ended) == ["a"])
        await says(process, b"Trying again until it works")
        async with serving(data, port=server.port) as again, Client(again.url) as client:
            await push(client, "b")
            told: list[Any] = [json.loads(line) for line in await printed(process, 2)]
            assert [(one["id"], one["attempts"], one["did"]) for one in told] == [
                ("a", 1, "acked"),
                ("b", 1, "acked"),
            ]
            process.send_signal(signal.SIGTERM)
            code, said = await ended(process)
            assert code == 0
            assert b"the server is back" in said


async def test_without_a_server_a_drain_gives_up(data: Path) -> None:
    async with serving(data) as server:
        await server.stop()
        done = await command("work", J, "--exec", "true", "--drain", url=server.url)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"edgequeues serve" in done.stderr


async def test_many_commands_run_at_once_and_each_message_is_handled_once(data: Path, tmp_path: Path) -> None:
    handler = Handler(tmp_path)
    names = [f"m{n:02}" for n in range(24)]
    async with serving(data) as server, Client(server.url) as client:
        await push(client, *names)
        async with started(*work(server.url, handler.text, "--concurrency", "8")) as process:
            await handler.begins(8)
            assert len(handler.read(handler.begun)) == 8
            handler.go.touch()
            await printed(process, 24)
            process.send_signal(signal.SIGTERM)
            assert (await ended(process))[0] == 0
        assert sorted(handler.read(handler.ended)) == names


async def test_a_reader_that_goes_away_ends_it_and_messages_are_given_back(data: Path) -> None:
    text = '[ "$EDGEQUEUES_ID" = a ] || exec sleep 60'
    async with serving(data) as server, Client(server.url) as client:
        await push(client, "a", "b", "c")
        async with started(*work(server.url, text, "--batch", "3", "--grace", "100ms")) as process:
            assert process.stdout is not None
            await process.stdout.aclose()
            code, said = await ended(process)
        assert (code, b"Traceback" in said) == (141, False)
        await stand(client, ("b", "ready", 0), ("c", "ready", 0))
