"""Mails and text messages into a real server: by the scripts of the docs, over a kill, with media of a real host."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from twilio.request_validator import RequestValidator  # type: ignore[import-untyped]

from tests.house import tree

from .process import Running, command, environment, serving

PAGE = "docs/protocol/ingest.md"
TOKEN = "twilio-dummy-auth-token"
MAIL = b"From: ann@example.com\nTo: list@example.com\nMessage-ID: <m%d@example.com>\nSubject: Hi\n\nHello.\n"
INBOX = "/v1/dxn:queue:switchboard:switchboard-inbox"
MAILS = 300


def block(language: str) -> str:
    """The one block of the page in that language."""
    [found] = [text for kind, text in tree.code_blocks(PAGE) if kind == language]
    return found


async def inbox(server: Running, **headers: str) -> list[dict[str, Any]]:
    """The events that a server has."""
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as client:
        answer = await client.get(f"{INBOX}?limit=1000")
        return [] if answer.status_code == 404 else [one["data"] for one in answer.json()["entries"]]


async def token(data: Path, *verbs: str) -> str:
    made = await command("token", "create", verbs[0], "--verbs", ",".join(verbs), "--data", str(data))
    return made.stdout.decode().strip()


async def ran(*args: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> int:
    done = await trio.run_process(
        [*args],
        stdin=stdin,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        env=environment() | dict(variables or {}),
    )
    return done.returncode


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_the_script_for_postfix_hands_a_mail_over_or_has_it_kept(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        secret = await token(tmp_path / "data", "ingest")
        config = tmp_path / "mail.curl"
        config.write_text(f'header = "Authorization: Bearer {secret}"\n')
        script = tmp_path / "to-edgequeues"
        text = block("sh").replace("/etc/edgequeues/mail.curl", str(config))
        assert "http://127.0.0.1:8700" in text
        script.write_text(text.replace("http://127.0.0.1:8700", server.url))
        await trio.sleep(1)  # for the server to see the token
        arguments = ("sh", str(script), "ann@example.com", "desk@example.org")
        assert await ran(*arguments, stdin=MAIL % 1) == 0
        reader = await token(tmp_path / "data", "read")
        await trio.sleep(1)
        [event] = await inbox(server, authorization=f"Bearer {reader}")
        assert event["participants"]["toEmail"] == "desk@example.org"
        config.write_text('header = "Authorization: Bearer eq_x_y"\n')
        assert await ran(*arguments, stdin=MAIL % 2) == os.EX_TEMPFAIL
        await server.stop()
        assert await ran(*arguments, stdin=MAIL % 2) == os.EX_TEMPFAIL


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
async def test_the_email_worker_hands_a_mail_over_or_throws(tmp_path: Path) -> None:
    (tmp_path / "worker.mjs").write_text(block("js"))
    (tmp_path / "run.mjs").write_text(
        'import worker from "./worker.mjs";\n'
        f"const raw = new Blob([{(MAIL % 1).decode()!r}]).stream();\n"
        'await worker.email({ from: "ann@example.com", to: "desk@example.org", raw }, process.env);\n'
    )
    async with serving(tmp_path / "data") as server:
        variables = {"EDGEQUEUES_URL": server.url, "EDGEQUEUES_TOKEN": "not asked for"}
        assert await ran("node", str(tmp_path / "run.mjs"), variables=variables) == 0
        [event] = await inbox(server)
        assert event["participants"]["toEmail"] == "desk@example.org"
        await server.stop()
        assert await ran("node", str(tmp_path / "run.mjs"), variables=variables) != 0


async def test_mails_that_were_answered_before_a_kill_are_there_and_their_repeats_are_known(
    tmp_path: Path,
) -> None:
    answered: dict[int, str] = {}
    enough = trio.Event()

    async def send(url: str, numbers: Iterator[int]) -> None:
        async with httpx.AsyncClient(base_url=url) as client:
            for number in numbers:
                try:
                    answer = await client.post(
                        "/ingest/email", content=MAIL % number, headers={"content-type": "message/rfc822"}
                    )
                except httpx.TransportError:
                    return
                assert answer.status_code in (200, 202), answer.text
                answered[number] = answer.json()["eventId"]
                if len(answered) > MAILS // 3:
                    enough.set()

    async with serving(tmp_path / "data") as server:
        numbers = iter(range(MAILS))
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(send, server.url, numbers)
            await enough.wait()
            await server.stop(signal.SIGKILL)
    at_the_kill = dict(answered)
    async with serving(tmp_path / "data") as server:
        there = [event["id"] for event in await inbox(server)]
        assert set(at_the_kill.values()) <= set(there)
        await send(server.url, iter(range(MAILS)))
        found = [event["id"] for event in await inbox(server)]
    assert len(at_the_kill) < MAILS
    assert {number: answered[number] for number in at_the_kill} == at_the_kill
    assert sorted(found) == sorted(answered.values())
    assert len(set(found)) == MAILS


class Pictures(BaseHTTPRequestHandler):
    """A host of media."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", "7")
        self.end_headers()
        self.wfile.write(b"picture")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_text_message_with_a_picture_comes_in_and_nothing_of_it_is_logged(
    tmp_path: Path, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWILIO_AUTH_TOKEN", TOKEN)
    fields = {
        "MessageSid": "MM" + "0" * 32,
        "AccountSid": "AC" + "0" * 32,
        "From": "+15550100001",
        "To": "+15550100002",
        "Body": "Look at this",
        "NumMedia": "1",
        "MediaUrl0": f"{host}/1?key=hidden",
        "MediaContentType0": "image/png",
    }
    async with serving(tmp_path / "data", "--ingest-media-hosts", host, "--log-level", "info") as server:
        url = f"{server.url}/ingest/sms"
        signature = RequestValidator(TOKEN).compute_signature(url, fields)
        async with httpx.AsyncClient() as client:
            answer = await client.post(url, data=fields, headers={"x-twilio-signature": signature})
            assert answer.status_code == 202, answer.text
            [event] = await inbox(server)
            [file] = event["content"]["attachments"]
            got = await client.get(
                f"{server.url}/blobs/switchboard/{file['r2']['bucket']}/{file['r2']['key']}"
            )
            assert got.content == b"picture"
        log = server.log.read_text()
    for secret in ("hidden", "5550100001", "Look at this", TOKEN):
        assert secret not in log
