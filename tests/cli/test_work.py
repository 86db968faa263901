from __future__ import annotations

import json
import sys
import time
from typing import Any

import pytest
import trio

from edgequeues.cli import executing
from edgequeues.client import Message, TryAgain

from .shell import Result, Shell

J = "dxn:queue:demo:jobs"


def worked(shell: Shell, command: str, *args: str) -> Result:
    return shell.ok("work", J, "--exec", command, "--drain", *args)


def states(shell: Shell) -> dict[str, str]:
    return {one["id"]: one["state"] for one in shell.ok("peek", J).records}


@pytest.fixture
def one(shell: Shell) -> Shell:
    """One message a."""
    shell.ok("push", J, '{"n":  1}', "--id", "a", "--key", "k", "--type", "t", "--header", "h=v")
    return shell


def test_the_exit_code_decides_what_becomes_of_a_message(shell: Shell) -> None:
    for name, code in {"acked": 0, "retried": 1, "bad": 65}.items():
        shell.ok("push", J, str(code), "--id", name)
    result = worked(shell, "exit $(cat)")
    assert [(line["id"], line["did"], line["error"]) for line in result.records] == [
        ("acked", "acked", None),
        ("retried", "retried", "exit code 1"),
        ("bad", "given_up", "exit code 65"),
    ]
    assert "1 acked, 1 retried, 1 given up" in result.err
    assert states(shell) == {"retried": "backoff"}
    [letter] = shell.ok("dlq", "list", f"{J}-dlq").records
    assert (letter["letter"]["originalMessageId"], letter["letter"]["reason"]) == ("bad", "permanent")


def test_the_last_line_on_stderr_is_the_error(one: Shell) -> None:
    [line] = worked(one, "echo first >&2; printf ' no luck\\033[2J \\n\\n' >&2; exit 3").records
    assert line["error"] == "no luck\\x1b[2J"
    [message] = one.ok("peek", J).records
    assert message["last_error"] == "no luck\\x1b[2J"


