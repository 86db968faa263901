"""What workerd's queue binding sends, and what it is told."""

from __future__ import annotations

from typing import Any

import pytest

from .asgi import Client
from .cloudflare_queue import QUEUES, find, ok, refusal

OF = (b"edgequeues-queue", b"demo/jobs")


async def sent(client: Client, path: str, body: bytes, *headers: tuple[bytes, bytes]) -> Any:
    reply = await client.ask("POST", path, body, headers=[OF, *headers])
    return reply.json() if reply.status == 200 else refusal(reply)


async def test_a_binding_makes_the_queue_with_a_consumer_to_pull_as(client: Client) -> None:
    answer = await sent(client, "/message", b'\xff\x0f"\x01k', (b"x-msg-fmt", b"v8"))
    assert answer["metadata"]["metrics"]["backlogCount"] == 1
    await sent(
        client, "/message", "n\u00e4chste".encode(), (b"x-msg-fmt", b"text"), (b"x-msg-delay-secs", b"0")
    )
    queue = await find(client, "jobs")
    first, second = await queue.pull()
    assert (first["body"], first["metadata"]["CF-Content-Type"]) == ("/w8iAWs=", "v8")
    assert first["metadata"]["CF-sourceMessageSource"] == "worker"
    assert (second["body"], second["metadata"]["CF-msg-delay-secs"]) == ("n\u00e4chste", "0")


BATCH = b'{"messages":[{"body":"eA==","contentType":"text"},{"body":"%b","contentType":"json"}]}'
BAD_BINDINGS: list[tuple[str, bytes, list[tuple[bytes, bytes]], tuple[int, int]]] = [
    ("/message", b"{", [(b"x-msg-fmt", b"json")], (400, 10208)),
    ("/message", b"\xff", [(b"x-msg-fmt", b"text")], (400, 10207)),
    ("/message", b"x", [(b"x-msg-fmt", b"xml")], (400, 10203)),
    ("/message", b"x", [(b"x-msg-fmt", b"text"), (b"x-msg-delay-secs", b"86401")], (400, 10203)),
    ("/message", b"x", [(b"x-msg-fmt", b"text"), (b"x-msg-delay-secs", b"soon")], (400, 10203)),
    ("/message", b"x" * 128_001, [(b"x-msg-fmt", b"text")], (413, 10204)),
    ("/batch", b'{"messages":[]}', [], (400, 10207)),
    ("/batch", BATCH % b"!", [], (400, 10207)),
    ("/batch", BATCH % b"eA==", [], (400, 10208)),
    ("/batch", BATCH % b"MQ==", [(b"x-msg-delay-secs", b"86401")], (400, 10202)),
    ("/batch", b'{"messages":[%b]}' % b",".join([b'{"body":"eA=="}'] * 101), [], (413, 10206)),
]


@pytest.mark.parametrize(("path", "body", "headers", "said"), BAD_BINDINGS)
async def test_what_a_binding_sends_is_checked_here_since_it_checks_nothing(
    client: Client, path: str, body: bytes, headers: list[tuple[bytes, bytes]], said: tuple[int, int]
) -> None:
    assert await sent(client, path, body, *headers) == said
    assert ok(await client.get(QUEUES)) == []


async def test_a_binding_without_a_queue_is_told_how_to_name_one(client: Client) -> None:
    reply = await client.ask("POST", "/message", b"x")
    assert refusal(reply) == (400, 10026)
    assert "injectRequestHeaders" in reply.json()["errors"][0]["message"]
    for value in (b"jobs", b"demo/", b"no.space/jobs"):
        reply = await client.ask("POST", "/message", b"x", headers=[(b"edgequeues-queue", value)])
        assert refusal(reply)[0] == 400
