from __future__ import annotations

import json

import pytest

from .shell import Q, Shell


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Thirty entries e0 to e29 holding their number, every third of type `third`."""
    kinds = ["third", "other", "other"] * 10
    lines = [json.dumps({"id": f"e{n}", "data": n, "type": kind}) for n, kind in enumerate(kinds)]
    shell.ok("append", Q, "--envelope", stdin="\n".join(lines).encode())
    return shell


def numbers(shell: Shell, *args: str) -> list[int]:
    return [entry["data"] for entry in shell.ok("read", Q, *args).records]


def test_a_pipe_gets_everything_in_order(filled: Shell) -> None:
    assert numbers(filled) == [*range(30)]


def test_a_range_is_bounded_by_cursors_limit_direction_type_and_ids(filled: Shell) -> None:
    assert numbers(filled, "--limit", "3") == [0, 1, 2]
    assert numbers(filled, "--reverse", "-n", "2") == [29, 28]
    assert numbers(filled, "--type", "third", "-n", "3") == [0, 3, 6]
    assert numbers(filled, "--id", "e7", "--id", "e5", "--id", "none") == [5, 7]
    assert numbers(filled, "--since", "1h") == [*range(30)]
    assert numbers(filled, "--until", "2001-01-01") == []
    assert numbers(filled, "--since", "9999999999999") == []


def test_a_cursor_shown_on_a_terminal_goes_on_from_there(filled: Shell) -> None:
    shown = filled.ok("read", Q, terminal=True)
    rows = shown.out.splitlines()[2:]
    assert [int(row.split()[-1]) for row in rows] == [*range(20)]
    _, cursor = shown.err.split("--after ")
    assert numbers(filled, "--after", cursor.strip()) == [*range(20, 30)]
    backwards = filled.ok("read", Q, "--reverse", "-n", "5", terminal=True)
    _, cursor = backwards.err.split("--before ")
    assert numbers(filled, "--before", cursor.strip(), "-r", "-n", "2") == [24, 23]


def test_an_unknown_queue_reads_as_empty(shell: Shell) -> None:
    assert shell.ok("read", "dxn:queue:demo:none").out == ""


def test_one_object_is_read_by_its_dxn(filled: Shell) -> None:
    [entry] = filled.ok("read", f"{Q}:e4").records
    assert (entry["id"], entry["data"], entry["position"]) == ("e4", 4, 5)
    assert filled.ok("read", f"{Q}:e4", "--data").out == "4\n"
    shown = filled.ok("read", f"{Q}:e4", terminal=True).out.splitlines()
    assert shown[0].split() == ["id", "e4"]
    assert shown[-1].split() == ["data", "4"]


def test_an_object_that_is_not_there_is_one_line_and_exit_code_1(filled: Shell) -> None:
    result = filled("read", f"{Q}:none")
    assert (result.code, result.out) == (1, "")
    [line] = result.err.splitlines()
    assert line.startswith("edgequeues: refused: ")
    assert "[entry_not_found]" in line


def test_what_is_stored_cannot_drive_the_terminal(shell: Shell) -> None:
    shell.ok("append", Q, '"a\x9b2Jb\u202e[bold]c"', "--type", "[red]t")
    out = shell.ok("read", Q, terminal=True).out
    assert "\x9b" not in out
    assert "\u202e" not in out
    assert "[bold]" in out
    assert "[red]t" in out
    shell.ok("append", Q, '"\x9b2J"', "--id", "a")
    assert "\x9b" not in shell.ok("read", f"{Q}:a", terminal=True).out


def test_waiting_ends_at_once_when_there_is_something(filled: Shell) -> None:
    assert numbers(filled, "--wait", "60s", "-n", "1") == [0]


@pytest.mark.parametrize(
    "args",
    [
        ("read", f"{Q}:a", "--limit", "1"),
        ("read", Q, "--limit", "0"),
        ("read", Q, "--since", "yesterday"),
        ("read", "dxn:queue:demo"),
        ("tail", Q, "--all", "--after", "c"),
        ("tail", f"{Q}:a"),
        ("read", Q, "--server", "nowhere"),
        ("nothing",),
    ],
)
def test_wrong_usage_is_exit_code_2(shell: Shell, args: tuple[str, ...]) -> None:
    result = shell(*args)
    assert (result.code, result.out) == (2, "")
    assert "Error: " in result.err


def test_what_the_server_refuses_is_one_line(filled: Shell) -> None:
    result = filled("read", Q, "--after", "nonsense")
    assert result.code == 1
    [line] = result.err.splitlines()
    assert "[invalid_cursor]" in line
