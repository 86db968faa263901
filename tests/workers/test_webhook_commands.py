"""Webhooks without a queue: their command is carried out while the sender waits, once."""

from __future__ import annotations

from pathlib import Path

from .shop import HERE, shop
from .test_posting import Receiver, receiver

__all__ = ["receiver"]

BUILT_IN = """
  webhook now {
    verify: none
    on: Incident.CreateIncident { entity_id: payload.id  title: payload.title }
    idempotency_key: payload.event
    for_each: %s
  }
"""
ONE = BUILT_IN.replace("for_each: %s", "")
MANY = (
    BUILT_IN.replace("payload.id", "item.id")
    .replace("payload.title", "item.title")
    .replace("payload.event", "item.event")
    % "payload.events"
)


def run_by(function: str) -> str:
    return f"""
      webhook now {{
        verify: none
        on: Order.Ship {{ id: payload.id }}
        idempotency_key: payload.event
      }}
      queue done {{}}
      command Order.Ship {{ run: python "{HERE}:{function}" }}
    """


async def test_s2_46_a_webhook_without_a_queue_runs_its_command_at_once(tmp_path: Path) -> None:
    async with shop(tmp_path, ONE) as it:
        reply = await it.hook({"event": "e1", "id": "i", "title": "Disk full"})
        result = {"entity_type": "Incident", "entity_id": "i", "version": 1, "state": None}
        assert (reply.status, reply.json()) == (200, {"ok": True, "idempotency_key": "e1", "result": result})
        again = await it.hook({"event": "e1", "id": "other", "title": "x"})
        assert (again.status, again.json()) == (200, reply.json() | {"duplicate": True})
        found = await it.client.get("/v1/spaces/shop/entities/Incident/i")
        assert found.json()["attributes"] == {"title": "Disk full"}


async def test_a_command_that_is_rejected_is_409_and_may_come_again(tmp_path: Path) -> None:
    async with shop(tmp_path, ONE) as it:
        await it.hook({"event": "e1", "id": "i", "title": "a"})
        reply = await it.hook({"event": "e2", "id": "i", "title": "b"})
        assert (reply.status, reply.code) == (409, "command_rejected")
        assert reply.json()["detail"].startswith("CreateIncident: Incident i is there already. ")


async def test_input_that_cannot_be_made_is_400_with_the_expression_and_what_was_there(
    tmp_path: Path,
) -> None:
    async with shop(tmp_path, ONE) as it:
        reply = await it.hook({"event": "e1", "id": "i"})
        assert (reply.status, reply.code) == (400, "invalid_message")
        assert (
            "title: nothing where a value is needed; payload.title is missing after payload"
            in reply.json()["detail"]
        )


async def test_the_commands_of_one_request_happen_together_or_not_at_all(tmp_path: Path) -> None:
    events = [{"event": "e1", "id": "i", "title": "a"}, {"event": "e2", "id": "j", "title": "b"}]
    async with shop(tmp_path, MANY) as it:
        reply = await it.hook({"events": [*events, events[0] | {"event": "e3"}]})
        assert (reply.status, reply.code) == (409, "command_rejected")
        assert (await it.client.get("/v1/spaces/shop/entities/Incident/i")).status == 404
        reply = await it.hook({"events": [*events, events[0]]})
        assert reply.status == 200
        assert [one.get("duplicate", False) for one in reply.json()["commands"]] == [False, False, True]


async def test_a_function_is_run_while_the_sender_waits_once(tmp_path: Path) -> None:
    async with shop(tmp_path, run_by("ship")) as it:
        reply = await it.hook({"event": "e1", "id": "o"})
        assert (reply.status, reply.json()["result"]) == (200, {"times": 1})
        again = await it.hook({"event": "e1", "id": "o"})
        assert again.json()["result"] == {"times": 1}
        assert await it.data("done") == [{"n": 1}]


async def test_a_function_that_fails_is_500_and_may_come_again(tmp_path: Path) -> None:
    async with shop(tmp_path, run_by("fail")) as it:
        reply = await it.hook({"event": "e1", "id": "o"})
        assert (reply.status, reply.code) == (500, "command_failed")
        assert "raised ValueError: no such total" in reply.json()["detail"]
        assert await it.data("done") == []


async def test_a_request_is_posted_on_while_the_sender_waits(tmp_path: Path, receiver: Receiver) -> None:
    host = f"127.0.0.1:{receiver.port}"
    text = f"""
      webhook now {{ verify: none  on: Order.Page {{ id: payload.id }}  idempotency_key: payload.event }}
      command Order.Page {{ run: http "http://{host}/x"  secret_env: "SIGN" }}
    """
    async with shop(tmp_path, text, commands_http_allow=[host]) as it:
        receiver.answer = (500, {}, b"")
        assert (await it.hook({"event": "e1", "id": "o"})).status == 500
        receiver.answer = (200, {}, b'{"ok":1}')
        assert (await it.hook({"event": "e1", "id": "o"})).json()["result"] == {"ok": 1}
        assert (await it.hook({"event": "e1", "id": "o"})).json()["duplicate"] is True
    assert len(receiver.got) == 2
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
