"""The views that people find who open the file: the tables as the seed has them, derived from ours."""

from __future__ import annotations

import json
from typing import Any

from edgequeues.models import ConsumerConfig, Pull
from edgequeues.space.shard import SpaceShard

from .jobs import Jobs
from .specs import Shop
from .world import Space

SECOND = 1_000
MAIN = "id message_json idempotency_key attempts visible_after locked_by created_at updated_at"
DEAD = "id original_queue message_json failed_at error attempts replayed_at replay_result"
KEYS = "key queue_name processed_at result_json"


def seen(space: Space, view: str) -> list[dict[str, Any]]:
    """The rows of a view, by column."""
    cursor = space.db.execute(f'SELECT * FROM "{view}"')
    rows = cursor.fetchall()
    names = columns(space, view)
    return [dict(zip(names, row, strict=True)) for row in rows]


def columns(space: Space, view: str) -> list[str]:
    return [name for _, name, *_ in space.db.execute(f'PRAGMA table_info("{view}")')]


def views(space: Space) -> set[str]:
    return {name for (name,) in space.db.execute("SELECT name FROM sqlite_schema WHERE type = 'view'")}


def test_a_declared_queue_has_a_view_with_exactly_the_seeds_columns(space: Space) -> None:
    Shop(space, WebhookIngress={}, WebhookDLQ={})
    assert " ".join(columns(space, "queue_webhook_ingress")) == MAIN
    assert " ".join(columns(space, "queue_webhook_ingress_dlq")) == DEAD
    assert " ".join(columns(space, "idempotency_keys")) == KEYS


def test_it_shows_what_is_unfinished_and_who_has_it(space: Space) -> None:
    shop, jobs = Shop(space, jobs={}), Jobs(space)
    began = space.clock.now_ms()
    [keyed] = shop.push("jobs", '{"n":1}', idempotency_key="k").results
    [later] = shop.push("jobs", '{"n":2}', delay_ms=5 * SECOND).results
    rows = seen(space, "queue_jobs")
    assert rows == [
        {
            "id": keyed.id,
            "message_json": '{"n":1}',
            "idempotency_key": "k",
            "attempts": 0,
            "visible_after": began,
            "locked_by": None,
            "created_at": began,
            "updated_at": began,
        },
        {
            "id": later.id,
            "message_json": '{"n":2}',
            "idempotency_key": None,
            "attempts": 0,
            "visible_after": began + 5 * SECOND,
            "locked_by": None,
            "created_at": began,
            "updated_at": began,
        },
    ]
    jobs.at(SECOND)
    [held] = space.call(SpaceShard.pull, "jobs", None, Pull(1, 9 * SECOND, "ann")).messages
    [first, _] = seen(space, "queue_jobs")
    assert (first["attempts"], first["locked_by"], first["visible_after"], first["updated_at"]) == (
        1,
        "ann",
        began + 10 * SECOND,
        began + SECOND,
    )
    jobs.ack(held)
    assert [row["id"] for row in seen(space, "queue_jobs")] == [later.id]


def test_dead_letters_are_shown_with_the_queue_they_come_from_and_what_became_of_them(space: Space) -> None:
    shop, jobs = Shop(space, jobs={"delivery": {"dead_letter_queue": "graves"}}, graves={}), Jobs(space)
    shop.push("jobs", "7")
    jobs.fail(jobs.one(), permanent=True, error="no")
    [dead] = seen(space, "queue_jobs_dlq")
    assert (dead["original_queue"], dead["message_json"], dead["error"], dead["attempts"]) == (
        "jobs",
        "7",
        "no",
        1,
    )
    assert (dead["failed_at"], dead["replayed_at"], dead["replay_result"]) == (
        space.clock.now_ms(),
        None,
        None,
    )
    [replayed] = space.call(SpaceShard.replay, "graves", [dead["id"]])
    [dead] = seen(space, "queue_jobs_dlq")
    assert json.loads(dead["replay_result"]) == {"new_message_id": replayed.message}


def test_keys_are_shown_with_what_came_of_them(space: Space) -> None:
    shop, jobs = Shop(space, jobs={}), Jobs(space)
    shop.ingest("jobs", "1", keys=("e1",))
    assert seen(space, "idempotency_keys") == [
        {"key": "e1", "queue_name": "jobs", "processed_at": None, "result_json": None}
    ]
    held = jobs.one()
    space.call(SpaceShard.ack, "jobs", [held.lease], results={held.lease: '{"id":7}'})
    [row] = seen(space, "idempotency_keys")
    assert (row["processed_at"], row["result_json"]) == (space.clock.now_ms(), '{"id":7}')


def test_views_go_with_their_queues_and_a_queues_own_name_comes_first(space: Space) -> None:
    shop = Shop(space, jobs={}, **{"jobs-dlq": {}})
    assert views(space) == {"queue_jobs", "queue_jobs_dlq", "queue_jobs_dlq_dlq", "idempotency_keys"}
    assert " ".join(columns(space, "queue_jobs_dlq")) == MAIN
    shop.apply(other={})
    assert views(space) == {"queue_other", "queue_other_dlq", "idempotency_keys"}
    shop.apply()
    assert views(space) == set()


def test_a_consumer_that_was_made_anew_is_shown(space: Space) -> None:
    shop = Shop(space, jobs={})
    space.call(SpaceShard.dismiss, "jobs", "default")
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig())
    shop.push("jobs", "1")
    assert [row["message_json"] for row in seen(space, "queue_jobs")] == ["1"]
