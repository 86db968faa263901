from __future__ import annotations

from pathlib import Path

import pytest

from .shell import Shell


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Runs command lines against a server's app over `tmp_path`, without a process or a network."""
    monkeypatch.delenv("EDGEQUEUES_SERVER", raising=False)
    return Shell(tmp_path, capsys, monkeypatch)
