"""The view `inbound_queue`: seed 4's table, for people who open the file with `sqlite3`."""

from __future__ import annotations

import pytest
from msgspec import Raw

from edgequeues.core.errors import InvalidRequest
from edgequeues.inbound import RETRIES_MS, Inbound
from edgequeues.models import QueueConfig
from edgequeues.space.shard import SpaceShard

from .chats import Chats
from .specs import spec
from .world import Space, SpaceFile


@pytest.fixture
def chats(space: Space) -> Chats:
    return Chats(space)


COLUMNS = [
    *("id", "session_id", "origin", "message_type", "content", "payload_json"),
    *("actor_id", "actor_name", "actor_avatar_url", "status", "created_at", "processed_at", "attempt_count"),
    *("next_retry_at", "last_error", "locked_at", "source_message_id", "source_channel_id"),
]


def test_the_view_has_the_columns_of_the_seed_and_its_words(chats: Chats) -> None:
    """S4.5 to S4.15."""
    chats.send(
        "s",
        "hi",
        "17",
        channel="c1",
        message_type="voice",
        payload=Raw(b'{"seconds": 1.50}'),
        actor_id="u1",
        actor_name="Ann",
        actor_avatar_url="https://example.com/a.png",
    )
    chats.send("s", "", origin="terminal")
    first, second = chats.rows()
    assert list(first) == COLUMNS
    assert first == {
        "id": first["id"],
        "session_id": "s",
        "origin": "telegram",
        "message_type": "voice",
        "content": "hi",
        "payload_json": '{"seconds":1.50}',
        "actor_id": "u1",
        "actor_name": "Ann",
        "actor_avatar_url": "https://example.com/a.png",
        "status": "pending",
        "created_at": "2023-11-14T22:13:20.000Z",
        "processed_at": None,
        "attempt_count": 0,
        "next_retry_at": None,
        "last_error": None,
        "locked_at": None,
        "source_message_id": "17",
        "source_channel_id": "c1",
    }
    assert (second["id"] > first["id"], second["message_type"], second["content"]) == (True, "text", "")
    assert {second[name] for name in COLUMNS if name.startswith(("actor", "source", "payload"))} == {None}


def test_the_view_follows_a_message_from_one_status_to_the_next(chats: Chats) -> None:
    """S4.11, S4.14, S4.18, S4.26, S4.27."""
    chats.send("s", "hi")
    chats.at(1)
    message = chats.one()
    row = chats.rows()[0]
    assert (row["status"], row["locked_at"], row["attempt_count"]) == (
        "processing",
        "2023-11-14T22:13:20.001Z",
        0,
    )
    chats.fail(message, "busy")
    row = chats.rows()[0]
    assert (row["status"], row["attempt_count"], row["last_error"]) == ("failed", 1, "busy")
    assert (row["next_retry_at"], row["locked_at"]) == ("2023-11-14T22:13:25.001Z", None)
    chats.at(RETRIES_MS[0] + 2)
    assert chats.rows()[0]["status"] == "pending"
    chats.ack(chats.one())
    row = chats.rows()[0]
    assert (row["status"], row["processed_at"]) == ("delivered", "2023-11-14T22:13:25.002Z")
    assert (row["attempt_count"], row["last_error"], row["next_retry_at"]) == (1, "busy", None)


def test_si_s02_times_are_of_one_width_and_sort_as_what_they_stand_for(chats: Chats) -> None:
    """Whatever the millisecond; they are integers below."""
    for ms in range(0, 2_000, 37):
        chats.at(ms)
        chats.send(f"s{ms}", str(ms))
    rows = chats.rows()
    assert {len(row["created_at"]) for row in rows} == {24}
    assert [row["content"] for row in sorted(rows, key=lambda row: str(row["created_at"]))] == [
        str(ms) for ms in range(0, 2_000, 37)
    ]
    assert rows[1]["created_at"].endswith("20.037Z")


def test_the_view_is_there_however_the_queue_was_made_and_after_a_spec(space_file: SpaceFile) -> None:
    space_file.call(SpaceShard.configure, "chats", QueueConfig(kind="work", on_ack="delete", sessions=True))
    with pytest.raises(InvalidRequest, match="work queue"):
        space_file.call(SpaceShard.configure, "log", QueueConfig(sessions=True))
    names = "SELECT name FROM sqlite_schema WHERE type = 'view'"
    assert space_file.db.execute(names).get == "inbound_queue"
    space_file.reopen()
    space_file.call(SpaceShard.apply, spec("shop", orders={}))
    space_file.call(SpaceShard.receive, "chats", [Inbound(session_id="s", origin="o")])
    assert space_file.db.execute("SELECT session_id FROM inbound_queue").get == "s"
