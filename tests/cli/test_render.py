"""Tables, on terminals of any width."""

from __future__ import annotations

import pytest

from edgequeues.cli.render import LAST_CHARS_MIN, Output

COLUMNS = [f"column{n}" for n in range(9)]
ROW = [f"value-of-{n}" for n in range(9)]


@pytest.mark.parametrize("width", ["20", "80", "200"])
def test_a_table_shows_every_cell_however_narrow_the_terminal(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    Output(json=False).table(COLUMNS, [ROW])
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.split() == COLUMNS
    assert row.split() == ROW


@pytest.mark.parametrize(("width", "shown"), [("20", 57), ("80", 80), ("200", 200)])
def test_only_the_last_column_is_cut_and_not_below_what_can_be_read(
    width: str, shown: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    long_id = "x" * 30
    Output(json=False).table(["id", "data"], [[long_id, "y" * 500]])
    row = capsys.readouterr().out.splitlines()[-1]
    assert row == f"{long_id}   {'y' * (shown - 34)}…"
    assert len(row) == max(int(width), len(long_id) + 3 + LAST_CHARS_MIN)


def test_columns_are_as_wide_as_what_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    Output(json=False).table(["id", "n", "data"], [["a", "10", "x"], ["long", "9", "語"]], right=["n"])
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert [head.rstrip(), *map(str.rstrip, rows)] == ["id      n   data", "a      10   x", "long    9   語"]
