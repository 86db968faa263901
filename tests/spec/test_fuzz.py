"""Whatever a file holds: it is a spec, or there are faults, which can be shown."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgequeues.spec import ir
from edgequeues.spec.fmt import fmt
from edgequeues.spec.load import Loaded, load

from . import specs
from .texts import SAMPLE, app, queue

EVERYTHING = app(
    "queue Jobs {\n"
    '  message_type { payload: json note: string? n: int = 3 level: enum("a", "b") = "a"\n'
    "    m: map<string, map<string, time>>?  at: time? = 5 }\n"
    "  ordering: per_key(payload.a[0]['b'])\n"
    "  priority: n > 3 && !has(payload.x) ? 7 : 4\n"
    "  schedule: time(payload.at)\n"
    "  rate_limit { per_second: 5.5 burst: 7 key: note }\n"
    "  delivery { max_attempts: unlimited backoff_ms: [1, 2] dead_letter_queue: Dead }\n"
    "  map_to: command Thing.Make { t: coalesce(note, `note`, \"x\\u00e9\") u: {'a': -n / 2} }\n"
    "}\n"
    "queue Dead {}\n"
    "webhook Hook {\n"
    '  verify_hmac { header: "X-Sig" secret_env: ["A", "B"] scheme: hmac prefix: "v=" }\n'
    '  queue: Jobs allow_ips: ["10.0.0.0/8"] for_each: payload.items message { payload: item }\n'
    "}\n"
    'command Thing.Make { input { t: string u: json } run: python "a.b:c" timeout_ms: 5 }'
)
TEXTS = [SAMPLE, EVERYTHING]
TOKEN = re.compile(r"""\s+|[\w.]+|"(?:[^"\\\n]|\\.)*"|//[^\n]*|[=!<>]=|&&|[|][|]|.""")
TOKENS = [TOKEN.findall(text) for text in TEXTS]
ALL_TOKENS = sorted(set(TOKENS[0] + TOKENS[1]))
STRANGE = [
    *("\n", "\r", "\r\n", "\x00", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\u0661"),
    *('"', "'", "`", "\\", "/*", "*/", "//", "{", "}", "(", ")", "[", "]", "<", ">", "?", ":", ",", ".", "="),
    *('"\\u001b[2J"', '"\\ud800"', '"\\u0000"', "9" * 30, "1e999", "-0", "0x1", "1_000", "per_key", "\U0001f600"),
]  # fmt: skip


def told(content: bytes) -> Loaded:
    """What is made of a file. Asserts that it can be shown, and that nothing in it is obeyed by a terminal."""
    found = load(content, "x.spec")
    assert (found.spec is None) == bool(found.faults)
    for fault in found.render():
        strange = [char for line in fault.split("\n") for char in line if not char.isprintable()]
        assert not strange, fault
    return found


def test_the_texts_that_are_mutated_are_right() -> None:
    for text in TEXTS:
        assert "".join(TOKEN.findall(text)) == text
        assert told(text.encode()).faults == []


@given(st.binary(max_size=400))
def test_random_bytes_are_told(content: bytes) -> None:
    assert told(content).faults


@given(st.text(st.sampled_from("app Q{}()[]<>:,.\"'`\\/*#\n\t\r\x1b!&|=+-?01queue_in")))
@example('app \x1b[31m"')
def test_random_texts_are_told(text: str) -> None:
    told(text.encode())
    told(app(text).encode())
    told(queue(text).encode())


Change = tuple[str, int, int, str]
changes = st.lists(
    st.tuples(
        st.sampled_from(["delete", "double", "swap", "replace", "insert"]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
        st.sampled_from(ALL_TOKENS + STRANGE) | st.text(max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@given(st.sampled_from(TOKENS), changes)
def test_texts_with_tokens_deleted_doubled_swapped_and_put_in_are_told(
    tokens: list[str], asked: list[Change]
) -> None:
    found = told(mutated(tokens, asked).encode("utf-8", "surrogatepass"))
    if found.spec is not None:
        assert ir.decode(ir.encode(found.spec)) == found.spec
        assert told(fmt(found.spec).encode()).spec == found.spec


def mutated(tokens: list[str], asked: list[Change]) -> str:
    made = list(tokens)
    for kind, first, second, new in asked:
        at, other = first % len(made), second % len(made)
        if kind == "delete":
            del made[at : at + 1 + second % 3]
        elif kind == "double":
            made.insert(at, made[at])
        elif kind == "swap":
            made[at], made[other] = made[other], made[at]
        elif kind == "replace":
            made[at] = new
        else:
            made.insert(at, new)
        made = made or [""]
    return "".join(made)


@given(specs.specs, st.integers(0, 10**6), st.integers(0, 30), st.binary(max_size=3))
def test_json_of_specs_with_bytes_changed_is_told(spec: ir.Spec, at: int, gone: int, new: bytes) -> None:
    text = ir.encode(spec)
    at %= len(text)
    told(text[:at] + new + text[at + gone :])


@pytest.mark.parametrize(
    "place",
    [
        "{}", "app {} {{ }}", 'app "{}" {{ }}', "app A {{ queue {} {{ }} }}", 'app A {{ queue "{}" {{ }} }}',
        "app A {{ queue Q {{ {}: 1 }} }}", "app A {{ queue Q {{ ordering: {} }} }}",
        "app A {{ queue Q {{ on_invalid: '{}' }} }}", 'app A {{ queue Q {{ filter: "{}" + 1 }} }}',
        "app A {{ queue Q {{ filter: {}(payload) }} }}", "app A {{ queue Q {{ filter: {} }} }}",
        "app A {{ queue Q {{ message_type {{ a: {} }} }} }}",
        'app A {{ queue Q {{ delivery {{ dead_letter_queue: "{}" }} }} }}',
        'app A {{ command B.C {{ run: python "{}" }} }}', 'app A {{ command B.C {{ run: http "{}" }} }}',
        'app A {{ queue Q {{}} webhook W {{ verify: none queue: "{}" }} }}',
        'app A {{ queue Q {{}} webhook W {{ verify: none queue: Q allow_ips: ["{}"] }} }}',
        'app A {{ queue Q {{}} webhook W {{ queue: Q verify_token {{ header: "{}" secret_env: "S" }} }} }}',
        'app A {{ queue Q {{}} webhook W {{ queue: Q verify_token {{ header: "H" secret_env: "{}" }} }} }}',
        '{{"version": 0, "app": "{}"}}', '{{"version": 0, "app": "a", "queues": {{"{}": {{}}}}}}', '{{"{}": 0}}',
        '{{"version": 0, "app": "a", "queues": {{"q": {{"filter": {{"{}": 1}}}}}}}}',
        '{{"version": 0, "app": "a", "commands": {{"{}": {{}}}}}}',
        '{{"version": 0, "app": "a", "webhooks": {{"w": {{"verify": {{"none": true}}, "message": {{"{}": 1}}}}}}}}',
    ],
)  # fmt: skip
def test_what_is_strange_at_some_place_is_told(place: str) -> None:
    for strange in STRANGE:
        told(place.format(strange).encode())
        told(place.format(f"a{strange}b").encode())


def test_strange_text_in_json_is_told_without_what_a_terminal_obeys() -> None:
    escaped = '{"version":0,"app":"a","queues":{"\\u001b[2J":{"filter":{"\\u001b":1}}}}'
    for content in (escaped, escaped.replace("filter", "\\u001b]0;")):
        assert told(content.encode()).faults


@pytest.mark.parametrize("tail", ["", " ;", ": {", " = 1", "(", " 5s", "[", " {", "'", " : x.y z"])
@pytest.mark.parametrize("unit", ["a", "a.", "a ", "9", " ", "(a", "\n", "é"])
def test_a_text_of_one_long_piece_is_told_at_once(unit: str, tail: str) -> None:
    """What takes longer than linear time would never end here."""
    long = unit * (200_000 // len(unit))
    told(f"app A {{ queue Q {{ {long}{tail} }} }}".encode())


def test_thousands_of_faults_are_told_each_with_its_line() -> None:
    shown = told(queue("ab: 1\n" * 20_000).encode()).render()
    assert len(shown) == 20_000
    assert shown[-1].startswith("x.spec:20002:1: ")
