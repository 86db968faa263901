from __future__ import annotations

from typing import Any

import pytest

from edgequeues.cli import dlq
from edgequeues.client import Client, FilterReplay

from .shell import Shell

J = "dxn:queue:demo:jobs"
D = f"{J}-dlq"


def bury(shell: Shell, *names: str) -> None:
    """Push messages and give them up for good."""
    for name in names:
        shell.ok("push", J, f'"{name}"', "--id", name)
    leases = [one["lease"] for one in shell.ok("pull", J, "--batch", str(len(names))).records]
    shell.ok("retry", J, *leases, "--permanent", "--error", "bad")


def letters(shell: Shell, *args: str) -> list[Any]:
    return shell.ok("dlq", "list", D, *args).records


def test_dead_letters_are_listed_with_all_that_is_known_of_them(shell: Shell) -> None:
    bury(shell, "a", "b", "c")
    found = letters(shell)
    assert [one["letter"]["originalMessage"] for one in found] == ["a", "b", "c"]
    letter = found[0]["letter"]
    assert (letter["reason"], letter["lastError"], letter["attempts"]) == ("permanent", "bad", 1)
    assert letters(shell, "-n", "1") == found[:1]
    assert letters(shell, "--after", str(found[0]["position"])) == found[1:]


def test_a_terminal_shows_a_table_and_where_it_goes_on(shell: Shell) -> None:
    bury(shell, "a", "b")
    shown = shell.ok("dlq", "list", D, "-n", "1", terminal=True)
    assert "permanent" in shown.out.splitlines()[-1]
    position = letters(shell)[0]["position"]
    assert f"there are more: --after {position}" in shown.err
    assert "more" not in shell.ok("dlq", "list", D, "-n", "2", terminal=True).err


def test_where_nothing_lies_it_says_where_to_look(shell: Shell) -> None:
    bury(shell, "a")
    result = shell.ok("dlq", "list", J)
    assert result.out == ""
    assert D in result.err


def test_one_letter_is_shown_with_its_attempts(shell: Shell) -> None:
    bury(shell, "a", "b")
    letter = letters(shell)[1]
    assert shell.ok("dlq", "show", D, letter["id"]).records == [letter]
    out = shell.ok("dlq", "show", D, letter["id"], terminal=True).out
    assert 'data         "b"' in out
    assert out.splitlines()[-1].split()[:2] == ["1", "failed"]
    assert "[entry_not_found]" in shell("dlq", "show", D, "none").err


def test_an_entry_that_is_no_dead_letter_is_not_shown_as_one(shell: Shell) -> None:
    shell.ok("push", J, "1", "--id", "a")
    result = shell("dlq", "show", J, "a")
    assert result.code == 1
    assert "no dead letter" in result.err


def test_named_letters_are_replayed_once(shell: Shell) -> None:
    bury(shell, "a", "b")
    first = letters(shell)[0]["id"]
    [replayed] = shell.ok("dlq", "replay", D, first).records
    assert replayed["outcome"] == "replayed"
    [message] = shell.ok("peek", J).records
    assert (message["id"], message["data"], message["attempts"]) == (replayed["message"], "a", 0)
    assert shell.ok("dlq", "replay", D, first).records[0]["outcome"] == "already"
    assert len(shell.ok("peek", J).records) == 1


def test_all_letters_are_replayed_in_order_and_those_replayed_before_are_left(shell: Shell) -> None:
    names = [f"m{n:03}" for n in range(250)]
    shell.ok(
        "push", J, "--envelope", stdin="\n".join(f'{{"data": "{n}", "id": "{n}"}}' for n in names).encode()
    )
    for _ in range(3):
        leases = [one["lease"] for one in shell.ok("pull", J, "--batch", "100").records]
        shell.ok("retry", J, *leases, "--permanent")
    shell.ok("dlq", "replay", D, letters(shell)[7]["id"])
    result = shell.ok("dlq", "replay", D, "--all")
    assert [one["outcome"] for one in result.records] == ["replayed"] * 249
    data = [one["data"] for one in shell.ok("peek", J).records]
    assert data == ["m007", *(name for name in names if name != "m007")]
    assert shell.ok("dlq", "replay", D, "--all").records == []
    bury(shell, "last")
    shown = shell.ok("dlq", "replay", D, "--all", terminal=True)
    assert (shown.out, "1 replayed" in shown.err) == ("", True)
    assert "0 replayed" in shell.ok("dlq", "replay", D, "--all", terminal=True).err


