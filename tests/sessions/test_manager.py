"""Messages for sessions are delivered one at a time and in order, however long that takes."""

from __future__ import annotations

import json
from functools import partial

import pytest
import trio

from edgequeues.inbound import RETRIES_MS, InboundRow
from edgequeues.sessions.errors import SessionClosed, SessionNotFound
from edgequeues.sessions.manager import Deliver, Options, SessionManager, open_manager
from edgequeues.store import Refused

from .conftest import Folder
from .deliveries import Deliveries, enqueue

LONG_S = 3_600.0


# -- order -------------------------------------------------------------------------------------------------


async def test_a_message_is_delivered_with_all_that_came_with_it(folder: Folder) -> None:
    deliver = Deliveries()
    async with open_manager(folder.make(), deliver) as manager:
        position = await manager.enqueue(
            session_id="s",
            origin="discord",
            content="Hi",
            message_type="voice",
            payload={"file": ["a", 1, None]},
            actor_id="7",
            actor_name="Ada",
            actor_avatar_url="https://example.org/ada.png",
            source_message_id="m1",
            source_channel_id="c1",
        )
        await trio.sleep(1)
    [row] = deliver.begun
    assert row["id"] == position
    assert (row["session_id"], row["origin"], row["content"], row["message_type"]) == (
        "s",
        "discord",
        "Hi",
        "voice",
    )
    assert row["payload_json"] is not None
    assert json.loads(row["payload_json"]) == {"file": ["a", 1, None]}
    assert (row["actor_id"], row["actor_name"]) == ("7", "Ada")
    assert row["actor_avatar_url"] == "https://example.org/ada.png"
    assert (row["source_message_id"], row["source_channel_id"]) == ("m1", "c1")
    assert (row["status"], row["attempt_count"]) == ("processing", 0)


async def test_a_hundred_that_enqueue_at_once_into_a_session_make_one_delivery_at_a_time(
    folder: Folder,
) -> None:
    deliver, positions = Deliveries(lasts_s=1.0), dict[str, int]()
    async with open_manager(folder.make(), deliver) as manager:

        async def send(content: str) -> None:
            positions[content] = await enqueue(manager, content)

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(send, str(number))
        await trio.sleep(0.5)
        assert manager.active() == ["s"]
        await trio.sleep(110)
        assert manager.active() == []
    assert deliver.most == 1
    assert deliver.contents == deliver.done == sorted(positions, key=lambda content: positions[content])
    assert len(deliver.done) == 100


async def test_a_thousand_sessions_are_delivered_to_beside_each_other(folder: Folder) -> None:
    deliver = Deliveries(lasts_s=10.0)
    async with open_manager(folder.make(), deliver) as manager:
        async with trio.open_nursery() as nursery:
            for number in range(1_000):
                nursery.start_soon(enqueue, manager, f"{number}", f"s{number}")
        await trio.sleep(5)
        assert len(manager.active()) == 1_000
        await trio.sleep(6)
        assert len(deliver.done) == 1_000


async def test_no_more_are_delivered_at_once_than_may_be(folder: Folder) -> None:
    deliver = Deliveries(lasts_s=10.0)
    async with open_manager(folder.make(), deliver, Options(concurrency=3)) as manager:
        for number in range(7):
            await enqueue(manager, str(number), f"s{number}")
        await trio.sleep(5)
        assert len(manager.active()) == 3
        await trio.sleep(30)
    assert deliver.times == pytest.approx([0, 0, 0, 10, 10, 10, 20], abs=0.1)


async def test_a_session_that_hangs_holds_up_no_other_and_no_enqueue(folder: Folder) -> None:
    seen: list[str] = []

    async def deliver(row: InboundRow) -> None:
        if row["session_id"].startswith("hangs"):
            await trio.sleep_forever()
        seen.append(row["session_id"])

    async with open_manager(folder.make(), deliver) as manager:
        for number in range(150):
            await enqueue(manager, "", f"hangs{number}")
        await trio.sleep(1)
        began = trio.current_time()
        await enqueue(manager, "", "hangs1")
        await enqueue(manager, "", "other")
        assert trio.current_time() - began < 0.01
        await trio.sleep(1)
    assert seen == ["other"]


# -- failures ----------------------------------------------------------------------------------------------


