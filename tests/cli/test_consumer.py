from __future__ import annotations

import pytest

from .shell import Shell

J = "dxn:queue:demo:jobs"
L = "dxn:queue:demo:log"


def test_a_log_gets_consumers_that_start_now_or_at_its_beginning(shell: Shell) -> None:
    shell.ok("append", L, "1", "2")
    shell.ok("consumer", "set", L, "late")
    shell.ok("consumer", "set", L, "early", "--beginning", "ordering=fifo")
    shell.ok("append", L, "3")
    found = {one["name"]: one for one in shell.ok("consumer", "list", L).records}
    assert (found["late"]["total_in"], found["early"]["total_in"]) == (1, 3)
    assert found["early"]["config"]["ordering"] == "fifo"
    rows = shell.ok("consumer", "list", L, terminal=True).out.splitlines()
    assert [row.split()[:2] for row in rows if row.startswith("early")] == [["early", "fifo"], ["early", "3"]]


def test_rules_that_are_not_named_stay(shell: Shell) -> None:
    shell.ok("push", J, "1")
    shell.ok("push", "dxn:queue:demo:grave", "1")
    shell.ok("consumer", "set", J, "default", "attempts_max=null", 'backoff={"list_ms": [5]}')
    [made] = shell.ok("consumer", "set", J, "default", "lease_ms=60000", "dead_letters=grave").records
    rules = made["config"]
    assert (rules["attempts_max"], rules["backoff"]["list_ms"]) == (None, [5])
    assert (rules["lease_ms"], rules["dead_letters"]) == (60_000, "grave")
    shown = shell.ok("consumer", "set", J, "default", terminal=True).out
    assert "lease_ms             60000" in shown


def test_a_consumer_is_removed_only_after_a_yes(shell: Shell) -> None:
    shell.ok("push", J, "1")
    assert shell("consumer", "remove", J, "default").code == 2
    assert shell("consumer", "remove", J, "default", terminal=True, stdin=b"n\n").code == 1
    shell.ok("consumer", "remove", J, "default", "--yes")
    assert shell.ok("consumer", "list", J).records == []
    assert "[consumer_not_found]" in shell("consumer", "remove", J, "default", "--yes").err


@pytest.mark.parametrize("change", ["attempts_max", "attempts=3", "attempts_max=many", "facts={}"])
def test_a_rule_that_is_none_is_wrong_usage(shell: Shell, change: str) -> None:
    shell.ok("push", J, "1")
    assert shell("consumer", "set", J, "default", change).code == 2


def test_what_the_server_does_not_take_is_one_line(shell: Shell) -> None:
    shell.ok("push", J, "1")
    assert "[invalid_request]" in shell("consumer", "set", J, "default", "ordering=fifo").err
    assert "[invalid_request]" in shell("consumer", "set", J, "default", "lease_ms=0").err
    assert "[queue_not_found]" in shell("consumer", "set", L, "default").err


def test_a_message_that_holds_its_line_up_is_hurried_or_skipped(shell: Shell) -> None:
    shell.ok("append", L, "0")
    shell.ok("consumer", "set", L, "one", "ordering=fifo")
    shell.ok("append", L, "--id", "a", "1")
    shell.ok("append", L, "--id", "b", "2")
    [message] = shell.ok("pull", L).records
    shell.ok("retry", L, message["lease"], "--delay", "1h")
    assert shell.ok("pull", L).records == []
    assert shell.ok("hurry", L, "a", "--consumer", "one").records == [{"hurried": "a"}]
    [again] = shell.ok("pull", L).records
    assert (again["id"], again["attempts"]) == ("a", 2)
    assert "[invalid_request]" in shell("hurry", L, "a").err
    shell.ok("retry", L, again["lease"], "--delay", "1h")
    assert shell.ok("skip", L, "a", "--consumer", "one").records == [{"skipped": "a"}]
    assert shell.ok("pull", L).records[0]["id"] == "b"
    assert "[invalid_request]" in shell("skip", L, "b").err
