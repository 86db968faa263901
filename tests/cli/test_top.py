"""`edgequeues top`: how queues are doing, for people and for programs."""

from __future__ import annotations

import pytest

from edgequeues.cli.top import age, spark

from .shell import Shell


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """Two queues: one with three messages, one of which is leased, and a log with one entry."""
    for n in range(3):
        shell.ok("push", "dxn:queue:demo:jobs", str(n))
    shell.ok("pull", "dxn:queue:demo:jobs", "--lease", "1h")
    shell.ok("append", "dxn:queue:other:log", "{}")
    return shell


def test_programs_get_a_line_a_queue(busy: Shell) -> None:
    jobs, log = busy.ok("top", "--once").records
    assert (jobs["space"], jobs["queue"]["name"], log["space"]) == ("demo", "jobs", "other")
    assert jobs["queue"]["states"] == {"scheduled": 0, "waiting": 0, "ready": 2, "leased": 1, "backoff": 0}
    assert len(jobs["queue"]["rates"]["in"]) == 60


def test_people_get_a_table_with_the_longest_queue_first(busy: Shell) -> None:
    lines = busy.ok("top", "--once", terminal=True).out.splitlines()
    [jobs] = [line.split() for line in lines if "demo/jobs" in line]
    assert jobs[:4] == ["demo/jobs", "2", "1", "0"]
    order = [line.split()[0] for line in lines if "/" in line.split(" ")[1 if line.startswith(" ") else 0]]
    assert order == ["demo/jobs", "other/log"]


def test_only_what_is_named_and_in_the_order_asked_for(busy: Shell) -> None:
    assert [one["space"] for one in busy.ok("top", "--once", "other").records] == ["other"]
    assert [one["queue"]["name"] for one in busy.ok("top", "--once", "--name", "JO").records] == ["jobs"]
    assert [one["queue"]["name"] for one in busy.ok("top", "--once", "--sort", "name").records] == [
        "jobs",
        "log",
    ]


def test_a_space_that_is_not_there_is_an_error_that_says_so(shell: Shell) -> None:
    result = shell("top", "--once", "nowhere")
    assert (result.code, "nowhere" in result.err) == (1, True)


def test_ages_have_two_units_and_sparks_reach_the_top() -> None:
    assert [age(one) for one in (None, 0, 59, 61, 3_661, 90_061)] == [
        "-",
        "0s",
        "59s",
        "1m01s",
        "1h01m",
        "1d01h",
    ]
    assert spark([0, 1, 8]) == " ▁█"
    assert spark([0, 0]) == "  "
