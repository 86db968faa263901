"""Every error has a status in every dialect, and every code is in the protocol pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import edgequeues.app  # noqa: F401 (imports every module that could define an error)
from edgequeues.core.errors import EdgeQueuesError, InvalidCursor, QueueNotFound
from edgequeues.http import problems
from edgequeues.http.problems import Refusal
from edgequeues.http.server import Server
from shards.errors import Overloaded, ShardError

from .dxos_queue import refusal_code

PAGES = Path(__file__).parents[2] / "docs" / "protocol"
ROW = re.compile(r"^\| `(\w+)` \| (\d{3}) \| (yes|no) \| (.+) \|$", re.MULTILINE)


def leaves(kind: type[Exception]) -> Iterator[type[Exception]]:
    """Errors of their own. One that a dialect words for itself derives from one of these, and has no code."""
    below = [one for one in kind.__subclasses__() if one.__module__.startswith(("edgequeues", "shards"))]
    if not below or "code" in vars(kind):
        yield kind
        return
    for one in below:
        yield from leaves(one)


LEAVES = [*leaves(EdgeQueuesError), *leaves(ShardError)]
BUGS: list[type[Exception]] = [
    ZeroDivisionError,
    OSError,
    *(kind for kind, fault in problems.TABLE.items() if fault is problems.INTERNAL),
]


def may_work_later(kind: type[Exception]) -> bool:
    return bool(getattr(kind, "retryable", False))


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_is_mapped(kind: type[Exception]) -> None:
    found = problems.TABLE[kind]
    assert found.code == getattr(kind, "code", found.code)
    assert (found.retry_after_s is not None) == may_work_later(kind)


def test_the_table_holds_nothing_else() -> None:
    assert set(problems.TABLE) == set(LEAVES)


def in_native(refusal: Refusal) -> set[str]:
    answer = json.loads(refusal.body)
    assert answer["status"] == refusal.status
    return {str(answer["code"])}


def in_dxos(refusal: Refusal) -> set[str]:
    return {refusal_code(refusal.body, later=b"retry-after" in dict(refusal.headers))}


def in_cloudflare(refusal: Refusal) -> set[str]:
    """The codes that the page gives this number and status."""
    [error] = json.loads(refusal.body)["errors"]
    rows = ROW.findall((PAGES / "cloudflare.md").read_text())
    said = (str(refusal.status), str(error["code"]))
    return {code for code, status, _, text in rows if said == (status, text.partition(":")[0])}


PLAIN = b"application/json"
WORDS = {
    "native": (problems.MEDIA, in_native),
    "dxos": (PLAIN, in_dxos),
    "admin": (problems.MEDIA, in_native),
    "cloudflare": (PLAIN, in_cloudflare),
    "binding": (PLAIN, in_cloudflare),
    "hooks": (problems.MEDIA, in_native),
    "blobs": (problems.MEDIA, in_native),
    "ingest": (problems.MEDIA, in_native),
    "openapi": (problems.MEDIA, in_native),
}


async def test_every_dialect_is_known_here(server: Server) -> None:
    assert [dialect.name for dialect in server.dialects] == list(WORDS)


@pytest.mark.parametrize("kind", [*problems.TABLE, ZeroDivisionError], ids=lambda kind: kind.__name__)
async def test_every_dialect_refuses_every_error_with_its_code(server: Server, kind: type[Exception]) -> None:
    error = kind("what and where")
    fault = problems.fault(error)
    for dialect in server.dialects:
        media, codes = WORDS[dialect.name]
        refusal = dialect.refuse(error)
        assert refusal.media == media
        assert fault.code in codes(refusal)
        assert 400 <= refusal.status < 600
        later = problems.problem(error).retryable
        assert later == (may_work_later(kind) and fault is not problems.INTERNAL)
        assert [name for name, _ in refusal.headers if name == b"retry-after"] == [b"retry-after"] * later


@pytest.mark.parametrize("name", ["native", "dxos", "cloudflare"])
async def test_the_protocol_page_lists_every_code_with_its_status_and_no_other(
    server: Server, name: str
) -> None:
    [dialect] = [one for one in server.dialects if one.name == name]
    expected = {
        (
            problems.fault(kind()).code,
            dialect.refuse(kind()).status,
            "yes" if problems.problem(kind()).retryable else "no",
        )
        for kind in problems.TABLE
    }
    listed = [
        (code, int(status), again)
        for code, status, again, _ in ROW.findall((PAGES / f"{name}.md").read_text())
    ]
    assert sorted(listed) == sorted(expected)


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
    assert problems.headers(QueueNotFound()) == []


def test_what_may_work_later_says_when() -> None:
    assert problems.problem(Overloaded("shard demo")).retryable
    assert problems.headers(Overloaded("shard demo")) == [(b"retry-after", b"1")]


async def test_files_and_bugs_are_not_shown_to_clients(server: Server) -> None:
    kinds = [kind for kind in LEAVES if issubclass(kind, ShardError)]
    for dialect in server.dialects:
        for kind in (*kinds, *BUGS):
            assert b"secret" not in dialect.refuse(kind("/data/secret.sqlite")).body
        assert b"here" in dialect.refuse(InvalidCursor("here")).body
    assert problems.problem(ZeroDivisionError("secret")).code == "internal"
