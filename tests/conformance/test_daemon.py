"""The consumer daemon against a queue service that others wrote from Cloudflare's documentation, as a process."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from edgequeues.daemon.contract import Artifact, Context, EmailReply, GiveUp, Result
from edgequeues.events.event import SwitchboardEvent
from tests.daemon.working import Daemon, Sent, daemon, drain, event, number, running
from tests.e2e.process import PROGRAM, environment

from .test_cloudflare import free_port, program

SERVER = Path(__file__).parent / "vendor" / "cloudflare" / "reference_server.py"
TOKEN = "a-token"
UNDOCUMENTED = {"permanent", "errors", "results", "emit"}
START_S = 30.0


class Reference:
    """The service, with one queue, and what was asked of it."""

    def __init__(self, url: str, queue: str, dead: str, captures: Path, http: httpx.AsyncClient) -> None:
        self.url, self.dead_url = f"{url}/queues/{queue}", f"{url}/queues/{dead}"
        self._captures = captures
        self._http = http

    async def post(self, url: str, body: Any) -> Any:
        answer = await self._http.post(url, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    async def push(self, *bodies: Any, kind: str = "json") -> None:
        for body in bodies:
            await self.post(f"{self.url}/messages", {"body": body, "content_type": kind})

    async def backlog(self) -> int:
        count: int = (await self._http.get(f"{self.url}/metrics")).json()["result"]["backlog_count"]
        return count

    async def letters(self) -> list[Any]:
        """What was pushed to the queue for dead letters."""
        seen = await self.post(f"{self.dead_url}/messages/peek", {"batch_size": 100})
        return [json.loads(base64.b64decode(one["body"])) for one in seen["messages"]]

    def asked(self, path: str) -> list[Any]:
        """Bodies of all requests of a kind."""
        calls = [json.loads(line) for line in self._captures.read_text().splitlines()]
        return [json.loads(one["body"]) for one in calls if one["target"].endswith(path)]


@pytest.fixture
async def reference(tmp_path: Path) -> AsyncIterator[Reference]:
    async with serving(tmp_path) as one:
        yield one


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Reference]:
    port, captures = free_port(), folder / "captures.jsonl"
    url = f"http://127.0.0.1:{port}/client/v4/accounts/demo"
    args = (sys.executable, str(SERVER), "--port", str(port), "--quiet", "--capture", str(captures))
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        program(folder / "reference.log", *args, cwd=folder),
        httpx.AsyncClient(trust_env=False, headers=headers) as http,
    ):
        with trio.fail_after(START_S):
            while True:
                try:
                    inbox, dead = [
                        (await http.post(f"{url}/queues", json={"queue_name": name})).json()["result"][
                            "queue_id"
                        ]
                        for name in ("inbox", "inbox-dlq")
                    ]
                    break
                except httpx.ConnectError:
                    await trio.sleep(0.05)
        one = Reference(url, inbox, dead, captures, http)
        await one.post(f"{one.url}/consumers", {"type": "http_pull", "settings": {"max_retries": 9}})
        yield one


def rules(reference: Reference, **more: Any) -> dict[str, Any]:
    return {"url": reference.url, "dead_url": reference.dead_url, "token": TOKEN, "dead": True, **more}


async def emptied(reference: Reference, one: Daemon) -> None:
    """Wait until the queue is empty, and let the daemon stop."""
    with trio.fail_after(30):
        while True:
            if not await reference.backlog():
                break
            await trio.sleep(0.05)
    one.batches.stop(grace_s=0)


async def test_events_are_handled_acked_and_never_seen_again(reference: Reference) -> None:
    await reference.push(*[event(n) for n in range(1, 41)])
    one = await drain(None, **rules(reference))
    assert one.handled.ended == list(range(1, 41))
    assert await reference.backlog() == 0
    assert await reference.letters() == []


async def test_bodies_of_every_content_type_are_understood(reference: Reference) -> None:
    raw = json.dumps(event(3)).encode()
    await reference.push(event(1), kind="json")
    await reference.push(json.dumps(event(2)), kind="text")
    await reference.push(base64.b64encode(raw).decode(), kind="bytes")
    one = await drain(None, **rules(reference))
    assert one.handled.ended == [1, 2, 3]


async def test_a_failed_message_is_handed_out_again_and_a_late_success_acks_it(reference: Reference) -> None:
    await reference.push(event(1))

    async def third_time(_: SwitchboardEvent, ctx: Context) -> None:
        if len(one.handled.began) < 3:
            raise ValueError("not yet")

    async with running(None, third_time, **rules(reference, on_error="0")) as one:
        await emptied(reference, one)
    assert one.handled.began == [1, 1, 1]
    assert await reference.letters() == []


async def test_the_last_attempt_and_whatever_is_malformed_end_in_the_dead_letter_queue(
    reference: Reference,
) -> None:
    await reference.push(event(1), {"not": "an event"})
    await reference.push("neither JSON", kind="text")

    async def fails(_: SwitchboardEvent, ctx: Context) -> None:
        raise ValueError("no such order")

    async with running(None, fails, **rules(reference, on_error="0", queue_max_attempts=3)) as one:
        await emptied(reference, one)
    letters = {
        letter["reason"]: letter for letter in await reference.letters() if "original_encoding" not in letter
    }
    assert letters["max_attempts"]["original_message"] == event(1)
    assert (letters["max_attempts"]["attempts"], letters["malformed"]["attempts"]) == (3, 1)
    assert letters["malformed"]["original_message"] == {"not": "an event"}
    [other] = [letter for letter in await reference.letters() if "original_encoding" in letter]
    assert base64.b64decode(other["original_message"]) == b"neither JSON"
    for letter in await reference.letters():
        assert letter["lastError"]
        assert {"firstSeenAt", "lastSeenAt", "original_queue", "original_message_id"} <= set(letter)


async def test_nothing_but_what_is_documented_is_said(reference: Reference) -> None:
    await reference.push(*[event(n) for n in range(1, 5)])

    async def everything(it: SwitchboardEvent, ctx: Context) -> Result:
        if number(it) == 1:
            raise GiveUp("never")
        if number(it) == 2 and one.handled.began.count(2) == 1:
            raise ValueError("not now")
        return Result(reply=EmailReply(text="hi"), artifacts=[Artifact(kind="note")])

    replies = Sent("inbox-outbox")
    async with running(None, everything, **rules(reference, on_error="0", replies=replies)) as one:
        await emptied(reference, one)
    said = reference.asked("/ack")
    assert not UNDOCUMENTED & {name for body in said for name in body}
    assert {name for body in said for item in body["retries"] for name in item} == {
        "lease_id",
        "delay_seconds",
    }
    assert sorted(replies.sent) == ["event-0002", "event-0003", "event-0004"]


async def test_leases_are_extended_under_their_new_names(reference: Reference) -> None:
    """Four seconds of work in leases of three."""
    await reference.push(*[event(n) for n in range(1, 5)])

    async def a_second(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(1)

    brief = {
        "processing_budget_seconds": 2,
        "visibility_margin_seconds": 1,
        "queue_max_concurrent_batches": 1,
    }
    async with running(None, a_second, **rules(reference, **brief)) as one:
        await emptied(reference, one)
    assert one.handled.ended == [1, 2, 3, 4]
    assert reference.asked("/extend")


async def test_two_daemons_share_a_queue_and_handle_each_event_once(reference: Reference) -> None:
    await reference.push(*[event(n) for n in range(1, 61)])

    async def a_while(_: SwitchboardEvent, ctx: Context) -> None:
        await trio.sleep(0.02)

    more = rules(reference, queue_max_batch=5)
    async with (
        daemon(None, a_while, **more) as a,
        daemon(None, a_while, **more) as b,
        trio.open_nursery() as nursery,
    ):
        for one in (a, b):
            nursery.start_soon(one.batches.run, "empty")
    assert sorted(a.handled.ended + b.handled.ended) == list(range(1, 61))
    assert a.handled.ended
    assert b.handled.ended


async def test_a_daemon_that_stops_gives_back_what_it_holds(reference: Reference) -> None:
    await reference.push(*[event(n) for n in range(1, 9)])

    began = trio.Event()

    async def for_ever(_: SwitchboardEvent, ctx: Context) -> None:
        began.set()
        await trio.sleep_forever()

    async with running(None, for_ever, **rules(reference)):
        with trio.fail_after(10):
            await began.wait()
    seen = await reference.post(f"{reference.url}/messages/peek", {"batch_size": 100})
    assert [message["attempts"] for message in seen["messages"]] == [1] * 8


async def test_the_command_line_works_against_it_as_it_is(reference: Reference, tmp_path: Path) -> None:
    """By the name of the queue, with a handler in a file, until nothing is left; then once more, for nothing."""
    (tmp_path / "shop.py").write_text("async def handle(event, ctx):\n    print(event.id, flush=True)\n")
    await reference.push(*[event(n) for n in range(1, 6)], {"not": "an event"})
    account = reference.url.rpartition("/")[0]
    variables = {
        "QUEUE_HTTP_ENDPOINT": f"{account}/inbox",
        "QUEUE_DLQ_ENDPOINT": f"{account}/inbox-dlq/messages",
        "QUEUE_HTTP_TOKEN": TOKEN,
        "PYTHONPATH": str(Path.cwd()),
    }
    for printed in (["ready inbox", *[f"event-{n:04}" for n in range(1, 6)]], ["ready inbox"]):
        with trio.fail_after(60):
            ended = await trio.run_process(
                [*PROGRAM, "consume", "--handler", "shop:handle", "--until-empty"],
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env={**environment(), **variables},
                cwd=tmp_path,
            )
        assert (ended.returncode, ended.stdout.decode().splitlines()) == (0, printed), ended.stderr
    [letter] = await reference.letters()
    assert letter["lastError"].startswith("MALFORMED_EVENT")
    assert await reference.backlog() == 0
