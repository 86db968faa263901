"""Commands: what they may say, what becomes of those that die, hang or talk nonsense, and how they are ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec
import pytest
import trio

from edgequeues.daemon.contract import Result, SmsReply, TryAgain
from edgequeues.daemon.handlers import process
from edgequeues.daemon.handlers.messages import PARAMS, Event
from edgequeues.daemon.handlers.spec import HandlerSpec, UnusableHandler
from tests.daemon.handlers.given import FakeContext, event
from tests.daemon.handlers.opened import command, one, opened

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


async def test_a_process_is_kept_for_the_next_event() -> None:
    async with opened("lines") as it:
        assert await it.note("who") == await it.note("who")


async def test_there_are_as_many_processes_as_events_at_once() -> None:
    async with opened("lines", at_once=3) as it:
        seen: set[str | None] = set()

        async def look() -> None:
            result = await it.handler.handle(event("who"), FakeContext())
            seen.update(one.note for one in result.artifacts)

        async with trio.open_nursery() as tasks:
            for _ in range(20):
                tasks.start_soon(look)
        assert 1 <= len(seen) <= 3


async def test_a_command_knows_its_budget() -> None:
    async with opened("lines") as it:
        assert await it.note("budget") == "60000"


@pytest.mark.parametrize(
    ("todo", "said"),
    [
        ("die", r"signal 9, Killed"),
        ("exit", r"status 3"),
        ("print", r"no message .* standard error"),
        ("long", r"a line of more than 1048576 bytes"),
        ("stranger", r"an event that it has not got"),
    ],
)
async def test_a_process_that_misbehaves_fails_its_event_and_no_other(todo: str, said: str) -> None:
    async with opened("lines", at_once=2) as it:
        others: list[Result] = []

        async def work() -> None:
            for _ in range(20):
                others.append(await it.handler.handle(event("reply", "hello"), FakeContext()))

        async with trio.open_nursery() as tasks:
            tasks.start_soon(work)
            with pytest.raises(TryAgain, match=said):
                await it.handle(todo)
        assert others == [Result(reply=SmsReply(body="hello"))] * 20
        assert await it.handle("nothing") == Result()


async def test_processes_that_die_one_after_the_other_are_started_more_and_more_slowly() -> None:
    async with opened("lines", at_once=1) as it:
        began_s = trio.current_time()
        for _ in range(4):
            with pytest.raises(TryAgain, match="signal 9"):
                await it.handle("die")
        assert trio.current_time() - began_s >= 0.05 + 0.1 + 0.2  # half of each pause, at the least
        assert await it.handle("nothing") == Result()
        began_s = trio.current_time()
        with pytest.raises(TryAgain, match="signal 9"):
            await it.handle("die")


async def test_a_process_that_died_while_it_had_nothing_to_do_fails_no_event() -> None:
    async with opened("lines", at_once=1) as it:
        pid = await it.note("who")
        assert pid is not None
        os.kill(int(pid), 9)
        await trio.sleep(0.2)
        assert await it.note("who") != pid


async def test_a_process_that_heeds_the_end_of_the_budget_is_kept() -> None:
    async with opened("lines", at_once=1, budget_s=1.0) as it:
        pid = await it.note("who")
        with pytest.raises(TryAgain, match="not done within 1 s"):
            await it.handle("patient")
        assert await it.note("who") == pid


async def test_one_that_does_not_is_ended_with_all_it_has_started() -> None:
    async with opened("lines", at_once=1, budget_s=1.0) as it:
        pid = await it.note("who")
        assert pid is not None
        with pytest.raises(TryAgain, match="not done within 1 s"):
            await it.handle("parent")
        with pytest.raises(ProcessLookupError):
            await _until_gone(int(pid))


async def test_a_process_that_floods_the_daemon_and_reads_nothing_ends_with_its_budget() -> None:
    async with opened("lines", at_once=1, budget_s=1.5) as it:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await trio.sleep(0.01)

        async with trio.open_nursery() as tasks:
            tasks.start_soon(beat)
            with pytest.raises(TryAgain, match="not done within"):
                await it.handle("flood")
            tasks.cancel_scope.cancel()
        assert beats > 10


async def test_a_process_that_reads_nothing_of_a_big_event_ends_with_its_budget() -> None:
    async with opened("lines", at_once=1, budget_s=1.0) as it:
        await it.handle("nothing")
        with pytest.raises(TryAgain, match="not done within"):
            await it.handle("deaf", "x" * 5_000_000)


async def test_what_a_call_lacks_is_told_to_the_command() -> None:
    async with opened("lines") as it:
        assert await it.note("wrong") == "sendSms: Object contains unknown field `text`"


async def test_without_an_object_store_a_link_is_refused() -> None:
    log_of = HandlerSpec(kind="command", target=command())
    from edgequeues.daemon.handlers.opening import open_handler
    from tests.daemon.handlers.given import Lines

    async with open_handler(log_of, logger=Lines()) as handler:
        with pytest.raises(TryAgain, match="status 1"):  # the child expects a link
            await handler.handle(event("object"), FakeContext())


async def test_standard_error_is_logged_without_personal_data_and_with_a_bound() -> None:
    what = HandlerSpec(kind="command", target=command(), at_once=1)
    async with one(what, redact=lambda line: line.replace("+15550100", "+1*****00")) as it:
        await it.handle("noise")
    lines = [fields["line"] for _, message, fields in it.log.lines if message == "the handler wrote"]
    assert lines[0] == "ready for +1*****00"
    assert len(lines) == process.LOG_LINES_MAX
    assert it.log.told("writes too much")


async def test_a_command_is_told_to_stop_and_may_take_its_time(tmp_path: Path) -> None:
    async with one(HandlerSpec(kind="command", target=command(tmp_path))) as it:
        assert await it.handle("nothing") == Result()
    assert (tmp_path / "stopped").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no-such-program-here --fast", "No such file or directory"),
        (command("broken"), "it ended.*status 4"),
        (f"'{sys.executable}' -c 'print(5)'", "no message"),
        ("sleep 0.1", "it ended.*status 0"),
    ],
)
async def test_a_command_that_does_not_get_ready_is_known_from_the_start(target: str, said: str) -> None:
    with pytest.raises(UnusableHandler, match=said):
        async with one(HandlerSpec(kind="command", target=target)):
            raise AssertionError("it was opened")


async def test_what_the_block_raises_comes_out_in_no_group() -> None:
    async def fail() -> None:
        async with opened("lines") as it:
            await it.handle("nothing")
            raise KeyError("of the daemon")

    with pytest.raises(KeyError):
        await fail()


def test_the_page_names_every_message_and_method() -> None:
    page = (Path(__file__).parents[3] / "docs/guides/handlers.md").read_text()
    names = ["hello", "ready", "event", "result", "error", "call", "answer", "cancel", "stop", *PARAMS]
    assert not [name for name in names if f'"{name}"' not in page and f"`{name}`" not in page]
    assert "budgetMs" in msgspec.json.encode(Event(1, 1, 1, event("x"))).decode()


async def _until_gone(pid: int) -> None:
    """Raises ProcessLookupError once there is no process of its group."""
    with trio.fail_after(10):
        while True:
            os.killpg(pid, 0)
            await trio.sleep(0.01)
