"""What a guide shows is true: its Python blocks run, in order, and print what is shown under them."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import re
import sys
from itertools import pairwise
from types import ModuleType

import pytest

from edgequeues.store import Options
from edgequeues.store.conformance import CHECKS
from shards.limits import MIB, Limits
from tests.guides import blocks
from tests.house import tree

SERVED = "docs/guides/client.md"  # wants a server: tests/e2e runs it
CLOUDFLARE = "docs/guides/cloudflare.md"  # so does this: tests/conformance runs it
GUIDES = [  # pages with shell lines want a server as well: tests/e2e/test_pages.py runs them
    path
    for path in tree.documents()
    if path.startswith("docs/guides/") and path not in (SERVED, CLOUDFLARE) and not blocks.is_served(path)
]


def examples(path: str) -> list[tuple[str, str]]:
    """Each Python block of a guide, with the text block right after it, "" if there is none."""
    blocks = [*tree.code_blocks(path), ("", "")]
    return [
        (block, shown if then == "text" else "")
        for (language, block), (then, shown) in pairwise(blocks)
        if language == "python"
    ]


@pytest.mark.parametrize("path", [path for path in GUIDES if examples(path)])
def test_the_blocks_of_a_guide_run_and_print_what_is_shown(
    path: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.CRITICAL, "shards")
    module = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", module)
    for number, (block, shown) in enumerate(examples(path), 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, f"{path}, block {number}", "exec"), module.__dict__)
        assert printed.getvalue() == shown, f"{path}, block {number}"


def test_the_guide_lists_every_limit_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+)( MiB)? \|", tree.text("docs/guides/shards.md"), re.MULTILINE)
    listed = {name: float(value) * (MIB if unit else 1) for name, value, unit in rows}
    assert listed == dataclasses.asdict(Limits())


def test_the_guide_lists_every_check_of_a_store_with_its_claim_and_every_option_with_its_default() -> None:
    page = tree.text("docs/guides/store.md")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", page[page.index("| check | claim |") :], re.MULTILINE)
    assert rows == [(check.name, check.claim) for check in CHECKS]
    options = dict(re.findall(r"^\| `(\w+)` \| ([\d,]+|none) \| ", page, re.MULTILINE))
    known = Options()
    defaults = {name: getattr(known, name) for name in Options.__struct_fields__}
    assert options == {name: "none" if value is None else f"{value:,}" for name, value in defaults.items()}
