"""The outbox is paid: each reply once if nothing breaks, at least once if something does, under one key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
import trio

from edgequeues.daemon import wire
from edgequeues.daemon.outbox import ACK_S_MAX, IDLE_S, VISIBILITY_MS, Outgoing, pay, queued
from edgequeues.daemon.queue import open_queue
from edgequeues.daemon.sending.sender import Providers, open_sender

from .replies import ASKER, MAIL, Counts, Lines, mailed
from .service import URL, Over, Service

WORKER = Providers(outbound_url="https://out.example.com", outbound_token="t", email_from="shop@example.com")
TAKEN = httpx.Response(202)

Answer = Callable[[httpx.Request], Awaitable[httpx.Response]]


def entry(number: int = 1) -> Any:
    """A reply as it lies in the outbox."""
    return msgspec.to_builtins(queued(mailed(id=f"event-{number:03}"), MAIL))


class Worker:
    """An outbound worker that takes its time. asked: keys and Message-IDs."""

    def __init__(self, *answers: httpx.Response, takes_s: float = 0.0) -> None:
        self.asked: list[tuple[str, str]] = []
        self.busy = self.busiest = 0
        self.taken = 0
        self._answers = list(answers) or [TAKEN]
        self._takes_s = takes_s

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(
            (request.headers["idempotency-key"], json.loads(request.content)["headers"]["Message-ID"])
        )
        self.busy += 1
        self.busiest = max(self.busy, self.busiest)
        try:
            await trio.sleep(self._takes_s)
        finally:
            self.busy -= 1
        self.taken += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@asynccontextmanager
async def paying(
    service: Service, worker: Worker, *, lines: Lines | None = None, concurrency: int = 8
) -> AsyncIterator[tuple[trio.Event, trio.CancelScope]]:
    """A process that pays the outbox; ends when it is told to stop, or at once with the scope."""
    stopping = trio.Event()
    async with (
        open_queue(wire.endpoint(URL), None, calls=Over(service)) as queue,
        open_sender(WORKER, transport=httpx.MockTransport(worker)) as sender,
        trio.open_nursery() as nursery,
    ):
        logger = (lines or Lines()).logger

        async def run() -> None:
            await pay(queue, sender, stopping, logger=logger, concurrency=concurrency)

        nursery.start_soon(run)
        yield stopping, nursery.cancel_scope
        stopping.set()


async def test_what_lies_in_the_outbox_is_sent_and_acked() -> None:
    service, worker = Service(ours=True), Worker(takes_s=1.0)
    service.push(*map(entry, range(20)))
    async with paying(service, worker, concurrency=4):
        await trio.sleep(10)
    assert sorted(key for key, _ in worker.asked) == [f"event-{number:03}:reply" for number in range(20)]
    assert worker.busiest == 4
    assert (service.left, service.dead) == ([], {})
    assert service.asked("pull")[0] == {"batch_size": 4, "visibility_timeout_ms": VISIBILITY_MS}


async def test_what_comes_later_is_sent_soon() -> None:
    service, worker = Service(ours=True), Worker()
    async with paying(service, worker):
        await trio.sleep(60)
        service.push(entry())
        await trio.sleep(IDLE_S + 0.1)
        assert service.left == []
    assert len(service.asked("pull")) < 70


async def test_one_that_was_sent_by_a_process_that_died_is_sent_again_under_the_same_name() -> None:
    service, worker = Service(ours=True), Worker()
    service.push(entry())
    service.failing = lambda path: httpx.ReadError("reset") if path == "ack" else None
    async with paying(service, worker) as (_, scope):
        await trio.sleep(1)
        scope.cancel()
    service.failing = lambda path: None
    async with paying(service, worker):
        await trio.sleep(VISIBILITY_MS / 1_000)
    first, second = worker.asked
    assert first == second == ("event-001:reply", "<event-001~reply@example.com>")
    assert service.left == []


async def test_one_whose_ack_was_lost_is_acked_and_not_sent_again_by_the_same_process() -> None:
    service, worker, lines = Service(ours=True), Worker(), Lines()
    service.push(entry())
    service.failing = lambda path: 503 if path == "ack" else None
    async with paying(service, worker, lines=lines):
        await trio.sleep(ACK_S_MAX + 1)
        assert any("ack was lost" in line.get("event", "") for line in lines.said)
        service.failing = lambda path: None
        await trio.sleep(VISIBILITY_MS / 1_000)
    assert len(worker.asked) == 1
    assert service.left == []


async def test_an_ack_is_said_again_while_the_service_is_away() -> None:
    service, worker = Service(ours=True), Worker()
    service.push(entry())
    failures: list[int | Exception] = [httpx.ConnectError("x"), 503, 502]
    service.failing = lambda path: failures.pop() if path == "ack" and failures else None
    async with paying(service, worker):
        await trio.sleep(ACK_S_MAX)
        assert service.left == []


async def test_a_reply_that_did_not_leave_is_tried_again_later_and_each_time_later() -> None:
    service, worker = Service(ours=True), Worker(httpx.Response(500), httpx.Response(500), TAKEN)
    service.push(entry())
    async with paying(service, worker):
        await trio.sleep(20)
    delays = [retry["delay_seconds"] for said in service.asked("ack") for retry in said["retries"]]
    assert delays == [5, 10]
    assert service.left == []
    assert (
        service.stored[next(iter(service.stored))].errors
        == ["REPLY_EMAIL_SEND_FAILED: the outbound worker answered 500"] * 2
    )


async def test_a_pause_that_the_provider_asks_for_is_kept() -> None:
    service = Service(ours=True)
    service.push(entry())
    async with paying(service, Worker(httpx.Response(429, headers={"retry-after": "77"}), TAKEN)):
        await trio.sleep(1)
    [said] = service.asked("ack")
    assert [retry["delay_seconds"] for retry in said["retries"]] == [77]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (entry(), "REPLY_EMAIL_SEND_FAILED"),
        (entry() | {"reply": {"channel": "email", "to": ["a\nb"], "text": "x"}}, "POLICY_VIOLATION"),
        ({"no": "reply"}, "MALFORMED_EVENT"),
        (entry() | {"reply": {"channel": "fax"}}, "MALFORMED_EVENT"),
        (entry() | {"id": "a\r\nb"}, "MALFORMED_EVENT"),
    ],
)
async def test_a_reply_that_can_never_leave_is_a_dead_letter_and_the_others_leave(
    body: Any, code: str
) -> None:
    service, lines = Service(ours=True), Lines()
    refusal = httpx.Response(400, json={"message": f"not to {ASKER}"})
    worker = Worker(*[refusal] * (code == "REPLY_EMAIL_SEND_FAILED"), TAKEN)
    service.push(body, entry(2), entry(3))
    async with paying(service, worker, lines=lines, concurrency=1):
        await trio.sleep(1)
    first, *others = service.stored
    [(dead, error)] = service.dead.items()
    assert (dead, service.acked) == (first, others)
    assert error.startswith(f"{code}: ")
    assert ASKER not in error + repr(lines.said)


async def test_a_fault_of_ours_is_told_by_its_name_alone_and_tried_again() -> None:
    class Faulty:
        async def send(self, outgoing: Outgoing) -> None:
            raise KeyError(ASKER)

    service, lines, stopping = Service(ours=True), Lines(), trio.Event()
    service.push(entry())
    async with (
        open_queue(wire.endpoint(URL), None, calls=Over(service)) as queue,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(lambda: pay(queue, Faulty(), stopping, logger=lines.logger))
        await trio.sleep(1)
        stopping.set()
    [said] = service.asked("ack")
    assert list(said["errors"].values()) == ["CONSUMER_HANDLER_ERROR: KeyError"]
    assert ASKER not in repr(lines.said)


async def test_when_it_stops_no_pull_begins_and_what_is_being_sent_is_sent_and_acked() -> None:
    service, worker = Service(ours=True), Worker(takes_s=5.0)
    service.push(*map(entry, range(20)))
    async with paying(service, worker, concurrency=4) as (stopping, _):
        await trio.sleep(1)
        stopping.set()
    assert len(service.asked("pull")) == 1
    assert (worker.taken, len(service.acked)) == (4, 4)


async def test_what_a_pull_brings_when_it_has_stopped_is_given_back_at_once() -> None:
    service, worker = Service(ours=True), Worker()
    service.push(*map(entry, range(3)))
    service.call_s = 2.0
    async with paying(service, worker) as (stopping, _):
        await trio.sleep(1)
        stopping.set()
    [said] = service.asked("ack")
    assert (len(said["retries"]), worker.asked) == (3, [])
    assert all(one.lease is None for one in service.left)


async def test_a_reply_that_was_sent_is_acked_even_if_all_is_cancelled_meanwhile() -> None:
    service, worker = Service(ours=True), Worker()
    service.push(entry())
    service.call_s = 2.0
    async with paying(service, worker) as (_, scope):
        await trio.sleep(3)  # the pull has taken two, the ack is under way
        assert worker.taken == 1
        scope.cancel()
    assert service.left == []


async def test_an_outbox_that_cannot_be_pulled_is_asked_less_and_less_and_is_paid_when_it_is_back() -> None:
    service, worker, counts = Service(ours=True), Worker(), Counts()
    service.push(entry())
    service.failing = lambda path: 503
    async with paying(service, worker):
        await trio.sleep(600)
        assert len(service.asked("pull")) < 120
        service.failing = lambda path: None
        await trio.sleep(31)
        assert service.left == []
    assert counts == []
