"""Functions and modules stay small enough to be read at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from . import tree

FUNCTION_LINES_MAX = 50
MODULE_LINES_MAX = 400
FOLDERS = (*tree.PACKAGES, "bench", "tests")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def span(node: Function) -> int:
    """All lines a function takes up, its decorators included."""
    assert node.end_lineno is not None
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    return node.end_lineno - first + 1


def inner_functions(node: ast.AST) -> Iterator[Function]:
    """Functions directly inside `node`, not those inside these."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child
        else:
            yield from inner_functions(child)


def own_lines(node: Function) -> int:
    """Lines without those of inner functions: a route table holds its handlers, and each is counted alone."""
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1 - sum(span(inner) for inner in inner_functions(node))


def too_long(source: str) -> list[tuple[int, str, int]]:
    """Line, name and length of each function above the limit."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, Function)]
    return [(f.lineno, f.name, own_lines(f)) for f in functions if own_lines(f) > FUNCTION_LINES_MAX]


@pytest.mark.parametrize("folder", FOLDERS)
def test_functions_are_at_most_50_lines(folder: str) -> None:
    long = [
        f"{path}:{line} {name} has {lines} lines"
        for path in tree.python(folder)
        for line, name, lines in too_long(tree.text(path))
    ]
    assert not long, "split these functions:\n" + "\n".join(long)


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_are_at_most_400_lines(folder: str) -> None:
    lines = {path: tree.text(path).count("\n") for path in tree.python(folder)}
    long = [f"{path} has {count} lines" for path, count in lines.items() if count > MODULE_LINES_MAX]
    assert not long, "split these modules by noun:\n" + "\n".join(long)


def test_the_measure_sees_a_long_function_and_does_not_blame_what_surrounds_it() -> None:
    body = "\n".join("        pass" for _ in range(FUNCTION_LINES_MAX))
    source = f"def outer():\n    async def inner():\n{body}\n    return inner\n"
    assert too_long(source) == [(2, "inner", FUNCTION_LINES_MAX + 1)]
