"""The checks as a command: a table, and an exit code that a build can go by."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from edgequeues.store.command import main
from edgequeues.store.conformance import CHECKS

from . import subjects
from .mutants_trouble import DropsTheDead

SUBJECT = """
from contextlib import asynccontextmanager
from pathlib import Path

from edgequeues.store import Options, open_local
from edgequeues.store.conformance import Subject

@asynccontextmanager
async def made():
    async with open_local(Path("data"), "demo", Options(lease_ms=200)) as store:
        @asynccontextmanager
        async def opened():
            yield store.another()

        yield Subject(opened, 200, "first")
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edgequeues.store", *arguments]
    return subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_the_table_says_what_holds_and_what_was_not_run(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SUBJECT)
    done = run(tmp_path, "mine:made")
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", len(CHECKS) + 1)
    found = {line[9:].split()[0]: line[:9].rstrip() for line in lines[:-1]}
    not_run = {"key_is_known_for_24_hours", "dead_letter_keeps_the_error", "restarts_lose_nothing"}
    assert found == {one.name: "not run" if one.name in not_run else "holds" for one in CHECKS}
    assert lines[-1] == f"{len(CHECKS) - 3} hold, 0 fail, 3 not run"


def test_where_a_check_fails_the_exit_code_is_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        subjects,
        "made",
        lambda: subjects.subject(tmp_path, subjects.KINDS["local"], DropsTheDead, time_max_ms=0),
        raising=False,
    )
    assert main(["tests.store.subjects:made"]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert ", 1 fail, " in last


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage:"),
        (["--help"], "usage:"),
        (["one:two", "three:four"], "usage:"),
        (["nothing"], "should be MODULE:FUNCTION"),
        (["no.such.module:made"], "No module named"),
        (["tests.store.subjects:nothing"], "has no attribute"),
    ],
)
def test_what_cannot_be_run_is_told_and_the_exit_code_is_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
