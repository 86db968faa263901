"""What every queue store must do, as checks that anybody can run against a store of their own.

From pytest, with a fixture `subject`:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
    async def test_my_store(check: Check, subject: Subject) -> None:
        await check.run(subject)

or as a table: `python -m edgequeues.store my_module:my_subject`, where `my_subject` is an async context manager that
takes nothing and gives a Subject. The checks themselves are in `checks` and `checks_trouble`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from edgequeues.store import checks, checks_trouble
from edgequeues.store.subject import Check, NotRun, Subject

__all__ = ["CHECKS", "Check", "NotRun", "Result", "Subject", "conforms", "run", "table"]

Outcome = Literal["holds", "fails", "not run"]

CHECKS: tuple[Check, ...] = (*checks.CHECKS, *checks_trouble.CHECKS)


class Result(NamedTuple):
    """What came of a check. detail: what was found, or what is wanting; empty where it holds."""

    check: Check
    outcome: Outcome
    detail: str


async def run(subject: Subject, wanted: Sequence[Check] = CHECKS) -> list[Result]:
    """Run checks one after the other, each on queues of its own."""
    results: list[Result] = []
    for check in wanted:
        try:
            await check.run(subject)
        except NotRun as why:
            result = Result(check, "not run", str(why))
        except Exception as error:
            result = Result(check, "fails", str(error) if isinstance(error, AssertionError) else repr(error))
        else:
            result = Result(check, "holds", "")
        results.append(result)
    return results


def conforms(results: Sequence[Result]) -> bool:
    """Did nothing fail? What was not run is not known."""
    return all(one.outcome != "fails" for one in results)


def table(results: Sequence[Result]) -> str:
    """The results as lines of text, and their sum."""
    width = max((len(one.check.name) for one in results), default=0)
    lines = [
        f"{one.outcome:<8} {one.check.name:<{width}}  {one.detail or one.check.claim}" for one in results
    ]
    counts = [
        f"{sum(one.outcome == which for one in results)} {which}" for which in ("hold", "fail", "not run")
    ]
    holding = sum(one.outcome == "holds" for one in results)
    failing = sum(one.outcome == "fails" for one in results)
    counts = [f"{holding} hold", f"{failing} fail", f"{len(results) - holding - failing} not run"]
    return "\n".join([*lines, ", ".join(counts)])
