"""Faults others reported of languages like this one, each tried here."""

from __future__ import annotations

import pytest

from edgequeues.spec.faults import render
from edgequeues.spec.fmt import fmt
from edgequeues.spec.load import load
from edgequeues.spec.parse import parse

from .texts import SAMPLE, advice, app, only, queue, read, said

MISSPELT = """\
app Demo {
  verify_token { header: "X-Token" secret_env: "T" }
  queue Jobs {
    orderng: fifo
    delivery { max_attempt: 5 }
    retention { max_age: 86400 }
    Ordering: fifo
  }
  webhook Hook {
    queue: Jobs
    verify_hmac { header: "X-Hub-Signature-256" secert_env: "S" }
  }
}
"""


def test_ds_s01_an_unknown_nested_key_is_an_error_and_all_are_told_in_one_run() -> None:
    found = parse(MISSPELT)
    assert found.spec is None
    told = [
        (place.line, place.column, fault.what, fault.remedy)
        for fault in found.faults
        if (place := fault.place)
    ]
    assert told == [
        (2, 3, "`app` has no key `verify_token`", "It belongs in `webhook {}`."),
        (4, 5, "`queue` has no key `orderng`", "Did you mean `ordering`?"),
        (5, 16, "`delivery` has no key `max_attempt`", "Did you mean `max_attempts`?"),
        (6, 17, "`retention` has no key `max_age`", "Did you mean `max_age_seconds`?"),
        (7, 5, "`queue` has no key `Ordering`", "Did you mean `ordering`?"),
        (11, 49, "`verify_hmac` has no key `secert_env`", "Did you mean `secret_env`?"),
    ]


def test_ds_s01_an_error_shows_the_line_and_a_caret() -> None:
    fault = parse(MISSPELT).faults[1]
    assert render(fault, MISSPELT, {}, "jobs.spec") == (
        "jobs.spec:4:5: `queue` has no key `orderng`\n"
        "      orderng: fifo\n"
        "      ^^^^^^^\n"
        "  Did you mean `ordering`?"
    )


@pytest.mark.parametrize(
    ("body", "what", "remedy"),
    [
        ("queue Jobs {}\ndelivery { batch: 5 }", "3:1: `app` has no key `delivery`", "It belongs in `queue {}`."),
        ("queue Jobs { delivery { retention { max_age_seconds: 5 } } }",
         "2:25: `delivery` has no key `retention`", "It belongs in `queue {}`."),
        ("queue Jobs { queue Inner {} }",
         "2:14: `queue` has no key `queue`", "It belongs in `app {}`, `webhook {}` or `schedule {}`."),
        ("webhook Hook { verify: none delivery { batch: 5 } }",
         "2:29: `webhook` has no key `delivery`", "It belongs in `queue {}`."),
    ],
)  # fmt: skip
def test_ds_s01_a_block_at_the_wrong_level_is_told_where_it_belongs(
    body: str, what: str, remedy: str
) -> None:
    assert (said(app(body)), advice(app(body))) == ([what], [remedy])


def test_ds_s01_nothing_is_loaded_of_a_text_with_a_fault() -> None:
    found = load(MISSPELT.encode(), "jobs.spec")
    assert found.spec is None
    assert len(found.render()) == 6
    assert all(told.startswith("jobs.spec:") for told in found.render())


def test_ds_s04_a_key_one_level_too_high_is_told_where_it_belongs() -> None:
    text = queue("dead_letter_queue: Other")
    assert said(text) == ["3:1: `queue` has no key `dead_letter_queue`"]
    assert advice(text) == ["It belongs in `delivery {}`."]


def test_ds_s04_verify_hmac_in_an_app_is_told_where_it_belongs() -> None:
    text = app('verify_hmac { header: "X" secret_env: "S" }')
    assert said(text) == ["2:1: `app` has no key `verify_hmac`"]
    assert advice(text) == ["It belongs in `webhook {}`."]


@pytest.mark.parametrize(
    "comment", ["// c\n", "# c\n", "/* c */", "/* a\n * b */", "/**/", '// "\n', "/* { */"]
)
def test_ds_s04_comments_may_stand_everywhere(comment: str) -> None:
    parts = (
        "app Demo { queue Jobs { message_type { a : map < string , int > ? } filter : a . b [ 0 ] == - 1 , "
        "delivery { batch : 5 } map_to : command X . Y { t : 'a' } } }"
    )
    tokens = parts.split()
    bare, commented = " ".join(tokens), comment + comment.join(f" {token} " for token in tokens) + comment
    assert read(commented) == read(bare)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("  ", "\t"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("10000 ", "10000, ").replace("time\n", "time,\n"),
    ],
    ids=["CRLF", "CR", "BOM", "tabs", "no newline at the end", "trailing commas"],
)
def test_ds_s04_lexical_variants_are_the_same_spec(change: object) -> None:
    assert callable(change)
    text = change(SAMPLE)
    assert text != SAMPLE
    assert read(text) == read(SAMPLE)


