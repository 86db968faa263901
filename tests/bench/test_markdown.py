"""The page of figures quotes saved lines, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import main, markdown
from bench.figures import Against, figure

FACTS = '{"bench":"machine","load":0.5}'


def test_the_page_says_what_was_measured() -> None:
    page = markdown.PAGE.read_text()
    named = re.search(r"`bench/results/([\w.-]+)`", page)
    assert named is not None
    assert markdown.renewed(page, markdown.section(main.RESULTS / named[1])) == page


def test_a_figure_is_a_row_for_each_target(tmp_path: Path) -> None:
    against = [Against(what="raw", value=0.6, target=0.5), Against(what="s", value=7, target=5, at_most=True)]
    one = figure("append", "a case", [1, 2, 3], "rows/s", against=against, more={"p99": 1_234.5})
    (tmp_path / "lines").write_text(f"{FACTS}\n{one.line()}\n")
    section = markdown.section(tmp_path / "lines")
    assert "### How many appends a second are confirmed on disk" in section
    assert "| a case | 2 | rows/s | 1 to 3 | p99 1,234 | raw | 0.6 | >= 0.5 | reached |" in section
    assert "|  |  |  |  |  | s | 7 | <= 5 | not reached |" in section


def test_only_the_section_is_replaced() -> None:
    page = f"before\n{markdown.BEGIN}old\n{markdown.END}after\n"
    assert markdown.renewed(page, "new\n") == f"before\n{markdown.BEGIN}new\n{markdown.END}after\n"
    with pytest.raises(ValueError, match="no section"):
        markdown.renewed("before\n", "new\n")
