"""The pages about providers say what is checked, and what they show to try with curl is signed as they say."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from edgequeues.core.signature_schemes import SCHEMES
from edgequeues.core.signatures import Signed, scheme_of, verifier
from tests.house import tree

INDEX = "docs/providers/README.md"
PAGES = [path for path in tree.documents() if path.startswith("docs/providers/") and path != INDEX]

ROW = re.compile(
    r"^\| \[[^]]+\]\([a-z-]+\.md\) \| `(\w+)` \| (.+?) \| .+? \| (.+?) \| (.+?) \|$", re.MULTILINE
)
WEBHOOK = r"webhook {} \{{.*?header: \"(.+?)\"\s+secret_env: \[?\"(.+?)\""
SECRETS = {"EVENTS_WEBHOOK_SECRET": "whsec_" + base64.b64encode(b"\x00\xffa dummy key").decode()}
OF_SHOP = {"prefix": "sha256=", "timestamp_header": "X-Shop-Time"}

needs_tools = pytest.mark.skipif(
    not all(map(shutil.which, ["curl", "openssl", "base64", "od"])),
    reason="the examples want curl and openssl",
)


class Received(HTTPServer):
    """Takes requests and keeps them."""

    def __init__(self) -> None:
        self.requests: list[Signed] = []
        super().__init__(("127.0.0.1", 0), Receive)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Receive(BaseHTTPRequestHandler):
    server: Received

    def do_POST(self) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_form = "form-urlencoded" in self.headers["Content-Type"]
        self.server.requests.append(Signed(headers, body, self.server.origin + self.path, is_form))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def received() -> Iterator[Received]:
    with Received() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def examples() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        yield from ((path, block) for language, block in tree.code_blocks(path) if language == "sh")


@needs_tools
@pytest.mark.parametrize(("path", "block"), list(examples()))
def test_what_is_shown_to_try_is_genuine(path: str, block: str, received: Received) -> None:
    variables = {name: SECRETS.get(name, f"dummy {name}") for name in re.findall(r"[A-Z]+_[A-Z_]+", block)}
    block = block.replace("http://127.0.0.1:8700", received.origin)
    subprocess.run(
        ["/bin/sh", "-ec", block], env={"PATH": "/usr/bin:/bin", **variables}, check=True, timeout=30
    )
    [request] = received.requests
    hook = request.url.rpartition("/")[2]
    found = re.search(WEBHOOK.format(hook), tree.text(path), re.DOTALL)
    assert found, f"no webhook {hook} in a spec of the page"
    header, secret = found[1], variables[found[2]]
    scheme = "token" if hook == "Telegram" else scheme_of(header) or "hmac"
    settings: dict[str, Any] = OF_SHOP if hook == "Shop" else {}
    assert verifier(scheme, header=header, secrets=[secret], **settings).check(request, time.time()) is None
    refused = verifier(scheme, header=header, secrets=["whsec_AAAA"], **settings).check(request, time.time())
    assert refused is not None
    assert refused.kind == "mismatch"


def test_each_page_shows_a_spec_and_a_request() -> None:
    for path in PAGES:
        assert {"spec", "sh"} <= {language for language, _ in tree.code_blocks(path)}, path


def test_the_table_of_schemes_is_the_one_that_is_checked_by() -> None:
    rows = {scheme: rest for scheme, *rest in ROW.findall(tree.text(INDEX))}
    assert set(rows) == set(SCHEMES) - {"token"}
    for scheme, (headers, timed, ids) in rows.items():
        layouts = SCHEMES[scheme]
        if scheme != "hmac":
            assert set(re.findall("`(.+?)`", headers.lower())) == {row.header.decode() for row in layouts}
            assert timed == ("yes" if layouts[0].is_timed else "no")
        firsts = {place[0] for row in layouts for place in row.event_ids}
        told = {place if isinstance(place, str) else place.decode() for place in firsts}
        assert {name if name in told else name.lower() for name in re.findall("`(.+?)`", ids)} == told
