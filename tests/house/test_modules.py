"""No module is dead: the product imports it, it is an entry point, or it belongs to the public test kit."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from . import tree

PUBLIC_KIT = "shards.testing"  # made for tests, so a test that imports it counts


def imported(path: str) -> Iterator[str]:
    """Every dotted name the file imports, also those it names in a string, as lazily loaded commands do."""
    package = tree.module_name(path).split(".")
    if not path.endswith("/__init__.py"):
        package = package[:-1]
    for node in ast.walk(ast.parse(tree.text(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.split(":")[0]


def test_every_module_is_used() -> None:
    scripts: dict[str, str] = tree.project()["project"]["scripts"]
    used = {target.split(":")[0] for target in scripts.values()}
    for path in tree.python(*tree.PACKAGES, "bench"):
        used.update(set(imported(path)) - {tree.module_name(path)})
    for path in tree.python("tests", "docs"):
        used.update(name for name in imported(path) if name.startswith(PUBLIC_KIT))
    dead = [path for path in tree.modules() if tree.module_name(path) not in used]
    assert not dead, "nothing imports:\n" + "\n".join(dead)
