"""What we test with is what pyproject.toml asks for, exact and with hashes."""

from __future__ import annotations

import ast
import re
import sys

import pytest

from . import tree

IMPORTED_OF = {"opentelemetry": "opentelemetry-sdk"}  # packages whose modules are called otherwise
NAME = re.compile(r"^[A-Za-z0-9._-]+")


def names(lines: list[str]) -> set[str]:
    """Package names of requirement lines, in their normal form."""
    found = (NAME.match(line) for line in lines)
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


def listed(path: str) -> set[str]:
    """What a file of requirements names itself."""
    return names([line for line in tree.text(path).splitlines() if not line.startswith("-")])


def test_what_serves_and_what_tests_is_what_the_project_asks_for() -> None:
    project = tree.project()
    runs = names(project["project"]["dependencies"])
    develops = names(project["dependency-groups"]["dev"])
    builds = {"hatchling", "editables"}  # what sets up a checkout
    assert listed("requirements/run.in") == runs | builds
    assert listed("requirements/dev.in") == develops - builds


@pytest.mark.parametrize("part", ["run", "dev"])
def test_each_of_them_is_pinned_with_hashes(part: str) -> None:
    pins = pinned(part)
    loose = [pin.splitlines()[0] for pin in pins if "==" not in pin or "--hash=sha256:" not in pin]
    assert not loose
    assert listed(f"requirements/{part}.in") <= names(pins)


def test_what_serves_is_tested_in_the_same_versions() -> None:
    assert {pin.split()[0] for pin in pinned("run")} <= {pin.split()[0] for pin in pinned("dev")}


def pinned(part: str) -> list[str]:
    """The pins of a file, each with its hashes."""
    return re.split(r"\n(?=[a-z0-9])", tree.text(f"requirements/{part}.txt"))[1:]


def test_what_the_product_imports_is_what_it_declares() -> None:
    imported = set()
    for path in tree.python(*tree.PACKAGES):
        for node in ast.walk(ast.parse(tree.text(path))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.add(node.module.split(".")[0])
    imported = {IMPORTED_OF.get(name, name) for name in imported}
    foreign = names([name for name in imported - sys.stdlib_module_names if name not in tree.PACKAGES])
    project = tree.project()["project"]
    extras = [name for extra in project["optional-dependencies"].values() for name in extra]
    declared = names([*project["dependencies"], *extras])
    assert foreign <= declared, "imported but not declared: " + ", ".join(sorted(foreign - declared))
