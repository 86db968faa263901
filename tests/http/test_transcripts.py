"""The transcripts are true, and the protocol pages show all of them as they are."""

from __future__ import annotations

import pytest

from .asgi import Client
from .transcript import BLOCK, FOLDER, PAGES, Player, quoted, steps

TEXTS = {str(path.relative_to(FOLDER)): path.read_text() for path in sorted(FOLDER.glob("*/*.txt"))}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_transcript_is_what_happens(client: Client, name: str) -> None:
    player = Player(client)
    for step in steps(TEXTS[name]):
        await player.play(step)


@pytest.mark.parametrize("dialect", PAGES)
def test_the_page_shows_every_transcript_as_it_is(dialect: str) -> None:
    page = PAGES[dialect].read_text()
    assert sorted(BLOCK.findall(page)) == [name for name in TEXTS if name.startswith(dialect + "/")]
    assert quoted(page) == page, "run: python -m tests.http.transcript"


def test_every_transcript_has_a_page() -> None:
    assert {name.partition("/")[0] for name in TEXTS} == set(PAGES)


async def test_a_transcript_that_is_not_true_fails(client: Client) -> None:
    [step] = steps("> GET /healthz\n< 200\n<\n< {}")
    with pytest.raises(AssertionError, match="but got"):
        await Player(client).play(step)
    [step] = steps('> GET /healthz\n< 200\n< content-type: text/plain\n<\n< {"status":"ok"}')
    with pytest.raises(AssertionError, match="but got"):
        await Player(client).play(step)
