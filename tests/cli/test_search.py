"""`edgequeues search`, as typed and as piped."""

from __future__ import annotations

import pytest

from .shell import Shell

J = "dxn:queue:demo:jobs"


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Messages a to c, of which a is leased; and a log that nobody works."""
    shell.ok("push", J, '{"n": 1}', "--id", "a")
    shell.ok("push", J, '{"n": 2}', "--id", "b", "--key", "k")
    shell.ok("push", J, '{"n": 3}', "--id", "c", "--key", "k")
    shell.ok("pull", J, "--worker", "w", "--lease", "1h")
    return shell


def test_messages_are_found_by_what_they_hold_and_where_they_stand(filled: Shell) -> None:
    def found(*args: str) -> list[str]:
        return [one["id"] for one in filled.ok("search", J, *args).records]

    assert found() == ["a", "b", "c"]
    assert found("--reverse", "-n", "2") == ["c", "b"]
    assert found("--id", "b") == ["b"]
    assert found("--key", "k", "--where", "n > 2") == ["c"]
    assert found("--state", "leased", "--state", "finished") == ["a"]
    assert found("--where", 'worker == "w"') == ["a"]
    assert found("--consumer", "default", "--state", "ready") == ["b", "c"]
    [record] = filled.ok("search", J, "--id", "a").records
    assert (record["data"], record["standings"][0]["state"]) == ({"n": 1}, "leased")


def test_a_terminal_shows_a_table_and_where_to_go_on(filled: Shell) -> None:
    shown = filled.ok("search", J, "-n", "2", terminal=True)
    assert [line.split()[1:4] for line in shown.out.splitlines()[-2:]] == [
        ["a", "default", "leased"],
        ["b", "default", "ready"],
    ]
    position = filled.ok("search", J, "--id", "b").records[0]["position"]
    assert f"--after {position}" in shown.err
    assert [one["id"] for one in filled.ok("search", J, "--after", str(position)).records] == ["c"]


def test_entries_of_a_log_stand_nowhere(shell: Shell) -> None:
    shell.ok("append", "dxn:queue:demo:log", "1")
    [record] = shell.ok("search", "dxn:queue:demo:log", "--state", "none").records
    assert record["standings"] == []
    assert "none" in shell.ok("search", "dxn:queue:demo:log", terminal=True).out


def test_an_expression_that_is_none_is_said_with_its_place(filled: Shell) -> None:
    result = filled("search", J, "--where", "n >")
    assert result.code == 1
    assert "where" in result.err


def test_wrong_usage_is_exit_code_2(shell: Shell) -> None:
    assert shell("search", J, "--state", "acked").code == 2
    assert shell("search").code == 2
