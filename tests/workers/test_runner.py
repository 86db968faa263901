"""Commands outside of the space, from message to effect: through a whole server, with processes and requests."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from edgequeues.space.calling_verbs import Handed
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.working import Runner
from shards.errors import ShardBusy

from .functions_for_tests import CONFLICT_S
from .shop import HERE, mapped, shop, until
from .test_posting import Receiver, receiver

__all__ = ["receiver"]

BROKEN = "tests.workers.broken_for_tests"


async def test_a_function_has_its_effect_and_its_message_is_finished(tmp_path: Path) -> None:
    async with shop(tmp_path, mapped("ship")) as it:
        await it.push({"id": "o"}, {"id": "o"}, {"id": "p"})
        await it.finished()
        assert sorted(one["n"] for one in await it.data("done")) == [1, 1, 2]
        assert await it.letters() == []


async def test_a_function_that_fails_has_no_effect_and_is_a_dead_letter_after_its_attempts(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, mapped("fail")) as it:
        await it.push({"id": "o"})
        await it.finished()
        [letter] = await it.letters()
        assert (letter["reason"], letter["attempts"]) == ("exhausted", 3)
        assert "fail raised ValueError: no such total (functions_for_tests.py, line " in letter["lastError"]
        assert await it.data("done") == []


async def test_a_function_that_says_never_is_a_dead_letter_at_once(tmp_path: Path) -> None:
    async with shop(tmp_path, mapped("refuse")) as it:
        await it.push({"id": "o"})
        await it.finished()
        [letter] = await it.letters()
        assert (letter["reason"], letter["attempts"]) == ("permanent", 1)
        assert letter["lastError"] == "command failed: rejected: no order o"


async def test_a_function_that_fails_once_works_the_second_time(tmp_path: Path) -> None:
    async with shop(tmp_path, mapped("fail_once")) as it:
        await it.push({"id": "o"})
        await it.finished()
        assert await it.data("done") == [{"n": 1}]


async def test_one_that_hangs_and_one_that_dies_hold_nobody_up(tmp_path: Path) -> None:
    text = (
        mapped("hang", timeout_ms=200)
        + """
      queue others { map_to: command Other.Ship { id: payload.id } }
      command Other.Ship { run: python "tests.workers.functions_for_tests:die" }
      queue good { map_to: command Good.Ship { id: payload.id } }
      command Good.Ship { run: python "tests.workers.functions_for_tests:ship" }
    """
    )
    async with shop(tmp_path, text) as it:
        await it.push({"id": "o"})
        for queue in ("others", "good"):
            body = json.dumps({"entries": [{"data": {"payload": {"id": "o"}}}]}).encode()
            await it.client.ask("POST", f"/v1/dxn:queue:shop:{queue}/push", body)
        await until(lambda: it.data("done"))
        await it.finished()
        [letter] = await it.letters()
        assert letter["lastError"].endswith(":hang did not end within 200 ms, so its process was ended")


async def test_two_that_look_at_the_same_are_one_after_the_other_and_use_up_no_attempt(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, mapped("slow", attempts=1)) as it:
        await it.push(*({"id": "o", "seconds": CONFLICT_S, "by": by} for by in "ab"))
        await it.finished()
        assert await it.letters() == []
        order = (await it.client.get("/v1/spaces/shop/entities/Order/o")).json()
        assert (order["version"], order["attributes"]["after"]) == (2, 1)


async def test_what_runs_when_the_server_stops_is_given_back_and_runs_when_it_serves_again(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, mapped("hang")) as it:
        await it.push({"id": "o"})
        await until(it.leased)
    async with shop(tmp_path, mapped("ship", attempts=1)) as it:
        await it.finished()
        assert await it.data("done") == [{"n": 1}]


async def test_whenever_a_server_stops_all_that_it_took_is_given_back(tmp_path: Path) -> None:
    """A lease that was forgotten would lapse, and that attempt is the only one."""
    text = mapped("ship", attempts=1)
    for _ in range(5):
        async with shop(tmp_path, text) as it:
            await it.push(*({"id": "o"} for _ in range(20)))
    async with shop(tmp_path, text) as it:
        await it.finished()
        assert len(await it.data("done")) == 100
        assert await it.letters() == []


async def test_a_queue_whose_messages_are_out_one_at_a_time_is_worked_to_its_end(tmp_path: Path) -> None:
    text = mapped("ship").replace("delivery {", "delivery { concurrency: 1 ")
    async with shop(tmp_path, text) as it:
        await it.push(*({"id": "o"} for _ in range(20)))
        await it.finished()
        assert [one["n"] for one in await it.data("done")] == list(range(1, 21))


async def test_a_request_is_posted_until_it_is_taken(tmp_path: Path, receiver: Receiver) -> None:
    host = f"127.0.0.1:{receiver.port}"
    text = f"""
      queue jobs {{
        delivery {{ initial_backoff_ms: 10  max_backoff_ms: 10  max_attempts: unlimited }}
        idempotency_key: payload.id
        map_to: command Order.Page {{ id: payload.id }}
      }}
      command Order.Page {{ run: http "http://{host}/x"  secret_env: "SIGN" }}
    """
    receiver.answer = (503, {}, b"")
    async with shop(tmp_path, text, commands_http_allow=[host]) as it:
        await it.push({"id": "o"})

        async def several_were_sent() -> bool:
            return len(receiver.got) > 2

        await until(several_were_sent)
        receiver.answer = (200, {}, b'{"paged":true}')
        await it.finished()
    assert len({headers["idempotency-key"] for headers, _ in receiver.got}) == 1


async def test_what_the_receiver_refuses_is_a_dead_letter(tmp_path: Path, receiver: Receiver) -> None:
    host = f"127.0.0.1:{receiver.port}"
    text = f"""
      queue jobs {{ map_to: command Order.Page {{ id: payload.id }} }}
      command Order.Page {{ run: http "http://{host}/x"  secret_env: "SIGN" }}
    """
    receiver.answer = (422, {}, b"")
    async with shop(tmp_path, text, commands_http_allow=[host]) as it:
        await it.push({"id": "o"})
        await it.finished()
        [letter] = await it.letters()
        assert letter["lastError"] == f"command failed: http://{host}/x answered 422"


async def test_what_waits_when_a_function_comes_is_run(tmp_path: Path) -> None:
    async with shop(tmp_path, "queue jobs {}") as it:
        await it.push({"id": "o"})
    async with shop(tmp_path, mapped("ship")) as it:
        await it.finished()
        assert await it.data("done") == [{"n": 1}]


async def test_dl_s05_a_module_that_cannot_be_imported_makes_a_dead_letter_with_the_whole_message(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, mapped("ship").replace(HERE, BROKEN), commands_modules=[BROKEN]) as it:
        await it.push({"id": "o"})
        await it.finished()
        [letter] = await it.letters()
        assert (
            "the module cannot be imported: RuntimeError: no database (broken_for_tests.py, line "
            in letter["lastError"]
        )
        assert letter["originalMessage"] == {"payload": {"id": "o"}}
        assert letter["attempts"] == 3


async def test_ob_s02_functions_of_one_key_never_overlap_and_keep_their_order(tmp_path: Path) -> None:
    text = mapped("linger").replace("delivery {", "ordering: per_key(payload.id)\n delivery {")
    async with shop(tmp_path, text, commands_processes=4) as it:
        await it.push(*({"id": key, "by": str(number)} for number in range(6) for key in "abc"))
        await it.finished()
        spans = await it.data("done")
    for key in "abc":
        mine = sorted((one for one in spans if one["key"] == key), key=lambda one: one["began"])
        assert [one["by"] for one in mine] == list("012345")
        assert all(before["ended"] <= after["began"] for before, after in pairwise(mine))


async def test_a_space_that_cannot_be_asked_is_asked_again_and_the_server_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, failures = SpaceShard.take_calls, iter((ValueError("a bug"), ShardBusy("shop")))

    def take_calls(shard: SpaceShard, runner: Runner, limit: int) -> Handed:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        return take(shard, runner, limit)

    monkeypatch.setattr(SpaceShard, "take_calls", take_calls)
    async with shop(tmp_path, mapped("ship")) as it:
        await it.push({"id": "o"})
        await it.finished()
        assert await it.data("done") == [{"n": 1}]
    assert next(failures, None) is None
