from __future__ import annotations

import pytest

from .shell import Q, Shell


@pytest.fixture
def filled(shell: Shell) -> Shell:
    shell.ok("append", Q, *(f'{{"id":"e{n}"}}' for n in range(5)))
    return shell


def ids(shell: Shell) -> list[str]:
    return [entry["id"] for entry in shell.ok("read", Q).records]


def cursor(shell: Shell, count: int) -> str:
    """The cursor of the `count`-th entry."""
    return shell.ok("read", Q, "-n", str(count), terminal=True).err.split()[-1]


def test_objects_are_deleted_by_dxn_and_by_id(filled: Shell) -> None:
    assert filled.ok("delete", f"{Q}:e0").records == [{"deleted": 1}]
    assert filled.ok("delete", Q, "e1", "e2", "unknown").records == [{"deleted": 2}]
    assert ids(filled) == ["e3", "e4"]


def test_a_range_is_deleted_up_to_and_with_a_cursor(filled: Shell) -> None:
    assert filled.ok("delete", Q, "--through", cursor(filled, 2)).records == [{"deleted": 2}]
    assert filled.ok("delete", Q, "--after", cursor(filled, 2)).records == [{"deleted": 1}]
    assert ids(filled) == ["e2", "e3"]


def test_on_a_terminal_a_range_is_deleted_only_after_a_yes(filled: Shell) -> None:
    through = cursor(filled, 2)
    refused = filled("delete", Q, "--through", through, terminal=True, stdin=b"n\n")
    assert refused.code == 1
    assert "nothing was deleted" in refused.err
    assert len(ids(filled)) == 5
    assert "2 deleted" in filled.ok("delete", Q, "--through", through, terminal=True, stdin=b"y\n").out
    assert "1 deleted" in filled.ok("delete", Q, "--through", cursor(filled, 1), "--yes", terminal=True).out
    assert "1 deleted" in filled.ok("delete", Q, "e4", terminal=True).out


@pytest.mark.parametrize(
    "args", [(Q,), (f"{Q}:a", "b"), (f"{Q}:a", "--after", "c"), (Q, "a", "--after", "c"), ("nonsense",)]
)
def test_what_to_delete_must_be_said_in_one_way(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell("delete", *args).code == 2


def test_queues_and_spaces_are_listed(filled: Shell) -> None:
    filled.ok("append", "dxn:queue:trace:demo:t", "1")
    filled.ok("append", "dxn:queue:b:x", "1")
    [queue] = filled.ok("queues", "demo").records
    assert (queue["dxn"], queue["config"]["name"], queue["entries"]) == (Q, "log", 5)
    assert "consumers" not in queue  # nobody asked for them
    [trace] = filled.ok("queues", "demo", "--trace").records
    assert trace["dxn"] == "dxn:queue:trace:demo:t"
    assert filled.ok("queues", "unknown").records == []
    listed = filled.ok("spaces").records
    assert sorted((space["id"], space["tag"]) for space in listed) == [
        ("b", "data"),
        ("demo", "data"),
        ("demo", "trace"),
    ]


def test_tables_are_printed_on_a_terminal(filled: Shell) -> None:
    assert filled.ok("spaces", terminal=True).out.split()[-2:] == ["demo", "data"]
    row = filled.ok("queues", "demo", terminal=True).out.splitlines()[-1].split()
    assert (row[0], row[2], row[3]) == ("log", "log", "5")


def test_settings_are_shown_changed_and_replaced(filled: Shell) -> None:
    [changed] = filled.ok("config", Q, "max_age_ms=60000", "name=events", "mutable=false").records
    assert (changed["max_age_ms"], changed["name"], changed["mutable"]) == (60_000, "events", False)
    events = "dxn:queue:demo:events"
    assert filled.ok("config", events).records == [changed]
    [back] = filled.ok("config", events, "max_age_ms=null").records
    assert (back["max_age_ms"], back["mutable"]) == (None, False)
    [made] = filled.ok("config", "dxn:queue:demo:made", "--replace", "max_entries=10").records
    assert (made["max_entries"], made["mutable"]) == (10, True)
    assert "max_entries      10" in filled.ok("config", "dxn:queue:demo:made", terminal=True).out


@pytest.mark.parametrize("change", ["max_age_ms", "max_age=1", "max_age_ms=soon", "mutable=1", "entries=1"])
@pytest.mark.parametrize("replace", [(), ("--replace",)])
def test_a_setting_that_is_none_is_wrong_usage(shell: Shell, change: str, replace: tuple[str, ...]) -> None:
    assert shell("config", Q, change, *replace).code == 2


def test_settings_of_an_unknown_queue_are_refused(shell: Shell) -> None:
    result = shell("config", Q)
    assert result.code == 1
    assert "[queue_not_found]" in result.err


def test_a_space_that_cannot_be_is_wrong_usage(shell: Shell) -> None:
    assert shell("queues", "no space").code == 2


J = "dxn:queue:demo:jobs"


def test_a_paused_queue_hands_nothing_out_until_it_is_resumed(shell: Shell) -> None:
    shell.ok("push", J, "1")
    assert shell.ok("pause", J).records == [{"paused": True}]
    assert shell.ok("pull", J).out == ""
    row = shell.ok("queues", "demo", terminal=True).out.splitlines()[-1]
    assert "work, paused" in row
    assert "is not paused" in shell.ok("resume", J, terminal=True).out
    assert len(shell.ok("pull", J).records) == 1


def test_a_purged_queue_stays_and_a_removed_one_does_not(shell: Shell) -> None:
    shell.ok("push", J, "1", "2")
    assert shell.ok("purge", J, "--yes").records == [{"deleted": 2}]
    [stats] = shell.ok("stats", J).records
    assert (stats["entries"], stats["consumers"][0]["total_cancelled"]) == (0, 2)
    assert shell.ok("remove", J, "--yes").records == [{"removed": J}]
    assert "[queue_not_found]" in shell("stats", J).err


@pytest.mark.parametrize("command", ["purge", "remove"])
def test_what_cannot_be_undone_wants_a_yes(shell: Shell, command: str) -> None:
    shell.ok("push", J, "1")
    unasked = shell(command, J)
    assert unasked.code == 2
    assert "--yes" in unasked.err
    assert shell(command, J, terminal=True, stdin=b"n\n").code == 1
    assert len(shell.ok("peek", J).records) == 1
    shell.ok(command, J, terminal=True, stdin=b"y\n")
    assert shell("pull", J).out == ""


def test_a_queue_made_by_its_settings_can_be_a_work_queue(shell: Shell) -> None:
    shell.ok("config", J, "--replace", "kind=work", "on_ack=delete")
    assert [one["name"] for one in shell.ok("consumer", "list", J).records] == ["default"]


def test_a_queue_can_be_made_by_a_profile(shell: Shell) -> None:
    hooks = "dxn:queue:demo:hooks"
    [made] = shell.ok("config", hooks, "--profile", "webhook", "depth_max=5").records
    assert (made["kind"], made["max_age_ms"], made["depth_max"]) == ("work", 86_400_000, 5)
    [consumer] = shell.ok("consumer", "list", hooks).records
    assert consumer["config"]["ordering"] == "fifo"
    assert "[invalid_request]" in shell("config", hooks, "--profile", "none").err
    assert shell("config", hooks, "--profile", "webhook", "--replace").code == 2
