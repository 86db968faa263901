"""The table of states is the law: the schema repeats it, the page is made from it."""

from __future__ import annotations

import re
from pathlib import Path

from edgequeues.core import lifecycle
from edgequeues.core.lifecycle import STATES, TRANSITIONS, UNFINISHED, allowed
from edgequeues.space import deliveries

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_the_page_is_the_one_made_from_the_table() -> None:
    page = PAGE.read_text()
    assert f"<!-- states -->\n{lifecycle.table()}<!-- /states -->" in page
    assert f"<!-- moves -->\n{lifecycle.moves()}<!-- /moves -->" in page


def test_the_schema_knows_the_states_that_have_rows() -> None:
    column = deliveries.DDL[: deliveries.DDL.index("rank")]
    assert set(re.findall(r"state = '(\w+)'", column)) == set(UNFINISHED)


def test_every_unfinished_state_has_a_way_out_and_no_end_has() -> None:
    for state in STATES:
        leaves = [then for (before, _), after in TRANSITIONS.items() if before == state for then in after]
        assert bool(leaves) == (state in UNFINISHED)


def test_a_lease_is_the_only_way_to_be_leased_and_only_what_is_ready_is() -> None:
    ways = [key for key, after in TRANSITIONS.items() if "leased" in after]
    assert ways == [("ready", "lease")]
    assert allowed("ready", "lease", "leased")
    assert not allowed("waiting", "lease", "leased")
