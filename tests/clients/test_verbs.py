"""The verbs of the client against a real server: each test on trio, on asyncio, and with the client that blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import pytest

from edgequeues.client import (
    Chunk,
    Client,
    ConfigChange,
    ConsumerRules,
    Failed,
    Inbound,
    LetterFilter,
    NewEntry,
    Refused,
    Unreachable,
)

from .ways import Run, Way
from .ways import run as run_on


def test_what_is_appended_is_read_in_pages_and_by_id(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        await client.append(q, [{"n": n} for n in range(6)] + [NewEntry({"n": 6}, id="six")])
        assert [entry.data async for entry in client.iterate(q, page_size=2)] == [{"n": n} for n in range(7)]
        page = await client.read(q, limit=2, reverse=True)
        assert [entry.data for entry in page.entries] == [{"n": 6}, {"n": 5}]
        assert (await client.get(q, "six")).data == {"n": 6}
        assert await client.delete(q, ids=["six", "nobody"]) == 1
        with pytest.raises(Refused) as refused:
            await client.get(q, "six")
        assert refused.value.code == "entry_not_found"

    run(test)


def test_an_iteration_that_is_left_early_leaves_the_client_as_it_was(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        await client.append(q, list(range(5)))
        async with aclosing(client.iterate(q, page_size=1)) as entries:
            async for entry in entries:
                assert entry.data == 0
                break
        assert (await client.stats(q)).entries == 5

    run(test)


def test_a_stream_is_confirmed_in_chunks(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        source = ({"n": n} for n in range(25))
        told = [one async for one in client.append_stream(q, source, chunk=Chunk(entries_max=10))]
        assert [one.through for one in told] == [10, 20, 25]
        assert [entry.data async for entry in client.iterate(q)] == [{"n": n} for n in range(25)]

    run(test)


def test_a_source_that_raises_ends_the_stream_with_what_it_raised(run: Run, q: str) -> None:
    def source() -> Iterator[object]:
        yield {"n": 1}
        raise LookupError("no more")

    async def test(client: Client) -> None:
        with pytest.raises(LookupError, match="no more"):  # noqa: PT012 - after the first confirmation
            async for done in client.append_stream(q, source()):
                assert done.through == 1
        assert (await client.stats(q)).entries == 1

    run(test)


def test_a_subscription_goes_on_where_it_was_left(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        await client.append(q, [1, 2, 3])
        async with client.subscribe(q) as entries:
            assert [(await anext(entries)).data for _ in range(2)] == [1, 2]
            saved = entries.cursor
        async with client.subscribe(q, after=saved) as entries:
            assert (await anext(entries)).data == 3
            await client.append(q, [4])
            assert (await anext(entries)).data == 4

    run(test)


def test_a_message_is_pushed_pulled_extended_and_acked(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        await client.push(q, [{"n": 1}, {"n": 2}, {"n": 3}])
        first, second, third = (await client.pull(q, batch=3, lease_ms=60_000, wait_s=5)).messages
        assert [one.outcome for one in await client.extend(q, [first.lease], 90_000)] == ["done"]
        assert [one.outcome for one in await client.ack(q, [first.lease])] == ["done"]
        assert [one.outcome for one in await client.ack(q, [first.lease])] == ["finished"]
        assert [one.outcome for one in await client.release(q, [second.lease])] == ["done"]
        assert [one.outcome for one in await client.retry(q, [Failed(third.lease, 60_000, "busy")])] == [
            "done"
        ]
        assert [one.state for one in (await client.peek(q)).messages] == ["ready", "backoff"]
        [told] = await client.explain(q, third.id)
        assert told.state == "backoff"

    run(test)


def test_any_number_of_messages_are_pushed_and_purged(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        answers = [one async for one in client.push_all(q, ({"n": n} for n in range(1_500)))]
        assert [len(one.results) for one in answers] == [1_000, 500]
        assert await client.purge(q) == 1_500

    run(test)


def test_dead_letters_are_looked_at_previewed_and_replayed(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        await client.push(q, [{"n": 1}, {"n": 2}])
        leases = [one.lease for one in (await client.pull(q, batch=2)).messages]
        await client.retry(q, leases, error="no", permanent=True)
        letters = [one async for one in client.iterate_dead_letters(f"{q}-dlq", page_size=1)]
        assert [(one.data, one.last_error) for one in letters] == [({"n": 1}, "no"), ({"n": 2}, "no")]
        assert (await client.preview_replay(f"{q}-dlq", LetterFilter())).count == 2
        [one] = await client.replay(f"{q}-dlq", [letters[0].id])
        assert one.outcome == "replayed"
        assert [one.data for one in (await client.pull(q, batch=2)).messages] == [{"n": 1}]
        assert (await client.replay_where(f"{q}-dlq")).totals.replayed == 1

    run(test)


def test_queues_and_consumers_are_made_changed_and_removed(run: Run, q: str, space: str) -> None:
    async def test(client: Client) -> None:
        await client.make_queue(q, rules={"attempts_max": 3})
        await client.put_consumer(q, "audit", ConsumerRules(ordering="unordered"), start="beginning")
        assert sorted(one.name for one in await client.consumers(q)) == ["audit", "default"]
        await client.delete_consumer(q, "audit")
        assert (await client.reconfigure(q, ConfigChange(paused=True))).paused
        assert (await client.pull(q)).paused
        assert [one.config.name async for one in client.queues(space)] == ["q"]
        assert space in [one.id async for one in client.spaces()]
        await client.remove(q)
        with pytest.raises(Refused):
            await client.config(q)

    run(test)


def test_a_session_takes_messages_in_and_is_closed(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        await client.make_queue(q, "inbound")
        message = Inbound(session_id="s", origin="telegram", content="hello", source_message_id="1")
        assert (await client.enqueue_inbound(q, message)).id is not None
        assert (await client.enqueue_inbound(q, message)).id is None
        assert [one.session_id async for one in client.iterate_sessions(q)] == ["s"]
        assert await client.close_session(q, "s") == 1

    run(test)


def test_mistakes_in_arguments_are_found_before_anything_is_sent(run: Run, q: str) -> None:
    async def test(client: Client) -> None:
        with pytest.raises(ValueError, match=r"NaN|Infinity|float|JSON"):
            await client.append(q, [float("nan")])
        with pytest.raises(TypeError):
            await client.ack(q, "lease")
        with pytest.raises(ValueError, match=r"address|dxn"):
            await client.read("nonsense")

    run(test)


def test_a_server_that_is_not_there_is_unreachable(way: Way) -> None:
    async def test(client: Client) -> None:
        with pytest.raises(Unreachable) as caught:
            await client.pull("dxn:queue:demo:q")
        assert not caught.value.maybe_done

    run_on(way, "http://127.0.0.1:9", test)


def test_health_is_told(run: Run) -> None:
    async def test(client: Client) -> None:
        assert (await client.health()).ready

    run(test)
