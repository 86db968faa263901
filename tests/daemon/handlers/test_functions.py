"""Handlers that are Python functions: what is found, what they run on, and what goes on when time is up."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
import trio

from edgequeues.daemon.contract import GiveUp, Result, SmsReply, TryAgain
from edgequeues.daemon.handlers.functions import find
from edgequeues.daemon.handlers.spec import HandlerSpec, UnusableHandler
from tests.daemon.handlers import functions_for_tests as functions
from tests.daemon.handlers.given import NOW, FakeContext, event
from tests.daemon.handlers.opened import FUNCTIONS, HERE, one, opened

pytestmark = pytest.mark.timeout(60)
every_function = pytest.mark.parametrize("kind", FUNCTIONS)


@pytest.fixture(autouse=True)
def _nothing_is_held() -> Iterator[None]:
    functions.held.clear()
    functions.ended.clear()
    yield
    functions.held.set()


def python(name: str, loop: Literal["trio", "asyncio"] = "trio") -> HandlerSpec:
    return HandlerSpec(kind="python", target=f"{HERE}:{name}", loop=loop)


async def until(holds: Callable[[], object]) -> None:
    with trio.fail_after(20):
        while not holds():  # noqa: ASYNC110 - threads tell nobody
            await trio.sleep(0.005)


@pytest.mark.parametrize(
    ("name", "said"),
    [("shop", "called"), ("shop.method", "method"), ("shop.plain", "plain"), ("part", "part")],
)
async def test_whatever_can_be_called_is_a_handler(name: str, said: str) -> None:
    """An object, its methods by their dotted names, a partial: those that are `async` run on trio."""
    async with one(python(name)) as it:
        assert await it.note("nothing") == said


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no_such_module:handle", "importing no_such_module failed with ModuleNotFoundError"),
        (f"{HERE}:shop.nothing", f"{HERE}.shop has no 'nothing'; it was read from {functions.__file__}"),
        (f"{HERE}:nothing", f"{HERE} has no 'nothing'"),
        (f"{HERE}:number", "is int; name a function"),
        (f"{HERE}:Shop", "is a class; name a function"),
        (f"{HERE}:lonely", "cannot be called with an event and a context; write `def handle(event, ctx)`"),
    ],
)
def test_what_is_no_handler_is_refused_with_what_was_tried(target: str, said: str) -> None:
    with pytest.raises(UnusableHandler, match=re.escape(said)) as raised:
        find(target)
    assert target in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("1 / 0", "ZeroDivisionError: division by zero"), ("import sys; sys.exit(3)", "SystemExit: 3")],
)
def test_a_module_that_cannot_be_imported_is_refused_with_why(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_shop.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(UnusableHandler, match=f"{said}; it must lie in {re.escape(str(tmp_path))}"):
        find("broken_shop:handle")


def test_a_module_of_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop_that_works.py").write_text("def handle(event, ctx): return 5")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert find("shop_that_works:handle")(event("nothing"), None) == 5
    del sys.modules["shop_that_works"]


async def test_a_plain_function_cannot_run_on_asyncio() -> None:
    with pytest.raises(UnusableHandler, match="is a plain function, which runs in threads"):
        async with one(python("plain", "asyncio")):
            raise AssertionError("it was opened")


async def test_a_plain_function_that_gives_a_coroutine_is_told_to_be_async() -> None:
    async with one(python("disguised")) as it:
        with pytest.raises(TryAgain, match="gave a coroutine: declare it with `async def`"):
            await it.handle("nothing")


@every_function
async def test_what_is_neither_nothing_nor_a_result_nor_a_dict_fails(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(TryAgain, match="gave list; it must give nothing, a Result, or a dict"):
            await it.handle("list")


@every_function
async def test_the_time_is_the_daemons(kind: str) -> None:
    async with opened(kind) as it:
        assert await it.note("now") == NOW.isoformat()


@every_function
async def test_a_part_of_an_object_is_read(kind: str) -> None:
    async with opened(kind) as it:
        assert await it.note("read") == "hello"
        assert it.ctx.open == 0


@every_function
async def test_an_object_that_is_gone_raises_in_the_handler(kind: str) -> None:
    async with opened(kind) as it:
        with pytest.raises(GiveUp, match="the object is gone"):
            await it.handle("gone")


@every_function
async def test_what_a_handler_waits_for_ends_with_its_budget(kind: str) -> None:
    async with opened(kind, budget_s=0.3) as it:
        with pytest.raises(TryAgain, match="not done within"):
            await it.handle("mail")
        assert it.ctx.was_stopped


@pytest.mark.parametrize("kind", ["asyncio", "plain"])
async def test_a_handler_that_exits_fails_one_event(kind: str) -> None:
    """On trio's own thread it would end the daemon, as anywhere in Python."""
    async with opened(kind) as it:
        with pytest.raises(SystemExit):
            await it.handle("exit")
        assert await it.handle("nothing") == Result()


