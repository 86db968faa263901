"""Queues whose messages the space works itself: effect, ack and result in one transaction."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from edgequeues.space import entities
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.load import load
from edgequeues.spec.values import Taken

from .jobs import Dead, Jobs
from .specs import Shop, field
from .world import Space


def path(name: str, *steps: str) -> dict[str, Any]:
    """The expression that is a path in the message."""
    return {"get": {"expr": field(name), "path": list(steps)}}


CREATE = {
    "to": "command",
    "entity_type": "Incident",
    "command": "CreateIncident",
    "input_map": {"title": path("payload", "title")},
}
MAPPED = {"map_to": CREATE}


def entity(space: Space, entity_id: str) -> entities.Entity | None:
    return entities.get(space.db, "Incident", entity_id)


def test_a_message_opens_an_incident_and_is_finished(space: Space) -> None:
    shop, jobs = Shop(space, jobs=MAPPED), Jobs(space)
    [taken] = shop.ingest("jobs", '{"payload":{"title":"Disk full"}}', keys=("k",))
    jobs.ring()
    made = entity(space, taken.id)
    assert made is not None
    assert json.loads(made.attributes) == {"title": "Disk full"}
    assert made.version == 1
    assert space.count("jobs") == 0
    [again] = shop.ingest("jobs", '{"payload":{"title":"Disk full"}}', keys=("k",))
    result = {"entity_type": "Incident", "entity_id": taken.id, "version": 1, "state": None}
    assert again == Taken(taken.id, "duplicate", "processed", json.dumps(result, separators=(",", ":")))


def test_a_missing_field_is_a_dead_letter_that_says_which_expression_and_what_was_there(space: Space) -> None:
    shop, jobs = Shop(space, jobs=MAPPED), Jobs(space)
    shop.push("jobs", '{"payload":{"titel":"x"}}')
    jobs.ring()
    [(_, letter)] = Dead(space, "jobs-dlq").letters()
    assert letter.reason == "permanent"
    assert letter.last_error == (
        "map_to: title: nothing where a value is needed; payload.title is missing after payload"
    )


def test_a_command_that_is_rejected_is_tried_again_and_dead_after_its_attempts(space: Space) -> None:
    mapped = {"map_to": CREATE | {"command": "UpdateIncident", "input_map": {"entity_id": field("id")}}}
    shop, jobs = Shop(space, jobs=mapped), Jobs(space)
    shop.push("jobs", '{"id":"i-1"}')
    for _ in range(5):
        jobs.ring()
        jobs.at(jobs.passed + 60_000)
    [(_, letter)] = Dead(space, "jobs-dlq").letters()
    assert (letter.attempts, letter.reason) == (5, "exhausted")
    assert letter.last_error == "command failed: UpdateIncident: there is no Incident i-1"


def test_messages_go_on_to_another_queue_even_a_full_one(space: Space) -> None:
    queues: dict[str, dict[str, Any]] = {
        "first": {"map_to": {"to": "queue", "queue": "second", "message": {"n": field("id")}}},
        "second": {"retention": {"max_age_seconds": 60, "max_depth": 1}},
    }
    shop, jobs = Shop(space, **queues), Jobs(space, queue="second")
    shop.push("first", '{"id":1}', '{"id":2}')
    jobs.ring()
    assert jobs.given() == ['{"n":1}', '{"n":2}']
    assert space.count("first") == 0


def test_queues_take_turns_so_that_a_long_one_does_not_hold_up_the_others(space: Space) -> None:
    shop = Shop(space, long=MAPPED, short=MAPPED)
    shop.push("long", *['{"payload":{"title":"a"}}'] * 500)
    shop.push("short", '{"payload":{"title":"b"}}')
    space.run_alarm()
    assert space.count("short") == 0
    assert space.count("long") == 401


def test_a_paused_queue_waits_and_goes_on(space: Space) -> None:
    shop, jobs = Shop(space, jobs=MAPPED), Jobs(space)
    config = space.call(SpaceShard.stats, "jobs").config
    space.call(SpaceShard.configure, "jobs", replace(config, paused=True))
    shop.push("jobs", '{"payload":{"title":"a"}}')
    jobs.ring()
    assert space.count("jobs") == 1
    space.call(SpaceShard.configure, "jobs", config)
    jobs.ring()
    assert space.count("jobs") == 0


def test_a_webhook_beside_a_queue_says_what_its_messages_are_for(space: Space) -> None:
    text = """
    app shop {
      queue jobs { message_type { payload: json } }
      webhook hook { queue: jobs  verify: none  on: Incident.UpsertIncident { entity_id: payload.id  n: payload.n } }
      command Incident.UpsertIncident { input { n: int? } }
    }
    """
    found = load(text.encode(), "x")
    assert found.spec is not None, found.render()
    space.call(SpaceShard.apply, found.spec)
    jobs = Jobs(space)
    jobs.push(
        '{"payload":{"id":"i","n":1}}', '{"payload":{"id":"i","n":null}}', '{"payload":{"id":"j","n":"x"}}'
    )
    jobs.ring()
    made = entity(space, "i")
    assert made is not None
    assert (made.version, made.attributes) == (2, '{"n":null}')
    [(_, letter)] = jobs.dlq.letters()
    assert letter.last_error == ("map_to: message.n: a text where an integer is wanted; payload.n is a text")
