"""What the documents show is done as they say: a page's lines are run in order, against a server of its own."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
import trio

from tests.guides import blocks
from tests.house import tree

from .process import environment, serving
from .shell import Shell, shell

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", blocks.served())
async def test_the_lines_of_a_page_do_what_it_says(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / ".venv").mkdir(parents=True)
    (here / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (here / "examples").symlink_to(tree.ROOT / "examples")
    for name, text in blocks.files(path).items():
        (here / name).write_text(text)
    variables, options = blocks.server(path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(here)
    search = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    async with (
        serving(here / "data", *options) as server,
        shell(here, server.url, environment() | {"PATH": search}) as terminal,
    ):
        printed = ""
        for block in blocks.runs(path):
            place = f"{path}, line {block.number}"
            if block.language == "python":
                printed = await run_python(terminal.meant(block.text), place, module)
            elif block.language == "sql":
                printed = await terminal.run(
                    f'sqlite3 -readonly "$(ls data/*/*.db | head -1)" {shlex.quote(block.text)}'
                )
            elif block.language in blocks.RUN:
                printed = await terminal.run(block.text)
            else:
                terminal.compare(printed, block.text, block.language)


async def run_python(source: str, place: str, module: ModuleType) -> str:
    """Run a block that may await; what it prints. One that does not may have an event loop of its own."""
    code = compile(source, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if code.co_flags & inspect.CO_COROUTINE:
            await eval(code, module.__dict__)
        else:
            await trio.to_thread.run_sync(exec, code, module.__dict__)
    return printed.getvalue()


async def test_a_line_that_fails_or_prints_something_else_is_told(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    async with shell(here, "http://127.0.0.1:1", environment()) as terminal:
        printed = await terminal.run("said=hello; echo $said 01HF7Y2Q8M3N4P5R6S7T8V9WXY\n")
        terminal.compare(printed, "hello 01HF0000000000000000000000\n", "text")
        assert "01HF7Y2Q8M3N4P5R6S7T8V9WXY" in await terminal.run("echo $said 01HF0000000000000000000000\n")
        with pytest.raises(AssertionError):
            terminal.compare(printed, "good bye 01HF7Y2Q8M3N4P5R6S7T8V9WXY\n", "text")
        with pytest.raises(AssertionError, match="a line failed"):
            await terminal.run("false\necho never\n")


def test_values_of_json_are_compared_whatever_their_layout(tmp_path: Path) -> None:
    terminal = Shell.__new__(Shell)
    terminal._real = {}
    terminal.compare('{"a":1,"at":1795835461027}', '{"a": 1,\n "at": 1700000000000}', "json")
    with pytest.raises(AssertionError):
        terminal.compare('{"a":1}', '{"a":2}', "json")
