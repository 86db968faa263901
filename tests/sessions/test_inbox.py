"""What every inbox does, on a server and in a folder of this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import Raw

from edgequeues.core.times import utc
from edgequeues.inbound import RETRIES_MS, Inbound
from edgequeues.sessions.inbox import Claimed, Inbox
from edgequeues.store import Refused

from .inboxes import KINDS, LOCK_MS, Base, opened


@pytest.fixture(params=KINDS)
async def base(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Base]:
    async with opened(tmp_path, request.param) as base:
        yield base


@pytest.fixture
async def inbox(base: Base) -> Inbox:
    return base.make()


def message(session_id: str = "s1", **fields: Any) -> Inbound:
    return Inbound(session_id=session_id, origin="telegram", **fields)


async def enqueue(inbox: Inbox, session_id: str = "s1", **fields: Any) -> int:
    position = await inbox.enqueue(message(session_id, **fields))
    assert position is not None
    return position


async def claim(
    inbox: Inbox, limit: int = 100, *, lock_ms: int = LOCK_MS, wait_s: float = 0
) -> list[Claimed]:
    return await inbox.claim(limit, lock_ms=lock_ms, wait_s=wait_s)


async def one(inbox: Inbox, *, wait_s: float = 0) -> Claimed:
    [claimed] = await claim(inbox, wait_s=wait_s)
    return claimed


async def contents(inbox: Inbox) -> list[str]:
    """Deliver all that can be delivered now; return what was, in order."""
    found: list[str] = []
    while claimed := await claim(inbox):
        for each in claimed:
            found.append(each.row["content"])
            assert await inbox.delivered(each.lease) == "done"
    return found


# -- in and out ---------------------------------------------------------------------------------------------


async def test_a_message_is_delivered_as_a_row_of_the_queue(base: Base) -> None:
    inbox, came = base.make(), utc(base.now_ms())
    position = await enqueue(inbox, content="Hi", payload=Raw(b'{"half": "\\ud83d"}'), actor_name="Ada")
    await trio.sleep(61)
    claimed = await one(inbox)
    row = claimed.row
    assert (row["id"], row["session_id"], row["origin"]) == (position, "s1", "telegram")
    assert (row["message_type"], row["content"], row["payload_json"]) == ("text", "Hi", '{"half": "\\ud83d"}')
    assert (row["actor_id"], row["actor_name"], row["actor_avatar_url"]) == (None, "Ada", None)
    assert (row["status"], row["attempt_count"]) == ("processing", 0)
    assert (row["created_at"], row["locked_at"]) == (came, utc(base.now_ms()))
    assert await inbox.delivered(claimed.lease) == "done"
    assert await inbox.delivered(claimed.lease) == "finished"
    assert (await inbox.sessions()).sessions == []


async def test_positions_grow_over_all_sessions_and_lives(base: Base) -> None:
    positions = [await enqueue(base.make(), session) for session in ("s1", "s2", "s1")]
    await contents(base.make())
    await base.restart()
    positions.append(await enqueue(base.make()))
    assert positions == sorted(set(positions))


async def test_a_session_is_delivered_in_order_one_at_a_time_and_others_beside_it(inbox: Inbox) -> None:
    for number in range(3):
        for session in ("s1", "s2"):
            await enqueue(inbox, session, content=f"{session}-{number}")
    first, other = await claim(inbox)
    assert [first.row["content"], other.row["content"]] == ["s1-0", "s2-0"]
    assert await claim(inbox) == []
    await inbox.delivered(other.lease)
    assert (await one(inbox)).row["content"] == "s2-1"
    await inbox.delivered(first.lease)
    assert await contents(inbox) == ["s1-1", "s1-2"]


async def test_no_more_is_claimed_than_was_asked_for(inbox: Inbox) -> None:
    for session in ("s1", "s2", "s3"):
        await enqueue(inbox, session)
    assert len(await claim(inbox, 2)) == 2
    assert len(await claim(inbox, 2)) == 1


async def test_what_comes_again_is_not_enqueued_after_a_restart_and_a_delivery_either(base: Base) -> None:
    """SI-S01: the key of a repeat has the channel in it; an empty id is refused, none is no key."""
    known: dict[str, Any] = {"source_message_id": "17", "source_channel_id": "c1"}
    await enqueue(base.make(), content="a", **known)
    await enqueue(base.make(), content="b", source_message_id="17", source_channel_id="c2")
    other = Inbound(session_id="s1", origin="discord", content="c", **known)
    assert await base.make().enqueue(other) is not None
    assert await base.make().enqueue(message(**known)) is None
    await enqueue(base.make(), content="d")
    await enqueue(base.make(), content="e")
    assert await contents(base.make()) == ["a", "b", "c", "d", "e"]
    await base.restart()
    assert await base.make().enqueue(message("s2", **known)) is None
    with pytest.raises(Refused):
        await base.make().enqueue(message(source_message_id=""))


@pytest.mark.parametrize("fields", [{"session_id": ""}, {"content": "\ud83d"}, {"payload": Raw(b"{")}])
async def test_a_message_that_cannot_be_is_refused(inbox: Inbox, fields: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        await inbox.enqueue(message(**{"session_id": "s1", **fields}))
    assert refused.value.code in ("invalid_request", "invalid_json")


# -- waiting ------------------------------------------------------------------------------------------------


async def test_a_claim_waits_as_long_as_it_was_told_to_also_before_there_is_a_queue(inbox: Inbox) -> None:
    for wait_s in (0, 2.5, 130):
        began = trio.current_time()
        assert await claim(inbox, wait_s=wait_s) == []
        assert trio.current_time() - began == pytest.approx(wait_s, abs=0.1)
    await enqueue(inbox)
    await contents(inbox)
    began = trio.current_time()
    assert await claim(inbox, wait_s=130) == []
    assert trio.current_time() - began == pytest.approx(130, abs=0.1)


async def test_a_claim_is_woken_by_the_first_message_of_all_and_by_any_other(base: Base) -> None:
    inbox = base.make()
    for number in range(2):
        async with trio.open_nursery() as nursery:

            async def wait() -> None:
                began = trio.current_time()
                claimed = await one(inbox, wait_s=60)
                assert trio.current_time() - began == pytest.approx(7.5, abs=0.1)
                await inbox.delivered(claimed.lease)

            nursery.start_soon(wait)
            await trio.sleep(7.5)
            await enqueue(inbox, content=str(number))


async def test_a_claim_is_woken_by_what_others_enqueue(base: Base) -> None:
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            began = trio.current_time()
            await one(base.make(), wait_s=60)
            assert trio.current_time() - began == pytest.approx(7, abs=1.1)

        nursery.start_soon(wait)
        await trio.sleep(7)
        await enqueue(base.make("adapter"))


async def test_a_claim_is_woken_when_a_back_off_ends(inbox: Inbox) -> None:
    await enqueue(inbox)
    began = trio.current_time()
    for delay_ms in (*RETRIES_MS, RETRIES_MS[-1]):
        claimed = await one(inbox, wait_s=400)
        assert await inbox.failed(claimed.lease, "gone") == "done"
        assert claimed.row["attempt_count"] == (await inbox.sessions()).sessions[0].head.failures - 1
        began += delay_ms / 1000
        [again] = await claim(inbox, wait_s=400)
        assert trio.current_time() == pytest.approx(began, abs=0.1)
        await inbox.release([again.lease])


async def test_a_claim_is_woken_when_somebody_elses_lock_ends(base: Base) -> None:
    await enqueue(base.make())
    await claim(base.make("gone"), lock_ms=5_000)
    began = trio.current_time()
    claimed = await one(base.make(), wait_s=60)
    assert trio.current_time() - began == pytest.approx(5, abs=0.1)
    assert claimed.row["attempt_count"] == 1


# -- what becomes of what was claimed -----------------------------------------------------------------------


async def test_a_message_that_failed_holds_up_its_session_and_no_other(inbox: Inbox) -> None:
    await enqueue(inbox, content="one")
    await enqueue(inbox, content="two")
    claimed = await one(inbox)
    assert await inbox.failed(claimed.lease, "x" * 5_000) == "done"
    await enqueue(inbox, "s2", content="three")
    assert await contents(inbox) == ["three"]
    [blocked] = (await inbox.sessions()).sessions
    assert blocked.head.last_error is not None
    assert len(blocked.head.last_error) == 4_096
    await trio.sleep(5)
    assert await contents(inbox) == ["one", "two"]


async def test_a_message_that_is_rejected_is_not_delivered_again_and_its_session_goes_on(
    inbox: Inbox,
) -> None:
    await enqueue(inbox, content="one")
    await enqueue(inbox, content="two")
    assert await inbox.rejected((await one(inbox)).lease, "no such session") == "done"
    assert await contents(inbox) == ["two"]


async def test_a_message_that_is_given_back_comes_next_and_has_not_failed(inbox: Inbox) -> None:
    await enqueue(inbox, content="one")
    await enqueue(inbox, content="two")
    await inbox.release([(await one(inbox)).lease])
    await inbox.release([])
    claimed = await one(inbox)
    assert (claimed.row["content"], claimed.row["attempt_count"]) == ("one", 0)


async def test_a_lock_can_be_kept_and_is_lost_to_who_claims_after_its_end(base: Base) -> None:
    inbox = base.make()
    await enqueue(inbox)
    first = await one(inbox)
    await trio.sleep(LOCK_MS / 1000 - 1)
    assert await inbox.extend([first.lease], LOCK_MS) == ["done"]
    assert await inbox.extend([], LOCK_MS) == []
    await trio.sleep(LOCK_MS / 1000 - 1)
    assert await claim(base.make("other")) == []
    await trio.sleep(2)
    second = await one(base.make("other"))
    assert second.id == first.id
    assert await inbox.extend([first.lease], LOCK_MS) == ["stale"]
    assert await inbox.failed(first.lease, "late") == "stale"
    assert await base.make("other").delivered(second.lease) == "done"
    assert await inbox.delivered(first.lease) == "finished"


async def test_what_an_earlier_life_held_is_claimed_at_once_and_in_order(base: Base) -> None:
    """SI-S05: nothing stays locked by a worker that is gone, and another worker keeps what it has."""
    for content in ("one", "two", "three"):
        await enqueue(base.make(), content=content)
    await enqueue(base.make(), "s2", content="other")
    await claim(base.make("manager"), 1)
    [other] = await claim(base.make("another"))
    await base.restart()
    inbox = base.make("manager")
    assert await claim(inbox) == []
    assert await inbox.reclaim() == 1
    assert await inbox.reclaim() == 0
    assert (await one(inbox)).row["attempt_count"] == 1
    assert await inbox.reclaim() == 1
    assert await contents(inbox) == ["one", "two", "three"]
    assert await base.make("another").delivered(other.lease) == "done"


async def test_what_an_earlier_life_held_is_claimed_when_its_lock_ends_without_being_asked_for(
    base: Base,
) -> None:
    """SI-S05: the lock alone sees to it, over a restart."""
    await enqueue(base.make(), content="one")
    await enqueue(base.make(), content="two")
    await claim(base.make())
    await base.restart()
    await trio.sleep(LOCK_MS / 1000)
    assert await contents(base.make()) == ["one", "two"]


# -- sessions -----------------------------------------------------------------------------------------------


async def test_a_closed_session_delivers_nothing_more_until_it_is_written_to(base: Base) -> None:
    """Also SI-S04: what was closed stays so over restarts, and a late mark changes nothing."""
    inbox = base.make()
    for content in ("one", "two", "three"):
        await enqueue(inbox, content=content)
    await enqueue(inbox, "s2", content="other")
    held, _ = await claim(inbox)
    assert await inbox.close("s1") == 3
    assert await inbox.close("s1") == 0
    for _ in range(2):
        assert await base.make().delivered(held.lease) == "finished"
        assert await base.make().failed(held.lease, "late") == "finished"
        await base.restart()
    inbox = base.make()
    await inbox.reclaim()
    await enqueue(inbox, content="four")
    assert sorted(await contents(inbox)) == ["four", "other"]


async def test_a_head_is_skipped_or_hurried_only_where_it_waits(inbox: Inbox) -> None:
    assert (await inbox.skip("s1"), await inbox.retry_now("s1")) == (False, False)
    await enqueue(inbox, content="one")
    await enqueue(inbox, content="two")
    claimed = await one(inbox)
    assert (await inbox.skip("s1"), await inbox.retry_now("s1")) == (False, False)
    await inbox.failed(claimed.lease, "gone")
    assert await claim(inbox) == []
    assert await inbox.retry_now("s1")
    claimed = await one(inbox)
    assert (claimed.row["content"], claimed.row["attempt_count"]) == ("one", 1)
    await inbox.failed(claimed.lease, "gone")
    assert await inbox.skip("s1")
    assert await contents(inbox) == ["two"]


async def test_sessions_are_listed_by_id_in_pages(inbox: Inbox) -> None:
    assert (await inbox.sessions()).sessions == []
    for session in ("b", "ä", "a"):
        await enqueue(inbox, session)
        await enqueue(inbox, session)
    await claim(inbox, 1)
    first = await inbox.sessions(limit=2)
    assert [each.session_id for each in first.sessions] == ["a", "b"]
    assert [each.depth for each in first.sessions] == [2, 2]
    assert first.resume == "b"
    rest = await inbox.sessions(first.resume, 2)
    assert ([each.session_id for each in rest.sessions], rest.resume) == (["ä"], None)


async def test_what_was_finished_before_a_time_is_removed_and_no_more(base: Base) -> None:
    inbox = base.make()
    assert await inbox.cleanup(base.now_ms()) == 0
    await enqueue(inbox, content="one")
    await enqueue(inbox, "s2", content="stays")
    first, second = await claim(inbox)
    await inbox.delivered(first.lease)
    assert await inbox.cleanup(base.now_ms() - 1_000) == 0
    await trio.sleep(10)
    await inbox.rejected(second.lease, "no")
    await enqueue(inbox, "s3", content="unfinished")
    assert await inbox.cleanup(base.now_ms() - 5_000) == 1
    await trio.sleep(10)
    assert await inbox.cleanup(base.now_ms()) == 1
    assert await contents(inbox) == ["unfinished"]


async def test_of_a_queue_that_nobody_made_nothing_is_found_and_nothing_raised(inbox: Inbox) -> None:
    assert await inbox.reclaim() == 0
    assert await inbox.close("s1") == 0
    page = await inbox.sessions()
    assert (page.sessions, page.resume) == ([], None)
    assert await inbox.cleanup(0) == 0
