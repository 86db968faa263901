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


UPDATE = {"to": "command", "entity_type": "Incident", "command": "UpdateIncident"}
BY_ID = UPDATE | {"input_map": {"entity_id": field("id"), "n": field("n")}}


def test_ob_s03_a_command_that_fails_keeps_its_key_shut_and_no_other(space: Space) -> None:
    """Each of its three attempts, at 0, 1 and 3 s, then its dead letter, then the next of the key."""
    queues = {
        "jobs": {
            "ordering": "per_key",
            "ordering_key": field("k"),
            "delivery": {"max_attempts": 3},
            "map_to": BY_ID,
        }
    }
    shop, jobs = Shop(space, **queues), Jobs(space)
    entities.put(space.db, entities.Entity("Incident", "there", None, "{}", 1, 0, 0))
    shop.push(
        "jobs", '{"k":"k","id":"gone","n":1}', '{"k":"k","id":"there","n":2}', '{"k":"j","id":"there","n":3}'
    )
    seen = []
    for at in (0, 999, 1_000, 2_999, 3_000):
        jobs.at(at)
        jobs.ring()
        now = entity(space, "there")
        assert now is not None
        seen.append((at, space.count("jobs"), json.loads(now.attributes)["n"]))
    assert seen == [(0, 2, 3), (999, 2, 3), (1_000, 2, 3), (2_999, 2, 3), (3_000, 0, 2)]
    [(letter_entry, letter)] = jobs.dlq.letters()
    assert (letter.attempts, letter_entry.key) == (3, "k")


def test_ob_s04_a_command_that_always_fails_holds_a_fifo_up_for_its_schedule_only(space: Space) -> None:
    shop, jobs = Shop(space, jobs={"ordering": "fifo", "map_to": BY_ID}), Jobs(space)
    entities.put(space.db, entities.Entity("Incident", "there", None, "{}", 1, 0, 0))
    shop.push("jobs", '{"id":"gone","n":0}', *['{"id":"there","n":1}'] * 100)
    left = []
    for at in (0, 1_000, 3_000, 7_000, 14_999, 15_000):
        jobs.at(at)
        jobs.ring()
        left.append(space.count("jobs"))
    assert left == [101, 101, 101, 101, 101, 0]
    now = entity(space, "there")
    assert now is not None
    assert now.version == 101


def test_dl_s04_a_replayed_message_is_mapped_as_the_spec_says_now_with_all_its_attempts(space: Space) -> None:
    shop, jobs = Shop(space, jobs={"map_to": BY_ID}), Jobs(space)
    shop.push("jobs", '{"id":"x","n":1}')
    jobs.at(60_000)
    for _ in range(5):
        jobs.ring()
        jobs.at(jobs.passed + 60_000)
    [(entry, letter)] = jobs.dlq.letters()
    assert letter.attempts == 5
    shop.apply(jobs={"map_to": BY_ID | {"command": "UpsertIncident"}})
    [replayed] = space.call(SpaceShard.replay, "jobs-dlq", [entry.id])
    assert replayed.outcome == "replayed"
    jobs.ring()
    made = entity(space, "x")
    assert made is not None
    assert made.version == 1
    [again] = space.call(SpaceShard.replay, "jobs-dlq", [entry.id])
    assert (again.outcome, again.message) == ("already", replayed.message)
    jobs.ring()
    assert entity(space, "x") == made


def test_s2_29_a_queue_without_a_mapping_is_left_alone(space: Space) -> None:
    shop, jobs = Shop(space, plain={}, jobs=MAPPED), Jobs(space)
    shop.push("plain", '{"payload":{"title":"a"}}')
    shop.push("jobs", '{"payload":{"title":"a"}}')
    jobs.ring()
    assert (space.count("plain"), space.count("jobs")) == (1, 0)
