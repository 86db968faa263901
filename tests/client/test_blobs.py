"""The client's verbs for blobs, against a server."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from edgequeues.blobs.about import BUCKET as SERVERS
from edgequeues.client import Client, Erased, Refused, Unreachable
from edgequeues.client.blobs import BUCKET
from edgequeues.core.times import unix_ms

from .script import scripted
from .working import Way, serving

KEY = "email/2026/ä b?#%2F+.html"  # whatever a path could be taken apart by
BODY = b"<script>\x00\xff</script>"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Client, Way]]:
    async with serving(tmp_path / "data") as both:
        yield both


async def put(client: Client, key: str = KEY, event_id: str = "e/1 ä") -> None:
    await client.put_blob(
        "demo",
        key,
        BODY,
        event_id=event_id,
        source="email",
        content_type="image/png",
        filename="Bild (ä).png",
    )


async def test_a_blob_is_stored_as_it_is_described_and_fetched_as_it_was(served: tuple[Client, Way]) -> None:
    client, _ = served
    blob = await client.put_blob(
        "demo",
        KEY,
        BODY,
        event_id="e/1 ä",
        source="email",
        content_type="image/png",
        filename="Bild (ä).png",
        media_width=3,
        media_height=4,
    )
    assert (blob.bucket, blob.key, blob.event_id, blob.source) == (BUCKET, KEY, "e/1 ä", "email")
    assert (blob.content_type, blob.filename) == ("image/png", "Bild (ä).png")
    assert (blob.media_width, blob.media_height) == (3, 4)
    assert (blob.size, blob.sha256) == (len(BODY), hashlib.sha256(BODY).hexdigest())
    assert blob.kept_until > blob.created > unix_ms("2000-01-01T00:00:00Z")
    assert await client.get_blob("demo", KEY) == BODY
    assert [one async for one in client.iterate_blobs("demo", "e/1 ä")] == [blob]


async def test_a_blob_whose_answer_was_lost_is_stored_once(served: tuple[Client, Way]) -> None:
    client, way = served
    way.instead["a.png"] = httpx.ReadError("cut off")
    await put(client, "a.png")
    assert way.paths == ["a.png", "a.png"]
    with pytest.raises(Refused, match="blob_conflict"):
        await client.put_blob(
            "demo", "a.png", b"other", event_id="e", source="email", content_type="image/png"
        )


async def test_the_blobs_of_an_event_are_listed_page_by_page(served: tuple[Client, Way]) -> None:
    client, _ = served
    for key in ("b", "a/1", "c"):
        await put(client, key)
    await put(client, "other", event_id="e2")
    page = await client.blobs("demo", "e/1 ä", limit=2)
    assert [one.key for one in page.blobs] == ["a/1", "b"]
    rest = await client.blobs("demo", "e/1 ä", after=page.resume, limit=2)
    assert ([one.key for one in rest.blobs], rest.resume) == (["c"], None)


async def test_who_has_a_link_needs_nothing_else(served: tuple[Client, Way]) -> None:
    client, way = served
    await put(client)
    link = await client.link_blob("demo", KEY, lifetime_s=3_600)
    assert (link.bucket, link.key) == (BUCKET, KEY)
    async with httpx.AsyncClient(transport=way) as anybody:
        answer = await anybody.get(link.url)
    assert (answer.status_code, answer.content) == (200, BODY)
    created = (await client.blobs("demo", "e/1 ä")).blobs[0].created
    assert 3_590_000 <= link.expires - created <= 3_610_000


async def test_a_blob_is_erased_once_and_an_event_with_its_messages(served: tuple[Client, Way]) -> None:
    client, way = served
    await put(client)
    await client.erase_blob("demo", KEY)
    with pytest.raises(Refused, match="blob_not_found"):
        await client.get_blob("demo", KEY)
    with pytest.raises(Refused, match="blob_not_found"):
        await client.erase_blob("demo", KEY)
    await put(client, "a.png", event_id="e2")
    await client.push("dxn:queue:demo:jobs", [{"id": "e2"}, {"id": "e3"}])
    assert await client.erase_event("demo", "e2") == Erased(blobs=1, messages=1)
    assert [one.data for one in (await client.peek("dxn:queue:demo:jobs")).messages] == [{"id": "e3"}]
    await put(client, "b.png")
    way.instead["b.png"] = httpx.ReadError("cut off")
    with pytest.raises(Unreachable):
        await client.erase_blob("demo", "b.png")


@pytest.mark.parametrize("key", ["", "/a", "a//b", "a/", "../other/secret", "a/./b"])
async def test_a_key_that_leads_elsewhere_is_refused_before_anything_is_sent(key: str) -> None:
    client, script = scripted()
    with pytest.raises(ValueError, match="no key of a blob"):
        await client.get_blob("demo", key)
    with pytest.raises(ValueError, match="no key of a blob"):
        await client.erase_blob("demo", key)
    assert script.requests == []


async def test_a_content_type_that_ends_its_header_is_refused_before_anything_is_sent() -> None:
    client, _ = scripted()
    with pytest.raises(ValueError, match="no content type"):
        await client.put_blob("demo", "a", b"", event_id="e", source="s", content_type="a/b\r\nx-event-id: f")


def test_the_bucket_that_is_meant_where_none_is_said_is_the_servers() -> None:
    assert BUCKET == SERVERS
