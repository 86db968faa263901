from __future__ import annotations

import apsw
import pytest

from shards import files, repair
from shards.disk import ThreadDisk
from shards.folders import locked

from .shell import Q, Shell


@pytest.fixture
def filled(shell: Shell) -> Shell:
    shell.ok("append", Q, '"\\ud800"', "1", "2", "--ttl", "1h")
    shell.ok("append", "dxn:queue:other:log", "1")
    return shell


def damage(shell: Shell, sql: str) -> None:
    db = apsw.Connection(str(files.path_of(shell.data, "demo")))
    db.execute(sql).fetchall()
    db.close()


def test_a_sound_folder_is_exit_code_0(filled: Shell) -> None:
    found = filled.ok("check", str(filled.data)).records
    assert [(one["name"], one["problems"]) for one in found] == [("demo", []), ("other", [])]
    assert filled.ok("check", str(filled.data), terminal=True).out.split()[-1] == "ok"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE queues SET entries = entries + 1",
        "UPDATE queues SET bytes = 0",
        "UPDATE queue_entries SET size = 7 WHERE id = 1",
        "UPDATE store SET position = 1",
        "UPDATE queues SET sweep_ts = NULL",
        "UPDATE queue_entries SET data = '{' WHERE id = 2",  # as long as it was
        "UPDATE queue_entries SET data = '[\\ud800]' WHERE id = 1",
        "UPDATE shard_alarm SET due_ms = 1",
        "DELETE FROM shard_alarm",
        "DROP TABLE queues",
    ],
)
def test_what_is_wrong_with_one_file_is_found_and_the_others_are_fine(filled: Shell, sql: str) -> None:
    damage(filled, sql)
    result = filled("check", str(filled.data))
    assert result.code == 1
    demo, other = result.records
    assert (demo["name"], other["problems"]) == ("demo", [])
    assert demo["problems"]
    assert "1 file is not as they should be" in result.err


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE consumers SET ready = 3", "its row says 3 ready, there are 1"),
        ("UPDATE deliveries SET size = 7 WHERE state = 'ready'", "says 7 bytes, the entry 1"),
        ("DELETE FROM attempts", "but the ends of 0 attempts are written down"),
        ("UPDATE dedup SET position = 9", "idempotency key once of queue"),
    ],
)
def test_what_is_wrong_with_a_work_queue_is_a_sentence(shell: Shell, sql: str, said: str) -> None:
    queue = "dxn:queue:demo:jobs"
    shell.ok("push", queue, "1", "--idempotency-key", "once")
    shell.ok("push", queue, "2", "3", "--priority", "1")
    [lease] = [one["lease"] for one in shell.ok("pull", queue).records]
    shell.ok("retry", queue, lease)
    shell.ok("pull", queue)
    assert [one["problems"] for one in shell.ok("check", str(shell.data)).records] == [[]]
    damage(shell, sql)
    result = shell("check", str(shell.data))
    assert result.code == 1
    problems = result.records[0]["problems"]
    assert any(said in problem for problem in problems), problems
    shown = shell("check", str(shell.data), terminal=True).out.splitlines()
    assert shown[-len(problems) :] == [f"demo: {problem}" for problem in problems]


def test_bytes_that_are_no_database_are_found(filled: Shell) -> None:
    files.path_of(filled.data, "demo").write_bytes(b"garbage" * 1000)
    result = filled("check", str(filled.data))
    assert result.code == 1
    assert result.records[0]["problems"]


def test_a_file_whose_flush_failed_is_repaired_when_asked(filled: Shell) -> None:
    repair.mark(files.path_of(filled.data, "demo"), ThreadDisk(), "a test says so")
    result = filled("check", str(filled.data))
    assert result.code == 1
    assert result.records[0]["repairable"]
    repaired = filled.ok("check", "--repair", str(filled.data))
    assert "demo: repaired" in repaired.err
    assert len(filled.ok("read", Q).records) == 3


def test_a_folder_that_is_served_is_left_alone(filled: Shell) -> None:
    with locked(filled.data):
        result = filled("check", str(filled.data))
    assert (result.code, result.out) == (1, "")
    assert "Another process already serves this folder" in result.err


def test_a_folder_that_is_not_there_is_wrong_usage_and_not_made(shell: Shell) -> None:
    assert shell("check", str(shell.folder / "absent")).code == 2
    assert not (shell.folder / "absent").exists()
