"""Nothing committed names the machine it was written on, a package index, or work left undone."""

from __future__ import annotations

import re

import pytest

from . import tree

# Written in pieces, so that this file passes its own test.
MACHINE = ["work", "root", r"home/\w+"]
INDEX = [r"pypi\." + "org", "python" + r"hosted\.org", "npm" + r"js\.(?:org|com)", "yarn" + r"pkg\.com"]
UNFINISHED = ["TO" + "DO", "FIX" + "ME", "X" + "XX"]
UNWANTED = {
    "a path of one machine": rf"(?<![\w.~-])/(?:{'|'.join(MACHINE)})(?:/|\b(?![\w-]))",
    "a package index": rf"\b(?:{'|'.join(INDEX)})\b",
    "a marker of unfinished work": rf"\b(?:{'|'.join(UNFINISHED)})\b",
    "a number of an internal list": r"(?i)\bissue" + r"s? #?\d{1,2}\b",
}
LINK = re.compile(r"https?://[^\s)>\"']+")


def host_only(link: re.Match[str]) -> str:
    return link[0].split("/")[2]


def findings(content: str, pattern: str) -> list[tuple[int, str]]:
    """Line number and text of each match; of a link only the host counts, the rest is others' wording."""
    lines = enumerate((LINK.sub(host_only, line) for line in content.splitlines()), 1)
    return [(number, line.strip()) for number, line in lines if re.search(pattern, line)]


@pytest.mark.parametrize("what", UNWANTED)
def test_nothing_committed_holds(what: str) -> None:
    found = []
    for path in tree.committed():
        if str(path).endswith(".png"):
            continue  # no words: its bytes spell anything
        content = (tree.ROOT / path).read_bytes().decode("utf-8", errors="replace")
        found += [f"{path}:{number}: {line[:120]}" for number, line in findings(content, UNWANTED[what])]
    assert not found, f"{what}:\n" + "\n".join(found)


BAD = {
    "a path of one machine": "see /" + "work/shared/x",
    "a package index": "https://files.python" + "hosted.org/packages/a.whl",
    "a marker of unfinished work": "# TO" + "DO: later",
    "a number of an internal list": "comes with issue" + " 4",
}


@pytest.mark.parametrize("what", UNWANTED)
def test_the_patterns_find_what_they_are_for(what: str) -> None:
    assert findings(BAD[what], UNWANTED[what])


GOOD = ["a GET of /v1/" + "work/x", "https://example.org/" + "work/a", "docs/" + "work/x", "/workers"]


@pytest.mark.parametrize("line", GOOD)
def test_the_patterns_leave_other_paths_alone(line: str) -> None:
    assert not any(findings(line, pattern) for pattern in UNWANTED.values())
