"""What the client's guide shows is true of a real server: its blocks run, in order, and print what is shown."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
from pathlib import Path
from types import ModuleType

import pytest

from tests.e2e.process import serving
from tests.guides.test_guides import SERVED, examples


@pytest.mark.slow
async def test_the_blocks_of_the_client_guide_run_and_print_what_is_shown(tmp_path: Path) -> None:
    module = ModuleType("guide")
    async with serving(tmp_path / "data") as server:
        for number, (block, shown) in enumerate(examples(SERVED), 1):
            source = block.replace("http://127.0.0.1:8700", server.url)
            code = compile(source, f"{SERVED}, block {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                pending = eval(code, module.__dict__)
                if inspect.isawaitable(pending):
                    await pending
            assert printed.getvalue() == shown, f"{SERVED}, block {number}"
