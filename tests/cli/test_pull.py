from __future__ import annotations

from typing import Any

import pytest

from .shell import Shell

J = "dxn:queue:demo:jobs"


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Three messages a, b, c."""
    for name in "abc":
        shell.ok("push", J, f'"{name}"', "--id", name)
    return shell


def pulled(shell: Shell, *args: str) -> list[Any]:
    return shell.ok("pull", J, *args).records


def states(shell: Shell) -> dict[str, str]:
    return {one["id"]: one["state"] for one in shell.ok("peek", J).records}


def test_messages_are_leased_and_printed_with_their_leases(filled: Shell) -> None:
    messages = pulled(filled, "--batch", "2", "--lease", "1h", "--worker", "me")
    assert [(one["id"], one["attempts"], one["data"]) for one in messages] == [("a", 1, "a"), ("b", 1, "b")]
    assert states(filled) == {"a": "leased", "b": "leased", "c": "ready"}
    assert filled.ok("peek", J, "--state", "leased").records[0]["worker"] == "me"


def test_an_acked_message_is_gone(filled: Shell) -> None:
    [message] = pulled(filled)
    assert filled.ok("ack", J, message["lease"]).records == [{"lease": message["lease"], "outcome": "done"}]
    assert states(filled) == {"b": "ready", "c": "ready"}
    assert filled.ok("ack", J, message["lease"]).records[0]["outcome"] == "finished"


def test_pulling_can_ack_at_once(filled: Shell) -> None:
    assert filled.ok("pull", J, "-n", "2", "--ack", "--data").out == '"a"\n"b"\n'
    assert states(filled) == {"c": "ready"}


def test_a_released_message_is_ready_as_if_it_had_not_been_pulled(filled: Shell) -> None:
    [message] = pulled(filled)
    filled.ok("release", J, message["lease"])
    [again] = pulled(filled)
    assert (again["id"], again["attempts"]) == ("a", 1)


def test_an_extended_lease_ends_later(filled: Shell) -> None:
    message = pulled(filled, "--lease", "1m")[0]
    [answer] = filled.ok("extend", J, message["lease"], "--lease", "2h").records
    assert answer["outcome"] == "done"
    [held] = filled.ok("peek", J, "--state", "leased").records
    assert held["due"] > message["until"] + 3_600_000


def test_a_retried_message_waits_and_keeps_its_error(filled: Shell) -> None:
    [message] = pulled(filled)
    filled.ok("retry", J, message["lease"], "--delay", "1h", "--error", "no luck")
    [waiting] = filled.ok("peek", J, "--state", "backoff").records
    assert (waiting["id"], waiting["last_error"]) == ("a", "no luck")


def test_a_permanent_failure_is_a_dead_letter(filled: Shell) -> None:
    [message] = pulled(filled)
    filled.ok("retry", J, message["lease"], "--permanent", "--error", "bad")
    [letter] = filled.ok("dlq", "list", f"{J}-dlq").records
    assert (letter["letter"]["originalMessageId"], letter["letter"]["lastError"]) == ("a", "bad")


def test_a_lease_that_is_good_for_nothing_is_exit_code_1_and_says_why(filled: Shell) -> None:
    [message] = pulled(filled)
    filled.ok("release", J, message["lease"])
    result = filled("ack", J, message["lease"], "unknown")
    assert result.code == 1
    assert [one["outcome"] for one in result.records] == ["stale", "unknown"]
    [line] = result.err.splitlines()
    assert "2 of 2 were not acked (stale:" in line
    assert "unknown: no lease of this queue" in line


def test_an_empty_queue_gives_nothing_and_a_paused_one_says_so(filled: Shell) -> None:
    pulled(filled, "--batch", "10")
    result = filled.ok("pull", J)
    assert (result.out, result.err) == ("", "")
    filled.ok("pause", J)
    assert "edgequeues resume" in filled.ok("pull", J).err


def test_a_table_is_printed_on_a_terminal(filled: Shell) -> None:
    shown = filled.ok("pull", J, terminal=True)
    row = shown.out.splitlines()[-1].split()
    assert (row[0], row[1], row[-1]) == ("a", "1", '"a"')
    assert "3 unfinished" in shown.err
    assert filled.ok("ack", J, row[-2], terminal=True).out.splitlines()[-1].split() == ["done", row[-2]]


@pytest.mark.parametrize(
    "args",
    [
        ("pull", J, "--batch", "101"),
        ("pull", J, "--data"),
        ("pull", J, "--lease", "long"),
        ("ack", J),
        ("retry", J, "lease", "--permanent", "--delay", "1s"),
        ("retry", J),
        ("release", J),
    ],
)
def test_wrong_usage_is_exit_code_2(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell(*args).code == 2


def test_a_queue_or_consumer_that_is_not_there_is_one_line(filled: Shell) -> None:
    assert "[queue_not_found]" in filled("pull", "dxn:queue:demo:none").err
    assert "[consumer_not_found]" in filled("pull", J, "--consumer", "nobody").err
    filled.ok("append", "dxn:queue:demo:log", "1")
    assert "[no_consumer]" in filled("pull", "dxn:queue:demo:log").err
