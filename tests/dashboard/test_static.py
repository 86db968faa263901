"""The scripts of the dashboard hold to what its policy and its readers rely on: data is text, files are there."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path, PurePosixPath
from posixpath import normpath

import pytest

STATIC = Path(str(files("edgequeues.dashboard") / "static"))
SCRIPTS = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))
LINES_MAX = 300

IMPORT = re.compile(r'^(?:import|export)\b[^;]*?\bfrom "([^"]+)"|^import "([^"]+)"', re.MULTILINE)
# What makes markup or code of a text, and so could of what is in a message.
UNSAFE = re.compile(
    r"\b(?:innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTMLUnsafe|DOMParser|eval)\b"
    r"|document\.write|new Function|setTimeout\(\s*[\"'`]|javascript:"
)
ELSEWHERE = re.compile(r"https?://(?!www\.w3\.org/2000/svg\b)")


def source(name: str) -> str:
    return (STATIC / name).read_text("utf-8")


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_script_imports_is_a_file_beside_it(name: str) -> None:
    for found in IMPORT.finditer(source(name)):
        wanted = found[1] or found[2]
        assert wanted.startswith(("./", "../")), wanted
        assert normpath((PurePosixPath(name).parent / wanted).as_posix()) in SCRIPTS, wanted


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_a_text_or_names_another_server(name: str) -> None:
    assert not UNSAFE.search(source(name))
    assert not ELSEWHERE.search(source(name))


def test_the_pattern_finds_what_it_is_for() -> None:
    for bad in ("a.innerHTML = data", "eval(x)", 'setTimeout("f()")', "document.write(x)"):
        assert UNSAFE.search(bad), bad


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_says_what_it_is_and_keeps_its_names_to_itself(name: str) -> None:
    text = source(name)
    assert text.startswith("//")
    assert text.count("\n") <= LINES_MAX
    assert not re.search(r"\b(?:window|globalThis)\.\w+ = ", text)


def test_each_script_is_used() -> None:
    used = {"app.js", *re.findall(r'src="/ui/static/([^"]+)"', source("index.html"))}
    for name in SCRIPTS:
        for found in IMPORT.finditer(source(name)):
            used.add(normpath((PurePosixPath(name).parent / (found[1] or found[2])).as_posix()))
    assert used == set(SCRIPTS)
