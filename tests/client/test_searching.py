"""Searching with the client: what is sent, what comes back, and pages over a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from edgequeues.client import Refused, Stance

from .script import entry_json, scripted
from .working import serving

Q = "dxn:queue:demo:jobs"


async def test_all_that_is_asked_is_sent_and_nothing_else() -> None:
    page: dict[str, Any] = {"found": [], "resume": None}
    client, script = scripted(*(httpx.Response(200, json=page) for _ in range(2)))
    assert (await client.search(Q)).found == []
    await client.search(
        Q,
        states=["ready", "finished"],
        consumer="c",
        id="i",
        key="k",
        type="t",
        where="n > 1",
        after=5,
        limit=7,
        reverse=True,
    )
    plain, full = script.requests
    assert (plain.method, plain.url.path, str(plain.url.query)) == ("GET", f"/v1/{Q}/search", "b''")
    assert full.url.params.multi_items() == [
        ("consumer", "c"),
        ("id", "i"),
        ("key", "k"),
        ("type", "t"),
        ("where", "n > 1"),
        ("after", "5"),
        ("limit", "7"),
        ("state", "ready"),
        ("state", "finished"),
        ("reverse", "true"),
    ]
    with pytest.raises(TypeError):
        await client.search(Q, states="ready")  # type: ignore[arg-type]


async def test_an_answer_is_entries_with_their_standings() -> None:
    stance = {"consumer": "c", "state": "leased", "attempts": 1, "due": 9, "worker": "w"}
    rest = {"last_error": None, "first": 1, "last": 2}
    found = {**entry_json(3, {"n": 1.50}), "standings": [{**stance, **rest}]}
    client, _ = scripted(httpx.Response(200, json={"found": [found], "resume": 3}))
    page = await client.search(Q)
    [one] = page.found
    assert (one.entry.position, one.entry.data, page.resume) == (3, {"n": 1.5}, 3)
    assert one.standings == [Stance("c", "leased", 1, 9, "w", None, 1, 2)]


async def test_all_that_is_there_is_found_page_by_page(tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, _):
        async for _ in client.push_all(Q, ({"n": n} for n in range(2_500))):
            pass
        pulled = await client.pull(Q, batch=3)
        await client.retry(Q, [one.lease for one in pulled.messages], error="no", delay_ms=60_000)
        assert [one.entry.data async for one in client.iterate_search(Q)] == [{"n": n} for n in range(2_500)]
        odd = client.iterate_search(Q, states=["backoff"], where='n != 1 && error == "no"', reverse=True)
        assert [one.entry.data async for one in odd] == [{"n": 2}, {"n": 0}]
        with pytest.raises(Refused, match="where"):
            await client.search(Q, where="n >")
