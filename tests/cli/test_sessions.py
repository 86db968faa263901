from __future__ import annotations

from typing import Any

import pytest

from .shell import Shell

Q = "dxn:queue:chat:inbound"


def send(shell: Shell, session: str, *more: str) -> Any:
    [record] = shell.ok("sessions", "send", Q, session, *more, "--origin", "telegram").records
    return record


def fail(shell: Shell) -> str:
    """Have the next message fail; return its id."""
    [message] = shell.ok("pull", Q).records
    shell.ok("retry", Q, message["lease"], "--error", "the session does not answer")
    assert isinstance(message["id"], str)
    return message["id"]


def test_a_message_is_added_once_with_all_that_is_said_of_it(shell: Shell) -> None:
    said = ("--source-message", "17", "--source-channel", "c1", "--actor", "u", "--actor-name", "Ada")
    more = ("--type", "file", "--payload", '{"file": 1.0}', *said)
    made = send(shell, "s1", "Hello", *more)
    assert send(shell, "s1", "Hello", *more) == {"id": None, "position": None}
    again = shell.ok("sessions", "send", Q, "s1", "--origin", "telegram", *more, terminal=True)
    assert again.out == "it came before: nothing was added\n"
    [entry] = shell.ok("read", Q).records
    assert (entry["id"], entry["position"], entry["key"]) == (made["id"], made["position"], "s1")
    assert entry["data"] == {
        "session_id": "s1",
        "origin": "telegram",
        "message_type": "file",
        "content": "Hello",
        "payload": {"file": 1.0},
        "actor_id": "u",
        "actor_name": "Ada",
        "source_message_id": "17",
        "source_channel_id": "c1",
    }


@pytest.mark.parametrize(
    "args",
    [
        ("send", Q, "s1", "x"),
        ("send", Q, "", "x", "--origin", "o"),
        ("send", Q, "s1", "x", "--origin", "o", "--payload", "{"),
        ("send", Q, "s1", "x", "--origin", "o", "--type", "video"),
        ("send", Q, "s1", "x", "--origin", "o", "--source-message", ""),
        ("list", Q, "s1", "--after", "s0"),
        ("list", Q, "--limit", "0"),
        ("close", Q, "s1"),
        ("close", f"{Q}:object", "s1", "--yes"),
    ],
)
def test_what_cannot_be_is_wrong_usage(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell("sessions", *args).code == 2


def test_a_blocked_session_is_listed_with_what_it_waits_for(shell: Shell) -> None:
    first = send(shell, "s1", "one")
    send(shell, "s1", "two")
    failed = fail(shell)
    send(shell, "s2", "three")
    blocked, other = shell.ok("sessions", "list", Q).records
    assert (blocked["session_id"], blocked["depth"]) == ("s1", 2)
    head = blocked["head"]
    assert (head["id"], head["state"], head["failures"]) == (failed, "backoff", 1)
    assert head["last_error"] == "the session does not answer"
    assert head["due"] - head["blocked_since"] > 0
    assert (other["session_id"], other["head"]["state"], other["head"]["due"]) == ("s2", "ready", None)
    table = shell.ok("sessions", "list", Q, terminal=True).out
    row = next(line for line in table.splitlines() if "s1" in line)
    assert row.split()[:4] == ["2", str(first["position"]), "backoff", "1"]
    assert "the session does not" in row


def test_one_session_is_shown_and_one_without_messages_is_said_to_have_none(shell: Shell) -> None:
    send(shell, "s1")
    send(shell, "s2")
    assert [one["session_id"] for one in shell.ok("sessions", "list", Q, "s2").records] == ["s2"]
    none = shell.ok("sessions", "list", Q, "s3")
    assert (none.records, none.err) == ([], "nothing is unfinished in session s3\n")


def test_a_list_goes_on_after_a_session(shell: Shell) -> None:
    for session in ("s1", "s 2", "s3"):
        send(shell, session)
    first = shell.ok("sessions", "list", Q, "--limit", "1", terminal=True)
    assert "--after 's 2'" in first.err
    rest = shell.ok("sessions", "list", Q, "--after", "s 2", "--limit", "5")
    assert [one["session_id"] for one in rest.records] == ["s1", "s3"]
    assert rest.err == ""


def test_a_message_that_backs_off_is_retried_or_skipped(shell: Shell) -> None:
    send(shell, "s1", "one")
    send(shell, "s1", "two")
    failed = fail(shell)
    assert shell.ok("sessions", "retry", Q, "s1").records == [{"ready": failed}]
    again = fail(shell)
    assert again == failed
    assert shell.ok("sessions", "skip", Q, "s1").records == [{"skipped": failed}]
    [message] = shell.ok("pull", Q).records
    assert message["data"]["content"] == "two"


@pytest.mark.parametrize("verb", ["retry", "skip"])
def test_where_nothing_can_be_done_it_is_said_what_to_look_at(shell: Shell, verb: str) -> None:
    send(shell, "s1")
    shell.ok("pull", Q)
    for session in ("s1", "s2"):
        failed = shell("sessions", verb, Q, session)
        assert failed.code == 1
        assert f"session {session}" in failed.err
        assert "`edgequeues sessions list`" in failed.err


def test_a_session_is_closed_only_after_a_yes(shell: Shell) -> None:
    send(shell, "s1")
    send(shell, "s1")
    assert shell("sessions", "close", Q, "s1", terminal=True, stdin=b"n\n").code == 1
    assert shell.ok("sessions", "list", Q).records[0]["depth"] == 2
    assert shell.ok("sessions", "close", Q, "s1", "--yes").records == [{"expired": 2}]
    assert shell.ok("sessions", "list", Q).records == []
    assert shell.ok("sessions", "close", Q, "s1", "-y", terminal=True).out == "0 expired\n"


def test_a_queue_that_is_none_for_sessions_is_refused_in_one_line(shell: Shell) -> None:
    shell.ok("push", "dxn:queue:chat:jobs", "1")
    for args in (("list",), ("skip", "s1"), ("send", "s1", "--origin", "o")):
        failed = shell("sessions", args[0], "dxn:queue:chat:jobs", *args[1:])
        assert failed.code == 1
        assert "[config_conflict]" in failed.err
        assert failed.err.count("\n") == 1
