"""A shell on a terminal that goes on from block to block of a page, and what it prints beside what is shown."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from .guides import COLUMNS, VARYING

PATIENCE_S = 40.0
START = """set -euo pipefail
shopt -s expand_aliases
curl() { command curl --fail-with-body --max-time 20 "$@"; }
"""
END = re.compile(r"<end of block>\r?\n")
TOKEN = (re.compile(r"\beq_\w+"), "<token>")
LONG = (re.compile(r"(?<![\w-])[\w-]{36,}(?![\w-])"), "<long>")
STORE = (re.compile(r"@[0-9a-f]{8}\b"), "@<store>")
SIGNS = (TOKEN, LONG, STORE, *VARYING)


class Shell:
    """One bash. What is shown on a page stands for what came: shown ids and cursors are replaced by real ones."""

    def __init__(self, process: trio.Process, screen: trio.lowlevel.FdStream, folder: Path, url: str) -> None:
        self._process = process
        self._screen = screen
        self._folder = folder
        self._url = url
        self._real: dict[str, str] = {}
        self._number = 0

    def meant(self, text: str) -> str:
        """Lines of a page as they are to be run here."""
        for shown, real in self._real.items():
            text = text.replace(shown, real)
        return text.replace("http://127.0.0.1:8700", self._url)

    async def run(self, lines: str) -> str:
        """Run lines; what they print. Fails where one of them does."""
        self._number += 1
        script = self._folder.with_name(f"block-{self._number}.sh")
        script.write_text(self.meant(lines))
        assert self._process.stdin is not None
        await self._process.stdin.send_all(f"source {script} </dev/null; echo '<end of block>'\n".encode())
        printed = ""
        with trio.fail_after(PATIENCE_S):
            while not (end := END.search(printed)):
                try:
                    piece = await self._screen.receive_some()
                except (OSError, trio.BrokenResourceError):  # the shell has ended
                    piece = b""
                assert piece, f"a line failed; printed before:\n{printed}"
                printed += piece.decode(errors="replace")  # a piece may end within a letter
        return printed[: end.start()].replace(self._url, "http://127.0.0.1:8700")

    def compare(self, printed: str, shown: str, language: str) -> None:
        """Assert that this was printed, but for what is another one each time."""
        got: object
        wanted: object
        if language == "json":
            got, wanted = without_signs(documents(printed)), without_signs(documents(shown))
        else:
            got, wanted = plain(printed), plain(shown)
        assert got == wanted, f"printed:\n{printed}\nshown:\n{shown}"
        for pattern, _ in SIGNS[:3] + VARYING[:1]:
            for mine, real in zip(pattern.findall(shown), pattern.findall(printed), strict=True):
                if isinstance(mine, str) and len(mine) > 12:
                    self._real[mine] = real


@asynccontextmanager
async def shell(folder: Path, url: str, variables: Mapping[str, str]) -> AsyncIterator[Shell]:
    """A shell in a folder; killed at the end."""
    master, slave = pty.openpty()
    env = dict(variables) | {"TERM": "dumb", "COLUMNS": COLUMNS, "EDGEQUEUES_SERVER": url, "NO_COLOR": "1"}
    process = await trio.lowlevel.open_process(
        ["bash", "--noprofile", "--norc"], stdin=-1, stdout=slave, stderr=slave, cwd=folder, env=env
    )
    os.close(slave)
    screen = trio.lowlevel.FdStream(master)
    try:
        assert process.stdin is not None
        await process.stdin.send_all(START.encode())
        yield Shell(process, screen, folder, url)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            assert process.stdin is not None
            await process.stdin.aclose()
            await screen.aclose()


def plain(text: str) -> str:
    """A text without what is another one each time."""
    for pattern, sign in SIGNS:
        text = pattern.sub(sign, text)
    return text.strip()


def documents(text: str) -> list[Any]:
    """The JSON values of a text, one after the other."""
    found, decoder, rest = [], json.JSONDecoder(), text.strip()
    while rest:
        value, end = decoder.raw_decode(rest)
        found.append(value)
        rest = rest[end:].strip()
    return found


def without_signs(value: Any) -> Any:
    """A JSON value without what is another one each time."""
    if isinstance(value, dict):
        return {plain(name): without_signs(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_signs(one) for one in value]
    if isinstance(value, str):
        return plain(value)
    return "<time>" if isinstance(value, int) and value > 1_000_000_000_000 else value
