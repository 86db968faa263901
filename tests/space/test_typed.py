"""Typed messages: what is not of a queue's type is refused or a dead letter at once, at every road in."""

from __future__ import annotations

import pytest

from edgequeues.core.errors import InvalidMessage
from edgequeues.models import NewEntry
from edgequeues.space import check
from edgequeues.space.shard import SpaceShard

from .jobs import Dead, Jobs
from .specs import TYPED, Shop, field
from .world import Space

BURYING = TYPED | {"on_invalid": "dead_letter"}
DAY_MS = 24 * 3_600_000


def test_a_message_of_another_type_is_refused_with_its_place_and_nothing_is_stored(space: Space) -> None:
    shop = Shop(space, jobs=TYPED)
    for verb in (SpaceShard.push, SpaceShard.append):
        with pytest.raises(InvalidMessage) as caught:
            space.call(verb, "jobs", [NewEntry('{"id":"1"}'), NewEntry('{"id":"2","n":"x"}')])
        assert caught.value.detail.startswith("entries[1]: message.n")
    assert space.count("jobs") == 0
    assert shop.outcomes("jobs", '{"id":"1"}') == ["new"]


@pytest.mark.parametrize("data", ["1", "null", "[]", '"text"', "{}", '{"id":"1","more":2}', '{"id":null}'])
def test_what_is_no_such_object_is_refused(space: Space, data: str) -> None:
    shop = Shop(space, jobs=TYPED)
    with pytest.raises(InvalidMessage):
        shop.push("jobs", data)


def test_text_and_bytes_are_of_no_type(space: Space) -> None:
    """They are stored as JSON strings, and a typed queue takes objects."""
    Shop(space, jobs=TYPED)
    with pytest.raises(InvalidMessage):
        space.call(SpaceShard.push, "jobs", [NewEntry('"x"', content_type="text")])


def test_where_the_spec_says_so_it_is_a_dead_letter_at_once(space: Space) -> None:
    shop = Shop(space, jobs=BURYING)
    answer = shop.push("jobs", '{"id":"1"}', '{"id":2}', '{"id":"3"}')
    assert [one.outcome for one in answer.results] == ["new", "dead", "new"]
    assert Jobs(space).given() == ['{"id":"1"}', '{"id":"3"}']
    [(entry, letter)] = Dead(space, "jobs-dlq").letters()
    assert (entry.id, entry.data) == (answer.results[1].id, '{"id":2}')
    assert (letter.reason, letter.attempts, letter.original_queue) == ("malformed", 0, "jobs")
    assert letter.last_error.startswith("message.id")
    assert check.problems(space.db) == []


def test_the_named_queue_of_dead_letters_takes_what_its_own_type_would_not(space: Space) -> None:
    graves = {"message_type": {"error": {"type": "string"}}}
    named = {"delivery": {"dead_letter_queue": "graves"}}
    shop = Shop(space, jobs=BURYING | named, graves=graves)
    assert shop.outcomes("jobs", "{}") == ["dead"]
    assert Dead(space, "graves").data == ["{}"]
    with pytest.raises(InvalidMessage):
        shop.push("graves", "{}")  # from outside, it is a queue like any other


def test_a_malformed_message_is_buried_once_under_its_key(space: Space) -> None:
    shop = Shop(space, jobs=BURYING)
    [first] = shop.push("jobs", "{}", idempotency_key="k").results
    [again] = shop.push("jobs", "{}", idempotency_key="k").results
    assert (first.outcome, again.outcome, again.id) == ("dead", "same", first.id)
    assert Dead(space, "jobs-dlq").data == ["{}"]
    space.clock.advance(DAY_MS + 1)
    assert shop.outcomes("jobs", "{}", idempotency_key="k") == ["dead"]


def test_a_malformed_letter_goes_back_when_the_type_takes_it(space: Space) -> None:
    shop = Shop(space, jobs=BURYING)
    [dead] = shop.push("jobs", '{"id":2}').results
    graves = "jobs-dlq"
    [refused] = space.call(SpaceShard.replay, graves, [dead.id])
    assert (refused.outcome, refused.message) == ("invalid", None)
    shop.apply(jobs={"on_invalid": "dead_letter", "message_type": {"id": {"type": "int"}}})
    [replayed] = space.call(SpaceShard.replay, graves, [dead.id])
    assert replayed.outcome == "replayed"
    assert [one.entry.id for one in Jobs(space).pull(9)] == [replayed.message]
    assert check.problems(space.db) == []


def test_malformed_letters_are_found_by_their_reason(space: Space) -> None:
    shop = Shop(space, jobs=BURYING)
    shop.push("jobs", "{}", '{"id":"1"}')
    Jobs(space).fail(Jobs(space).one(), permanent=True)
    from edgequeues.models_letters import LetterFilter

    found = space.call(SpaceShard.preview, "jobs-dlq", LetterFilter(reason=("malformed",)), show=9)
    assert [entry.data for entry, _ in found.shown] == ["{}"]


def test_what_a_filter_does_not_hold_for_is_told_and_not_kept(space: Space) -> None:
    shop = Shop(space, jobs={"filter": field("wanted")})
    assert shop.outcomes("jobs", '{"wanted":true}', '{"wanted":0}', "{}", "7") == ["new", *["filtered"] * 3]
    assert Jobs(space).given() == ['{"wanted":true}']


def test_an_expression_that_cannot_be_computed_makes_a_message_malformed(space: Space) -> None:
    sum_of = {"add": [field("a"), {"lit": {"int": 1}}]}
    shop = Shop(space, jobs={"priority": sum_of, "on_invalid": "dead_letter"})
    assert shop.outcomes("jobs", '{"a":4}', '{"a":"x"}', '{"a":99}', "{}") == ["new", "dead", "dead", "new"]
    errors = [letter.last_error for _, letter in Dead(space, "jobs-dlq").letters()]
    assert all(error.startswith("priority") for error in errors)


def test_defaults_stand_in_for_what_is_missing_and_the_data_stays_as_it_came(space: Space) -> None:
    typed = {"message_type": {"rank": {"type": "int", "default": 9}}, "priority": field("rank")}
    shop = Shop(space, jobs=typed)
    shop.push("jobs", "{}", '{"rank":null}', '{"rank" : 2}')
    assert [(one.data, one.priority) for one in space.all("jobs")] == [
        ("{}", 9),
        ('{"rank":null}', 9),
        ('{"rank" : 2}', 2),
    ]


def test_the_counters_and_rows_of_a_space_with_specs_agree(space: Space) -> None:
    shop = Shop(space, jobs=BURYING | {"filter": field("id")})
    shop.push("jobs", '{"id":"1"}', '{"id":2}', "{}")
    jobs = Jobs(space)
    jobs.fail(jobs.one(), permanent=True)
    assert check.problems(space.db) == []