async def test_a_task_of_asyncio_hears_that_its_time_is_up() -> None:
    async with opened("asyncio", budget_s=0.3) as it:
        with pytest.raises(TryAgain, match="not done within"):
            await it.handle("hang")
        assert functions.ended == ["event-0001"]


async def test_a_task_of_asyncio_that_cancels_itself_is_a_failed_attempt() -> None:
    async with opened("asyncio") as it:
        with pytest.raises(TryAgain, match="was cancelled, and not by the daemon"):
            await it.handle("cancel")


async def test_a_task_of_asyncio_that_will_not_be_cancelled_is_told_of_and_keeps_nobody_waiting() -> None:
    async with opened("asyncio", budget_s=0.3) as it:
        with trio.fail_after(20), pytest.raises(TryAgain, match="not done within"):
            await it.handle("stubborn")
        assert it.log.told("a handler that was cancelled goes on")
        assert not functions.held.is_set()
        assert await it.handle("nothing") == Result()
        functions.held.set()


async def test_what_asyncio_no_longer_waits_for_is_ended_on_trio() -> None:
    """While the attempt still goes on."""
    async with opened("asyncio") as it, trio.open_nursery() as tasks:

        async def release() -> None:
            await until(lambda: it.ctx.was_stopped)
            functions.held.set()

        tasks.start_soon(release)
        assert await it.note("impatient") == "gave up waiting"


async def test_a_task_of_asyncio_does_several_things_at_once() -> None:
    async with opened("asyncio") as it:
        await it.handle("parallel")
        assert sorted(str(reply) for reply in it.ctx.sent) == sorted(
            str(SmsReply(body=str(n))) for n in range(5)
        )


async def test_a_thread_that_is_over_its_budget_has_its_place_until_it_ends() -> None:
    async with opened("plain", budget_s=0.4, at_once=1) as it:
        with pytest.raises(TryAgain, match="not done within"):
            await it.handle("hold")
        assert it.log.told("goes on in its thread, and has its place until it ends")
        assert not it.log.told("an event found no thread")
        with pytest.raises(TryAgain, match="not done within"):
            await it.handle("reply")
        assert it.log.told("an event found no thread")
        functions.held.set()
        assert await it.handle("nothing") == Result()


async def test_the_context_of_an_attempt_that_is_over_sends_nothing() -> None:
    async with opened("plain", budget_s=0.1) as it:
        with pytest.raises(TryAgain, match="not done within"):
            await it.handle("late")
        functions.held.set()
        await until(lambda: functions.ended)
        assert functions.ended == ["the attempt is over: its context is of no more use"]
        assert it.ctx.sent == []


async def test_no_more_threads_run_than_events_are_given_at_once() -> None:
    """Two are held; the third has not begun when they end, and is then dealt with."""
    done: list[str] = []
    async with opened("plain", at_once=2) as it, trio.open_nursery() as tasks:

        async def work(todo: str) -> None:
            await it.handler.handle(event(todo), FakeContext())
            done.append(todo)

        for todo in ("hold", "hold"):
            tasks.start_soon(work, todo)
        await trio.sleep(0.1)
        tasks.start_soon(work, "nothing")
        await trio.sleep(0.1)
        assert done == []
        functions.held.set()
    assert sorted(done) == ["hold", "hold", "nothing"]