def test_what_fails_again_while_all_are_replayed_is_left(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury(shell, "a", "b", "c")
    replay_where = Client.replay_where

    async def replay_and_fail(client: Client, dxn: str, *args: Any, **kwargs: Any) -> FilterReplay:
        found = await replay_where(client, dxn, *args, **kwargs)
        messages = (await client.pull(J, batch=100)).messages
        await client.retry(J, [one.lease for one in messages], permanent=True)
        return found

    monkeypatch.setattr(Client, "replay_where", replay_and_fail)
    monkeypatch.setattr(dlq, "REPLAY_LETTERS", 1)
    assert len(shell.ok("dlq", "replay", D, "--all").records) == 3
    assert [one["letter"]["replayedAt"] is None for one in letters(shell)] == [False] * 3 + [True] * 3


def test_a_letter_that_cannot_be_replayed_is_exit_code_1_and_says_why(shell: Shell) -> None:
    bury(shell, "a")
    first = letters(shell)[0]["id"]
    shell.ok("remove", J, "--yes")
    result = shell("dlq", "replay", D, first, "none")
    assert result.code == 1
    assert sorted(one["outcome"] for one in result.records) == ["no_queue", "unknown"]
    assert "the queue they came from is gone" in result.err
    assert "there is no such dead letter" in result.err


def test_a_filter_says_which_letters_are_replayed(shell: Shell) -> None:
    bury(shell, "a", "b")
    shell.ok("push", J, "1", "--id", "c", "--key", "k", "--type", "t")
    [message] = shell.ok("pull", J).records
    shell.ok("retry", J, message["lease"], "--permanent", "--error", "a timeout it was")
    shell.ok("push", J, "1", "--id", "d")
    shell.ok("skip", J, "d")

    def preview(*which: str) -> list[str]:
        [found] = shell.ok("dlq", "replay", D, "--preview", *which).records
        assert found["count"] == len(found["letters"])
        return [one["letter"]["originalMessageId"] for one in found["letters"]]

    assert preview("--all") == ["a", "b", "c", "d"]
    assert preview("--error", "timeout") == preview("--key", "k") == preview("--type", "t") == ["c"]
    assert preview("--reason", "skipped") == ["d"]
    assert preview("--reason", "skipped", "--reason", "permanent", "--from", "jobs") == ["a", "b", "c", "d"]
    assert preview("--since", "2999-01-01") == preview("--until", "1h") == preview("--from", "other") == []
    assert shell.ok("peek", J).records == []
    shown = shell.ok("dlq", "replay", D, "--preview", "--error", "bad", terminal=True)
    assert "2 would be replayed" in shown.err
    [replayed] = shell.ok("dlq", "replay", D, "--reason", "permanent", "--limit", "1").records
    assert replayed["outcome"] == "replayed"
    assert preview("--reason", "permanent") == ["b", "c"]


def test_a_replay_can_be_spread_over_time(shell: Shell) -> None:
    bury(shell, "a", "b", "c")
    shell.ok("dlq", "replay", D, "--all", "--per-second", "0.01")
    assert [one["state"] for one in shell.ok("peek", J).records] == ["ready", "scheduled", "scheduled"]


def test_a_purge_can_leave_what_the_options_do_not_select(shell: Shell) -> None:
    bury(shell, "a", "b", "c")
    shell.ok("dlq", "replay", D, letters(shell)[1]["id"])
    assert shell.ok("dlq", "purge", D, "--replayed", "--yes").records == [{"deleted": 1}]
    assert shell.ok("dlq", "purge", D, "--not-replayed", "--error", "no such", "--yes").records == [
        {"deleted": 0}
    ]
    assert [one["letter"]["originalMessageId"] for one in letters(shell)] == ["a", "c"]
    assert shell("dlq", "purge", D, "--error", "bad").code == 2
    assert shell.ok("dlq", "purge", D, "--error", "bad", "--yes").records == [{"deleted": 2}]


def test_letters_whose_queue_is_gone_do_not_keep_others_from_being_replayed(shell: Shell) -> None:
    bury(shell, "a")
    shell.ok("push", "dxn:queue:demo:gone", "1")
    shell.ok("consumer", "set", "dxn:queue:demo:gone", "default", "dead_letters=jobs-dlq")
    [message] = shell.ok("pull", "dxn:queue:demo:gone").records
    shell.ok("retry", "dxn:queue:demo:gone", message["lease"], "--permanent")
    shell.ok("remove", "dxn:queue:demo:gone", "--yes")
    result = shell("dlq", "replay", D, "--all")
    assert result.code == 1
    assert sorted(one["outcome"] for one in result.records) == ["no_queue", "replayed"]
    assert "1 not replayed: the queue they came from is gone" in result.err


def test_dead_letters_are_purged_only_after_a_yes(shell: Shell) -> None:
    bury(shell, "a", "b")
    assert shell("dlq", "purge", D).code == 2
    assert shell("dlq", "purge", D, terminal=True, stdin=b"n\n").code == 1
    assert len(letters(shell)) == 2
    assert "2 deleted" in shell.ok("dlq", "purge", D, terminal=True, stdin=b"y\n").out
    bury(shell, "c")
    assert shell.ok("dlq", "purge", D, "--yes").records == [{"deleted": 1}]


@pytest.mark.parametrize(
    "args",
    [
        ("replay", D),
        ("replay", D, "a", "--all"),
        ("replay", D, "--all", "--key", "k"),
        ("replay", D, "a", "--preview"),
        ("replay", D, "--reason", "bored"),
        ("replay", D, "--all", "--per-second", "0"),
        ("list", D, "-n", "0"),
        ("show", D),
        ("bury", D),
    ],
)
def test_wrong_usage_is_exit_code_2(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell("dlq", *args).code == 2


@pytest.mark.parametrize("args", [("replay", "--all"), ("list",), ("purge", "--yes")])
def test_a_queue_that_is_not_there_is_one_line(shell: Shell, args: tuple[str, ...]) -> None:
    result = shell("dlq", args[0], D, *args[1:])
    assert result.code == 1
    assert "[queue_not_found]" in result.err
