"""What we test with is what pyproject.toml asks for, exact and with hashes."""

from __future__ import annotations

import ast
import re
import sys

from . import tree

NAME = re.compile(r"^[A-Za-z0-9._-]+")


def names(lines: list[str]) -> set[str]:
    """Package names of requirement lines, in their normal form."""
    found = (NAME.match(line) for line in lines)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


def test_dev_in_lists_exactly_what_the_project_asks_for() -> None:
    asked = [*tree.project()["project"]["dependencies"], *tree.project()["dependency-groups"]["dev"]]
    assert names(tree.text("requirements/dev.in").splitlines()) == names(asked)


def test_dev_txt_pins_each_of_them_with_hashes() -> None:
    pins = re.split(r"\n(?=[a-z0-9])", tree.text("requirements/dev.txt"))[1:]
    loose = [pin.splitlines()[0] for pin in pins if "==" not in pin or "--hash=sha256:" not in pin]
    assert not loose
    assert names(tree.text("requirements/dev.in").splitlines()) <= names(pins)


def test_what_the_product_imports_is_what_it_declares() -> None:
    imported = set()
    for path in tree.python(*tree.PACKAGES):
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.add(node.module.split(".")[0])
    foreign = names([name for name in imported - sys.stdlib_module_names if name not in tree.PACKAGES])
    declared = names(tree.project()["project"]["dependencies"])
    assert foreign <= declared, "imported but not declared: " + ", ".join(sorted(foreign - declared))
