"""Every limit that has a name, as it is in the code."""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

from tests.house import tree

from .tables import BY, table

NAME = re.compile(r"[A-Z][A-Z0-9_]*_(?:MAX|MIN|BYTES|S|MS|CHARS|COUNT)")
INTRO = """# Limits

Everything has a limit; going over one is an error at once, or a pause, and never an unbounded wait. These are the
named ones of the code, with the comment that stands beside each. The unit is in the name: `_S` seconds, `_MS`
milliseconds, `_BYTES` bytes, `_CHARS` characters; the others count. Limits that can be set are
[settings](settings.md); those of the actor runtime are in [guides/shards.md](../guides/shards.md).
"""
PARTS = {
    "edgequeues/core/": "Addresses, ids, JSON, expressions",
    "edgequeues/spec/": "Specs",
    "edgequeues/space/": "Spaces and queues",
    "edgequeues/http/": "Requests and connections",
    "edgequeues/blobs/": "Object store",
    "edgequeues/events/": "Events",
    "edgequeues/ingest/": "Mail and text messages",
    "edgequeues/workers/": "Commands and what goes on beside requests",
    "edgequeues/daemon/": "Consumer daemon",
    "edgequeues/sessions/": "Sessions",
    "edgequeues/client/": "Client",
    "edgequeues/": "Others",
}


class Limit(NamedTuple):
    """A limit: its name, the value as people read it, where it is, what is said of it."""

    name: str
    value: str
    path: str
    comment: str


def page() -> str:
    """docs/reference/limits.md."""
    found: dict[str, list[Limit]] = {start: [] for start in PARTS}
    for path in tree.modules():
        if path.startswith("edgequeues/") and not path.startswith("edgequeues/cli/"):
            found[next(start for start in PARTS if path.startswith(start))] += limits(path)
    parts = [
        f"\n## {PARTS[start]}\n\n"
        + table(
            ("limit", "value", "of what", "in"),
            [(f"`{one.name}`", one.value, one.comment, f"`{one.path}`") for one in rows],
        )
        for start, rows in found.items()
        if rows
    ]
    return BY + INTRO + "".join(parts)


def limits(path: str) -> Iterator[Limit]:
    """The limits that a module names. What is imported stands where it comes from."""
    text = tree.text(path)
    said = dict(_comments(text))
    named = [node for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign)]
    for node in named:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        if isinstance(target, ast.Name) and NAME.fullmatch(target.id):
            value = getattr(importlib.import_module(tree.module_name(path)), target.id)
            if isinstance(value, int | float):
                comment = said.get(node.end_lineno or node.lineno, said.get(node.lineno, ""))
                yield Limit(target.id, readable(target.id, value), path, comment)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def readable(name: str, value: float) -> str:
    """A number as people read it: bytes in KiB and MiB where they are whole, else with commas."""
    for unit, size in (("MiB", 1024 * 1024), ("KiB", 1024)):
        if "BYTES" in name and value >= size and value % size == 0:
            return f"{value // size:,} {unit}"
    return f"{value:,}" if isinstance(value, int) else f"{value:,g}"
