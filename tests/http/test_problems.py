"""Every error has a status, and every code is in the protocol page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import edgequeues.app  # noqa: F401 (imports every module that could define an error)
from edgequeues.core.errors import EdgeQueuesError, InvalidCursor, QueueNotFound
from edgequeues.http import problems
from shards.errors import Overloaded, ShardError, UnusableFile

PAGE = Path(__file__).parents[2] / "docs" / "protocol" / "native.md"
ROW = re.compile(r"^\| `(\w+)` \| (\d{3}) \| (yes|no) \| (.+) \|$", re.MULTILINE)


def leaves(kind: type[Exception]) -> Iterator[type[Exception]]:
    below = [one for one in kind.__subclasses__() if one.__module__.startswith(("edgequeues", "shards"))]
    if not below:
        yield kind
    for one in below:
        yield from leaves(one)


LEAVES = [*leaves(EdgeQueuesError), *leaves(ShardError)]


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_is_mapped(kind: type[Exception]) -> None:
    found = problems.TABLE[kind]
    assert found.code == getattr(kind, "code", found.code)
    assert (found.retry_after_s is not None) <= bool(getattr(kind, "retryable", False))
    if found.status == 503 and getattr(kind, "retryable", False):
        assert found.retry_after_s is not None


def test_the_table_holds_nothing_else() -> None:
    assert set(problems.TABLE) == set(LEAVES)


def test_the_protocol_page_lists_every_code_with_its_status_and_no_other() -> None:
    retryable = {
        (fault.code, fault.status, "yes" if getattr(kind, "retryable", False) else "no")
        for kind, fault in problems.TABLE.items()
        if fault is not problems.INTERNAL
    } | {(problems.INTERNAL.code, problems.INTERNAL.status, "no")}
    listed = [(code, int(status), retry) for code, status, retry, _ in ROW.findall(PAGE.read_text())]
    assert sorted(listed) == sorted(retryable)


def test_a_problem_tells_the_client_what_to_do() -> None:
    assert msgspec.json.decode(problems.body(InvalidCursor("'x' is not a cursor"))) == {
        "type": "about:blank",
        "title": "Not a cursor of this queue",
        "status": 400,
        "code": "invalid_cursor",
        "detail": "'x' is not a cursor. "
        "Use a cursor exactly as an answer of this queue gave it, or start without one.",
        "retryable": False,
    }
    assert problems.retry_after(QueueNotFound()) == []


def test_what_may_work_later_says_when() -> None:
    assert problems.problem(Overloaded("shard demo")).retryable
    assert problems.retry_after(Overloaded("shard demo")) == [(b"retry-after", b"1")]


def test_files_and_bugs_are_not_shown_to_clients() -> None:
    for error in (UnusableFile("/data/secret.sqlite"), ZeroDivisionError("secret"), OSError("/data/secret")):
        assert b"secret" not in problems.body(error)
    assert problems.problem(ZeroDivisionError("secret")).code == "internal"
