from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgequeues.spec import ir
from edgequeues.spec.fmt import expression, fmt
from edgequeues.spec.relayout import relayout
from edgequeues.spec.syntax import comments

from . import specs
from .texts import SAMPLE, app, only, queue, read


@given(specs.expressions)
def test_an_expression_that_was_printed_is_read_as_it_was(expr: ir.Expr) -> None:
    assert only(queue(f"filter: {expression(expr)}")).filter == expr


@settings(max_examples=25)
@given(specs.specs)
def test_a_spec_that_was_printed_is_read_as_it_was_and_printed_alike(spec: ir.Spec) -> None:
    text = fmt(spec)
    assert read(text) == spec
    assert fmt(read(text)) == text
    assert relayout(text) == text


@settings(max_examples=25)
@given(specs.specs)
def test_equal_specs_have_equal_json(spec: ir.Spec) -> None:
    text = ir.encode(spec)
    assert ir.encode(ir.decode(text)) == text
    assert ir.encode(read(fmt(spec))) == text


def test_other_forms_of_an_expression_are_printed_in_one() -> None:
    field = {"var": {"input": {"field": "payload"}}}
    inner = {"get": {"expr": field, "path": ["a"]}}
    for expr in (
        {"get": {"expr": field, "path": "a.b"}},
        {"get": {"expr": inner, "path": ["b"]}},
        {"var": {"payload": {"path": ["a", "b"]}}},
    ):
        assert expression(expr) == "payload.a.b"


def test_what_is_no_expression_is_printed_all_the_same() -> None:
    assert expression({"nothing": 1}) == "{'nothing': 1}"


def test_defaults_are_left_out() -> None:
    assert fmt(read(app("queue Jobs { ordering: unordered delivery { batch: 10 } }"))) == app(
        "  queue Jobs {}"
    )


def test_keys_are_put_in_order_and_what_was_said_stays() -> None:
    text = "app Demo{queue B{delivery{batch:10,max_attempts:5}ordering:fifo},webhook H{queue:B verify:none}queue A{}}"
    assert relayout(text) == (
        "app Demo {\n"
        "  queue B {\n"
        "    ordering: fifo\n"
        "    delivery {\n"
        "      max_attempts: 5\n"
        "      batch: 10\n"
        "    }\n"
        "  }\n"
        "\n"
        "  queue A {}\n"
        "\n"
        "  webhook H {\n"
        "    verify: none\n"
        "    queue: B\n"
        "  }\n"
        "}\n"
    )


COMMENTED = """\
// head
/* two
   lines */
app Demo { // of the app

  # above
  queue Jobs { /* of the queue */

    delay_ms: 5 // behind


    // above ordering
    ordering: /* within */ fifo
    message_type {
      a: int // of a
      // last of the type
    } // behind the type
    map_to: command A.B { // of the mapping
      x: 1 + /* inside */ 2 // behind x
      // last of the mapping
    }
    // last of the queue
  } // behind the queue
  // last of the app
}
// tail
"""


def test_comments_stay_with_what_they_are_about() -> None:
    assert (
        relayout(COMMENTED)
        == """\
// head
/* two
   lines */
app Demo { // of the app
  # above
  queue Jobs { /* of the queue */
    message_type {
      a: int // of a
      // last of the type
    } // behind the type

    // above ordering
    /* within */
    ordering: fifo

    delay_ms: 5 // behind
    map_to: command A.B { // of the mapping
      /* inside */
      x: 1 + 2 // behind x
      // last of the mapping
    }
    // last of the queue
  } // behind the queue
  // last of the app
}
// tail
"""
    )


def test_lines_end_in_one_way_in_comments_too() -> None:
    assert relayout(COMMENTED.replace("\n", "\r\n")) == relayout(COMMENTED)


@pytest.mark.parametrize(
    ("text", "laid"),
    [
        ("app A { /* a */ }", "app A { /* a */\n}\n"),
        ("app A {\n// a\n}", "app A {\n  // a\n}\n"),
        ("app A { // a\n}", "app A { // a\n}\n"),
        ("app A {} // a", "app A {} // a\n"),
        ("app A {}\n// a", "app A {}\n// a\n"),
    ],
    ids=["inside", "on its own line", "behind the brace", "at the end", "below the end"],
)
def test_a_comment_in_an_empty_block_or_at_the_end_stays(text: str, laid: str) -> None:
    assert relayout(text) == laid


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("  ", "\t"),
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("\n", " \t\n"),
    ],
    ids=["CRLF", "BOM", "tabs", "no newline at the end", "blanks at line ends"],
)
def test_what_editors_leave_behind_becomes_plain(change: Callable[[str], str]) -> None:
    text = app('  queue Jobs {\n    // why\n    filter: payload.a == "x y" // behind\n    delay_ms: 5\n  }')
    assert relayout(text) == text
    assert change(text) != text
    assert relayout(change(text)) == text


def test_a_layout_stays_as_it_is() -> None:
    for text in (SAMPLE, COMMENTED):
        once = relayout(text)
        assert relayout(once) == once


TOKENS = re.compile(r"""[\w.]+|"[^"\n]*"|//[^\n]*|[=!<>]=|&&|[|][|]|\S""")


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["// c%d\n", "/* c%d */", "# c%d\n", "\n\n"])))
)
def test_no_comment_is_lost_wherever_it_stands(places: list[tuple[int, str]]) -> None:
    tokens = TOKENS.findall(SAMPLE)
    for number, (at, comment) in enumerate(places):
        tokens.insert(at, comment % number if "%" in comment else comment)
    text = "".join(f"{token}\n" if token.startswith(("//", "#")) else f"{token} " for token in tokens)
    laid = relayout(text)
    assert sorted(_all(laid)) == sorted(_all(text))
    assert relayout(laid) == laid


def _all(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in comments(text)]
