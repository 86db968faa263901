"""What is made from the code says what the code says now."""

from __future__ import annotations

import re

import pytest

from edgequeues.core.lifecycle import STATES, TRANSITIONS
from edgequeues.http import problems
from tests.house import tree
from tests.reference import limits, picture, routes
from tests.reference.made import MADE, spliced
from tests.reference.tables import table


@pytest.mark.parametrize("path", MADE)
def test_a_page_is_the_one_that_is_made(path: str) -> None:
    made = MADE[path]()
    if not isinstance(made, str):
        marks = [mark for name in made for mark in (f"<!-- {name} -->\n", f"<!-- /{name} -->")]
        assert [mark for mark in marks if mark not in tree.text(path)] == []
    assert tree.text(path) == spliced(tree.text(path), made), f"{path} is stale: run `make reference`"


def test_only_what_is_between_the_marks_of_a_page_changes() -> None:
    page = "before\n<!-- a -->\nold\n<!-- /a -->\nafter <!-- b --> kept\n"
    assert spliced(page, {"a": "new \\1\n"}) == page.replace("old", "new \\1")


def test_every_route_error_and_move_is_in_what_is_made() -> None:
    made = {path: str(make()) for path, make in MADE.items()}
    templates = {route.template for dialect in routes.dialects() for route in dialect.routes}
    assert [one for one in templates if f"`{one}`" not in made["docs/reference/routes.md"]] == []
    codes = {fault.code for fault in problems.TABLE.values()}
    assert [one for one in codes if f"| `{one}` |" not in made["docs/reference/errors.md"]] == []
    drawn = made["docs/pictures/lifecycle.svg"]
    assert [state for state in STATES if f">{state}</t" not in drawn] == []
    assert [event for _, event in TRANSITIONS if not re.search(rf"\b{event}\b", drawn)] == []


def test_arrows_and_ends_of_the_picture_are_the_moves_of_the_table() -> None:
    moves = sum(len(arrow.events) for arrow in picture.arrows())
    into_ends = sum(
        1
        for targets in TRANSITIONS.values()
        for then in targets
        if then in ("acked", "dead", "expired", "cancelled")
    )
    assert moves + into_ends == sum(len(targets) for targets in TRANSITIONS.values())
    assert picture.endings("expired") == ["expire: from any but leased", "close: from any state"]


def test_a_limit_is_read_with_the_comment_beside_it() -> None:
    found = {one.name: one for one in limits.limits("edgequeues/http/routes.py")}
    whole = found["BODY_BYTES_MAX"]
    assert (whole.value, whole.comment) == ("16 MiB", "of a body that is read as a whole")
    assert (found["BODY_PAUSE_S"].value, limits.readable("LIMIT_MAX", 1_000_000)) == ("60", "1,000,000")


def test_a_cell_holds_neither_bars_nor_lines_nor_tags() -> None:
    assert table(["a"], [["x | <b>\ny `<c>`"]]) == "| a |\n| --- |\n| x \\| &lt;b> y `<c>` |\n"
