"""Commands that are carried out outside of the space: leased, then finished with what they did, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from edgequeues.core.errors import CommandRejected, InvalidMessage
from edgequeues.models import Retry
from edgequeues.space import entities
from edgequeues.space.calling_verbs import LEASE_MARGIN_MS, Handed, Task
from edgequeues.space.entities import Entity
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.calling import Call, Change, Effects, Posted, Read
from edgequeues.spec.load import load

from .jobs import Jobs
from .world import Space

TEXT = """
app shop {
  queue jobs {
    delivery { %s }
    map_to: command Order.Ship { id: payload.id }
  }
  queue done { message_type { n: int } }
  command Order.Ship { run: %s  timeout_ms: 5000 }
}
"""
PYTHON = 'python "shop:ship"'
HTTP = 'http "http://127.0.0.1:9/x"  secret_env: "SIGN"'


def shop(space: Space, runner: str = PYTHON, delivery: str = "batch: 10") -> Jobs:
    """A space whose queue `jobs` is mapped to a command that something outside carries out."""
    found = load((TEXT % (delivery, runner)).encode(), "x")
    assert found.spec is not None, found.render()
    space.call(SpaceShard.apply, found.spec)
    return Jobs(space)


def take(space: Space, limit: int = 10, runner: Any = "python") -> Handed:
    return space.call(SpaceShard.take_calls, runner, limit)


def one(space: Space) -> Task:
    [task] = take(space).tasks
    return task


def order(space: Space, entity_id: str = "o") -> Entity | None:
    return space.call(SpaceShard.looked_up, "Order", entity_id)


def put(state: str = "shipped", entity_id: str = "o") -> Change:
    return Change("Order", entity_id, state, '{"a":1}')


def test_a_message_is_handed_out_with_its_input_and_leased_for_as_long_as_it_may_take(space: Space) -> None:
    jobs = shop(space)
    [message_id] = jobs.push('{"payload":{"id":"o"}}')
    task = one(space)
    assert (task.message_id, task.attempt, task.call) == (message_id, 1, Call("Order", "Ship", {"id": "o"}))
    assert take(space) == Handed([], False)
    jobs.at(5_000 + LEASE_MARGIN_MS - 1)
    assert take(space).tasks == []
    jobs.at(5_000 + LEASE_MARGIN_MS)
    assert one(space).attempt == 2


def test_what_it_did_and_the_end_of_its_message_are_one(space: Space) -> None:
    jobs = shop(space)
    jobs.push('{"payload":{"id":"o"}}')
    task = one(space)
    effects = Effects(changes=(put(),), messages=(Posted("done", '{"n":1}'),), result='{"ok":true}')
    assert space.call(SpaceShard.finish_call, task, effects) == "done"
    made = order(space)
    assert made is not None
    assert (made.state, json.loads(made.attributes), made.version) == ("shipped", {"a": 1}, 1)
    assert space.data("done") == ['{"n":1}']
    assert space.count("jobs") == 0
    [receipt] = entities.history(space.db, "Order", "o", 0, 10)
    assert (receipt.command, receipt.object_id, receipt.version) == ("Ship", task.message_id, 1)


def test_what_was_looked_at_and_changed_since_is_a_conflict_and_nothing_is_done(space: Space) -> None:
    jobs = shop(space)
    jobs.push('{"payload":{"id":"o"}}', '{"payload":{"id":"p"}}')
    first, second = take(space).tasks
    read = Read("Order", "o", None)
    effects = Effects(reads=(read,), changes=(put(),))
    assert space.call(SpaceShard.finish_call, first, effects) == "done"
    assert space.call(SpaceShard.finish_call, second, effects) == "conflict"
    assert space.count("jobs") == 1
    assert (
        space.call(SpaceShard.finish_call, second, replace(effects, reads=(replace(read, version=1),)))
        == "done"
    )
    made = order(space)
    assert made is not None
    assert made.version == 2


def test_who_lost_the_lease_to_another_does_nothing(space: Space) -> None:
    jobs = shop(space)
    jobs.push('{"payload":{"id":"o"}}')
    lost = one(space)
    jobs.at(5_000 + LEASE_MARGIN_MS)
    newest = one(space)
    assert space.call(SpaceShard.finish_call, lost, Effects(changes=(put("late"),))) == "stale"
    assert order(space) is None
    assert space.call(SpaceShard.finish_call, newest, Effects(changes=(put(),))) == "done"
    assert space.call(SpaceShard.finish_call, lost, Effects(changes=(put("late"),))) == "finished"
    made = order(space)
    assert made is not None
    assert made.state == "shipped"


@pytest.mark.parametrize(
    ("posted", "error"),
    [(Posted("nowhere", "1"), CommandRejected), (Posted("done", '{"n":"x"}'), InvalidMessage)],
)
def test_a_message_that_no_queue_takes_undoes_all_of_it(
    space: Space, posted: Posted, error: type[Exception]
) -> None:
    jobs = shop(space)
    jobs.push('{"payload":{"id":"o"}}')
    task = one(space)
    with pytest.raises(error):
        space.call(SpaceShard.finish_call, task, Effects(changes=(put(),), messages=(posted,)))
    assert order(space) is None
    assert space.call(SpaceShard.retry, "jobs", [Retry(task.lease, error="x")]) == ["done"]


def test_an_entity_that_is_removed_leaves_its_receipts(space: Space) -> None:
    jobs = shop(space)
    jobs.push('{"payload":{"id":"o"}}', '{"payload":{"id":"o"}}')
    first, second = take(space).tasks
    space.call(SpaceShard.finish_call, first, Effects(changes=(put(),)))
    space.call(SpaceShard.finish_call, second, Effects(changes=(Change("Order", "o", None, None),)))
    assert order(space) is None
    assert [one.version for one in entities.history(space.db, "Order", "o", 0, 10)] == [1, 2]


def test_input_that_cannot_be_made_is_a_dead_letter_and_nobody_is_called(space: Space) -> None:
    jobs = shop(space)
    jobs.push(*['{"payload":{}}'] * 30, '{"payload":{"id":"o"}}')
    handed = [task for _ in range(4) for task in take(space).tasks]
    assert [task.call.input for task in handed] == [{"id": "o"}]
    assert {letter.last_error for _, letter in jobs.dlq.letters()} == {
        "map_to: id: nothing where a value is needed; payload.id is missing after payload"
    }


def test_one_turn_hands_out_a_bounded_number_even_of_what_is_given_up(space: Space) -> None:
    jobs = shop(space)
    jobs.push(*['{"payload":{}}'] * 30)
    assert take(space, limit=7) == Handed([], True)
    assert space.count("jobs") == 23


def test_concurrency_bounds_what_is_worked_at_once(space: Space) -> None:
    jobs = shop(space, delivery="concurrency: 2")
    jobs.push(*['{"payload":{"id":"o"}}'] * 5)
    handed = take(space)
    assert (len(handed.tasks), handed.more) == (2, False)
    space.events.clear()
    assert space.call(SpaceShard.finish_call, handed.tasks[0], Effects()) == "done"
    assert ("calls", "python") in space.events
    assert len(take(space).tasks) == 1
    space.events.clear()
    assert space.call(SpaceShard.retry, "jobs", [Retry(handed.tasks[1].lease)]) == ["done"]
    assert ("calls", "python") in space.events


def test_runners_are_given_only_what_they_carry_out(space: Space) -> None:
    jobs = shop(space, runner=HTTP)
    jobs.push('{"payload":{"id":"o"}}')
    assert take(space).tasks == []
    assert len(take(space, runner="http").tasks) == 1


def test_nobody_who_would_take_a_command_is_told_of_it_once_more(space: Space) -> None:
    jobs = shop(space)
    jobs.ring()
    jobs.push('{"payload":{"id":"o"}}')
    assert ("calls", "python") in space.events
    space.events.clear()
    jobs.at(jobs.passed + 1_000)
    jobs.ring()
    assert ("calls", "python") in space.events


def test_a_spec_that_changes_while_a_message_is_out_loses_nothing(space: Space) -> None:
    jobs = shop(space)
    jobs.push('{"payload":{"id":"o"}}')
    task = one(space)
    shop(space, runner=HTTP, delivery="max_attempts: 2")
    assert space.call(SpaceShard.finish_call, task, Effects(changes=(put(),))) == "done"
    assert order(space) is not None
    assert space.count("jobs") == 0
