"""The repository as the house tests see it: its files, its modules, its documents."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("shards", "edgequeues")
VENDORED = "tests/conformance/vendor/"  # other people's suites, kept as they are

FENCE = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


@cache
def committed() -> tuple[str, ...]:
    """Paths of all files that are in git or would be with the next `git add`, without vendored ones."""
    ask = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(ask, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = sorted(set(listed.split("\0")) - {""})
    return tuple(p for p in paths if not p.startswith(VENDORED) and (ROOT / p).is_file())


def python(*folders: str) -> list[str]:
    """Paths of the Python files under `folders`."""
    return [p for p in committed() if p.endswith(".py") and p.split("/")[0] in folders]


def modules() -> list[str]:
    """Paths of the product's modules, without those that only mark a package or start it."""
    return [p for p in python(*PACKAGES) if not p.endswith(("__init__.py", "__main__.py"))]


def documents() -> list[str]:
    """Paths of the Markdown files."""
    return [p for p in committed() if p.endswith(".md")]


def text(path: str) -> str:
    """Read one file."""
    return (ROOT / path).read_text(encoding="utf-8")


def prose(path: str) -> str:
    """Read one document without its code blocks."""
    return FENCE.sub("", text(path))


def code_blocks(path: str) -> Iterator[tuple[str, str]]:
    """Language and content of each fenced block of a document."""
    for match in FENCE.finditer(text(path)):
        yield match[1], match[2]


def module_name(path: str) -> str:
    """Dotted name of a file: `shards/gate.py` is `shards.gate`, a package's `__init__.py` is the package."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def project() -> dict[str, Any]:
    """Read pyproject.toml."""
    return tomllib.loads(text("pyproject.toml"))
