"""Entities over HTTP: what commands made, page by page, one by one, and what was done to each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio

from .fronted import FrontName
from .hooking import Hooked, hooked, written

SPEC = """
  queue Incidents {
    message_type { name: string  title: string }
    map_to: command Incident.UpsertIncident { entity_id: name  title: title }
  }
"""
BASE = "/v1/spaces/ops/entities/Incident"


class Opened:
    """A server whose space `ops` opens an incident for each message."""

    def __init__(self, hooks: Hooked) -> None:
        self.client = hooks.client

    async def push(self, *names: str, title: str = "t") -> list[str]:
        """Push messages about entities of these names, and have them worked; their ids."""
        body = written({"entries": [{"data": {"name": name, "title": title}} for name in names]})
        reply = await self.client.ask("POST", "/v1/dxn:queue:ops:Incidents/push", body)
        assert reply.status == 200, reply.body
        await trio.sleep(0.1)
        return [one["id"] for one in reply.json()["results"]]

    async def get(self, path: str) -> Any:
        reply = await self.client.get(BASE + path)
        assert reply.status == 200, reply.body
        return reply.json()

    async def refused(self, path: str) -> tuple[int, str]:
        reply = await self.client.get(BASE + path)
        return reply.status, reply.json()["code"]


@pytest.fixture
async def opened(tmp_path: Path, front: FrontName) -> AsyncIterator[Opened]:
    async with hooked(tmp_path, SPEC, front) as hooks:
        yield Opened(hooks)


async def test_entities_are_listed_by_id_page_by_page(opened: Opened) -> None:
    await opened.push("c", "a", "b")
    found = await opened.get("?limit=2")
    assert [one["id"] for one in found["entities"]] == ["a", "b"]
    assert found["resume"] == "b"
    found = await opened.get(f"?limit=2&after={found['resume']}")
    assert [one["id"] for one in found["entities"]] == ["c"]
    assert found["resume"] is None


async def test_an_entity_has_its_attributes_as_they_came_and_its_version(opened: Opened) -> None:
    await opened.push("a")
    await opened.push("a", title="Disk \U0001f4be \ud83d")
    found = await opened.get("/a")
    times = found.pop("created"), found.pop("updated")
    assert times[0] <= times[1]
    assert found == {
        "id": "a",
        "state": None,
        "version": 2,
        "attributes": {"title": "Disk \U0001f4be \ud83d"},
    }


async def test_the_history_tells_which_messages_of_which_queue_changed_an_entity(opened: Opened) -> None:
    ids = await opened.push("a", "b", "a")
    first = await opened.get("/a/history?limit=1")
    [one] = first["commands"]
    assert one.pop("executed") > 0
    assert one.pop("receipt") == first["resume"]
    assert one == {"version": 1, "command": "UpsertIncident", "queue": "Incidents", "message": ids[0]}
    rest = await opened.get(f"/a/history?after={first['resume']}")
    assert [(one["version"], one["message"]) for one in rest["commands"]] == [(2, ids[2])]
    assert rest["resume"] is None


@pytest.mark.parametrize("entity_id", ["a/b", "ü %41", "?&=#", "history", "with space", "a:b"])
async def test_an_id_of_any_characters_can_be_asked_for(opened: Opened, entity_id: str) -> None:
    await opened.push(entity_id)
    path = "/" + quote(entity_id, safe="")
    assert (await opened.get(path))["id"] == entity_id
    assert len((await opened.get(path + "/history"))["commands"]) == 1
    assert (await opened.get("?after=" + quote(entity_id, safe="")))["entities"] == []


async def test_what_is_not_there_is_404_and_a_type_without_entities_is_an_empty_list(opened: Opened) -> None:
    assert await opened.refused("/a") == (404, "entity_not_found")
    assert await opened.refused("/a/history") == (404, "entity_not_found")
    for path in ("/v1/spaces/ops/entities/Other", "/v1/spaces/nowhere/entities/Incident"):
        reply = await opened.client.get(path)
        assert (reply.status, reply.json()) == (200, {"entities": [], "resume": None})
    for path in ("/a", "/a/history"):
        reply = await opened.client.get("/v1/spaces/nowhere/entities/Incident" + path)
        assert (reply.status, reply.json()["code"]) == (404, "entity_not_found")


@pytest.mark.parametrize(
    "path",
    [
        "?limit=0",
        "?limit=1001",
        "?type=x",
        "/a?limit=1",
        "/a/history?after=x",
        "/a/history?limit=0",
        "/" + "x" * 257,
    ],
)
async def test_what_the_route_does_not_have_is_refused(opened: Opened, path: str) -> None:
    assert await opened.refused(path) == (400, "invalid_request")


async def test_a_space_that_cannot_be_is_refused(opened: Opened) -> None:
    reply = await opened.client.get("/v1/spaces/no%20space/entities/Incident")
    assert (reply.status, reply.json()["code"]) == (400, "invalid_id")
