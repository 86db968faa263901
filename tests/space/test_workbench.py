"""Mending what has failed: dead letters found by the queue they come from, looked at, tried, edited, sent again."""

from __future__ import annotations

import json

import pytest

from edgequeues.core.errors import EntryNotFound, InvalidMessage, InvalidRequest, QueueGone, QueueNotFound
from edgequeues.core.who import SERVER
from edgequeues.models import ConsumerConfig
from edgequeues.models_letters import LetterFilter
from edgequeues.space import audit
from edgequeues.space.shard import SpaceShard
from edgequeues.space.workbench import Heap, Inspected
from edgequeues.spec import pieces

from .jobs import Jobs
from .specs import TYPED, Shop, field
from .world import Space, turn

MAPPED = {
    **TYPED,
    "map_to": {
        "to": "command",
        "entity_type": "Order",
        "command": "Create",
        "input_map": {"id": field("id"), "size": field("n")},
    },
}


def heaps(space: Space, queue: str) -> list[Heap]:
    return space.call(SpaceShard.heaps, queue)


def found(space: Space, queue: str, where: str | None = None, **wanted: object) -> list[str]:
    """Data of the letters that a filter names, turn by turn."""
    data: list[str] = []
    for heap in heaps(space, queue):
        asked, after = LetterFilter(queue=heap.source, where=where, **wanted), 0  # type: ignore[arg-type]
        while True:
            part = space.call(SpaceShard.find_letters, heap.queue_id, asked, after, 3)
            data += [entry.data for entry, _ in part.letters]
            if part.resume is None:
                break
            after = part.resume
    return data


def inspected(space: Space, queue: str, letter: str) -> Inspected:
    return space.call(SpaceShard.inspect, queue, letter)


# -- finding ------------------------------------------------------------------------------------------------


def test_letters_are_found_by_their_queue_and_by_the_one_they_lie_in(space: Space) -> None:
    space.configure("graves", kind="work", on_ack="delete")
    rules = ConsumerConfig(dead_letters="graves")
    Jobs(space, rules).bury("1", "2")
    Jobs(space, rules, "others").bury("3")
    assert found(space, "jobs") == ["1", "2"]
    assert found(space, "others") == ["3"]
    assert found(space, "graves") == ["1", "2", "3"]


def test_letters_are_found_wherever_rules_of_before_have_put_them(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    space.configure("elsewhere", kind="work", on_ack="delete")
    space.call(SpaceShard.consume, "jobs", "default", ConsumerConfig(dead_letters="elsewhere"))
    jobs.bury("2")
    assert len(heaps(space, "jobs")) == 2
    assert sorted(found(space, "jobs")) == ["1", "2"]


def test_letters_of_a_queue_that_is_gone_are_found_by_its_name(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    while space.call(SpaceShard.remove, "jobs"):
        pass
    assert found(space, "jobs") == found(space, "jobs-dlq") == ["1"]
    with pytest.raises(QueueNotFound):
        heaps(space, "nobody")


def test_a_queue_without_dead_letters_has_none(space: Space) -> None:
    Jobs(space).push("1")
    assert heaps(space, "jobs") == []
    with pytest.raises(EntryNotFound, match="dead letter nobody of queue jobs"):
        inspected(space, "jobs", "nobody")


# -- by expression ------------------------------------------------------------------------------------------


@pytest.fixture
def alerts(space: Space) -> Space:
    """Five letters, which failed one minute after the other."""
    jobs = Jobs(space, ConsumerConfig(attempts_max=2))
    for number in range(5):
        level = "high" if number % 2 else "low"
        data = {"payload": {"n": number, "level": level}, "error": f"own {number}", "tags": [level]}
        jobs.push(json.dumps(data), key=f"k{number}", type="T" if number else None)
        jobs.fail(jobs.one(), error="first", delay_ms=0)
        jobs.fail(jobs.one(), error=f"error {number}", permanent=number > 2)
        space.clock.advance(60_000)
    jobs.bury('"text"')
    return space


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("true", "01234x"),
        ("false", ""),
        ('payload.level == "high"', "13"),
        ('"high" in tags', "13"),
        ("payload.n >= 3", "34"),
        ('reason == "exhausted"', "012"),
        ("attempts == 1", "x"),
        ('error == "error 2"', "2"),
        ('message.error == "own 2"', "2"),
        ('message == "text"', "x"),
        ('key == "k4"', "4"),
        ("type == null", "0x"),
        ('queue == "jobs" && consumer == "default" && !replayed', "01234x"),
        ("failed_at < now - 230 && failed_at == last_seen_at", "01"),
        ("payload.missing.there == 1", ""),
    ],
)
def test_an_expression_says_which_letters_are_meant(alerts: Space, where: str, numbers: str) -> None:
    named = {str(number): f'"n": {number},' for number in range(5)}
    data = found(alerts, "jobs", where)
    assert len(data) == len(numbers)
    assert all(named.get(number, '"text"') in one for number, one in zip(numbers, data, strict=True))


