"""The guide from an empty folder to an incident does what it says: its lines are run, and print what is shown."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from tests.house import tree

from .process import environment, serving

GUIDE = "docs/guides/incidents.md"
PATIENCE_S = 30.0
COLUMNS = "110"
VARYING = (
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "<id>"),
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{5,24}…"), "<id>…"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "<time>"),
    (re.compile(r"\b1\d{9}(\d{3}|\.\d+)?\b"), "<time>"),
    (re.compile(r'(_age_seconds":)\d+'), r"\1<age>"),
    (re.compile(r"─+"), "─"),
    (re.compile(r"[ \t\r]+"), " "),
    (re.compile(r" +$", re.MULTILINE), ""),
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, ["curl", "openssl"])), reason="it wants curl and openssl"),
]


class Step(NamedTuple):
    """Lines for a shell, and what they print."""

    lines: str
    shown: str


def steps() -> tuple[str, list[Step]]:
    """The spec, and what is done with it."""
    blocks = [*tree.code_blocks(GUIDE), ("", "")]
    [spec] = [block for language, block in blocks if language == "spec"]
    shells = [number for number, (language, _) in enumerate(blocks) if language == "sh"]
    return spec, [Step(blocks[one][1], blocks[one + 1][1]) for one in shells]


def plain(text: str) -> str:
    """A text without what is another one each time."""
    for pattern, sign in VARYING:
        text = pattern.sub(sign, text)
    return text.strip()


class Terminal:
    """Runs lines as one shell would that goes on from what was defined before."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self._url = url
        self._defined = ""

    def run(self, lines: str) -> str:
        """What they print on a terminal."""
        program = Path(sys.executable).parent
        env = environment() | {
            "PATH": f"{program}:{os.environ['PATH']}",
            "EDGEQUEUES_SERVER": self._url,
            "TERM": "dumb",
            "COLUMNS": COLUMNS,
        }
        master, slave = pty.openpty()
        script = self._defined + lines.replace("http://127.0.0.1:8700", self._url)
        with subprocess.Popen(
            ["bash", "-c", script], cwd=self._folder, env=env, stdin=slave, stdout=slave, stderr=slave
        ):
            os.close(slave)
            shown = _all(master)
        os.close(master)
        return shown.replace(self._url, "http://127.0.0.1:8700")

    def define(self, lines: str) -> None:
        """Keep what lines define for those that follow."""
        found = re.findall(r"^\w+\(\) \{\n.*?^\}$", lines, re.MULTILINE | re.DOTALL)
        found += re.findall(r"^(?:export )?\w+=.*$", lines, re.MULTILINE)
        self._defined += "".join(f"{one}\n" for one in found).replace("http://127.0.0.1:8700", self._url)


def _all(master: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(master, 65_536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


async def test_the_lines_of_the_guide_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, (check, serve, *rest) = steps()
    (tmp_path / "incidents.spec").write_text(spec)
    at_first = Terminal(tmp_path, "http://127.0.0.1:8700")
    assert plain(await trio.to_thread.run_sync(at_first.run, check.lines)) == plain(check.shown)
    export, started = serve.lines.strip().splitlines()
    monkeypatch.setenv(*export.removeprefix("export ").split("=", 1))
    monkeypatch.chdir(tmp_path)
    options = started.removeprefix("edgequeues serve ").split()
    async with serving(tmp_path / "data", *options) as server:
        assert serve.shown.strip() == "ready http://127.0.0.1:8700"
        terminal = Terminal(tmp_path, server.url)
        for number, step in enumerate(rest, 1):
            terminal.define(step.lines)
            printed = plain(await trio.to_thread.run_sync(terminal.run, step.lines))
            with trio.move_on_after(PATIENCE_S):
                while step.lines.startswith(("edgequeues", "dead=")) and printed != plain(step.shown):
                    await trio.sleep(0.2)  # what was sent before is worked meanwhile
                    printed = plain(await trio.to_thread.run_sync(terminal.run, step.lines))
            assert printed == plain(step.shown), f"{GUIDE}, step {number}"
