"""Documents say all there is, nothing that is not, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import click
import pytest

from edgequeues.cli.main import COMMANDS, edgequeues
from edgequeues.http import problems
from edgequeues.settings_sources import settings

from . import tree

HISTORY = ("docs/adr/", "CHANGELOG.md")  # speaks of the past, so it may name what is gone
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
PATH = re.compile(
    r"`((?:shards|edgequeues|tests|bench|docs|requirements|\.ci)/[\w./-]+)(?:::\w+)*`",
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
MAKE = re.compile(r"^(?:\$ )?make ([a-z]+)", re.MULTILINE)


def anchors(path: str) -> set[str]:
    """Anchors of a document's headings, as code hosts make them."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(tree.prose(path)))
    return {word.strip().replace(" ", "-") for word in words}


def resolve(base: str, link: str) -> tuple[str, str]:
    """Path in the repository and anchor of a relative link."""
    target, _, anchor = link.partition("#")
    if not target:
        return base, anchor
    parts: list[str] = []
    for part in (PurePosixPath(base).parent / target).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts), anchor


@pytest.mark.parametrize("path", tree.documents())
def test_links_resolve(path: str) -> None:
    broken = []
    for groups in LINK.findall(tree.prose(path)):
        link = groups[0] or groups[1]
        if re.match(r"[a-z]+:", link):
            continue
        target, anchor = resolve(path, link)
        if not (tree.ROOT / target).exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("path", [p for p in tree.documents() if not p.startswith(HISTORY)])
def test_files_named_exist(path: str) -> None:
    gone = [name for name in PATH.findall(tree.prose(path)) if not (tree.ROOT / name).exists()]
    assert not gone


@pytest.mark.parametrize("path", [p for p in tree.documents() if not p.startswith(HISTORY)])
def test_make_targets_named_exist(path: str) -> None:
    targets = set(TARGET.findall(tree.text("Makefile")))
    shown = {name for _, block in tree.code_blocks(path) for name in MAKE.findall(block)}
    assert shown <= targets


def test_readme_shows_how_to_run_and_test_in_its_first_block() -> None:
    _, block = next(iter(tree.code_blocks("README.md")))
    assert {"run", "test"} <= set(MAKE.findall(block))


def test_every_target_explains_itself() -> None:
    text = tree.text("Makefile")
    explained = set(re.findall(r"^([a-z]+):.*## \S", text, re.MULTILINE))
    assert explained == set(TARGET.findall(text))


def test_every_error_code_is_in_the_protocol() -> None:
    codes = {fault.code for fault in problems.TABLE.values()} | {problems.INTERNAL.code}
    page = tree.text("docs/protocol/native.md")
    missing = sorted(code for code in codes if f"`{code}`" not in page)
    assert not missing


def test_every_setting_is_in_the_guide() -> None:
    page = tree.text("docs/guides/settings.md")
    missing = [setting.name for setting in settings() if f"`{setting.name}`" not in page]
    assert not missing


def test_every_command_and_option_is_in_the_guide() -> None:
    page = tree.text("docs/guides/cli.md")
    missing = []
    for name in COMMANDS:
        command = edgequeues.get_command(click.Context(edgequeues), name)
        assert command is not None
        flags = [
            option.opts[-1]
            for option in command.params
            if isinstance(option, click.Option) and not option.hidden
        ]
        missing += [what for what in (f"edgequeues {name}", *flags) if what not in page]
    assert not missing


def test_every_module_is_in_the_where_to_look_table() -> None:
    rows = [line for line in tree.text("ARCHITECTURE.md").splitlines() if line.startswith("|")]
    named = set(PATH.findall("\n".join(rows)))
    missing = [path for path in tree.modules() if path not in named]
    assert not missing


def test_documents_named_in_code_exist() -> None:
    named = {
        (path, document)
        for path in tree.python(*tree.PACKAGES, "bench", "tests")
        for document in re.findall(r"docs/[\w./-]+\.md", tree.text(path))
    }
    gone = [f"{path}: {document}" for path, document in sorted(named) if not (tree.ROOT / document).is_file()]
    assert not gone


def test_every_page_is_in_an_index() -> None:
    pages = {path for path in tree.documents() if path.startswith("docs/")} - {"docs/README.md"}
    linked = {
        resolve(index, groups[0])[0]
        for index in ("docs/README.md", "docs/adr/README.md")
        for groups in LINK.findall(tree.text(index))
    }
    linked.add("docs/adr/README.md")
    assert sorted(pages - linked) == []
