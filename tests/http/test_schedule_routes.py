"""Schedules over HTTP: what is refused of what is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .asgi import Client
from .fronted import FrontName
from .hooking import PAGERDUTY, hooked, written

PATH = "/v1/spaces/demo/schedules"
SPEC = {
    "version": 0,
    "app": "shop",
    "queues": {"jobs": {}},
    "schedules": {
        "tick": {"cron": "0 3 * * *", "timezone": "Europe/Berlin", "queue": "jobs"},
        "tock": {"cron": "0 4 * * *", "queue": "jobs", "missed": "skip"},
    },
}


@pytest.fixture
async def client(tmp_path: Path, front: FrontName) -> AsyncIterator[Client]:
    async with hooked(tmp_path, PAGERDUTY, front) as found:
        reply = await found.client.ask("PUT", "/v1/spaces/demo/specs/shop", written(SPEC))
        assert reply.status == 200, reply.body
        assert [one["change"] for one in reply.json()["schedules"]] == ["made", "made"]
        yield found.client


async def test_schedules_come_in_pages_by_name(client: Client) -> None:
    first = (await client.get(f"{PATH}?limit=1")).json()
    assert ([one["name"] for one in first["schedules"]], first["resume"]) == (["tick"], "tick")
    rest = (await client.get(f"{PATH}?limit=1&after=tick")).json()
    assert ([one["name"] for one in rest["schedules"]], rest["resume"]) == (["tock"], None)
    [told] = rest["schedules"]
    assert told.pop("next") > 0
    assert told == {
        "name": "tock",
        "app": "shop",
        "queue": "jobs",
        "cron": "0 4 * * *",
        "timezone": "UTC",
        "missed": "skip",
        "last": None,
        "made": 0,
        "last_error": None,
    }


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limits=5", "after=", f"after={'x' * 129}"])
async def test_what_no_page_can_be_is_refused(client: Client, query: str) -> None:
    reply = await client.get(f"{PATH}?{query}")
    assert (reply.status, reply.code) == (400, "invalid_request")


async def test_running_one_takes_neither_a_body_nor_parameters(client: Client) -> None:
    assert (await client.ask("POST", f"{PATH}/tick/run", b"{}")).status == 200
    for path, body in (("tick/run", b'{"message":{}}'), ("tick/run?at=5", b"")):
        reply = await client.ask("POST", f"{PATH}/{path}", body)
        assert (reply.status, reply.code) == (400, "invalid_request")
    reply = await client.ask("POST", f"{PATH}/other/run", b"")
    assert (reply.status, reply.code) == (404, "schedule_not_found")


async def test_a_schedule_of_another_app_of_the_space_is_a_conflict(client: Client) -> None:
    other = {"version": 0, "app": "other", "queues": {"more": {}}}
    other["schedules"] = {"tick": {"cron": "0 5 * * *", "queue": "more"}}
    reply = await client.ask("PUT", "/v1/spaces/demo/specs/other", written(other))
    assert (reply.status, reply.code) == (409, "spec_conflict")
    assert "schedule tick: app shop declares it" in reply.json()["detail"]
