from __future__ import annotations

import json

import pytest

from edgequeues.cli.telling import Head, sentence
from edgequeues.client import Ended, Explanation, Standing

from .shell import Shell

J = "dxn:queue:demo:jobs"


@pytest.fixture
def keyed(shell: Shell) -> Shell:
    """Messages a to d of key k, for a consumer that works keys in order; a is leased by w."""
    shell.ok("config", J, "--replace", "kind=work")
    shell.ok("consumer", "remove", J, "default", "--yes")
    shell.ok("consumer", "set", J, "mailer", "ordering=per_key")
    for name in "abcd":
        shell.ok("push", J, "1", "--id", name, "--key", "k")
    shell.ok("pull", J, "--worker", "w", "--lease", "1h")
    return shell


def explained(shell: Shell, object_id: str, queue: str = J) -> str:
    [told] = shell.ok("explain", queue, object_id).records
    assert shell.ok("explain", queue, object_id, terminal=True).out.startswith(
        f"{told['consumer']}: {told['sentence']}"
    )
    return str(told["sentence"])


def test_a_message_behind_others_says_behind_whom_and_what_they_wait_for(keyed: Shell) -> None:
    said = explained(keyed, "d")
    assert said.startswith("it waits behind 3 messages of key k; the head, a, is leased by w until 2")
    assert explained(keyed, "b").startswith("it waits behind 1 message of key k; the head, a,")


def test_the_head_of_a_line_is_found_among_very_many(shell: Shell) -> None:
    shell.ok("config", J, "--replace", "kind=work")
    shell.ok("consumer", "remove", J, "default", "--yes")
    shell.ok("consumer", "set", J, "mailer", "ordering=per_key")
    others = [json.dumps({"data": 1, "key": f"k{n}"}) for n in range(1_100)]
    shell.ok("push", J, "--envelope", stdin="\n".join(2 * others).encode())
    for key in ("kz", "k\xa2", "k\U000e0101"):
        shell.ok("push", J, "1", "--key", key, "--id", f"head-{len(key.encode())}")
        shell.ok("push", J, "1", "--key", key, "--id", f"next-{len(key.encode())}")
        said = explained(shell, f"next-{len(key.encode())}")
        assert f"the head, head-{len(key.encode())}, is ready" in said


def test_in_a_queue_worked_in_order_the_whole_queue_is_the_line(shell: Shell) -> None:
    shell.ok("config", J, "--replace", "kind=work")
    shell.ok("consumer", "remove", J, "default", "--yes")
    shell.ok("consumer", "set", J, "one", "ordering=fifo")
    shell.ok("push", J, "1", "--id", "a")
    shell.ok("push", J, "1", "--id", "b", "--key", "other")
    assert explained(shell, "b") == (
        "it waits behind 1 message, since the queue is worked in order; the head, a, is ready"
    )


def test_what_holds_a_message_back_is_said(shell: Shell) -> None:
    shell.ok("push", J, "1", "--id", "a")
    shell.ok("push", J, "1", "--id", "b", "--delay", "1h")
    assert explained(shell, "a") == "it is ready, the next pull may get it"
    assert explained(shell, "b").startswith("it waits for its time, 2")
    [message] = shell.ok("pull", J, "--worker", "w", "--lease", "1h").records
    assert explained(shell, "a").startswith("it is leased by w until 2")
    shell.ok("retry", J, message["lease"], "--delay", "1h", "--error", "no luck")
    said = explained(shell, "a")
    assert said.startswith("it has failed once and is tried again at 2")
    assert said.endswith(": no luck")
    table = shell.ok("explain", J, "a", terminal=True).out.splitlines()
    assert table[-1].split()[:3] == ["1", "retried", "w"]


def test_a_paused_queue_is_named_as_the_reason(shell: Shell) -> None:
    shell.ok("push", J, "1", "--id", "a")
    shell.ok("pause", J)
    assert f"`edgequeues resume {J}`" in explained(shell, "a")


def test_a_log_without_consumers_hands_nothing_out(shell: Shell) -> None:
    shell.ok("append", "dxn:queue:demo:log", "1", "--id", "a")
    assert "no consumer" in shell.ok("explain", "dxn:queue:demo:log", "a").err


