"""What every handler does, whatever runs it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import trio

from edgequeues.daemon.contract import Context, GiveUp, Result, SmsReply, TryAgain
from tests.daemon.handlers.functions_for_tests import Odd
from tests.daemon.handlers.given import LINK, OBJECT, FakeContext, event
from tests.daemon.handlers.opened import COMMANDS, FUNCTIONS, KINDS, opened

pytestmark = pytest.mark.timeout(120)
every_kind = pytest.mark.parametrize("kind", KINDS)
with_calls = pytest.mark.parametrize("kind", [*FUNCTIONS, *COMMANDS])


@every_kind
async def test_a_handler_that_gives_nothing_has_succeeded(kind: str) -> None:
    async with opened(kind) as it:
        assert await it.handle("nothing") == Result()


@every_kind
@pytest.mark.parametrize("todo", ["reply", "dict"])
async def test_a_reply_is_a_result_or_looks_like_one(kind: str, todo: str) -> None:
    async with opened(kind) as it:
        assert await it.handle(todo, "Grüße") == Result(reply=SmsReply(body="Grüße"))


@every_kind
async def test_artifacts_come_with_the_result_and_the_attempt_is_known(kind: str) -> None:
    async with opened(kind) as it:
        assert await it.note("artifacts", attempt=3) == "attempt 3"


@every_kind
async def test_what_is_no_result_is_a_failed_attempt_that_says_where_it_is_wrong(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(TryAgain, match="smoke"):
            await it.handle("nonsense")
        assert await it.handle("nothing") == Result()


@every_kind
async def test_a_handler_that_fails_fails_one_event(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(
            Odd if kind in FUNCTIONS else TryAgain, match="500" if kind == "url" else "no such thing"
        ):
            await it.handle("raise")
        assert await it.handle("nothing") == Result()


@every_kind
async def test_a_handler_says_when_to_try_again(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(TryAgain) as raised:
            await it.handle("again")
        assert raised.value.delay_s == 7.0


@every_kind
async def test_a_handler_says_that_there_is_no_use_in_trying_again(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(GiveUp, match="422" if kind == "url" else "not for us"):
            await it.handle("never")


@every_kind
async def test_an_event_of_half_a_mebibyte_passes(kind: str) -> None:
    async with opened(kind) as it:
        assert await it.note("big", "ü" * 500_000) == "500000"


@every_kind
async def test_an_object_can_be_had(kind: str) -> None:
    async with opened(kind) as it:
        expected = f"{len(OBJECT)} {len(OBJECT)}" if kind in FUNCTIONS else LINK
        assert await it.note("object") == expected
        assert it.ctx.open == 0


@every_kind
async def test_a_handler_over_its_budget_fails_and_the_next_event_is_handled(kind: str) -> None:
    async with opened(kind, budget_s=0.3) as it:
        with pytest.raises(TryAgain, match=r"not done within 0\.3 s"):
            await it.handle("hang")
        with trio.move_on_after(30):
            while True:  # a loaded machine may not start a process in so little time
                try:
                    assert await it.handle("nothing") == Result()
                    return
                except TryAgain:
                    continue
        raise AssertionError("nothing was handled any more")


@every_kind
async def test_nothing_of_a_handler_is_left_when_the_daemon_stops(kind: str) -> None:
    before, others = set(threading.enumerate()), _children()  # other tests may have left some of their own
    with trio.fail_after(60):
        async with opened(kind) as it, trio.open_nursery() as tasks:
            for number in range(2):
                ctx: Context = FakeContext()
                tasks.start_soon(it.handler.handle, event("hang", number=number), ctx)
            await trio.sleep(0.1)
            children = [child for child in _children() if child not in others]
            assert bool(children) == (kind in ("lines", "node"))
            tasks.cancel_scope.cancel()
        assert not [child for child in children if _runs(child)]
        while len(set(threading.enumerate()) - before) > 2:  # noqa: ASYNC110 - trio keeps idle threads for a while
            await trio.sleep(0.05)
        assert not [one for one in set(threading.enumerate()) - before if "asyncio" in one.name]


@every_kind
async def test_a_thousand_events_pass(kind: str) -> None:
    async with opened(kind, at_once=8) as it, trio.open_nursery() as tasks:
        numbers = iter(range(1_000))
        done: list[int] = []

        async def work() -> None:
            for number in numbers:
                result = await it.handler.handle(event("reply", str(number)), FakeContext())
                assert result.reply == SmsReply(body=str(number))
                done.append(number)

        for _ in range(8):
            tasks.start_soon(work)
    assert sorted(done) == list(range(1_000))


@with_calls
async def test_a_handler_sends(kind: str) -> None:
    async with opened(kind) as it:
        assert await it.handle("send") == Result()
        assert it.ctx.sent == [SmsReply(body="now")]


@with_calls
async def test_what_sending_raises_reaches_the_handler_and_comes_out_as_it_was(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(GiveUp, match="this number is blocked"):
            await it.handle("blocked")


@with_calls
async def test_a_handler_logs_counts_and_measures(kind: str) -> None:
    async with opened(kind) as it:
        await it.handle("count")
        [(level, message, fields)] = it.ctx.logger.lines
        assert (level, message) == ("info", "counting")
        assert fields.get("handler", fields) == {"colour": "blue"}
        assert it.ctx.counts.counted == [("things", 2, {"colour": "blue"})]
        assert it.ctx.counts.observed == [("size", 1.5, {"colour": "blue"})]


def _children() -> list[int]:
    """Processes that this one has started."""
    found = []
    for path in Path("/proc/self/task").glob("*/children"):
        found += [int(word) for word in path.read_text().split()]
    return found


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
