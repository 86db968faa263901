"""The documentation's site holds every page, has no broken link, and asks no other host for anything."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from . import tree

LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio)\b[^>]*?\bsrc=[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon|modulepreload))"
    r"[^>]*?\bhref=[\"']?((?:https?:)?//[^\"'\s>]+)"
)


def in_nav(entry: Any) -> Iterator[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from in_nav(part)


def test_every_page_stands_once_in_the_navigation() -> None:
    nav = [f"docs/{page}" for page in in_nav(tomllib.loads(tree.text("zensical.toml"))["project"]["nav"])]
    pages = sorted(path for path in tree.documents() if path.startswith("docs/"))
    assert sorted(nav) == pages, "nav of zensical.toml wants one line for each page of docs/, and no other"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site. Builds from a copy: the builder wants its folders inside the project's."""
    project = tmp_path_factory.mktemp("project")
    (project / "zensical.toml").write_text(tree.text("zensical.toml"))
    for path in tree.committed():
        if path.startswith("docs/"):
            target = project / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((tree.ROOT / path).read_bytes())
    build = [sys.executable, "-m", "zensical", "build", "--strict"]
    done = subprocess.run(build, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return project / "site"


def test_every_page_is_built_and_can_be_searched(site: Path) -> None:
    pages = [path.removeprefix("docs/") for path in tree.documents() if path.startswith("docs/")]
    built = [re.sub(r"(^|/)README\.md$", r"\1index.md", page).removesuffix(".md") + ".html" for page in pages]
    assert [name for name in built if not (site / name).is_file()] == []
    assert "dead letter" in (site / "search.json").read_text()


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    asked = {
        (page.name, found)
        for page in site.rglob("*.html")
        for pair in LOADED.findall(page.read_text())
        for found in pair
        if found
    }
    assert asked == set()
    diagrams = [page.name for page in site.rglob("*.html") if 'class="mermaid"' in page.read_text()]
    assert diagrams == []  # the theme would fetch what draws them
    styles = [
        sheet.name
        for sheet in site.rglob("*.css")
        if re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text())
    ]
    assert styles == []


FETCHING = [
    '<script src="https://cdn.example.org/a.js">',
    "<link rel=stylesheet href=//fonts.example.org/a.css>",
    '<img alt="a" src="http://example.org/a.png">',
]


@pytest.mark.parametrize("page", FETCHING)
def test_the_pattern_finds_what_would_be_fetched(page: str) -> None:
    assert LOADED.search(page)


def test_the_pattern_leaves_links_alone() -> None:
    assert not LOADED.search(
        '<a href="https://example.org/"><link rel="canonical" href="https://example.org/">'
    )
