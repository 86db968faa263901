"""The same requests to both fronts, an app of its own behind each: the answers are the same.

Where the two differ is told in docs/adr/0009: what is in ODD or left out here, and the odd frames of test_framing.

EDGEQUEUES_FUZZ_EXAMPLES: how many examples, instead of a few seconds' worth.
"""

from __future__ import annotations

import os
import random
import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgequeues.app import open_app
from edgequeues.http.wire import READ_BYTES
from shards.testing import InlineDisk, TrioClock
from tests.conftest import virtual

from .fronted import FrontName
from .raw import Answer, Bytes, answers, split, talk

LOG = "/v1/dxn:queue:demo:log"
NDJSON = "application/x-ndjson"

# -- what is asked ---------------------------------------------------------------------------------------


class Ask(NamedTuple):
    """A request. sizes: of the chunks of its body, empty: it has a length."""

    method: str
    target: str
    headers: tuple[str, ...]
    body: bytes | None
    sizes: tuple[int, ...]
    version: str = "1.1"

    def encoded(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/{self.version}", "Host: localhost", *self.headers]
        body = b""
        if self.body is not None and self.sizes and self.version == "1.1":
            lines.append("Transfer-Encoding: chunked")
            body = chunked(self.body, self.sizes)
        elif self.body is not None:
            lines.append(f"Content-Length: {len(self.body)}")
            body = self.body
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


LAST = Ask("GET", "/healthz", ("Connection: close",), None, ())


def chunked(body: bytes, sizes: tuple[int, ...]) -> bytes:
    parts, start = [], 0
    for size in (*sizes, len(body)):
        if part := body[start : start + size]:
            parts.append(b"%x\r\n%b\r\n" % (len(part), part))
        start += size
    return b"".join([*parts, b"0\r\n\r\n"])


TARGETS = [
    LOG,
    LOG + "?limit=2",
    LOG + "?limit=2&reverse=true",
    LOG + "?limit=x",
    LOG + "?wait=0.5&after=tail",
    LOG + "/stats",
    LOG + "/config",
    LOG + "/config?x=%FF",
    LOG + ":a",
    LOG + ":01ARZ3NDEKTSV4RRFFQ69G5FAV",
    LOG + "/consumers/c/pull",
    "/v1/dxn:queue:demo:jobs/pull",
    "/v1/dxn:queue:demo:jobs/push",
    "/v1/dxn:queue:demo:jobs",
    "/v1/spaces",
    "/v1/spaces/demo/queues",
    "/v1/no/such/path",
    "/v1/dxn%3Aqueue%3Ademo%3Alog",
    "/v1/%FF",
    "http://localhost" + LOG,
    "/healthz",
    "/readyz",
    "/",
    "/favicon.ico",
    "//",
    "*",
    "/client/v4/accounts/demo/queues",
    "/spaces/data/BA25QRC2FEWCSAMRP4RZL65LWJ7352CKE/queue/01M8FK50DY7H0BK6EN34ZJ2H4K/query",
]
PAGES = ("/", "/favicon.ico", "//")  # read no body; what has not come when they answer ends the connection
METHODS = ["GET", "GET", "POST", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND"]
HEADERS = [
    "Content-Type: application/json",
    "Content-Type: application/json ; charset=utf-8 ",
    f"Content-Type: {NDJSON}",
    "Content-Type: text/plain",
    "Content-Encoding: gzip",
    "Accept-Encoding: gzip, deflate",
    'If-None-Match: W/"none"',
    "Origin: http://localhost:3000",
    "Origin: https://example.org",
    "Access-Control-Request-Method: POST",
    "Access-Control-Request-Headers: content-type,x-one",
    "Authorization: Bearer nobody",
    "X-Forwarded-For: 10.0.0.1",
    "X-Odd: \xe4\xff \t ",
    "Expect: 100-continue",
    "Connection: keep-alive",
    "Connection: close",
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    "Cookie: a=b\r\nCookie: c=d",
    "X-Msg-Fmt: text",
]
BODIES = [
    b"",
    b"{}",
    b'{"entries":[{"data":1},{"data":{"id":"a","n":2}}]}',
    b'{"messages":[{"data":1}]}',
    b'{"mutable":false}',
    b'{"entries":[{"data":"%b"}]}' % (b"x" * 100_000),
    b'{"data":1}\n{"data":2}\nnonsense\n{"data":3}',
    b"not json",
    b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n",
]

asks = st.builds(
    Ask,
    st.sampled_from(METHODS),
    st.sampled_from(TARGETS),
    st.lists(st.sampled_from(HEADERS), max_size=3, unique=True).map(tuple),
    st.one_of(st.none(), st.sampled_from(BODIES).map(Bytes)),
    st.one_of(st.just(()), st.lists(st.integers(1, 70_000), min_size=1, max_size=3).map(tuple)),
    st.sampled_from(["1.1", "1.1", "1.1", "1.1", "1.0"]),
).filter(lambda ask: ask.target not in PAGES or len(ask.body or b"") < READ_BYTES)

# What may end a connection, and the status that each front answers.
ODD: dict[str, tuple[bytes, dict[FrontName, int]]] = {
    "nothing odd": (LAST.encoded(), {"lane": 200, "hypercorn": 200}),
    "an unknown method": (
        b"FOO /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        {"lane": 400, "hypercorn": 405},
    ),
    "a bare LF": (
        b"GET /healthz HTTP/1.1\nHost: localhost\r\nConnection: close\r\n\r\n",
        {"lane": 400, "hypercorn": 200},
    ),
    "a folded value": (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\nConnection: close\r\n\r\n",
        {"lane": 400, "hypercorn": 200},
    ),
    "a control byte": (
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: \x01\r\nConnection: close\r\n\r\n",
        {"lane": 400, "hypercorn": 200},
    ),
    "an empty line": (b"\r\n" + LAST.encoded(), {"lane": 200, "hypercorn": 400}),
}


class Talk(NamedTuple):
    """What is sent over one connection. cuts: where it is cut in pieces; None: behind each request."""

    asks: list[Ask]
    odd: str
    cuts: list[int] | None


talks = st.builds(
    Talk,
    st.lists(asks, min_size=1, max_size=5),
    st.sampled_from(list(ODD)),
    st.one_of(st.none(), st.just([]), st.lists(st.integers(0, 1_000), max_size=5)),
).filter(lambda talk: not talk.cuts or all(ask.body is None or ask.target not in PAGES for ask in talk.asks))

# -- what is answered ------------------------------------------------------------------------------------


async def answered(folder: Path, front: FrontName, script: list[Talk]) -> list[list[Answer]]:
    """The answers on each connection, one connection after the other, over a new app."""
    clock, randomness, found = TrioClock(), random.Random(1), []
    async with open_app(folder, clock=clock, disk=InlineDisk(), randomness=randomness) as app:
        for one in script:
            pieces = [*(ask.encoded() for ask in one.asks), ODD[one.odd][0]]
            raw = await talk(app, front, pieces if one.cuts is None else split(b"".join(pieces), one.cuts))
            given = answers(raw, [ask.method for ask in one.asks])
            if len(given) > len(one.asks):  # the last one is the odd one's
                assert given.pop().status == ODD[one.odd][1][front]
            found.append([plain(answer) for answer in given])
    return found


def plain(answer: Answer) -> Answer:
    """An answer without what may differ."""
    if answer.headers.get(b"content-type") == NDJSON.encode():
        return answer._replace(body=answer.body.rstrip(b"\n").rpartition(b"\n")[2])
    return answer


@settings(
    max_examples=int(os.environ.get("EDGEQUEUES_FUZZ_EXAMPLES", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(script=st.lists(talks, min_size=1, max_size=3))
def test_both_fronts_answer_the_same(script: list[Talk]) -> None:
    found = []
    for front in ("lane", "hypercorn"):
        with tempfile.TemporaryDirectory() as folder:
            found.append(virtual(partial(answered, Path(folder), front, script)))
    for by_lane, by_h11 in zip(*found, strict=True):
        assert by_lane == by_h11
