"""The transcripts are true, and the protocol page shows all of them as they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from .asgi import Client
from .transcript import BLOCK, FOLDER, PAGE, Player, quoted, steps

FILES = sorted(FOLDER.glob("native/*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_a_transcript_is_what_happens(client: Client, path: Path) -> None:
    player = Player(client)
    for step in steps(path.read_text()):
        await player.play(step)


def test_the_page_shows_every_transcript_as_it_is() -> None:
    page = PAGE.read_text()
    assert sorted(BLOCK.findall(page)) == [str(path.relative_to(FOLDER)) for path in FILES]
    assert quoted(page) == page, "run: python -m tests.http.transcript"


async def test_a_transcript_that_is_not_true_fails(client: Client) -> None:
    [step] = steps("> GET /healthz\n< 200\n<\n< {}")
    with pytest.raises(AssertionError, match="but got"):
        await Player(client).play(step)
    [step] = steps('> GET /healthz\n< 200\n< content-type: text/plain\n<\n< {"status":"ok"}')
    with pytest.raises(AssertionError, match="but got"):
        await Player(client).play(step)
