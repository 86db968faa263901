"""The wire: bodies in every form that services write, answers of every kind, and what is waited after a failure."""

from __future__ import annotations

import base64
import random
from typing import Any

import httpx
import pytest
import trio

from edgequeues.daemon import wire
from edgequeues.daemon.queue import Patience, open_queue
from edgequeues.daemon.wire import Away, Denied, Paused, QueueError, Refused

from .service import QUEUE_ID, URL, Over, Service, encoded
from .working import drain, event, running


def body_of(body: Any, kind: str) -> bytes:
    answer = {"messages": [{"lease_id": "l", "body": body, "metadata": {"CF-Content-Type": kind}}]}
    return wire.pulled(answer).messages[0].body


@pytest.mark.parametrize(
    ("body", "kind", "pushed"),
    [
        (encoded({"n": 1}), "json", b'{"n": 1}'),
        ('{"n": 1}', "json", b'{"n": 1}'),
        (encoded("hello"), "json", b'"hello"'),
        ("hello", "json", b"hello"),
        ("1234", "json", b"1234"),  # base64 too, but of no JSON
        ("null", "json", b"null"),
        ("MTIz", "json", b"123"),
        ("MTIz", "text", b"MTIz"),
        ("grüße", "text", "grüße".encode()),
        (base64.b64encode(b"\x00\xff").decode(), "bytes", b"\x00\xff"),
        (base64.b64encode(b"\x00\xff").decode(), "json", b"\x00\xff"),
        ({"n": 1}, "json", b'{"n":1}'),
    ],
)
def test_bodies_are_read_as_base64_and_as_plain_text(body: Any, kind: str, pushed: bytes) -> None:
    assert body_of(body, kind) == pushed


def test_what_an_answer_lacks_is_made_up_and_what_it_has_more_is_left() -> None:
    answer = {"messages": [{"lease_id": "l", "new": True}, {"body": "no lease"}, 7], "more": 1}
    [message] = wire.pulled(answer).messages
    assert (message.id, message.attempts, message.timestamp_ms, message.body) == ("", 1, 0, b"null")


@pytest.mark.parametrize("answer", [None, [], {}, {"messages": None}, {"messages": {}}, {"metadata": []}])
def test_an_answer_without_messages_is_an_empty_one(answer: Any) -> None:
    assert wire.pulled(answer) == wire.Pulled([], ours=False)


@pytest.mark.parametrize(
    ("metrics", "ours"), [({"edgequeues": 1}, True), ({"edgequeues": 2}, False), ({}, False)]
)
def test_only_a_server_that_says_so_is_ours(metrics: Any, ours: bool) -> None:
    assert wire.pulled({"messages": [], "metadata": {"metrics": metrics}}).ours is ours


@pytest.mark.parametrize(
    ("warnings", "said"),
    [
        ({"l": "late"}, {"l": "late"}),
        ([{"lease_id": "l", "message": "late"}], {"l": "late"}),
        (["late"], {"0": "late"}),
        (None, {}),
    ],
)
def test_warnings_are_a_map_or_a_list(warnings: Any, said: dict[str, str]) -> None:
    assert wire.acked({"warnings": warnings}).warnings == said


@pytest.mark.parametrize(
    "extended",
    [
        {"messages": [{"lease_id": "new", "previous_lease_id": "old"}]},
        {"messages": [{"lease_id": "new", "id": "m"}]},
    ],
)
def test_an_extension_may_rename_leases(extended: Any) -> None:
    assert wire.extended(extended, {"old": "m"}).leases == {"old": "new"}


def test_an_extension_that_says_nothing_leaves_leases_as_they_are_called() -> None:
    assert wire.extended(None, {"old": "m"}).leases == {}


@pytest.mark.parametrize(
    ("path", "queue"),
    [
        (f"/client/v4/accounts/a/queues/{QUEUE_ID}", QUEUE_ID),
        (f"/client/v4/accounts/a/queues/{QUEUE_ID}/messages", QUEUE_ID),
        (f"/client/v4/accounts/a/queues/{QUEUE_ID}/messages/pull", QUEUE_ID),
        ("/client/v4/accounts/a/queues/switchboard-inbox/", "switchboard-inbox"),
    ],
)
def test_the_address_of_a_queue_may_be_that_of_its_messages(path: str, queue: str) -> None:
    at = wire.endpoint("https://queues.example" + path)
    assert (at.account, at.queue) == ("https://queues.example/client/v4/accounts/a", queue)
    assert at.is_name is (queue != QUEUE_ID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "queue",
        "ftp://h/client/v4/accounts/a/queues/q",
        "https://h/queues/q",
        URL + "?x=1",
        "https:///accounts/a/queues/q",
    ],
)
def test_what_is_no_address_of_a_queue_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="accounts/ACCOUNT/queues/QUEUE"):
        wire.endpoint(text)


