"""Types of message fields: which values are of them, and what is said of the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core.attrs import AttrType, check_type, checker, show, with_defaults

STRING = AttrType("string")
MESSAGE = {
    "payload": AttrType("json"),
    "headers": AttrType("map", of=STRING),
    "received_at": AttrType("time"),
    "severity": AttrType("enum", values=("high", "low")),
    "note": AttrType("string", optional=True),
    "retries": AttrType("int", default=3),
    "ratio": AttrType("float", optional=True),
    "sure": AttrType("bool", optional=True),
}
GOOD: dict[str, Any] = {"payload": [1], "headers": {"a": "b"}, "received_at": 1.5, "severity": "high"}

check = checker(MESSAGE)


def test_a_message_of_its_type_has_no_fault() -> None:
    assert check(GOOD) is None
    assert check({**GOOD, "note": "n", "retries": 0, "ratio": 1, "sure": False}) is None


def test_optional_fields_and_those_with_a_default_may_be_missing_or_null() -> None:
    assert check({**GOOD, "note": None, "retries": None, "ratio": None, "sure": None}) is None


@pytest.mark.parametrize("payload", [None, 0, False, "", [], {}, {"a": [None]}, 2**70])
def test_json_takes_anything_but_nothing_at_all(payload: Any) -> None:
    assert check({**GOOD, "payload": payload}) is None
    assert check({name: value for name, value in GOOD.items() if name != "payload"}) == (
        "message.payload: missing, anything is wanted"
    )


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("severity", "medium", '"medium" is none of "high", "low"'),
        ("severity", "High", '"High" is none of "high", "low"'),
        ("severity", ["high"], 'a list where one of "high", "low" is wanted'),
        ("severity", None, 'null where one of "high", "low" is wanted'),
        ("severity", "x" * 1_000, '"' + "x" * 80 + '..." is none of "high", "low"'),
        ("retries", "3", "a text where an integer is wanted"),
        ("retries", 1.0, "a number where an integer is wanted"),
        ("retries", True, "a boolean where an integer is wanted"),
        ("retries", 2**63, "an integer beyond 64 bits"),
        ("retries", -(2**63) - 1, "an integer beyond 64 bits"),
        ("ratio", True, "a boolean where a number is wanted"),
        ("ratio", "1", "a text where a number is wanted"),
        ("ratio", float("inf"), "a number out of range where a number is wanted"),
        ("ratio", 10**400, "an integer out of range where a number is wanted"),
        ("sure", 1, "an integer where a boolean is wanted"),
        ("note", 5, "an integer where a text is wanted"),
        ("received_at", True, "a boolean where a time in unix seconds is wanted"),
        ("received_at", "2024-01-01T00:00:00Z", "a text where a time in unix seconds is wanted"),
        ("received_at", -1, "an integer out of range where a time in unix seconds is wanted"),
        ("received_at", -0.1, "a number out of range where a time in unix seconds is wanted"),
        ("received_at", 253_402_300_800, "an integer out of range where a time in unix seconds is wanted"),
        ("received_at", float("nan"), "a number out of range where a time in unix seconds is wanted"),
        ("received_at", None, "null where a time in unix seconds is wanted"),
        ("headers", [], "a list where an object is wanted"),
        ("headers", None, "null where an object is wanted"),
    ],
)
def test_a_wrong_value_is_named_with_its_path_and_type(name: str, value: Any, words: str) -> None:
    assert check({**GOOD, name: value}) == f"message.{name}: {words}"


@pytest.mark.parametrize("value", [0, 0.0, 1, 253_402_300_799, 253_402_300_799.5])
def test_a_time_is_any_number_of_seconds_up_to_the_year_10000(value: float) -> None:
    assert check({**GOOD, "received_at": value}) is None


@pytest.mark.parametrize("value", [-(2**63), 2**63 - 1, 0])
def test_an_integer_has_64_bits(value: int) -> None:
    assert check({**GOOD, "retries": value}) is None


def test_what_is_in_a_map_is_looked_at_with_its_key_in_the_path() -> None:
    assert check({**GOOD, "headers": {"a": "b", "x-y": 5}}) == (
        'message.headers["x-y"]: an integer where a text is wanted'
    )
    inner = AttrType("map", of=AttrType("map", of=AttrType("int", optional=True)))
    deep = checker({"m": inner})
    assert deep({"m": {"a": {}, "b": {"c": 1, "d": None}}}) is None
    assert deep({"m": {"a": None}}) == "message.m.a: null where an object is wanted"
    assert deep({"m": {"a": {"b": "c"}}}) == "message.m.a.b: a text where an integer is wanted"


def test_the_first_fault_is_the_first_of_the_message() -> None:
    assert check({"note": 1, "severity": 1}) == "message.note: an integer where a text is wanted"


def test_a_field_that_the_type_does_not_have_is_a_fault() -> None:
    assert check({**GOOD, "foo": None}) == "message.foo: the type has no such field"
    assert check({**GOOD, "serverity": "low"}) == (
        'message.serverity: the type has no such field; did you mean "severity"?'
    )
    assert check({**GOOD, "x" * 10_000: 1}) == f'message["{"x" * 80}..."]: the type has no such field'
    assert checker({})({}) is None
    assert checker({})({"a": 1}) == "message.a: the type has no such field"


def test_a_required_field_that_is_missing_is_a_fault() -> None:
    del_severity = {name: value for name, value in GOOD.items() if name != "severity"}
    assert check(del_severity) == 'message.severity: missing, one of "high", "low" is wanted'


@pytest.mark.parametrize(
    ("value", "words"), [(None, "null"), ([], "a list"), ("{}", "a text"), (1, "an integer")]
)
def test_a_message_is_an_object(value: Any, words: str) -> None:
    assert check(value) == f"message: {words} where an object is wanted"


def test_defaults_stand_in_for_what_is_missing_or_null_and_nothing_else() -> None:
    types = {"a": AttrType("int", default=3), "b": AttrType("bool", default=False), "c": STRING}
    assert with_defaults(types, {"c": "x"}) == {"c": "x", "a": 3, "b": False}
    assert with_defaults(types, {"a": None, "b": True, "c": None}) == {"a": 3, "b": True, "c": None}
    assert with_defaults(types, {"a": 0, "b": False}) is None
    message: dict[str, Any] = {"a": None}
    with_defaults(types, message)
    assert message == {"a": None}


@pytest.mark.parametrize(
    ("attr", "text"),
    [
        (AttrType(), "json"),
        (AttrType("string", optional=True), "string?"),
        (AttrType("map", of=STRING, optional=True), "map<string, string>?"),
        (
            AttrType("map", of=AttrType("map", of=AttrType("time", optional=True))),
            "map<string, map<string, time?>>",
        ),
        (AttrType("enum", values=("a", 'b"', "é", "\ud83d")), 'enum("a", "b\\"", "é", "\\ud83d")'),
        (AttrType("int", default=3), "int = 3"),
        (AttrType("bool", default=False), "bool = false"),
        (AttrType("string", default="x\n"), 'string = "x\\n"'),
        (AttrType("json", default={"a": [1.0, None]}), 'json = {"a": [1.0, null]}'),
    ],
)
def test_a_type_is_shown_as_the_language_writes_it(attr: AttrType, text: str) -> None:
    assert show(attr) == text
    assert check_type(attr) is None


def maps(depth: int) -> AttrType:
    attr = STRING
    for _ in range(depth):
        attr = AttrType("map", of=attr)
    return attr


@pytest.mark.parametrize(
    ("attr", "words"),
    [
        (AttrType("enum"), "an enum has at least one value"),
        (AttrType("enum", values=("a", "b", "a")), 'the enum has "a" twice'),
        (AttrType("string", values=("a",)), "string has values; those are of an enum"),
        (AttrType("map"), "a map says what it holds: map<string, json> takes anything"),
        (AttrType("int", of=STRING), "int has a type inside; that is of a map"),
        (AttrType("map", of=AttrType("enum")), "an enum has at least one value"),
        (AttrType("map", of=AttrType("int", default=1)), "a default is of a field, not of what is in a map"),
        (AttrType("int", default="3"), "the default: a text where an integer is wanted"),
        (AttrType("int", default=True), "the default: a boolean where an integer is wanted"),
        (AttrType("enum", values=("a",), default="b"), 'the default: "b" is none of "a"'),
        (AttrType("map", of=STRING, default={"k": 1}), "the default.k: an integer where a text is wanted"),
        (
            AttrType("time", default=-1),
            "the default: an integer out of range where a time in unix seconds is wanted",
        ),
        (maps(9), "maps inside maps, more than 8 deep"),
        (maps(500), "maps inside maps, more than 8 deep"),
    ],
)
def test_a_declaration_that_no_value_can_meet_is_refused(attr: AttrType, words: str) -> None:
    assert check_type(attr) == words


def test_maps_nest_eight_deep() -> None:
    assert check_type(maps(8)) is None


fields = st.recursive(
    st.builds(AttrType, st.sampled_from(["json", "string", "int", "float", "bool", "time"]), st.booleans())
    | st.builds(AttrType, st.just("enum"), st.booleans(), values=st.just(("a", "b"))),
    lambda inner: st.builds(AttrType, st.just("map"), st.booleans(), of=inner),
    max_leaves=3,
)
data = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from(
        [0, -1, 2**63, 2**70, 10**309, 253_402_300_800, 1.0, -0.5, 1e300, "", "a", "b", "\ud83d"]
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=5,
)


def is_of(attr: AttrType, value: Any) -> bool:
    """The rules once more, as they are told."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    rules: dict[str, Callable[[], bool]] = {
        "json": lambda: True,
        "string": lambda: isinstance(value, str),
        "int": lambda: number and isinstance(value, int) and -(2**63) <= value < 2**63,
        "float": lambda: number and abs(value) < 2**1024,
        "bool": lambda: value in (True, False) and not number,
        "time": lambda: number and 0 <= value < 253_402_300_800,
        "enum": lambda: value in attr.values,
        "map": lambda: (
            isinstance(value, dict) and all(is_of(attr.of or attr, each) for each in value.values())
        ),
    }
    return (value is None and attr.optional) or rules[attr.type]()


@given(fields, data)
def test_a_fault_is_found_exactly_where_the_rules_are_broken(attr: AttrType, value: Any) -> None:
    fault = checker({"f": attr})({"f": value})
    assert (fault is None) == is_of(attr, value)
    if fault is not None:
        assert fault.startswith("message.f")
        assert " where " in fault or " is none of " in fault or "beyond 64 bits" in fault


def test_values_are_what_either_reader_of_json_gives() -> None:
    text = b'{"payload": 1e3, "headers": {}, "received_at": 5, "severity": "low", "ratio": 1E0, "retries": 7}'
    assert check(json.loads(text)) is None
    assert check(msgspec.json.decode(text)) is None
    fraction = text.replace(b'"retries": 7', b'"retries": 7.0')
    for read in (json.loads, msgspec.json.decode):
        assert check(read(fraction)) == "message.retries: a number where an integer is wanted"
