"""Guides whose lines are run: their shell blocks, a terminal for them, and what they print without what varies."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import trio

from tests.house import tree

from .process import environment

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


class Step(NamedTuple):
    """Lines for a shell, and what they print."""

    lines: str
    shown: str


def steps(guide: str) -> list[Step]:
    """What is done in a guide, one after the other."""
    blocks = [*tree.code_blocks(guide), ("", "")]
    shells = [number for number, (language, _) in enumerate(blocks) if language == "sh"]
    return [Step(blocks[one][1], blocks[one + 1][1]) for one in shells]


def files(guide: str, language: str) -> list[str]:
    """The blocks of a guide in a language, as they are to be put into files."""
    return [block for found, block in tree.code_blocks(guide) if found == language]


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

    async def until(self, step: Step, patience_s: float = PATIENCE_S) -> str:
        """Run a step until it prints what is shown, or patience ends; what was done before goes on meanwhile."""
        printed = plain(await trio.to_thread.run_sync(self.run, step.lines))
        with trio.move_on_after(patience_s):
            while printed != plain(step.shown):
                await trio.sleep(0.2)
                printed = plain(await trio.to_thread.run_sync(self.run, step.lines))
        return printed

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