def test_other_fields_of_a_filter_count_as_well(alerts: Space) -> None:
    assert len(found(alerts, "jobs", "payload.n >= 1", reason=("exhausted",))) == 2


@pytest.mark.parametrize(
    ("where", "about"),
    [
        ("payload.n >", "where: line 1, column 12: the end of the text"),
        ("attempts == 1 &&\n  reason == 5", "line 2, column 3: a text never equals an integer"),
        ("attempts + 1", "an integer where a boolean is wanted"),
        ("attempts = 1", "Write `==`"),
        ('reason == "bored"', '"bored" is never one of'),
        ("true } webhook W {", "`}` cannot stand here"),
    ],
)
def test_what_can_hold_for_no_letter_is_refused_before_any_is_looked_at(
    space: Space, where: str, about: str
) -> None:
    space.configure("jobs-dlq", kind="work")
    with pytest.raises(InvalidRequest) as refused:
        space.call(SpaceShard.purge_letters, "jobs-dlq", LetterFilter(where=where))
    assert about in str(refused.value)


def test_where_the_queue_has_a_type_a_field_that_no_message_has_is_refused(space: Space) -> None:
    shop = Shop(space, orders=TYPED)
    shop.push("orders", '{"id":"a","n":1}', '{"id":"b"}')
    Jobs(space, queue="orders").bury()
    assert found(space, "orders", 'id == "a" && n == 1') == ['{"id":"a","n":1}']
    assert found(space, "orders", "message.amount == null") == ['{"id":"a","n":1}', '{"id":"b"}']
    with pytest.raises(InvalidRequest, match="there is no field `amount`"):
        found(space, "orders", "amount == null")


