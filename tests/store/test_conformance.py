"""Both stores pass every check; a store with one thing wrong fails the checks that are about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgequeues.store.conformance import CHECKS, Check, conforms, run, table

from . import subjects
from .mutants import Mutant
from .mutants_trouble import MUTANTS

BY_NAME = {check.name: check for check in CHECKS}


@pytest.mark.parametrize("kind", subjects.KINDS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_a_store_does_what_the_interface_says(kind: str, check: Check, tmp_path: Path) -> None:
    async with subjects.subject(tmp_path, subjects.KINDS[kind]) as subject:
        await check.run(subject)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda kind: kind.__name__)
async def test_a_store_with_one_thing_wrong_fails_the_checks_that_are_about_it(
    mutant: type[Mutant], tmp_path: Path
) -> None:
    wanted = [BY_NAME[name] for name in mutant.fails]
    async with subjects.subject(tmp_path, subjects.KINDS["local"], mutant) as subject:
        results = await run(subject, wanted)
    assert [(one.check.name, one.outcome) for one in results] == [(name, "fails") for name in mutant.fails]
    assert not conforms(results)
    for one in results:
        assert one.detail in table(results)


def test_every_check_is_failed_by_some_store_with_one_thing_wrong() -> None:
    assert {name for kind in MUTANTS for name in kind.fails} == set(BY_NAME)