async def test_a_message_that_fails_is_tried_after_each_time_of_the_list_and_the_next_waits_behind_it(
    folder: Folder,
) -> None:
    """5 10 20 40 80 160 300 300 s; nothing else happens, so it wakes by itself (fault 3 of the origin)."""
    deliver = Deliveries(0.0, *[RuntimeError("no pane")] * 8)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "A")
        await enqueue(manager, "B")
        await trio.sleep(LONG_S)
    waits = [later - sooner for sooner, later in zip(deliver.times, deliver.times[1:], strict=False)]
    listed = [wait_ms / 1000 for wait_ms in (*RETRIES_MS, RETRIES_MS[-1])]
    assert waits[:-1] == pytest.approx(listed, abs=0.002)
    assert waits[-1] == pytest.approx(0, abs=0.1)
    assert deliver.contents == ["A"] * 9 + ["B"]
    assert deliver.attempts == [*range(9), 0]
    assert deliver.done == ["A", "B"]


async def test_it_is_tried_without_an_end(folder: Folder) -> None:
    deliver = Deliveries(0.0, *[RuntimeError("no pane")] * 300)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "A")
        await trio.sleep(300 * 300)
    assert deliver.attempts == list(range(301))
    assert deliver.done == ["A"]


@pytest.mark.parametrize(
    "fault",
    [
        SystemExit(3),
        BaseExceptionGroup("several", [SystemExit(3), ValueError("x")]),
        ExceptionGroup("of a nursery", [ValueError("x")]),
        GeneratorExit(),
        ValueError("half of a pair: \ud83d"),
    ],
    ids=repr,
)
async def test_whatever_a_delivery_raises_is_a_failure_of_its_own(
    folder: Folder, fault: BaseException
) -> None:
    deliver = Deliveries(0.0, fault)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "A")
        await trio.sleep(1)
        await enqueue(manager, "B", "other")
        await trio.sleep(1)
        assert deliver.done == ["B"]
        [blocked] = (await manager.sessions()).sessions
        assert blocked.head.last_error is not None
        await trio.sleep(5)
    assert deliver.done == ["B", "A"]


async def test_an_error_that_cannot_say_what_it_is_is_a_failure(folder: Folder) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    deliver = Deliveries(0.0, Mute())
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "A")
        await trio.sleep(1)
        [blocked] = (await manager.sessions()).sessions
        assert blocked.head.last_error == "Mute"
        await trio.sleep(5)
    assert deliver.done == ["A"]


@pytest.mark.parametrize("grouped", [False, True])
async def test_a_message_that_is_rejected_is_not_tried_again_and_the_session_goes_on(
    folder: Folder, grouped: bool
) -> None:
    fault: Exception = SessionNotFound("no session s")
    deliver = Deliveries(0.0, ExceptionGroup("of a nursery", [fault]) if grouped else fault)
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "A")
        await enqueue(manager, "B")
        await trio.sleep(1)
        assert deliver.contents == ["A", "B"]
        await trio.sleep(LONG_S)
    assert deliver.contents == ["A", "B"]
    assert deliver.done == ["B"]
    rows = await folder.table("status, last_error")
    assert rows == [("expired", "SessionNotFound: no session s"), ("delivered", None)]


async def test_a_session_that_rejects_all_is_drained(folder: Folder) -> None:
    """SI-S04: of a session that is gone nothing is tried again at any start."""
    for life in range(3):
        deliver = Deliveries(0.0, *[SessionClosed("s")] * 9)
        async with open_manager(folder.make(), deliver) as manager:
            if life == 0:
                for content in "abc":
                    await enqueue(manager, content)
            await trio.sleep(10)
        assert deliver.contents == (["a", "b", "c"] if life == 0 else [])
        await folder.restart()


async def test_the_log_holds_ids_and_no_contents(folder: Folder, caplog: pytest.LogCaptureFixture) -> None:
    deliver = Deliveries(0.0, ValueError("top secret"), SessionNotFound("top secret"))
    async with open_manager(folder.make(), deliver) as manager:
        await enqueue(manager, "top secret")
        await trio.sleep(60)
    assert "ValueError" in caplog.text
    assert "SessionNotFound" in caplog.text
    assert "top secret" not in caplog.text


# -- which functions deliver -------------------------------------------------------------------------------


