"""A web server that deals with events as the first tag says, and keeps what it was asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


def _answer(event: dict[str, Any], attempt: str | None) -> tuple[int, dict[str, str], object]:  # noqa: PLR0911
    def note(text: object) -> object:
        return {"artifacts": [{"kind": "note", "note": str(text)}]}

    text = event["content"].get("text", "")
    match event["tags"][0]:
        case "reply" | "dict":
            return 200, {}, {"reply": {"channel": "sms", "body": text}}
        case "artifacts":
            return 201, {}, note(f"attempt {attempt}")
        case "big":
            return 200, {}, note(len(text))
        case "object":
            return 200, {}, note(event["content"]["attachments"][0]["r2"]["presignedGetUrl"])
        case "nonsense":
            return 200, {}, {"reply": {"channel": "smoke"}}
        case "null":
            return 200, {}, None
        case "raise":
            return 500, {}, {"error": "no such thing"}
        case "again":
            return 503, {"retry-after": "7"}, {}
        case "never":
            return 422, {}, {}
        case "hang":
            time.sleep(0.6)
    return 204, {}, None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: list[tuple[dict[str, str], bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.append(({name.lower(): value for name, value in self.headers.items()}, body))
        status, headers, value = _answer(json.loads(body), self.headers.get("x-attempt"))
        said = b"" if status == 204 else json.dumps(value).encode()
        try:
            self.send_response(status)
            for name, one in headers.items():
                self.send_header(name, one)
            if status != 204:
                self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
        except OSError:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """Serve; give the URL, and the headers and body of each request, of which more come."""
    asked: list[tuple[dict[str, str], bytes]] = []
    handler = type("Handler", (_Handler,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/events", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
