"""Commands as HTTP requests: signed, at least once under one key, and only to where they may go."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trio
from standardwebhooks import Webhook

from edgequeues.core.errors import CommandFailed, CommandRejected
from edgequeues.spec.calling import Call
from edgequeues.workers.pipe import Job
from edgequeues.workers.posting import Poster, Postponed, Target, open_poster

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TIMEOUT_S = 30.0


class Receiver:
    """Answers as it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b'{"ok":1}')
        self.pause_s = 0.0
        self.got: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                time.sleep(receiver.pause_s)
                status, headers, answer = receiver.answer
                self.send_response(status)
                for name, value in ({"content-length": str(len(answer))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self.server.server_address[1]
        self.target = Target(f"http://127.0.0.1:{self.port}/x?key=hidden", SECRET)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    it = Receiver()
    thread = threading.Thread(target=it.server.serve_forever, args=(0.02,))
    thread.start()
    yield it
    it.server.shutdown()
    thread.join()
    it.server.server_close()


def job(attempt: int = 1) -> Job:
    at_ms = int(time.time() * 1_000)
    return Job(
        "", Call("Incident", "Page", {"title": "Disk full"}), "q_m", attempt, "ops", at_ms, 1_700_000_000_000
    )


@asynccontextmanager
async def posting(*allowed: str) -> AsyncIterator[Poster]:
    async with open_poster(allowed) as poster:
        yield poster


async def test_a_receiver_knows_by_the_vendors_own_check_that_it_is_from_here(receiver: Receiver) -> None:
    async with posting() as poster:
        assert await poster.run(job(), receiver.target, TIMEOUT_S) == '{"ok":1}'
    [(headers, body)] = receiver.got
    assert Webhook(SECRET).verify(body, headers) == {
        "type": "Incident.Page",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "data": {"title": "Disk full"},
    }
    assert headers["host"] == f"127.0.0.1:{receiver.port}"
    assert headers["content-type"] == "application/json"


async def test_all_attempts_are_the_same_request_under_one_key(receiver: Receiver) -> None:
    async with posting() as poster:
        for attempt in (1, 2):
            await poster.run(job(attempt), receiver.target, TIMEOUT_S)
    assert {(headers["idempotency-key"], headers["webhook-id"]) for headers, _ in receiver.got} == {
        ("q_m", "q_m")
    }
    assert len({body for _, body in receiver.got}) == 1


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (b"", '{"status":204}'),
        (b"<p>thanks</p>", '{"status":204}'),
        (b'"' + b"x" * 70_000 + b'"', '{"status":204}'),
    ],
)
async def test_an_answer_that_cannot_be_kept_is_only_its_status(
    receiver: Receiver, body: bytes, result: str
) -> None:
    receiver.answer = (200 if body else 204, {}, body)
    async with posting() as poster:
        given = await poster.run(job(), receiver.target, TIMEOUT_S)
    assert given == result.replace("204", str(receiver.answer[0]))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
async def test_by_most_of_the_400s_it_is_of_no_use_to_try_again(receiver: Receiver, status: int) -> None:
    receiver.answer = (status, {}, b"no")
    async with posting() as poster:
        with pytest.raises(CommandRejected) as caught:
            await poster.run(job(), receiver.target, TIMEOUT_S)
    assert caught.value.detail == f"http://127.0.0.1:{receiver.port}/x answered {status}"


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
async def test_by_others_it_is_tried_again(receiver: Receiver, status: int) -> None:
    receiver.answer = (status, {}, b"later")
    async with posting() as poster:
        with pytest.raises(CommandFailed) as caught:
            await poster.run(job(), receiver.target, TIMEOUT_S)
    assert caught.value.detail == f"http://127.0.0.1:{receiver.port}/x answered {status}"


@pytest.mark.parametrize(("asked", "delay_ms"), [("7", 7_000), ("999999999999", 3_600_000)])
async def test_a_receiver_may_say_when_up_to_an_hour_ahead(
    receiver: Receiver, asked: str, delay_ms: int
) -> None:
    receiver.answer = (429, {"retry-after": asked}, b"")
    async with posting() as poster:
        with pytest.raises(Postponed) as caught:
            await poster.run(job(), receiver.target, TIMEOUT_S)
    assert caught.value.delay_ms == delay_ms


async def test_a_redirect_is_told_and_not_followed(receiver: Receiver) -> None:
    receiver.answer = (307, {"location": f"http://127.0.0.1:{receiver.port}/y?key=hidden"}, b"")
    async with posting() as poster:
        with pytest.raises(CommandFailed) as caught:
            await poster.run(job(), receiver.target, TIMEOUT_S)
    assert caught.value.detail == (
        f"http://127.0.0.1:{receiver.port}/x answered 307, to http://127.0.0.1:{receiver.port}/y;"
        " redirects are not followed, so have the spec name that"
    )
    assert len(receiver.got) == 1


async def test_a_receiver_that_is_slow_is_not_waited_for(receiver: Receiver) -> None:
    receiver.pause_s = 1.0
    async with posting() as poster:
        with pytest.raises(CommandFailed) as caught:
            await poster.run(job(), receiver.target, 0.1)
    assert caught.value.detail == f"http://127.0.0.1:{receiver.port}/x did not answer within 100 ms"


async def test_a_receiver_that_is_down_is_told(receiver: Receiver) -> None:
    sock = trio.socket.socket()
    await sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]  # nobody listens
    async with posting() as poster:
        with pytest.raises(CommandFailed, match=f"http://127.0.0.1:{port}/x cannot be reached: "):
            await poster.run(job(), Target(f"http://127.0.0.1:{port}/x", SECRET), TIMEOUT_S)
    sock.close()


class Names(trio.abc.HostnameResolver):
    """Every name is at these addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked = 0

    async def getaddrinfo(self, host: Any, port: Any, *_: Any, **__: Any) -> Any:
        self.asked += 1
        return [(trio.socket.AF_INET, trio.socket.SOCK_STREAM, 6, "", (one, port)) for one in self.addresses]

    async def getnameinfo(self, sockaddr: Any, flags: Any) -> Any:
        raise NotImplementedError


async def tried(addresses: Sequence[str], port: int, *allowed: str) -> tuple[str, int]:
    """Post to a name; the answer, and how often the name was looked up."""
    names = Names(*addresses)
    trio.socket.set_custom_hostname_resolver(names)
    async with posting(*allowed) as poster:
        try:
            return await poster.run(
                job(), Target(f"http://ops.example.com:{port}/x", SECRET), TIMEOUT_S
            ), names.asked
        except CommandFailed as error:
            return error.detail, names.asked


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "::1"])
async def test_a_name_that_leads_to_a_private_address_is_refused(receiver: Receiver, address: str) -> None:
    told, _ = await tried([address], receiver.port)
    assert told == (
        f"http://ops.example.com:{receiver.port}/x: ops.example.com is {address}, which is not public;"
        " the setting commands_http_allow must list its network"
    )
    assert receiver.got == []


async def test_a_network_that_is_listed_may_be_reached_by_name(receiver: Receiver) -> None:
    told, asked = await tried(["10.9.9.9", "127.0.0.1"], receiver.port, "ops.example.com", "127.0.0.0/8")
    assert json.loads(told) == {"ok": 1}
    assert asked == 1  # no second look that could be answered otherwise
    assert receiver.got[0][0]["host"] == f"ops.example.com:{receiver.port}"
