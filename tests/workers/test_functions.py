"""Python functions as commands: each in a process of its own, which may hang or die without harm to others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from edgequeues.core.errors import CommandFailed, CommandRejected
from edgequeues.space.entities import Entity
from edgequeues.spec.calling import Call, Change, Effects, Posted, Read
from edgequeues.workers.functions import Functions, open_functions
from edgequeues.workers.pipe import Job

HERE = "tests.workers.functions_for_tests"
TIMEOUT_S = 30.0


class Pool:
    """Functions, and the entities that they see."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.entities: dict[tuple[str, str], Entity] = {}

    async def run(self, name: str, timeout_s: float = TIMEOUT_S, **given: object) -> Effects:
        name = name if ":" in name else f"{HERE}:{name}"
        job = Job(name, Call("Order", "Ship", given), "q_m", 1, "shop", 5_000, 4_000)
        return await self.functions.run(job, self._look, timeout_s)

    async def _look(self, entity_type: str, entity_id: str) -> Entity | None:
        return self.entities.get((entity_type, entity_id))


@asynccontextmanager
async def pool(workers: int = 1) -> AsyncIterator[Pool]:
    async with open_functions(workers) as functions:
        yield Pool(functions)


async def test_what_a_function_does_is_recorded_with_what_it_looked_at() -> None:
    async with pool() as it:
        assert await it.run("ship", id="o") == Effects(
            (Read("Order", "o", None),),
            (Change("Order", "o", "shipped", '{"times":1,"attempt":1}'),),
            (Posted("done", '{"n":1}'),),
            '{"times":1}',
        )
        it.entities["Order", "o"] = Entity("Order", "o", None, '{"times":4}', 7, 0, 0)
        again = await it.run("ship", id="o")
        assert (again.reads, again.result) == ((Read("Order", "o", 7),), '{"times":5}')
        assert (await it.run("cancel", id="o")).changes == (Change("Order", "o", None, None),)


async def test_a_process_is_kept_for_the_next_function() -> None:
    async with pool() as it:
        first, second = await it.run("who"), await it.run("who")
        assert first == second
        assert first.result.startswith('["q_m","shop",1,')


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("fail", f"{HERE}:fail raised ValueError: no such total (functions_for_tests.py, line "),
        ("exit_politely", f"{HERE}:exit_politely raised SystemExit: enough (functions_for_tests.py, line "),
        ("die", f"the process that ran {HERE}:die died (signal 9)"),
        ("leave", f"the process that ran {HERE}:leave died (status 3)"),
        ("return_a_set", "what was returned cannot be stored: Object of type set is not JSON serializable"),
        ("return_nothing_sayable", "what was returned cannot be stored: Out of range float values"),
        ("return_too_much", "what was returned cannot be stored: 70002 bytes, at most 65536 are kept"),
        (
            "store_a_set",
            "attributes of Order o cannot be stored: Object of type set is not JSON serializable",
        ),
        ("post_too_much", "message for done cannot be stored: 2000002 bytes, at most 1048576 are kept"),
        ("name_badly", "the type of an entity is a text of 1 to 256 characters, not ''"),
        ("name_half_a_character", "the id of an entity is a text of 1 to 256 characters, not '\\ud800'"),
        ("key_badly", "raised ValueError: "),
        ("wait", "it is async: a command is run by a plain function"),
        ("missing", "the module has no function `missing`"),
        ("number", "the module has no function `number`"),
        (
            "no_such_module:f",
            "the module cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
        ),
    ],
)
async def test_a_function_that_fails_is_told_and_the_next_one_runs(name: str, error: str) -> None:
    async with pool() as it:
        with pytest.raises(CommandFailed) as caught:
            await it.run(name)
        assert error in caught.value.detail
        assert (await it.run("ship", id="o")).result == '{"times":1}'


async def test_a_function_may_say_that_it_is_of_no_use_to_try_again() -> None:
    async with pool() as it:
        with pytest.raises(CommandRejected) as caught:
            await it.run("refuse", id="x")
        assert caught.value.detail == "rejected: no order x"


async def test_a_function_that_hangs_is_ended_and_the_next_one_runs() -> None:
    async with pool() as it:
        await it.run("who")
        with pytest.raises(CommandFailed) as caught:
            await it.run("hang", timeout_s=0.2)
        assert caught.value.detail == f"{HERE}:hang did not end within 200 ms, so its process was ended"
        assert (await it.run("ship", id="o")).result == '{"times":1}'


async def test_who_waits_no_longer_leaves_no_process_behind() -> None:
    async with pool() as it:
        before = (await it.run("who")).result
        with trio.move_on_after(0.2):
            await it.run("hang")
        assert (await it.run("who")).result != before


async def test_functions_run_side_by_side_up_to_the_number_of_processes() -> None:
    async with pool(2) as it, trio.open_nursery() as nursery:
        nursery.start_soon(lambda: it.run("hang"))
        assert (await it.run("ship", id="o")).result == '{"times":1}'
        nursery.start_soon(lambda: it.run("hang"))
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.2) as waited:
            await it.run("who")
        assert waited.cancelled_caught
        nursery.cancel_scope.cancel()
    assert nursery.cancel_scope.cancelled_caught
