"""The fenced blocks of the documents, and what becomes of each: how it is run or read, or why it is not.

A comment on the lines before a block says what is to be done with it:

    <!-- not run: <reason> -->          it is left alone
    <!-- file: <name> -->               it is a file of that name in the folder where the page's lines are run
    <!-- server: NAME=value --option -->  how the page's server is started; once, anywhere on the page
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from tests.house import tree

FENCE = re.compile(r"^ *```(\w*) *(.*)$")
COMMENT = re.compile(r"^<!-- (not run|file|server|transcript)\b:? ?(.*?) -->$")
RUN = ("sh", "bash", "python", "sql")  # sql: asked of the first file of a space, by sqlite3
ANSWERS = ("text", "json")  # right after what was run: what it prints

# Pages that tests of their own run, by what they are about. What is left over on them has to be accounted for, too.
OWNERS = {
    ("docs/guides/client.md", "python"): "tests/e2e/test_client_guide.py",
    ("docs/guides/cloudflare.md", "python"): "tests/conformance/test_cloudflare.py",
    ("docs/guides/incidents.md", "sh"): "tests/e2e/test_incident_guide.py",
    ("docs/guides/switchboard.md", "sh"): "tests/e2e/test_switchboard_guide.py",
    ("docs/guides/switchboard.md", "python"): "tests/e2e/test_switchboard_guide.py",
    ("docs/guides/switchboard.md", "eml"): "tests/e2e/test_switchboard_guide.py",
    ("docs/guides/switchboard.md", "json"): "tests/e2e/test_switchboard_guide.py",
    ("docs/guides/switchboard.md", "text"): "tests/e2e/test_switchboard_guide.py",
    ("docs/protocol/ingest.md", "sh"): "tests/e2e/test_ingest.py",
    ("docs/protocol/ingest.md", "js"): "tests/e2e/test_ingest.py",
    ("docs/reference/spec.md", "ebnf"): "tests/guides/test_spec_reference.py",
}
PROVIDERS = "tests/guides/test_provider_pages.py"
SPECS = "tests/guides/test_spec_reference.py"
IN_PROCESS = "tests/guides/test_guides.py"
TRANSCRIPTS = "tests/http/test_transcripts.py"
PAGES = "tests/e2e/test_pages.py"
PARSED = "tests/guides/test_blocks.py"


class Block(NamedTuple):
    """A fenced block. number: of its first line on the page. before: the block whose answer it would be, if any."""

    path: str
    number: int
    language: str
    info: str
    text: str
    orders: tuple[tuple[str, str], ...]
    before: str

    def order(self, name: str) -> str | None:
        """What a comment before the block says."""
        return next((value for found, value in self.orders if found == name), None)


@cache
def blocks(path: str) -> tuple[Block, ...]:
    """The blocks of a document, in order."""
    return tuple(_blocks(path))


def _blocks(path: str) -> Iterator[Block]:
    orders: list[tuple[str, str]] = []
    opened: tuple[int, str, str] | None = None
    lines: list[str] = []
    before = ""
    for number, line in enumerate(tree.text(path).splitlines(), 1):
        fence = FENCE.match(line)
        if opened is not None:
            if fence is None or fence[1]:
                lines.append(line)
                continue
            start, language, info = opened
            yield Block(path, start, language, info, "\n".join([*lines, ""]), tuple(orders), before)
            before, orders, opened, lines = language, [], None, []
        elif fence is not None:
            opened = (number + 1, fence[1], fence[2])
        elif comment := COMMENT.match(line):
            orders.append((comment[1], comment[2]))
        elif line.strip() and not any(name == "transcript" for name, _ in orders):
            before, orders = "", []


def documents() -> list[str]:
    """The documents whose blocks count."""
    return [path for path in tree.documents() if path == "README.md" or path.startswith("docs/")]


def is_served(path: str) -> bool:
    """Are the lines of this page run by PAGES, against a server?"""
    running = {block.language for block in blocks(path) if _runs(block)}
    return bool(running - {"python"} if path.startswith("docs/guides/") else running)


def served() -> list[str]:
    """The pages that PAGES runs."""
    return [path for path in documents() if is_served(path)]


def runs(path: str) -> list[Block]:
    """What PAGES runs of a page, in order, with the answers that are shown."""
    return [block for block in blocks(path) if _runs(block) or _answers(block)]


def usages(block: Block) -> list[str]:
    """The command lines of a block that shows nothing else; names in capitals stand for what they are given."""
    lines = block.text.replace("\\\n", " ").splitlines()
    calls = [call for line in lines if (call := re.search(r"(?:^|[|] )(edgequeues .*)", line))]
    return [call[1] for call in calls] if not block.language and len(calls) == len(lines) else []


def files(path: str) -> dict[str, str]:
    """The blocks of a page that are files, by name."""
    return {name: block.text for block in blocks(path) if (name := block.order("file")) is not None}


def server(path: str) -> tuple[dict[str, str], list[str]]:
    """Variables and options of a page's server."""
    said = re.search(r"^<!-- server: (.*?) -->$", tree.text(path), re.MULTILINE)
    words = shlex.split(said[1]) if said else []
    variables = [word for word in words if re.match(r"[A-Z_]+=", word)]
    return dict(word.split("=", 1) for word in variables), words[len(variables) :]


def account(block: Block) -> str | None:
    """Which test runs or reads a block, or why none does. None: it is not accounted for."""
    reason = block.order("not run")
    if reason is not None:
        return f"not run: {reason}" if len(reason.split()) > 2 else None
    return OWNERS.get((block.path, block.language)) or _run_by(block) or _read_by(block)


def _run_by(block: Block) -> str | None:
    if block.order("transcript") is not None:
        return TRANSCRIPTS
    if block.path.startswith("docs/providers/") and block.language == "sh":
        return PROVIDERS
    if _runs(block):
        return PAGES if is_served(block.path) else IN_PROCESS
    return None


def _read_by(block: Block) -> str | None:
    if block.language == "spec":
        return SPECS
    if block.language in ANSWERS and block.before in RUN:
        owner = OWNERS.get((block.path, block.before))
        return owner or (PAGES if is_served(block.path) else IN_PROCESS)
    if block.language in ("toml", "json", "js") or block.order("file") is not None or usages(block):
        return PARSED
    if block.language == "text" and block.before == "spec":
        return SPECS
    return None


def _runs(block: Block) -> bool:
    return (
        block.language in RUN
        and block.order("not run") is None
        and block.order("file") is None
        and (block.path, block.language) not in OWNERS
        and not block.path.startswith("docs/providers/")
    )


def _answers(block: Block) -> bool:
    return (
        block.language in ANSWERS
        and block.before in RUN
        and block.order("not run") is None
        and (block.path, block.before) not in OWNERS
    )