def test_what_would_go_through_a_long_message_again_and_again_is_refused(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(f'{{"list": [{"1," * 1_500_000}2]}}', '{"list": [2]}')
    twice = "2 in list && 3 in list || 2 in list"
    assert len(found(space, "jobs", twice)) == 2
    with pytest.raises(InvalidRequest, match="goes 20 times through the 3000013 bytes"):
        found(space, "jobs", " || ".join(["2 in list"] * 20))
    assert found(space, "jobs", " || ".join(f"list[0] == {n}" for n in range(2, 60))) == ['{"list": [2]}']


def test_one_turn_asks_an_expression_of_five_hundred_letters_and_the_next_goes_on(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury(*map(str, range(1_100)))
    rare = LetterFilter(where="message == 1050")
    part = space.call(SpaceShard.find_letters, "jobs-dlq", rare, 0, 10)
    assert part.letters == []
    assert part.resume is not None
    part = space.call(SpaceShard.find_letters, "jobs-dlq", rare, part.resume, 10)
    assert (part.letters, part.resume is None) == ([], False)
    assert found(space, "jobs", "message == 1050") == ["1050"]


# -- looking ------------------------------------------------------------------------------------------------


def test_a_letter_knows_what_it_was_before_and_what_became_of_it(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    [first] = jobs.dlq.ids
    jobs.dlq.replay(first)
    jobs.fail(jobs.one(), permanent=True, error="again")
    second = jobs.dlq.ids[1]
    jobs.dlq.replay(second)
    jobs.fail(jobs.one(), permanent=True, error="and again")
    third = jobs.dlq.ids[2]
    seen = inspected(space, "jobs", second)
    assert (seen.queue, seen.entry.id, seen.envelope.last_error) == ("jobs-dlq", second, "again")
    assert [(one.id, one.error) for one in seen.forerunners] == [(first, "no")]
    assert [(one.id, one.error) for one in seen.descendants] == [(third, "and again")]
    assert [one.id for one in inspected(space, "jobs", first).descendants] == [second, third]
    assert [one.id for one in inspected(space, "jobs-dlq", third).forerunners] == [first, second]
    assert seen.forerunners[0].message == seen.envelope.original_message_id


def test_a_letter_of_a_queue_of_letters_tells_of_the_letter_it_was(space: Space) -> None:
    space.configure("graves", kind="work", on_ack="delete")
    jobs = Jobs(space, ConsumerConfig(dead_letters="graves"), "jobs-dlq")
    Jobs(space, ConsumerConfig(dead_letters="jobs-dlq")).bury("1")
    jobs.fail(jobs.one(), permanent=True, error="even here")
    [letter] = [entry.id for entry, _ in space.call(SpaceShard.dead_letters, "graves", 0, 10)]
    seen = inspected(space, "jobs-dlq", letter)
    assert [(one.id, one.queue, one.error) for one in seen.forerunners] == [(None, "jobs-dlq", "no")]


# -- sending again ------------------------------------------------------------------------------------------


def test_an_edited_letter_makes_one_message_of_the_new_data(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury('{"n":1}', key="k", headers='{"h":"1"}', priority=7)
    [letter] = jobs.dlq.ids
    first = space.call(SpaceShard.replay_one, "jobs", letter, '{"n":2}')
    again = space.call(SpaceShard.replay_one, "jobs", letter, '{"n":3}')
    assert (first.outcome, again.outcome, again.message) == ("replayed", "already", first.message)
    message = jobs.one()
    assert (message.entry.id, message.entry.data, message.attempts) == (first.message, '{"n":2}', 1)
    assert (message.entry.key, message.entry.headers, message.entry.priority) == ("k", '{"h":"1"}', 7)
    seen = inspected(space, "jobs", letter)
    assert (bytes(seen.envelope.original_message), seen.envelope.new_message_id) == (
        b'{"n":1}',
        first.message,
    )
    [record] = audit.page(space.db, 0, 10)
    assert (record.action, json.loads(record.detail)) == (
        "replay",
        {"count": 1, "messages": {letter: first.message}, "edited": True},
    )
    assert record.who_id == SERVER.id


def test_other_data_is_judged_by_the_queue_it_goes_back_to(space: Space) -> None:
    Shop(space, orders={**TYPED, "priority": field("n"), "filter": {"not": {"is_null": field("id")}}})
    jobs = Jobs(space, queue="orders")
    jobs.bury('{"id":"a","n":2}')
    [letter] = jobs.dlq.ids
    for data, about in [
        ('{"id":5}', "message.id: an integer where a text is wanted"),
        ('{"n":5}', "its filter does not want this message"),
        ('{"id":"a","n":77}', "priority"),
    ]:
        with pytest.raises(InvalidMessage, match=about):
            turn(space, SpaceShard.replay_one, "orders", letter, data)
    space.call(SpaceShard.replay_one, "orders", letter, '{"id":"b","n":4}')
    assert jobs.one().entry.priority == 4


def test_a_letter_whose_queue_is_gone_is_not_sent_anywhere(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    [letter] = jobs.dlq.ids
    while space.call(SpaceShard.remove, "jobs"):
        pass
    for verb in (SpaceShard.replay_one, SpaceShard.try_letter):
        with pytest.raises(QueueGone, match="came from queue jobs"):
            turn(space, verb, "jobs", letter)
    assert jobs.dlq.data == ["1"]


def test_a_letter_is_deleted_once(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1", "2")
    first, second = jobs.dlq.ids
    space.call(SpaceShard.delete_letter, "jobs", first)
    assert jobs.dlq.ids == [second]
    with pytest.raises(EntryNotFound):
        turn(space, SpaceShard.delete_letter, "jobs", first)


def test_a_letter_of_another_queue_is_not_found_by_this_one(space: Space) -> None:
    space.configure("graves", kind="work", on_ack="delete")
    rules = ConsumerConfig(dead_letters="graves")
    Jobs(space, rules).bury("1")
    Jobs(space, rules, "others").bury("2")
    _, of_others = (entry.id for entry, _ in space.call(SpaceShard.dead_letters, "graves", 0, 10))
    with pytest.raises(EntryNotFound):
        turn(space, SpaceShard.delete_letter, "jobs", of_others)


# -- trying -------------------------------------------------------------------------------------------------


def bury_orders(space: Space, *data: str) -> list[str]:
    """Dead letters of a queue that had no type yet, then what it is to be."""
    shop = Shop(space, orders={})
    jobs = Jobs(space, queue="orders")
    jobs.bury(*data)
    shop.apply(orders=MAPPED)
    return jobs.dlq.ids


def test_a_trial_tells_what_the_mapping_of_now_would_make_and_does_nothing(space: Space) -> None:
    [letter] = bury_orders(space, '{"id":"a","n":2}')
    found = turn(space, SpaceShard.try_letter, "orders", letter)
    assert (found.ok, found.command, found.queue) == (True, "Order.Create", None)
    assert found.input is not None
    assert json.loads(bytes(found.input)) == {"id": "a", "size": 2}


def test_a_trial_tells_every_field_that_does_not_fit(space: Space) -> None:
    [letter] = bury_orders(space, '{"id":"a"}')
    other = pieces.mapping("map_to", "command Order.Other { a: n, b: id.first, c: n + 1, d: id }")
    untyped = {"id": {"type": "json"}, "n": {"type": "json", "optional": True}}
    Shop(space).apply(orders={**MAPPED, "message_type": untyped})
    found = space.call(SpaceShard.try_letter, "orders", letter, other)
    assert not found.ok
    told = [(one.field, one.expression, one.path, one.found) for one in found.misfits]
    assert told[:2] == [
        ("a", "n", "n", "missing"),
        ("b", "id.first", "id.first", "missing after id, which is a text"),
    ]


def test_a_trial_of_other_data_shows_that_the_queue_would_not_take_it(space: Space) -> None:
    [letter] = bury_orders(space, '{"id":5}')
    [misfit] = space.call(SpaceShard.try_letter, "orders", letter).misfits
    assert (misfit.field, misfit.error) == (
        None,
        "queue orders: message.id: an integer where a text is wanted",
    )
    found = space.call(SpaceShard.try_letter, "orders", letter, None, '{"id":"a","n":1}')
    assert found.ok


def test_a_trial_can_lead_to_a_queue(space: Space) -> None:
    [letter] = bury_orders(space, '{"id":"a","n":2}')
    found = space.call(
        SpaceShard.try_letter, "orders", letter, pieces.mapping("map_to", "queue next { it: id }")
    )
    assert (found.queue, found.input) == ("next", found.input)
    assert found.input is not None
    assert bytes(found.input) == b'{"it":"a"}'


def test_a_mapping_that_can_fit_no_message_is_refused(space: Space) -> None:
    [letter] = bury_orders(space, '{"id":"a"}')
    with pytest.raises(InvalidRequest, match="map_to: a: there is no field `idd`"):
        space.call(
            SpaceShard.try_letter, "orders", letter, pieces.mapping("map_to", "command A.B { a: idd }")
        )


def test_a_queue_without_a_mapping_wants_one_to_try(space: Space) -> None:
    jobs = Jobs(space)
    jobs.bury("1")
    with pytest.raises(InvalidRequest, match="map_to: queue jobs has none of its own"):
        space.call(SpaceShard.try_letter, "jobs", jobs.dlq.ids[0])