async def test_any_kind_of_async_function_delivers(folder: Folder) -> None:
    seen: list[str] = []

    async def plain(row: InboundRow) -> None:
        await trio.lowlevel.checkpoint()
        seen.append(row["content"])

    async def more(name: str, row: InboundRow) -> None:
        await plain(row)

    class Method:
        async def __call__(self, row: InboundRow) -> None:
            await plain(row)

    kinds: list[Deliver] = [plain, partial(more, "x"), Method(), Method().__call__]
    for number, deliver in enumerate(kinds):
        async with open_manager(folder.make(), deliver) as manager:
            await enqueue(manager, str(number))
            await trio.sleep(1)
    assert seen == ["0", "1", "2", "3"]


# -- repeats and signs -------------------------------------------------------------------------------------


async def send_known(manager: SessionManager, typing: object) -> int | None:
    assert callable(typing)
    return await manager.enqueue(
        session_id="s", origin="telegram", source_message_id="17", source_channel_id="c", typing=typing
    )


async def test_a_repeat_is_none_and_shows_no_sign(folder: Folder) -> None:
    signs: list[tuple[str, str]] = []

    async def typing(session_id: str, origin: str) -> None:
        await trio.lowlevel.checkpoint()
        signs.append((session_id, origin))

    deliver = Deliveries()
    async with open_manager(folder.make(), deliver) as manager:
        assert await send_known(manager, typing) is not None
        assert await send_known(manager, typing) is None
        await trio.sleep(1)
        assert await send_known(manager, typing) is None
        await trio.sleep(1)
    assert signs == [("s", "telegram")]
    assert len(deliver.begun) == 1


async def test_a_message_that_is_refused_shows_no_sign(folder: Folder) -> None:
    signs: list[str] = []
    async with open_manager(folder.make(), Deliveries()) as manager:
        with pytest.raises(Refused):
            await manager.enqueue(
                session_id="", origin="o", typing=lambda session_id, origin: signs.append(origin)
            )
        with pytest.raises(TypeError):
            await manager.enqueue(session_id="s", origin="o", payload={1: 2})
        with pytest.raises(ValueError, match="JSON"):
            await manager.enqueue(session_id="s", origin="o", payload=float("nan"))
        await trio.sleep(1)
        assert (await manager.sessions()).sessions == []
    assert signs == []


@pytest.mark.parametrize("how", ["raises", "exits", "hangs"])
async def test_a_sign_that_goes_wrong_is_logged_and_delays_nothing(
    folder: Folder, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def typing(session_id: str, origin: str) -> None:
        if how == "hangs":
            await trio.sleep_forever()
        raise ValueError("no such chat") if how == "raises" else SystemExit(1)

    deliver = Deliveries()
    async with open_manager(folder.make(), deliver) as manager:
        began = trio.current_time()
        assert await send_known(manager, typing) is not None
        assert trio.current_time() - began < 0.01
        await trio.sleep(1)
        assert len(deliver.done) == 1
        await trio.sleep(20)
        await enqueue(manager, "after it")
        await trio.sleep(1)
    assert deliver.done[-1] == "after it"
    assert "no sign of typing for session s" in caplog.text


async def test_signs_on_their_way_are_bounded(folder: Folder) -> None:
    asked: list[str] = []

    async def typing(session_id: str, origin: str) -> None:
        asked.append(session_id)
        await trio.sleep_forever()

    async with open_manager(folder.make(), Deliveries()) as manager:
        for number in range(120):
            await manager.enqueue(session_id=str(number), origin="o", typing=typing)
        await trio.sleep(1)
        assert len(asked) == 100
        await trio.sleep(11)
        await manager.enqueue(session_id="later", origin="o", typing=typing)
        await trio.sleep(1)
    assert asked[-1] == "later"


# -- operators ---------------------------------------------------------------------------------------------


async def test_an_operator_can_skip_a_message_or_have_it_tried_now(folder: Folder) -> None:
    deliver = Deliveries(0.0, *[RuntimeError("no pane")] * 2)
    async with open_manager(folder.make(), deliver) as manager:
        assert (await manager.skip("s"), await manager.retry_now("s")) == (False, False)
        for content in "abc":
            await enqueue(manager, content)
        await trio.sleep(1)
        assert await manager.retry_now("s")
        await trio.sleep(1)
        assert deliver.contents == ["a", "a"]
        [waiting] = (await manager.sessions()).sessions
        assert (waiting.session_id, waiting.depth, waiting.head.failures) == ("s", 3, 2)
        assert await manager.skip("s")
        await trio.sleep(1)
    assert deliver.done == ["b", "c"]
