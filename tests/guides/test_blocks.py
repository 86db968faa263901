"""Each fenced block of the documents is run or read by a test, or says why it is not."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from edgequeues.cli.main import edgequeues
from edgequeues.settings_sources import load
from tests.guides import blocks
from tests.guides.blocks import Block, account, documents
from tests.house import tree

ALL = [block for path in documents() for block in blocks.blocks(path)]


def where(block: object) -> str:
    return f"{block.path}:{block.number}" if isinstance(block, Block) else ""


def read(language: str) -> Iterator[Block]:
    """The blocks of a language that nothing runs, and that this file reads."""
    return (block for block in ALL if block.language == language and account(block) == blocks.PARSED)


def test_every_block_is_run_or_read_by_a_test_or_says_why_it_is_not() -> None:
    missing = [f"{where(block)}: ```{block.language}" for block in ALL if account(block) is None]
    assert missing == [], "say `<!-- not run: reason -->` before it, or see tests/guides/blocks.py"


def test_the_tests_that_are_said_to_run_a_page_name_it() -> None:
    names = {"docs/guides/client.md": "SERVED", "docs/guides/cloudflare.md": "CLOUDFLARE"}
    for (path, _), test in blocks.OWNERS.items():
        assert path in tree.text(test) or f"examples({names.get(path)})" in tree.text(test), (path, test)
    for test in (blocks.PROVIDERS, blocks.SPECS, blocks.IN_PROCESS, blocks.TRANSCRIPTS, blocks.PAGES):
        assert (tree.ROOT / test).is_file()


def test_most_shell_and_all_python_blocks_run() -> None:
    shells = [block for block in ALL if block.language in ("sh", "bash")]
    left = [block for block in shells if (account(block) or "").startswith("not run")]
    assert len(left) < len(shells) / 3
    assert not [block for block in ALL if block.language == "python" and block.order("not run") is not None]


@pytest.mark.parametrize("block", list(read("json")), ids=where)
def test_json_that_is_shown_is_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", list(read("toml")), ids=where)
def test_toml_that_is_shown_are_settings_of_the_server(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "edgequeues.toml"
    file.write_text(block.text)
    load(flags={}, environment={}, file=file)


@pytest.mark.skipif(shutil.which("node") is None, reason="only Node.js reads JavaScript")
@pytest.mark.parametrize("block", list(read("js")), ids=where)
def test_javascript_that_is_shown_is_javascript(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "shown.mjs"
    file.write_text(block.text)
    subprocess.run(["node", "--check", str(file)], check=True, timeout=30)


def usages() -> list[tuple[str, str]]:
    return [(where(block), line) for block in ALL for line in blocks.usages(block)]


@pytest.mark.parametrize(("place", "line"), usages(), ids=str)
def test_a_command_line_that_is_shown_is_one_that_the_program_takes(place: str, line: str) -> None:
    """Its options and arguments are there; whether files are there is another matter, and nothing is run."""
    words = shlex.split(line, comments=True)[1:]
    ends = [number for number, word in enumerate(words) if word in ("|", "<", ">", "&")]
    command: click.Command = edgequeues
    path, words = "edgequeues", words[: ends[0] if ends else None]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        path, name, words = f"{path} {words[0]}", words[0], words[1:]
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"{place}: there is no command {path}"
        command = found
    try:
        command.make_parser(click.Context(command)).parse_args(list(words))
    except click.UsageError as error:
        pytest.fail(f"{place}: {path}: {error.format_message()}")


PAGE = """Words.

<!-- not run: it wants a provider -->
```sh
false
```

```sh
echo 1
```

```text
1
```

Words.

```text
alone
```
"""


def test_blocks_are_told_apart_by_the_comments_and_blocks_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "shown.markdown").write_text(PAGE)
    monkeypatch.setattr(tree, "ROOT", tmp_path)
    found = blocks.blocks("docs/shown.markdown")
    assert [(block.number, block.language, block.text) for block in found][1] == (9, "sh", "echo 1\n")
    accounts = [account(block) for block in found]
    assert accounts == ["not run: it wants a provider", blocks.PAGES, blocks.PAGES, None]
    assert [block.text for block in blocks.runs("docs/shown.markdown")] == ["echo 1\n", "1\n"]
