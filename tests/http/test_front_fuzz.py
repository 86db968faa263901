"""Random bytes at both fronts: whatever comes, and in whatever pieces, ends in answers that are well formed.

EDGEQUEUES_FUZZ_EXAMPLES: how many examples, instead of a few seconds' worth.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgequeues.control import Control
from tests.conftest import virtual

from .fronted import FrontName, only
from .raw import Answer, Asked, Bytes, Heard, answers, opened, said, small_server, split

pytestmark = only("lane", "hypercorn", why="bytes that are no request never reach the app")

EXAMPLES = int(os.environ.get("EDGEQUEUES_FUZZ_EXAMPLES", "150"))
FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
# A head of more than one read is refused a read later. h11 may find a fault in a body before the app has answered.
UNSTEADY: dict[FrontName, tuple[int, ...]] = {"lane": (431,), "hypercorn": (400, 431)}
MANY_LINE_ENDS = re.compile(rb"[\r\n]{5,}")  # before a request: how many are let pass depends on the reads

# -- what is sent ----------------------------------------------------------------------------------------

HOST = b"Host: localhost\r\n"
GOOD = b"GET /short HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
LINES = [
    b"Content-Length: 5\r\n",
    b"Content-Length: 500000\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
    b"Connection: close\r\n",
    b"Connection: keep-alive\r\n",
    b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
    b"Expect: 100-continue\r\n",
    b"Accept-Encoding: gzip\r\n",
    b"Origin: http://localhost:3000\r\n",
    b"X-Long: " + b"x" * 3_000 + b"\r\n",
    b"X-Many: y\r\n" * 120,
    HOST,
]
BODIES = [
    b"",
    b"hello",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"x" * 70_000,
    b"11170\r\n" + b"x" * 70_000 + b"\r\n0\r\n\r\n",
]
TOPS = [
    b"GET /short HTTP/1.1\r\n",
    b"GET /wait HTTP/1.1\r\n",
    b"HEAD /short HTTP/1.1\r\n",
    b"HEAD /wait HTTP/1.1\r\n",
    b"POST /echo HTTP/1.1\r\n",
    b"POST /pour HTTP/1.1\r\n",
    b"POST /ignore HTTP/1.1\r\n",
    b"OPTIONS * HTTP/1.1\r\n",
    b"GET http://localhost/none HTTP/1.1\r\n",
    b"DELETE /short HTTP/1.0\r\n",
    b"POST /pour HTTP/1.0\r\n",
    b"QUERY /short HTTP/1.1\r\n",
]
SPICE = [b"\r\n", b"\n", b"\r", b"\0", b"\xff", b":", b" ", b"\t", b"0\r\n\r\n", b"\r\n\r\n", *LINES[:3]]

requests = st.builds(
    lambda top, lines, body: top + HOST + b"".join(lines) + b"\r\n" + body,
    st.sampled_from(TOPS),
    st.lists(st.sampled_from(LINES), max_size=3),
    st.sampled_from(BODIES),
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Some requests behind one another, with something wrong with them here and there."""
    data = bytearray(b"".join(draw(st.lists(requests, min_size=1, max_size=4))))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, min(len(data), 400)))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            data[at : at + 1] = draw(st.binary(max_size=2))
        elif kind == 1:
            del data[at : at + draw(st.integers(1, 40))]
        elif kind == 2:
            data[at:at] = draw(st.sampled_from(SPICE))
        else:
            data[at:at] = data[: draw(st.integers(1, 200))]
    return Bytes(data)


noise = st.one_of(mutated(), mutated(), mutated(), st.binary(max_size=300).map(Bytes))
cuts = st.lists(st.integers(0, 150_000), max_size=8)

# -- what comes of it ------------------------------------------------------------------------------------


@contextmanager
def nothing_is_an_error() -> Iterator[None]:
    """Fail where something is logged that a client must not be able to cause."""
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record)

    keep = Keep(logging.ERROR)
    logging.getLogger().addHandler(keep)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(keep)
    assert [record.getMessage() for record in found] == []


async def followed(
    app: Heard, name: FrontName, pieces: list[bytes], *, pause_s: float, half_close: bool
) -> bytes:
    """What the pieces are answered; the server must then answer another connection."""
    async with opened(app, name) as front:
        raw = await said(front, pieces, pause_s=pause_s, half_close=half_close)
        [after] = answers(await said(front, [GOOD]))
    assert (after.status, after.body) == (200, b"{}")
    return raw


def outcome(
    control: Control, name: FrontName, pieces: list[bytes], *, pause_s: float = 0, half_close: bool = False
) -> tuple[list[Answer], list[Asked]]:
    """What a front answers, and what its app is asked."""
    asked: list[Asked] = []
    app = Heard(small_server(control, asked))
    with nothing_is_an_error():
        raw = virtual(partial(followed, app, name, pieces, pause_s=pause_s, half_close=half_close))
    assert asked.pop() == Asked("GET", b"/short", b"")
    return answers(raw, app.methods, cut=half_close), asked


@FUZZ
@given(data=noise, at=cuts, pause_s=st.sampled_from([0, 0.001]))
def test_what_is_answered_does_not_depend_on_how_the_bytes_were_split(
    control: Control, front: FrontName, data: bytes, at: list[int], pause_s: float
) -> None:
    whole = outcome(control, front, [data])
    assert whole[1] == [] or whole[0] != []
    in_pieces = outcome(control, front, split(data, at), pause_s=pause_s)
    if MANY_LINE_ENDS.search(data):
        return
    early = UNSTEADY[front]
    refused = [at for given, _ in (whole, in_pieces) for at, one in enumerate(given) if one.status in early]
    if refused:
        assert in_pieces[0][: min(refused)] == whole[0][: min(refused)]
    else:
        assert in_pieces == whole


@FUZZ
@given(data=noise, at=cuts, pause_s=st.sampled_from([0, 1, 30]))
def test_a_client_that_stops_in_the_middle_costs_nothing(
    control: Control, front: FrontName, data: bytes, at: list[int], pause_s: float
) -> None:
    outcome(control, front, split(data, at), pause_s=pause_s, half_close=True)
