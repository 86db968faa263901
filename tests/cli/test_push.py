from __future__ import annotations

import json
from typing import Any

import pytest

from .shell import Shell

J = "dxn:queue:demo:jobs"


def standing(shell: Shell) -> list[Any]:
    return shell.ok("peek", J).records


def test_each_argument_is_a_message_of_a_work_queue(shell: Shell) -> None:
    pushed = shell.ok("push", J, '{"n": 1}', "2").records
    assert [one["outcome"] for one in pushed] == ["new", "new"]
    assert [(one["state"], one["data"]) for one in standing(shell)] == [("ready", {"n": 1}), ("ready", 2)]
    assert shell.ok("config", J).records[0]["kind"] == "work"


def test_messages_come_from_a_pipe_a_dash_and_files(shell: Shell) -> None:
    shell.ok("push", J, stdin=b"1\n2\n")
    shell.ok("push", J, "-", "4", stdin=b"3\n")
    shell.ok("push", J, "--file", str(shell.file("more.ndjson", b"5\n\n6\n")))
    assert [one["data"] for one in standing(shell)] == [1, 2, 3, 4, 5, 6]


def test_any_number_of_messages_goes_in(shell: Shell) -> None:
    pushed = shell.ok("push", J, stdin="\n".join(map(str, range(2_500))).encode()).records
    assert len(pushed) == 2_500
    assert shell.ok("stats", J).records[0]["consumers"][0]["ready"] == 2_500


def test_what_is_said_of_messages_is_kept_with_them(shell: Shell) -> None:
    shell.ok("push", J, "1", "--id", "a", "--key", "k", "--priority", "7", "--type", "t", "--header", "h=v=w")
    [message] = shell.ok("pull", J).records
    said = [message[name] for name in ("id", "key", "priority", "type", "headers")]
    assert said == ["a", "k", 7, "t", {"h": "v=w"}]


def test_a_message_can_be_held_back(shell: Shell) -> None:
    shell.ok("push", J, "1", "--delay", "1h")
    shell.ok("push", J, "2", "--due", "2999-01-01T00:00")
    shell.ok("push", J, "3", "--due", "2001-01-01")
    assert [one["state"] for one in standing(shell)] == ["scheduled", "scheduled", "ready"]


def test_an_idempotency_key_keeps_a_message_from_being_doubled(shell: Shell) -> None:
    [first] = shell.ok("push", J, "1", "--idempotency-key", "i").records
    [second] = shell.ok("push", J, "1", "--idempotency-key", "i").records
    assert first["id"] == second["id"]
    assert len(standing(shell)) == 1


def test_a_keyed_push_whose_answer_was_lost_is_repeated_and_doubles_nothing(shell: Shell) -> None:
    shell.lost = ["/push"]
    pushed = shell.ok("push", J, "--keyed", "1", "2").records
    assert (shell.lost, [one["outcome"] for one in pushed]) == ([], ["same", "same"])
    assert [one["data"] for one in standing(shell)] == [1, 2]
    shell.lost = ["/push"]
    unsure = shell("push", J, "3")
    assert (unsure.code, unsure.out) == (1, "")
    assert "it may have been done all the same" in unsure.err


def test_an_envelope_says_of_each_message_what_options_do_not(shell: Shell) -> None:
    lines = [
        {"data": 1, "id": "a", "key": "own", "priority": 9, "delay_ms": 1, "position": 7},
        {"data": 2, "idempotency_key": "i"},
    ]
    given = "\n".join(map(json.dumps, lines)).encode()
    shell.ok("push", J, "--envelope", "--key", "k", "--due", "2999-01-01", stdin=given)
    found = [(one["data"], one["key"], one["priority"], one["state"]) for one in standing(shell)]
    assert found == [(1, "k", 9, "scheduled"), (2, "k", 4, "scheduled")]


def test_a_line_that_is_no_json_is_named_and_nothing_is_pushed(shell: Shell) -> None:
    result = shell("push", J, "--file", str(shell.file("bad.ndjson", b"1\n{nope\n")))
    assert result.code == 1
    assert "bad.ndjson:2:" in result.err
    assert "nothing was pushed" in result.err
    assert shell("stats", J).code == 1
    result = shell("push", J, "--envelope", '{"n": 1}')
    assert (result.code, "argument:1:" in result.err) == (1, True)


@pytest.mark.parametrize(
    "args",
    [
        (J, "1", "2", "--id", "a"),
        (J, "1", "2", "--idempotency-key", "a"),
        (J, "1", "--due", "10m"),
        (J, "1", "--due", "2999-01-01", "--delay", "1s"),
        (J, "1", "--priority", "10"),
        (J, "1", "--header", "h"),
        (J, "1", "--file", "-"),
        (f"{J}:a", "1"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_nothing_is_pushed(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell("push", *args).code == 2
    assert shell("stats", J).code == 1


def test_a_file_given_as_if_it_were_json_is_explained(shell: Shell) -> None:
    path = shell.file("jobs.ndjson", b"1\n")
    result = shell("push", J, str(path))
    assert result.code == 2
    assert "--file" in result.err


def test_what_the_queue_refuses_is_one_line(shell: Shell) -> None:
    shell.ok("push", J, "1", "--id", "a")
    result = shell("push", J, "2", "--id", "a")
    assert (result.code, result.out) == (1, "")
    assert "[exists]" in result.err


def test_a_table_is_printed_on_a_terminal(shell: Shell) -> None:
    out = shell.ok("push", J, "1", "--id", "a", terminal=True).out
    assert out.splitlines()[-1].split()[1:] == ["new", "a"]
