"""The worker whose handler blocks, against a real server."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from edgequeues.client import (
    GiveUp,
    Handled,
    Message,
    NewEntry,
    Refused,
    SyncClient,
    SyncWorker,
    Tally,
    TryAgain,
)
from edgequeues.testing import RunningServer, running

Q = "dxn:queue:demo:jobs"


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with running() as server, SyncClient(server.url) as client:
        client.push(Q, [{"n": n} for n in range(4)])
        yield server


def left(server: RunningServer) -> list[str]:
    """The states of the messages that are not finished."""
    with SyncClient(server.url) as client:
        return [one.state for one in client.peek(Q).messages]


def test_messages_are_handled_in_the_thread_of_run_and_in_their_order(server: RunningServer) -> None:
    seen, threads = list[object](), set[int]()

    def handle(message: Message) -> None:
        seen.append(message.data)
        threads.add(threading.get_ident())

    assert SyncWorker(server.url, Q, handle).run(until="empty") == Tally(acked=4)
    assert seen == [{"n": n} for n in range(4)]
    assert threads == {threading.get_ident()}
    assert left(server) == []


def test_as_many_handlers_run_at_once_as_are_asked_for(server: RunningServer) -> None:
    together = threading.Barrier(4)

    def handle(message: Message) -> None:
        together.wait(10)  # broken, and the message retried, unless all four are here

    assert SyncWorker(server.url, Q, handle, concurrency=4).run(until="empty") == Tally(acked=4)


def test_what_handlers_raise_says_what_becomes_of_messages(server: RunningServer) -> None:
    def handle(message: Message) -> None:
        if message.data == {"n": 0}:
            raise GiveUp("nobody can")
        if message.data == {"n": 1}:
            raise TryAgain("later", delay_ms=60_000)
        if message.data == {"n": 2}:
            raise LookupError("what?")

    told: list[Handled] = []
    tally = SyncWorker(server.url, Q, handle, on_handled=told.append).run(until="once")
    assert (tally.acked, tally.given_up) == (0, 1)  # one pull gave one message: there is one handler
    worker = SyncWorker(server.url, Q, handle, batch=3, on_handled=told.append)
    assert worker.run(until="once") == Tally(acked=1, retried=2)
    errors = {one.error for one in told}
    assert errors == {"nobody can", "later", "LookupError: what?", None}


def test_stop_lets_the_handler_finish_and_gives_the_rest_back(server: RunningServer) -> None:
    seen: list[object] = []

    def handle(message: Message) -> None:
        seen.append(message.data)
        worker.stop()

    worker = SyncWorker(server.url, Q, handle, batch=4)
    assert worker.run() == Tally(acked=1, released=3)
    assert seen == [{"n": 0}]
    assert left(server) == ["ready"] * 3


def test_a_stop_that_comes_before_run_counts(server: RunningServer) -> None:
    worker = SyncWorker(server.url, Q, lambda message: None)
    worker.stop()
    assert worker.run() == Tally()


def test_the_first_ctrl_c_lets_the_handler_finish(server: RunningServer) -> None:
    def handle(message: Message) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    worker = SyncWorker(server.url, Q, handle, batch=4)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert worker.tally == Tally(acked=1, released=3)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ctrl_c_interrupts_it_and_its_message_is_given_back(server: RunningServer) -> None:
    def handle(message: Message) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    worker = SyncWorker(server.url, Q, handle)
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert worker.tally == Tally(released=1)
    assert left(server) == ["ready"] * 4


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_handler_that_exits_ends_the_run_and_its_message_is_given_back(
    server: RunningServer, concurrency: int
) -> None:
    def handle(message: Message) -> None:
        if message.data == {"n": 0}:
            sys.exit(3)

    with pytest.raises(SystemExit):
        SyncWorker(server.url, Q, handle, concurrency=concurrency).run()
    assert "ready" in left(server)


def test_a_lease_is_kept_while_its_handler_runs(server: RunningServer) -> None:
    """Each move of the server's clock is near the end of the lease; only extensions between them keep it."""
    extended = threading.Event()

    def handle(message: Message) -> None:
        if message.data == {"n": 0}:
            for _ in range(3):
                server.clock.advance(700)
                extended.wait(0.6)  # a beat is a third of a second

    worker = SyncWorker(server.url, Q, handle, lease_ms=1_000)
    assert worker.run(until="empty") == Tally(acked=4)


def test_a_refusal_ends_run_with_the_error(server: RunningServer) -> None:
    with pytest.raises(Refused):
        SyncWorker(server.url, "dxn:queue:demo:nothing", lambda message: None).run()


def test_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="concurrency"):
        SyncWorker("http://127.0.0.1:1", Q, lambda message: None, concurrency=0)


def test_a_message_that_is_due_later_is_waited_for(server: RunningServer) -> None:
    later = "dxn:queue:demo:later"
    with SyncClient(server.url) as client:
        client.push(later, [NewEntry({"n": 9}, delay_ms=3_600_000)])

    def handle(message: Message) -> None:
        worker.stop()

    worker = SyncWorker(server.url, later, handle)
    moved = threading.Timer(0.2, server.clock.advance, [3_600_000])
    moved.start()
    assert worker.run() == Tally(acked=1)
    moved.join()
