"""Checks of specs that came as JSON: what no text can say, and that nothing at all makes them raise."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.errors import InvalidRequest
from edgequeues.spec import ir
from edgequeues.spec.check import check
from edgequeues.spec.load import load

from .test_check import ALLOWED, cases
from .texts import SAMPLE

INPUT = {"var": {"input": {"field": "payload"}}}


def told(**parts: Any) -> list[str]:
    """What is said of a spec of these parts, without the file."""
    text = json.dumps({"version": 0, "app": "Demo", **parts})
    return [one.removeprefix("x: ") for one in load(text.encode(), "x", ALLOWED).render()]


def test_a_key_without_an_order_that_has_keys_is_a_fault() -> None:
    assert told(queues={"Jobs": {"ordering": "fifo", "ordering_key": INPUT}}) == [
        "queues.Jobs.ordering_key: a key has no meaning where the ordering is fifo\n"
        "  Write `ordering: per_key(...)`, or leave it out."
    ]


def test_a_key_where_nothing_is_said_of_the_order_is_a_fault() -> None:
    assert told(queues={"Jobs": {"ordering_key": INPUT}}) == [
        "queues.Jobs.ordering_key: a key has no meaning where the ordering is unordered\n"
        "  Write `ordering: per_key(...)`, or leave it out."
    ]


def test_half_of_a_command_is_a_fault() -> None:
    hook = {"verify": {"none": True}, "queue": "Jobs", "on_type": "Incident"}
    assert told(queues={"Jobs": {}}, webhooks={"Hook": hook}) == [
        "webhooks.Hook.on_type: half of a command\n  Give both `on_type` and `command`."
    ]


def test_input_without_a_command_is_a_fault() -> None:
    hook = {"verify": {"none": True}, "queue": "Jobs", "input_map": {"a": INPUT}}
    assert told(queues={"Jobs": {}}, webhooks={"Hook": hook}) == [
        "webhooks.Hook.input_map: input without a command\n  Give `on_type` and `command`."
    ]


def test_a_command_that_is_run_in_two_ways_is_a_fault() -> None:
    command = {"python": "incidents:create", "http": "https://hooks.example.com/x", "secret_env": "SIGN"}
    assert told(commands={"Incident.Create": command}) == [
        "commands.Incident.Create.http: a command is run in one way only\n  Leave out one of the two."
    ]


@pytest.mark.parametrize(
    ("name", "attr", "what"),
    [
        ("a", {"type": "enum"}, "an enum has at least one value"),
        ("b", {"type": "int", "values": ["x"]}, "int has values; those are of an enum"),
        ("c", {"type": "map"}, "a map says what it holds: map<string, json> takes anything"),
        ("d", {"type": "int", "of": {}}, "int has a type inside; that is of a map"),
        (
            "e",
            {"type": "map", "of": {"type": "int", "default": 1}},
            "a default is of a field, not of what is in a map",
        ),
    ],
)
def test_a_type_that_no_text_declares_is_a_fault(name: str, attr: Any, what: str) -> None:
    assert told(queues={"Jobs": {"message_type": {name: attr}}}) == [
        f"queues.Jobs.message_type.{name}: {what}\n  Correct the type."
    ]


@pytest.mark.parametrize(
    ("expr", "what"),
    [
        ({}, ": an expression is an object with one key, this one has 0"),
        ({"nope": 1}, ': there is no node "nope"'),
        ({"eq": [INPUT]}, ".eq: 1 operands where 2 are wanted"),
        ({"not": {"lit": {"int": "1"}}}, ".not.lit.int: a text where an integer is wanted"),
        (
            {"call": {"fn": "has_role", "args": []}},
            '.call.fn: the function "has_role" is not available here',
        ),
        ({"get": {"expr": INPUT, "path": []}}, ".get.path: an empty path"),
    ],
)
def test_json_that_is_no_expression_is_a_fault_with_the_path_into_it(expr: Any, what: str) -> None:
    [fault] = told(queues={"Jobs": {"filter": expr}})
    assert fault.startswith(f"queues.Jobs.filter{what}")
    assert fault.endswith("\n  Correct the expression.")


def test_json_of_a_wrong_form_is_a_fault_that_names_the_field() -> None:
    [fault] = told(queues={"Jobs": {"delivery": {"batch": 0}}})
    assert "Expected `int` >= 1 - at `$.queues[...].delivery.batch`" in fault


def test_types_nested_as_deep_as_json_may_be_are_faults() -> None:
    for depth in range(850, 1_000):
        deep = '{"type":"map","of":' * depth + '{"type":"int"}' + "}" * depth
        of = '{"message_type":{"a":%s},"map_to":{"to":"queue","queue":"%s"}}'
        text = f'{{"version":0,"app":"a","queues":{{"q":{of % (deep, "p")},"p":{of % (deep, "x")}}}}}'
        assert load(text.encode()).faults


# -- nothing makes them raise -------------------------------------------------------------------------------


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Every member of every list and object, as the container and its key."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        box = waiting.pop()
        keys = list(box) if isinstance(box, dict) else range(len(box)) if isinstance(box, list) else ()
        found += [(box, key) for key in keys]
        waiting += [box[key] for key in keys]
    return found


def drafts() -> list[str]:
    texts = [SAMPLE, *(case.text for case in cases())]
    found = [load(text.encode()).draft for text in texts]
    return [ir.encode(draft).decode() for draft in found if draft is not None]


DRAFTS = drafts()
# As text, so that no value that was drawn is changed, or gets into itself.
PARTS = sorted({json.dumps(box[key]) for draft in DRAFTS for box, key in spots(json.loads(draft))})
STRANGE: list[Any] = [
    None,
    True,
    0,
    -1,
    10,
    2**63,
    0.5,
    "",
    "a",
    "Jobs",
    [],
    {},
    [{}],
    "https://[",
    "10.0.0.0/33",
]
VALUES = st.sampled_from(PARTS + [json.dumps(one) for one in STRANGE])


@given(st.data())
def test_a_mutated_spec_that_still_decodes_is_checked_without_raising(data: st.DataObject) -> None:
    spec = json.loads(data.draw(st.sampled_from(DRAFTS)))
    for _ in range(data.draw(st.integers(1, 4))):
        box, key = data.draw(st.sampled_from(spots(spec)))
        if data.draw(st.booleans()):
            box[key] = json.loads(data.draw(VALUES))
        elif isinstance(box, dict):
            box[data.draw(st.sampled_from([*box, "a", "Jobs", "Jobs-dlq", "item", "lit", "var"]))] = (
                copy.deepcopy(box[key])
            )
    try:
        decoded = ir.decode(json.dumps(spec).encode())
    except InvalidRequest:
        return
    for allowed in (None, ALLOWED):
        for fault in check(decoded, allowed):
            assert fault.what
            assert fault.remedy
            assert fault.path
