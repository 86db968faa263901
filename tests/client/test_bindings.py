"""Queues by logical names: code stays as it is, the deployment says which queues they are. And the switchboard's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edgequeues.client import Bindings, Client, Failed, NewEntry

from .working import serving

INBOX = "dxn:queue:switchboard:switchboard-inbox"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path / "data") as (client, _):
        yield client


async def test_what_is_sent_to_a_logical_name_is_in_the_queue_that_the_environment_names(
    client: Client,
) -> None:
    env = Bindings(client, {"QUEUE_INBOX": INBOX})
    await env.QUEUE_INBOX.send({"id": "event-1"}, key="event-1")
    await env.QUEUE_INBOX.send({"id": "event-1"}, key="event-1")
    await env.QUEUE_INBOX.send_batch([{"n": 1}, NewEntry({"n": 2}, priority=9)])
    given = (await client.pull(INBOX, batch=9)).messages
    assert [one.data for one in given] == [{"n": 2}, {"id": "event-1"}, {"n": 1}]
    assert given[1].id != "event-1"  # an id of the message's own: one event may be sent for several reasons


async def test_the_same_code_sends_elsewhere_where_the_environment_says_so(client: Client) -> None:
    other = "dxn:queue:staging:inbox-2"
    await Bindings(client, {"QUEUE_INBOX": other}).QUEUE_INBOX.send("x", delay_ms=60_000)
    assert (await client.pull(other)).messages == []
    assert [one.data for one in (await client.peek(other)).messages] == ["x"]


@pytest.mark.parametrize("environ", [{}, {"QUEUE_INBOX": ""}])
async def test_a_name_that_is_not_bound_is_told_with_what_to_write(
    client: Client, environ: dict[str, str]
) -> None:
    with pytest.raises(AttributeError, match=r"QUEUE_INBOX is not set: write QUEUE_INBOX=dxn:queue:<space>:"):
        _ = Bindings(client, environ).QUEUE_INBOX


@pytest.mark.parametrize("value", ["switchboard-inbox", "dxn:queue:only", INBOX + ":object", "http://x"])
async def test_a_name_that_is_bound_to_no_queue_is_told_with_what_to_write(
    client: Client, value: str
) -> None:
    with pytest.raises(
        ValueError, match=r"variable QUEUE_INBOX.*write QUEUE_INBOX=dxn:queue:<space>:<queue>"
    ):
        _ = Bindings(client, {"QUEUE_INBOX": value}).QUEUE_INBOX


async def test_the_dead_letters_of_the_switchboard_can_be_pulled_and_peeked(client: Client) -> None:
    await client.make_queue(INBOX, "switchboard")
    await client.push(INBOX, [{"n": 1}])
    [message] = (await client.pull(INBOX)).messages
    await client.retry(INBOX, [Failed(message.lease, error="no use", permanent=True)])
    assert (await client.stats(INBOX)).config.name == "switchboard-inbox"
    [seen] = (await client.peek(INBOX + "-dlq")).messages
    [letter] = (await client.pull(INBOX + "-dlq")).messages
    assert seen.data == letter.data == {"n": 1}