def test_a_token_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="QUEUE_HTTP_TOKEN") as told:
        wire.endpoint(URL.replace("://", "://user:secret@"))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Denied),
        (403, Denied),
        (404, Denied),
        (405, Denied),
        (400, Refused),
        (413, Refused),
        (409, Paused),
        (429, Away),
        (500, Away),
        (503, Away),
        (302, Away),
    ],
)
def test_statuses_say_whether_to_come_again(status: int, kind: type[QueueError]) -> None:
    with pytest.raises(kind) as told:
        wire.result(status, {"retry-after": "7"}, b'{"success":false,"errors":[{"code":1,"message":"no"}]}')
    assert str(status) in str(told.value) or status == 409
    assert isinstance(told.value, Refused) or told.value.retry_after_s == 7.0


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b"[]", b"{}", b'{"success":true}', b"\xff", b"[" * 100_000]
)
def test_an_answer_of_something_else_is_no_answer(content: bytes) -> None:
    with pytest.raises(Away, match="none of the queue API"):
        wire.result(200, {}, content)


async def test_a_queue_is_found_by_its_name() -> None:
    async with open_queue(
        wire.endpoint(URL.replace(QUEUE_ID, "inbox")), None, calls=Over(Service())
    ) as queue:
        await queue.resolve()
        assert queue.at.queue == QUEUE_ID


async def test_a_queue_that_is_not_there_is_told() -> None:
    async with open_queue(
        wire.endpoint(URL.replace(QUEUE_ID, "nothing")), None, calls=Over(Service())
    ) as queue:
        with pytest.raises(Denied, match="there is no queue nothing"):
            await queue.resolve()


async def test_an_answer_that_never_ends_is_given_up() -> None:
    service = Service()
    service.call_s = 10_000
    async with open_queue(wire.endpoint(URL), None, calls=Over(service)) as queue:
        with pytest.raises(Away, match="in time"):
            await queue.pull(1, 1_000)


def test_pauses_after_failures_are_anything_from_nothing_to_a_bound_that_doubles() -> None:
    patience, error = Patience(first_s=1, max_s=8), Away("gone")
    for failures, bound in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (10_000, 8)]:
        some = [patience.pause_s(failures, error, random.Random(seed)) for seed in range(200)]
        assert all(0 <= pause <= bound for pause in some)
        assert min(some) < bound / 10
        assert max(some) > bound * 9 / 10


def test_a_pause_that_the_service_asks_for_is_kept_to_within_reason() -> None:
    error = Away("busy")
    error.retry_after_s = 40.0
    assert Patience().pause_s(1, error, random.Random(1)) == 40.0
    error.retry_after_s = 1e9
    assert Patience().pause_s(1, error, random.Random(1)) == 300.0


async def test_an_empty_queue_is_asked_ever_more_seldom_but_every_second() -> None:
    service = Service()
    async with running(service):
        await trio.sleep(60)
        assert 55 <= len(service.asked("pull")) <= 65
        before = len(service.asked("pull"))
        service.push(event(1))
        await trio.sleep(1.2)
        assert len(service.acked) == 1
        assert len(service.asked("pull")) > before


async def test_a_service_that_is_away_is_asked_seldom_and_told_of_once() -> None:
    service = Service()
    service.failing = lambda path: httpx.ConnectError("refused") if path == "pull" else None
    async with running(service) as one:
        await trio.sleep(3_600)
        assert 120 <= len(service.asked("pull")) <= 600
        assert len([msg for _, msg, _ in one.lines.said if "nothing can be pulled" in msg]) == 1
        service.failing = lambda path: None
        service.push(event(1))
        await trio.sleep(31)
        assert len(service.acked) == 1
        assert "the service is back" in [msg for _, msg, _ in one.lines.said]


async def test_success_is_never_delayed() -> None:
    service = Service()
    service.push(*[event(n) for n in range(1_000)])
    start_s = trio.current_time()
    await drain(service)
    assert len(service.acked) == 1_000
    assert trio.current_time() - start_s < 0.1


async def test_a_paused_queue_is_waited_for() -> None:
    service = Service()
    service.push(event(1))
    service.failing = lambda path: 409 if path == "pull" else None
    async with running(service) as one:
        await trio.sleep(100)
        assert one.handled.began == []
        service.failing = lambda path: None
        await trio.sleep(31)
        assert one.handled.began == [1]


async def test_one_answer_that_the_service_does_not_take_does_not_hold_up_the_others() -> None:
    service = Service()
    service.push(*[event(n) for n in range(1, 6)])

    def failing(path: str) -> int | None:
        said = service.calls[-1][1]
        return 400 if path == "ack" and {"lease_id": "lease-3"} in said["acks"] else None

    service.failing = failing
    service.call_s = 0.1
    async with running(service) as one:
        await trio.sleep(5)
        assert sorted(int(id, 16) for id in service.acked) == [1, 2, 4, 5]
        assert any("could not be said" in msg for _, msg, _ in one.lines.said)


def test_objects_are_where_the_queue_is_unless_that_is_at_cloudflare() -> None:
    ours = wire.endpoint("http://127.0.0.1:8700/client/v4/accounts/demo/queues/inbox/messages")
    theirs = wire.endpoint("https://api.cloudflare.com/client/v4/accounts/demo/queues/inbox")
    assert (ours.blobs, theirs.blobs) == ("http://127.0.0.1:8700/blobs/demo", "")
