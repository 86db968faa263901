"""The guide from an empty folder to an incident does what it says: its lines are run, and print what is shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from .guides import PATIENCE_S, Terminal, files, plain, steps
from .process import serving

GUIDE = "docs/guides/incidents.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not all(map(shutil.which, ["curl", "openssl"])), reason="it wants curl and openssl"),
]


async def test_the_lines_of_the_guide_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [spec], (check, serve, *rest) = files(GUIDE, "spec"), steps(GUIDE)
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
            repeated = step.lines.startswith(("edgequeues", "dead="))
            printed = await terminal.until(step, PATIENCE_S if repeated else 0.0)
            assert printed == plain(step.shown), f"{GUIDE}, step {number}"