def test_ds_s04_places_are_right_after_a_byte_order_mark_and_crlf() -> None:
    text = "\ufeffapp Demo {\r\n\tqueue Jobs {\r\n\t\tdelay: 1\r\n\t}\r\n}"
    [fault] = parse(text).faults
    assert render(fault, text, {}, "x").split("\n")[:3] == [
        "x:3:3: `queue` has no key `delay`",
        "          delay: 1",
        "          ^^^^^",
    ]


def test_ds_s04_strings_have_escapes_and_no_raw_newline() -> None:
    hook = 'verify_hmac { header: "X" secret_env: "S" prefix: "a\\"\\u00e9" scheme: hmac }'
    verify = read(app(f"webhook Hook {{ {hook} }}")).webhooks["Hook"].verify
    assert verify.hmac is not None
    assert verify.hmac.prefix == 'a"é'
    text = queue('filter: payload.a == "one\ntwo"')
    assert said(text) == ["3:22: this string does not end on its line"]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("app Demo {\n  queue Jobs {\n    delay_ms: 5\n  }\n", 1, 10),
        ("app Demo {\n  queue Jobs {\n    delay_ms: 5\n  queue Other {\n  }\n}\n", 2, 14),
        ("app Demo {\n  queue Jobs {\n    delivery {\n      batch: 5\n  }\n}\n", 3, 14),
        ("app Demo { queue Jobs {", 1, 23),
        ("app Demo { queue Jobs { filter: size(", 1, 37),
    ],
)
def test_ds_s04_an_unclosed_bracket_points_at_its_opening(text: str, line: int, column: int) -> None:
    [fault] = parse(text).faults
    assert fault.place is not None
    assert (fault.place.line, fault.place.column) == (line, column)
    assert "is not closed" in fault.what


def test_ds_s04_a_comment_without_an_end_points_at_its_beginning() -> None:
    assert said(queue("/* delay_ms: 5")) == ["3:1: this comment does not end"]


def test_ds_s04_10_000_lines_are_read() -> None:
    one = (
        "queue Q%d {\n"
        + "".join(f"  // line {n}\n" for n in range(8))
        + "  filter: payload.a.b == 1 && payload.c\n}"
    )
    text = app("\n".join(one % number for number in range(1_000)))
    assert text.count("\n") >= 10_000
    assert len(read(text).queues) == 1_000


@pytest.mark.parametrize(
    "body",
    [
        "delivery {" * 500 + "}" * 500,
        f"filter: {'(' * 500}x{')' * 500}",
        f"filter: {'[' * 500}{']' * 500}",
        f"filter: {'!' * 500}x",
        f"filter: {'- ' * 500}x",
        f"filter: {'a ? ' * 500}x{' : b' * 500}",
        f"filter: {'a ? b : ' * 500}x",
        f"filter: {'a + ' * 500}x",
        f"filter: {'size(' * 500}x{')' * 500}",
        f"priority: {'!' * 500}x delay_ms: {'!' * 500}x",
        f"ordering: per_key({'!' * 500}x)",
        f"message_type {{ a: {'map<string, ' * 500}int{'>' * 500} }}",
        f"message_type {{ a: json = {'[' * 500}{']' * 500} }}",
    ],
)
def test_ds_s04_nesting_of_500_is_a_fault_and_no_recursion(body: str) -> None:
    found = load(queue(body).encode())
    assert found.spec is None
    assert all(fault.what for fault in found.faults)
    assert any("deep" in fault.what for fault in found.faults)


@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("delivery {" * 20_000 + "}" * 20_000, 630),
        (f"filter: {'(' * 20_000}x{')' * 20_000}", 73),
        (f"filter: {'[' * 20_000}{']' * 20_000}", 73),
        (f"filter: {'(' * 20_000}", 73),
        (f"filter: {')' * 20_000}", 9),
        (f"filter: {'{' * 20_000}", 71),
        (f"filter: {'!' * 20_000}x", 9),
        (f"message_type {{ a: {'map<string, ' * 20_000}int{'>' * 20_000} }}", 403),
    ],
    ids=["blocks", "parentheses", "lists", "open", "close", "braces", "operators", "types"],
)
def test_ds_s04_nesting_of_20_000_is_a_fault_with_its_place(body: str, column: int) -> None:
    [fault] = load(queue(body).encode()).faults
    assert fault.place is not None
    assert (fault.place.line, fault.place.column) == (3, column)


def test_ds_s04_what_was_printed_is_read_as_it_was() -> None:
    text = fmt(read(SAMPLE))
    assert read(text) == read(SAMPLE)
    assert fmt(read(text)) == text


def test_nesting_within_the_bound_is_read() -> None:
    deep = f"{'!' * 62}x"
    assert only(queue(f"filter: {deep}")).filter is not None
    assert only(queue(f"filter: {'(' * 64}x{')' * 64}")).filter is not None


def test_ds_s04_json_nested_500_deep_is_a_fault() -> None:
    for depth in (500, 100_000):
        text = (
            '{"version":0,"app":"a","queues":{"q":{"filter":' + '{"not":' * depth + "1" + "}" * depth + "}}}"
        )
        assert load(text.encode()).faults
