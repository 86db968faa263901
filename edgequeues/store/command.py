"""The checks as a command: finds the subject by name, runs the checks on it, prints what came of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import cast

import anyio

from edgequeues.store.conformance import Subject, conforms, run, table

USAGE = """usage: python -m edgequeues.store MODULE:FUNCTION

Runs the checks that every queue store must pass against yours. FUNCTION takes nothing and returns an async context
manager that gives an edgequeues.store.conformance.Subject; docs/guides/store.md has an example.
"""

Make = Callable[[], AbstractAsyncContextManager[Subject]]


def main(arguments: Sequence[str]) -> int:
    """Run the command; return its exit code: 0, 1 where a check failed, 2 where none could be run."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(USAGE, end="", file=sys.stderr)
        return 2
    try:
        make = find(arguments[0])
    except (ImportError, AttributeError, ValueError) as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 2

    async def checked() -> bool:
        async with make() as subject:
            results = await run(subject)
        print(table(results))
        return conforms(results)

    return 0 if anyio.run(checked, backend="trio") else 1


def find(name: str) -> Make:
    """What `module:function` names; the folder one is in counts. Raises ImportError, AttributeError, ValueError."""
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ValueError("should be MODULE:FUNCTION")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return cast(Make, getattr(import_module(module), function))
