"""docs/requirements.md answers once for every numbered statement, with a test or the reason there is none."""

from __future__ import annotations

import ast
import re
from functools import cache

from . import tree

PAGE = "docs/requirements.md"
LAST = {"S0": 27, "S1": 43, "S2": 91, "S3": 38, "S4": 58}  # statements are numbered from 1
ROW = re.compile(r"^\| (S\d\.\d+) \| (.+?) \| (.+?) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/.-]+\.py)::(\w+)(?:::(\w+))?`")
REASON = re.compile(r"(?:not built yet: comes with|left out:) \S+")


def rows() -> list[tuple[str, str, str]]:
    """Statement, wording and proof of each row of the page."""
    return ROW.findall(tree.text(PAGE))


@cache
def names_in(path: str) -> frozenset[str]:
    """Tests of a file: functions and classes, also `Class::method`, and state machines bound to a name."""
    if not (tree.ROOT / path).is_file():
        return frozenset()
    found: set[str] = set()
    for node in ast.parse(tree.text(path)).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)]
            found.update(f"{node.name}::{method.name}" for method in methods)
        if isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return frozenset(found)


def test_every_statement_has_one_row_in_order() -> None:
    expected = [f"{part}.{number}" for part, last in LAST.items() for number in range(1, last + 1)]
    assert [statement for statement, _, _ in rows()] == expected


def test_every_row_names_a_test_or_says_why_there_is_none() -> None:
    unproved = [f"{statement}: {proof}" for statement, _, proof in rows() if not TEST.search(proof)]
    wrong = [line for line in unproved if not REASON.match(line.split(": ", 1)[1])]
    assert not wrong, "neither a test nor a reason:\n" + "\n".join(wrong)


def test_every_test_named_exists() -> None:
    missing = []
    for statement, _, proof in rows():
        for path, name, method in TEST.findall(proof):
            if (f"{name}::{method}" if method else name) not in names_in(path):
                missing.append(f"{statement}: {path}::{name}")
    assert not missing, "no such test:\n" + "\n".join(missing)