def test_a_command_gets_the_data_as_it_is_and_the_facts_in_its_environment(
    one: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LEASE", "HEADERS", "CONSUMER", "QUEUE"):
        monkeypatch.delenv(f"EDGEQUEUES_{name}", raising=False)
    seen = one.folder / "seen"
    worked(one, f"cat > {seen}; env | grep ^EDGEQUEUES_ >> {seen}", "--consumer", "default")
    data, _, rest = seen.read_text().partition("}")
    assert data + "}" == '{"n":  1}'
    facts = dict(line.split("=", 1) for line in rest.removeprefix("}").splitlines())
    assert len(facts.pop("EDGEQUEUES_LEASE")) == 44
    assert facts.pop("EDGEQUEUES_CREATED").isdigit()
    assert facts == {
        "EDGEQUEUES_ID": "a",
        "EDGEQUEUES_ATTEMPTS": "1",
        "EDGEQUEUES_POSITION": "2",
        "EDGEQUEUES_PRIORITY": "4",
        "EDGEQUEUES_KEY": "k",
        "EDGEQUEUES_TYPE": "t",
        "EDGEQUEUES_HEADERS": '{"h":"v"}',
        "EDGEQUEUES_QUEUE": J,
        "EDGEQUEUES_CONSUMER": "default",
        "EDGEQUEUES_SERVER": "http://127.0.0.1:8700",
    }


def test_a_fact_a_message_does_not_have_is_not_inherited(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEQUEUES_KEY", "of something else")
    shell.ok("push", J, "1")
    [line] = worked(shell, 'echo "key: ${EDGEQUEUES_KEY-none}" >&2; exit 1').records
    assert line["error"] == "key: none"


def test_a_command_need_not_read_its_input(shell: Shell) -> None:
    shell.ok("push", J, json.dumps("x" * 1_000_000))
    assert [line["did"] for line in worked(shell, "exec <&-; sleep 0.05").records] == ["acked"]


def test_large_data_passes_through(shell: Shell) -> None:
    shell.ok("push", J, json.dumps("x" * 1_000_000))
    [line] = worked(shell, "wc -c >&2; exit 1").records
    assert line["error"] == "1000002"


def test_what_a_command_prints_is_no_result(one: Shell) -> None:
    [line] = worked(one, "echo from the command").records
    assert line["did"] == "acked"


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(one: Shell) -> None:
    left, go = one.folder / "left", one.folder / "go"
    patient = f"while [ ! -e {go} ]; do sleep 0.02; done; touch {left}"
    [line] = worked(one, f"({patient}) & sleep 60", "--timeout", "300ms").records
    assert (line["did"], line["error"]) == ("retried", "not done within 0.3 s")
    go.touch()
    time.sleep(0.5)  # in which it would be seen
    assert not left.exists()
    assert states(one) == {"a": "backoff"}


def test_a_command_that_does_not_heed_sigterm_is_killed(one: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executing, "KILL_S", 0.3)
    left, go = one.folder / "left", one.folder / "go"
    stubborn = f"trap '' TERM; while [ ! -e {go} ]; do sleep 0.02; done; touch {left}; sleep 60"
    [line] = worked(one, f"({stubborn}) & wait", "--timeout", "300ms").records
    assert line["error"] == "not done within 0.3 s"
    go.touch()
    time.sleep(0.5)  # in which it would be seen
    assert not left.exists()


def test_headers_of_any_text_are_passed_on() -> None:
    headers = {"h": "\ud800", "\x00": "é"}
    message = Message("L", 1, 9, "a", 1, "v", None, 1, 1, 4, b"1", headers=headers)
    text = executing.facts(message)["EDGEQUEUES_HEADERS"]
    assert text.isascii()
    assert json.loads(text) == headers


class Deaf:
    """A stderr that nobody listens to any more."""

    @property
    def buffer(self) -> Deaf:
        return self

    def write(self, text: object) -> None:
        raise BrokenPipeError

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_message_is_not_to_blame_where_nobody_listens_to_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Deaf())
    message = Message("L", 1, 9, "a", 1, "v", None, 1, 1, 4, b"1")
    commands = executing.Commands("echo heard >&2; exit 1", {})
    with pytest.raises(TryAgain, match="heard"):
        trio.run(commands, message)


def test_a_child_that_holds_stderr_open_does_not_hold_the_message_up(one: Shell) -> None:
    [line] = worked(one, "echo begun >&2; sleep 30 & exit 1").records
    assert (line["error"], line["took_ms"] < 20_000) == ("begun", True)


def test_once_ends_with_what_one_pull_gives(shell: Shell) -> None:
    shell.ok("push", J, "1", "2", "3")
    result = shell.ok("work", J, "--exec", "true", "--once", "--batch", "2")
    assert len(result.records) == 2
    assert list(states(shell).values()) == ["ready"]
    shell.ok("purge", J, "--yes")
    result = shell.ok("work", J, "--exec", "true", "--once", "--wait", "0s")
    assert (result.out, "no messages" in result.err) == ("", True)


def test_a_drain_says_what_it_leaves(one: Shell) -> None:
    assert "not ready and left: 1" in worked(one, "exit 1").err
    one.ok("pause", J)
    assert "edgequeues resume" in worked(one, "true").err
    one.ok("purge", J, "--yes")
    one.ok("resume", J)
    assert worked(one, "true").err == "edgequeues: no messages\n"


def test_a_person_is_told_in_words(one: Shell) -> None:
    out = one.ok("work", J, "--exec", "echo bad >&2; exit 65", "--drain", terminal=True).out
    assert out.split()[:5] == ["given", "up", "a", "attempt", "1"]
    assert out.rstrip().endswith("bad")


@pytest.mark.parametrize(
    "args",
    [
        (J,),
        (J, "--exec", "true", "--once", "--drain"),
        (J, "--exec", "true", "--lease", "10ms"),
        (J, "--exec", "true", "--concurrency", "0"),
        (J, "--exec", "true", "--batch", "0"),
        (J, "--exec", "true", "--wait", "2m"),
        (J, "--exec", "no-such-program --flag"),
        (f"{J}:a", "--exec", "true"),
    ],
)
def test_wrong_usage_is_exit_code_2_before_anything_is_pulled(one: Shell, args: tuple[str, ...]) -> None:
    result = one("work", *args)
    assert result.code == 2
    assert states(one) == {"a": "ready"}


@pytest.mark.parametrize(
    "command", ["true", "cd / && true", "[ 1 = 1 ]", "X=1 true", "if true; then exit; fi", "'"]
)
def test_only_a_program_that_is_surely_missing_is_complained_about(one: Shell, command: str) -> None:
    assert one("work", J, "--exec", command, "--drain").code == 0


def test_a_queue_that_is_not_there_is_one_line(shell: Shell) -> None:
    result: Any = shell("work", J, "--exec", "true")
    assert result.code == 1
    assert "[queue_not_found]" in result.err