def test_a_message_that_is_not_there_is_one_line(keyed: Shell) -> None:
    result = keyed("explain", J, "none")
    assert result.code == 1
    assert "[entry_not_found]" in result.err


def told(why: str, **more: object) -> Explanation:
    fields: dict[str, object] = {
        "consumer": "c",
        "why": why,
        "state": None,
        "until": None,
        "behind": 0,
        "key": None,
        "worker": None,
        "attempts": 0,
        "last_error": None,
        "history": [],
    }
    return Explanation(**{**fields, **more})  # type: ignore[arg-type]


HEAD = Standing("h", 1, "backoff", 2, None, None, "bad", "k", 4, b"1")


@pytest.mark.parametrize(
    ("explanation", "head", "said"),
    [
        (told("filling"), None, "its turn is to come"),
        (told("expired"), None, "it has expired"),
        (told("ready", attempts=1), None, "it is ready, the next pull may get it, after 1 attempt"),
        (told("leased", attempts=2), None, "it is leased by somebody without a name until"),
        (told("behind", behind=2, key="k"), None, "it waits behind 2 messages of key k"),
        (told("behind", behind=2, key="k"), Head(HEAD, "k"), "the head, h, has failed 2 times and is tried"),
        (told("finished"), None, "nothing is left to be done"),
        (
            told("finished", history=[Ended(1, "failed", "w", 1, 2, "bad")]),
            None,
            "the last attempt that was not acked: failed, bad",
        ),
        (told("brand_new"), None, "brand new"),
    ],
)
def test_every_reason_is_a_sentence(explanation: Explanation, head: Head | None, said: str) -> None:
    assert said in sentence(explanation, head, J)


def test_peeking_shows_states_by_position(keyed: Shell) -> None:
    found = keyed.ok("peek", J).records
    assert [(one["id"], one["state"]) for one in found] == [
        ("a", "leased"),
        ("b", "waiting"),
        ("c", "waiting"),
        ("d", "waiting"),
    ]
    assert [one["id"] for one in keyed.ok("peek", J, "--state", "waiting", "-n", "2").records] == ["b", "c"]
    after = str(found[2]["position"])
    assert [one["id"] for one in keyed.ok("peek", J, "--after", after).records] == ["d"]
    shown = keyed.ok("peek", J, "-n", "2", terminal=True)
    assert shown.out.splitlines()[-1].split()[1:3] == ["b", "waiting"]
    assert f"--after {found[1]['position']}" in shown.err


def test_a_pipe_gets_all_messages_page_by_page(shell: Shell) -> None:
    shell.ok("push", J, stdin=b"1\n" * 1_200)
    positions = [one["position"] for one in shell.ok("peek", J).records]
    assert len(positions) == len(set(positions)) == 1_200
    assert len(shell.ok("peek", J, terminal=True).out.splitlines()) == 22


def test_lines_are_listed_with_their_heads(keyed: Shell) -> None:
    [line] = keyed.ok("lines", J).records
    assert (line["key"], line["waiting"], line["state"]) == ("k", 3, "leased")
    assert keyed.ok("lines", J, terminal=True).out.splitlines()[-1].split()[0] == "3"


def test_stats_have_the_counts_of_each_consumer(keyed: Shell) -> None:
    [stats] = keyed.ok("stats", J).records
    [consumer] = stats["consumers"]
    assert (stats["entries"], consumer["name"], consumer["leased"], consumer["waiting"]) == (
        4,
        "mailer",
        1,
        3,
    )
    out = keyed.ok("stats", J, terminal=True).out
    rows = [line.split() for line in out.splitlines() if line.startswith("mailer")]
    assert rows == [["mailer", "per_key", "0", "3", "0", "1", "0"], ["mailer", "4", "1", *["0"] * 9]]
    assert "kind     work" in out


def test_stats_of_a_log_have_no_consumers(shell: Shell) -> None:
    shell.ok("append", "dxn:queue:demo:log", "1")
    assert "consumer" not in shell.ok("stats", "dxn:queue:demo:log", terminal=True).out


@pytest.mark.parametrize("args", [("peek", J, "--state", "acked"), ("peek", J, "-n", "0"), ("explain", J)])
def test_wrong_usage_is_exit_code_2(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell(*args).code == 2
