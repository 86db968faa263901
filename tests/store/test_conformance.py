"""Both stores pass every check; a store with one thing wrong fails the check that is about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgequeues.store.conformance import CHECKS, Check

from . import subjects


@pytest.mark.parametrize("kind", subjects.KINDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_a_store_does_what_the_interface_says(kind: str, check: Check, tmp_path: Path) -> None:
    async with subjects.subject(tmp_path, subjects.KINDS[kind]) as subject:
        await check.run(subject)
