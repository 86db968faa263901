"""The client's verbs for dead letters one by one and for the record, against a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgequeues.client import Client, LetterFilter, Refused, Replayed

from .script import scripted
from .working import serving

Q = "dxn:queue:demo:jobs"
D = f"{Q}-dlq"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path) as (client, _):
        yield client


async def bury(client: Client, *data: object) -> list[str]:
    """Push messages and give them up; the ids of all letters."""
    await client.push(Q, data)
    while messages := (await client.pull(Q, batch=100)).messages:
        await client.retry(Q, [one.lease for one in messages], permanent=True, error="no")
    return [one.id async for one in client.iterate_dead_letters(D)]


async def test_a_letter_is_inspected_by_the_queue_it_comes_from(client: Client) -> None:
    [letter] = await bury(client, b'{"n": 1.50}')
    again = await client.replay_letter(Q, letter)
    [message] = (await client.pull(Q)).messages
    await client.retry(Q, [message.lease], permanent=True, error="again")
    found = await client.inspect(Q, letter)
    assert (found.id, found.raw, found.error, found.attempts) == (letter, b'{"n": 1.50}', "no", 1)
    [kin] = found.descendants
    assert (kin.error, kin.dead_letter_queue, kin.replayed_at) == ("again", "jobs-dlq", None)
    assert kin.id is not None
    assert [one.new_message_id for one in (await client.inspect(D, kin.id)).forerunners] == [again.message]


async def test_a_letter_is_deleted_and_the_others_stay(client: Client) -> None:
    first, second = await bury(client, 1, 2)
    await client.delete_letter(Q, first)
    assert [one.id async for one in client.iterate_dead_letters(D)] == [second]
    with pytest.raises(Refused, match="entry_not_found"):
        await client.delete_letter(Q, first)


async def test_what_came_of_messages_is_listed_page_by_page_as_it_was_said(client: Client) -> None:
    await client.push(Q, [1, 2, 3])
    first, second, third = (await client.pull(Q, batch=3)).messages
    said = {first.lease: {"total": 1.5}, third.lease: b'{ "n": 1.50 }'}
    await client.ack(Q, [first.lease, second.lease, third.lease], results=said)
    with pytest.raises(ValueError, match="JSON"):
        await client.ack(Q, [second.lease], results={second.lease: float("nan")})
    page = await client.results(Q, limit=1)
    assert [(one.id, one.position, one.data) for one in page.results] == [
        (first.id, first.position, {"total": 1.5})
    ]
    assert page.next == first.position
    found = [one async for one in client.iterate_results(Q)]
    assert [(one.id, one.raw) for one in found] == [
        (first.id, b'{"total":1.5}'),
        (third.id, b'{ "n": 1.50 }'),
    ]
    assert abs(found[0].processed_at - first.updated / 1_000) <= 1
    with pytest.raises(Refused, match="queue_not_found"):
        await client.results("dxn:queue:demo:nothing")


async def test_one_queue_tells_how_it_is_doing_and_which_letters_come_from_it(client: Client) -> None:
    await bury(client, 1, 2)
    await client.push(Q, [3])
    found = await client.queue_state(Q)
    assert (found.name, found.kind, found.depth, found.dead_letters) == ("jobs", "work", 1, 2)
    assert found.dead_letter_queues == ["jobs-dlq"]
    assert (found.states["ready"], found.rates.came[-1]) == (1, 3)


async def test_a_letter_is_tried_and_replayed_with_other_data_once(client: Client) -> None:
    [letter] = await bury(client, {"n": 1})
    tried = await client.try_letter(Q, letter, map_to="command Order.Create { entity_id: id }")
    assert not tried.ok
    assert [(one.field, one.path, one.found) for one in tried.errors] == [("entity_id", "id", "missing")]
    tried = await client.try_letter(
        Q, letter, map_to="command Order.Create { entity_id: id }", message={"id": "x"}
    )
    assert (tried.ok, tried.command, tried.input) == (True, "Order.Create", {"entity_id": "x"})
    first = await client.replay_letter(Q, letter, message=b'{"n": 2.50}')
    assert first.message is not None
    assert await client.replay_letter(Q, letter, message=None) == Replayed(letter, first.message, "already")
    [message] = (await client.pull(Q, batch=10)).messages
    assert (message.id, message.raw) == (first.message, b'{"n": 2.50}')


async def test_null_is_data_too(client: Client) -> None:
    [letter] = await bury(client, 1)
    await client.replay_letter(Q, letter, message=None)
    assert [one.raw for one in (await client.pull(Q)).messages] == [b"null"]


async def test_an_expression_selects_letters_page_by_page(client: Client) -> None:
    await bury(client, *range(700))
    found = [one.data async for one in client.iterate_dead_letters(D, where="message >= 697", page_size=2)]
    assert found == [697, 698, 699]
    assert (await client.preview_replay(D, LetterFilter(where="message < 3"))).count == 3
    assert await client.purge(D, LetterFilter(where="message < 3")) == 3


async def test_the_record_is_read_page_by_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgequeues.client.admin.PAGE_RECORDS", 2)
    first, second = await bury(client, 1, 2)
    await client.replay(D, [first])
    await client.purge(D)
    await client.remove(Q)
    found = [one async for one in client.iterate_audit("demo")]
    assert [(one.action, one.queue, one.who.id) for one in found] == [
        ("replay", "jobs-dlq", "loopback"),
        ("purge", "jobs-dlq", "loopback"),
        ("remove", "jobs", "loopback"),
    ]
    assert found[0].detail["messages"].keys() == {first}
    assert [one.action async for one in client.iterate_audit("demo", queue="jobs", after=1)] == ["remove"]
    assert (await client.audit("demo", limit=1)).next == 1
    with pytest.raises(Refused, match="entry_not_found"):
        await client.inspect(D, second)


@pytest.mark.parametrize("dxn", ["jobs", "dxn:queue:trace:demo:jobs", f"{Q}:object"])
async def test_only_queues_of_a_space_have_a_workbench(dxn: str) -> None:
    client, script = scripted()
    with pytest.raises(ValueError, match="queue"):
        await client.replay_letter(dxn, "a")
    assert script.requests == []
