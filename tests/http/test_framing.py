"""Where a request ends: what leaves a doubt about it is refused, and what hides in it is never taken for another.

Behind each request another one is sent, for /hidden; it must not be answered where the first one is refused.
"""

from __future__ import annotations

import pytest
import trio

from edgequeues.control import Control
from edgequeues.http.listen import DEADLINES, Front

from .fronted import FrontName, connect, only
from .raw import DROP_S, Asked, answers, small_server, talk

pytestmark = only("lane", "hypercorn", why="bytes that are no request never reach the app")

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
SEEN = Asked("GET", b"/hidden", b"")
END = b"0\r\n\r\n"
ABC = b"3\r\nabc\r\n"
UPGRADE = (b"Connection: Upgrade", b"Upgrade: h2c")


def ask(
    *lines: bytes,
    top: bytes = b"GET /short HTTP/1.1",
    host: bytes = b"Host: localhost\r\n",
    end: bytes = b"\r\n",
    body: bytes = b"",
) -> bytes:
    return top + b"\r\n" + host + b"".join(line + b"\r\n" for line in lines) + end + body


def get(target: bytes, *lines: bytes) -> bytes:
    return ask(*lines, top=b"GET " + target + b" HTTP/1.1")


def post(*lines: bytes, body: bytes = b"abc", version: bytes = b"1.1") -> bytes:
    return ask(*lines, top=b"POST /echo HTTP/" + version, body=body)


def sized(length: bytes) -> bytes:
    return post(b"Content-Length: " + length)


def coded(*codings: bytes) -> bytes:
    return post(*(b"Transfer-Encoding: " + coding for coding in codings), body=END)


def chunks(body: bytes) -> bytes:
    return post(b"Transfer-Encoding: chunked", body=body)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


REFUSED: dict[str, bytes] = {
    "two lengths": post(b"Content-Length: 3", b"Content-Length: 4"),
    "a length with a sign": sized(b"+3"),
    "a length below zero": sized(b"-3"),
    "a length in hexadecimal": sized(b"0x3"),
    "a length of two words": sized(b"3 3"),
    "no length": sized(b""),
    "a length with an underscore": sized(b"1_0"),
    "a length with a point": sized(b"3.0"),
    "a length beyond 64 bits": sized(b"18446744073709551619"),
    "a length beyond all limits": sized(b"9223372036854775807"),
    "another coding": coded(b"gzip"),
    "xchunked": coded(b"xchunked"),
    "chunkedx": coded(b"chunkedx"),
    "chunked with a parameter": coded(b"chunked;x"),
    "chunked in quotes": coded(b'"chunked"'),
    "chunked after nothing": coded(b",chunked"),
    "chunked after a vertical tab": coded(b"\x0bchunked"),
    "chunked after a no-break space": coded(b"\xa0chunked"),
    "chunked, then identity": coded(b"chunked, identity"),
    "identity, then chunked": coded(b"identity, chunked"),
    "gzip, then chunked": coded(b"gzip, chunked"),
    "chunked twice": coded(b"chunked, chunked"),
    "chunked twice in two lines": coded(b"chunked", b"chunked"),
    "two codings in two lines": coded(b"chunked", b"identity"),
    "the same the other way round": coded(b"identity", b"chunked"),
    "identity": coded(b"identity"),
    "identity and a length": post(b"Transfer-Encoding: identity", b"Content-Length: 3"),
    "an empty coding": coded(b""),
    "a space before the colon of a coding": post(b"Transfer-Encoding : chunked", body=END),
    "a tab before the colon of a coding": post(b"Transfer-Encoding\t: chunked", body=END),
    "a coding behind a bare CR": post(b"X: y\rTransfer-Encoding: chunked", body=END),
    "a head that ends in a bare CR": ask(end=b"\r"),
    "a fold before any header": ask(host=b" Host: localhost\r\n"),
    "a bare CR in a value": ask(b"X: y\rz"),
    "a bare CR in a name": ask(b"X\ry: z"),
    "a bare CR before the line end": ask(b"X: y\r"),
    "a space before a colon": ask(b"X : y"),
    "no colon": ask(b"X"),
    "no name": ask(b": y"),
    "a space in a name": ask(b"X y: z"),
    "a bracket in a name": ask(b"X(: z"),
    "a letter beyond ASCII in a name": ask(b"X\xe9: z"),
    "NUL in a value": ask(b"X: a\0b"),
    "NUL in a name": ask(b"X\0: b"),
    "NUL in a target": get(b"/short\0"),
    "a control byte in a target": get(b"/sh\x01ort"),
    "a byte beyond ASCII in a target": get(b"/sh\xffort"),
    "DEL in a target": get(b"/sh\x7fort"),
    "a space in a target": get(b"/sh ort"),
    "a tab in a target": get(b"/sh\tort"),
    "no target": get(b""),
    "a header in the origin": ask(b"Origin: http://localhost\rSet-Cookie: a=b"),
    "a chunk below zero": chunks(b"-3\r\nabc\r\n" + END),
    "a chunk size with 0x": chunks(b"0x3\r\nabc\r\n" + END),
    "a chunk size with a space before it": chunks(b" 3\r\nabc\r\n" + END),
    "no chunk size": chunks(b"\r\nabc\r\n" + END),
    "a chunk size that ends in LF": chunks(b"3\nabc\r\n" + END),
    "a chunk size that ends in CR": chunks(b"3\rabc\r\n" + END),
    "an extension that ends in LF": chunks(b"3;a\nabc\r\n" + END),
    "a chunk that ends in nothing": chunks(b"3\r\nabc" + END),
    "a chunk that ends in LF": chunks(b"3\r\nabc\n" + END),
    "a chunk that ends in something else": chunks(b"3\r\nabcXX" + END),
    "a chunk longer than stated": chunks(b"3\r\nabcd\r\n" + END),
    "a chunk without end": chunks(b"8000000000000003\r\nabc\r\n" + END),
    "a trailer without a colon": chunks(ABC + b"0\r\nnope\r\n\r\n"),
    "NUL in a trailer": chunks(ABC + b"0\r\nX: \0\r\n\r\n"),
    "a coding as a trailer": chunks(ABC + b"0\r\nTransfer-Encoding: gzip\r\n\r\n"),
    "HTTP/0.9": b"GET /short\r\n",
    "HTTP/1.2": ask(top=b"GET /short HTTP/1.2"),
    "HTTP/2.0": ask(top=b"GET /short HTTP/2.0"),
    "HTTP/1.10": ask(top=b"GET /short HTTP/1.10"),
    "HTTP/01.1": ask(top=b"GET /short HTTP/01.1"),
    "http/1.1": ask(top=b"GET /short http/1.1"),
    "a tab in the first line": ask(top=b"GET\t/short HTTP/1.1"),
    "a space behind the first line": ask(top=b"GET /short HTTP/1.1 "),
    "a space before the first line": ask(top=b" GET /short HTTP/1.1"),
}

# Where that is not 400, but too large, or waited for in vain.
OTHER_STATUSES: dict[str, dict[FrontName, int]] = {
    "a length beyond 64 bits": {"lane": 400, "hypercorn": 413},
    "a length beyond all limits": {"lane": 413, "hypercorn": 413},
    "a chunk without end": {"lane": 408, "hypercorn": 408},
}

# What the lane refuses and h11 takes; then what h11 makes of it.
TAKEN_BY_H11: dict[str, tuple[bytes, list[int]]] = {
    "one length twice": (post(b"Content-Length: 3", b"Content-Length: 3"), [200, 200]),
    "one length twice in a line": (sized(b"3, 3"), [200, 200]),
    "a length, then a coding": (
        post(b"Content-Length: 3", b"Transfer-Encoding: chunked", body=END),
        [400, 200],  # by the app; the coding says where it ends
    ),
    "a coding, then a length": (
        post(b"Transfer-Encoding: chunked", b"Content-Length: 3", body=END),
        [400, 200],
    ),
    "chunked in HTTP/1.0": (post(b"Transfer-Encoding: chunked", body=END, version=b"1.0"), [200]),
    "bare LF throughout": (b"GET /short HTTP/1.1\nHost: localhost\n\n", [200, 200]),
    "bare LF after the first line": (b"GET /short HTTP/1.1\nHost: localhost\r\n\r\n", [200, 200]),
    "bare LF after a header": (ask(b"X: y\nZ: z"), [200, 200]),
    "bare LF at the end": (ask(end=b"\n"), [200, 200]),
    "a coding behind a bare LF": (post(b"X: y\nTransfer-Encoding: chunked", body=END), [200, 200]),
    "a folded value": (ask(b"X: y\r\n z"), [200, 200]),
    "a value folded with a tab": (ask(b"X: y\r\n\tz"), [200, 200]),
    "a folded coding": (post(b"Transfer-Encoding:\r\n chunked", body=END), [200, 200]),
    "a control byte in a value": (ask(b"X: a\x01b"), [200, 200]),
    "DEL in a value": (ask(b"X: a\x7fb"), [200, 200]),
    "a space behind a chunk size": (chunks(b"3 \r\nabc\r\n" + END), [200, 200]),
    "a chunk size beyond 64 bits": (chunks(b"10000000000000003\r\nabc\r\n" + END), [408]),
    "a bare CR in an extension": (chunks(b"3;a\rb\r\nabc\r\n" + END), [200, 200]),
    "NUL in an extension": (chunks(b"3;a\0\r\nabc\r\n" + END), [200, 200]),
    "a quote without end in an extension": (chunks(b'3;a="\r\nabc\r\n' + END), [200, 200]),
    "a length as a trailer": (chunks(ABC + b"0\r\nContent-Length: 50\r\n\r\n"), [200, 200]),
    "a trailer that ends in LF": (chunks(ABC + b"0\r\nX: y\n\r\n"), [200, 200]),
    "trailers that end in LF": (chunks(ABC + b"0\r\n\n"), [200, 200]),
    "a method in small letters": (ask(top=b"get /short HTTP/1.1"), [405, 200]),
    "an unknown method": (ask(top=b"FOO /short HTTP/1.1"), [405, 200]),
    "a tunnel": (ask(top=b"CONNECT localhost:1 HTTP/1.1"), [400, 200]),
}

# What the lane takes and h11 does not. Nothing here leaves a doubt about where a request ends.
TAKEN_BY_THE_LANE: dict[str, tuple[bytes, list[int]]] = {
    "no host": (ask(host=b""), [400, 200]),  # by the app, in the words of the dialect
    "two hosts": (ask(b"Host: localhost"), [400, 200]),
    "two hosts that differ": (ask(b"Host: example.org"), [400, 200]),
    "a chunk size of many digits": (chunks(b"0" * 50 + ABC + END), [200, 200]),
    "two spaces before the target": (get(b" /short"), [200, 200]),
    "two spaces behind the target": (get(b"/short "), [200, 200]),
    "an empty line before a request": (b"\r\n" + ask(), [200, 200]),
    "two empty lines before a request": (b"\r\n\r\n" + ask(), [200, 200]),
    "RTSP, answered as HTTP": (ask(top=b"GET /short RTSP/1.0"), [200]),
}

# What both take, and what the app is asked.
ECHO = Asked("POST", b"/echo", b"abc")
SHORT = Asked("GET", b"/short", b"")
HOLDS_ONE = Asked("POST", b"/echo", HIDDEN)
TAKEN: dict[str, tuple[bytes, list[Asked]]] = {
    "a length with zeros before it": (sized(b"0003"), [ECHO, SEEN]),
    "a length with a space behind it": (sized(b"3 \t"), [ECHO, SEEN]),
    "chunked after a tab": (post(b"Transfer-Encoding:\tchunked", body=ABC + END), [ECHO, SEEN]),
    "chunked with a space behind it": (post(b"Transfer-Encoding: chunked ", body=ABC + END), [ECHO, SEEN]),
    "CHUNKED": (post(b"Transfer-Encoding: CHUNKED", body=ABC + END), [ECHO, SEEN]),
    "a chunk size with zeros before it": (chunks(b"000" + ABC + END), [ECHO, SEEN]),
    "an extension": (chunks(b'3;a=b;c="d;e"\r\nabc\r\n' + END), [ECHO, SEEN]),
    "trailers": (chunks(ABC + b"0\r\nX: y\r\nHost: example.org\r\n\r\n"), [ECHO, SEEN]),
    "trailers that ask for an upgrade": (
        chunks(ABC + b"0\r\n" + b"\r\n".join(UPGRADE) + b"\r\n\r\n"),
        [ECHO, SEEN],
    ),
    "a body that holds a request": (
        post(b"Content-Length: %d" % len(HIDDEN), body=HIDDEN),
        [HOLDS_ONE, SEEN],
    ),
    "a chunk that holds a request": (chunks(chunk(HIDDEN) + END), [HOLDS_ONE, SEEN]),
    "a body behind a GET": (get(b"/short", b"Content-Length: %d" % len(HIDDEN)) + HIDDEN, [SHORT, SEEN]),
    "a body nobody reads": (
        ask(b"Content-Length: %d" % len(HIDDEN), top=b"POST /ignore HTTP/1.1", body=HIDDEN),
        [Asked("POST", b"/ignore", b""), SEEN],
    ),
    "an upgrade with a body": (
        post(*UPGRADE, b"Content-Length: %d" % len(HIDDEN), body=HIDDEN),
        [HOLDS_ONE, SEEN],
    ),
    "an upgrade with chunks": (
        post(*UPGRADE, b"Transfer-Encoding: chunked", body=chunk(HIDDEN) + END),
        [HOLDS_ONE, SEEN],
    ),
    "a POST for a WebSocket": (
        post(UPGRADE[0], b"Upgrade: websocket", b"Content-Length: 3"),
        [ECHO, SEEN],
    ),
    "an upgrade behind a request": (ask() + ask(*UPGRADE), [SHORT, SHORT, SEEN]),
    "many upgrades": (ask(*UPGRADE) * 500, [*[SHORT] * 500, SEEN]),
    "a request that is the last": (ask(b"Connection: close"), [SHORT]),
    "a request that is the last, among other words": (ask(b"Connection: keep-alive, close"), [SHORT]),
    "HTTP/1.0": (ask(top=b"GET /short HTTP/1.0"), [SHORT]),
    "HTTP/1.0 that would stay": (ask(b"Connection: keep-alive", top=b"GET /short HTTP/1.0"), [SHORT]),
    "HTTP/1.0 that asks first": (post(b"Content-Length: 3", b"Expect: 100-continue", version=b"1.0"), [ECHO]),
    "HTTP/1.0 without a length": (post(body=b"", version=b"1.0"), [Asked("POST", b"/echo", b"")]),
    "an absolute target": (get(b"http://localhost/short"), [SHORT, SEEN]),
    "an absolute target elsewhere": (get(b"http://example.org/short"), [SHORT, SEEN]),  # Host is what counts
    "an absolute target without a host": (get(b"http:///short"), [SHORT, SEEN]),
    "a target of another scheme": (get(b"ftp://localhost/short"), [SEEN]),
    "a byte beyond ASCII in a value": (ask(b"X: a\xff\x80b"), [SHORT, SEEN]),
}


async def sent(control: Control, front: FrontName, data: bytes) -> tuple[list[int], list[Asked]]:
    """What a request and the hidden one are answered, and what the app was asked. The connection must end."""
    asked: list[Asked] = []
    raw = await talk(small_server(control, asked), front, [data + HIDDEN])
    return [answer.status for answer in answers(raw)], asked


@pytest.mark.parametrize("name", REFUSED)
async def test_what_leaves_a_doubt_is_refused_and_ends_the_connection(
    control: Control, front: FrontName, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    statuses, asked = await sent(control, front, REFUSED[name])
    assert statuses == [OTHER_STATUSES.get(name, {}).get(front, 400)]
    assert asked == []
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("name", TAKEN_BY_H11)
async def test_the_lane_refuses_what_h11_takes(control: Control, front: FrontName, name: str) -> None:
    data, statuses = TAKEN_BY_H11[name]
    answered, asked = await sent(control, front, data)
    assert answered == ([400] if front == "lane" else statuses)
    if front == "lane":
        assert asked == []


@pytest.mark.parametrize("name", TAKEN_BY_THE_LANE)
async def test_h11_refuses_some_things_that_leave_no_doubt(
    control: Control, front: FrontName, name: str
) -> None:
    data, statuses = TAKEN_BY_THE_LANE[name]
    answered, _ = await sent(control, front, data)
    assert answered == (statuses if front == "lane" else [400])


@pytest.mark.parametrize("name", TAKEN)
async def test_a_body_is_a_body_whatever_it_holds(control: Control, front: FrontName, name: str) -> None:
    data, expected = TAKEN[name]
    answered, asked = await sent(control, front, data)
    assert asked == expected
    assert answered[-len(asked) :] == [200] * len(asked)
    assert len(answered) == len(asked) or name == "a target of another scheme"


async def test_what_follows_a_request_and_is_none_is_refused_after_its_answer(
    control: Control, front: FrontName
) -> None:
    statuses, asked = await sent(control, front, ask() + b"\0garbage\r\n\r\n")
    assert (statuses, asked) == ([200, 400], [SHORT])


async def test_a_refusal_of_head_has_no_body(control: Control, front: FrontName) -> None:
    cut = ask(b"Content-Length: 5", top=b"HEAD /wait HTTP/1.1")
    raw = await talk(small_server(control, []), front, [cut], half_close=True)
    [answer] = answers(raw, ["HEAD"])
    assert (answer.status, answer.body) == (400, b"")
    assert int(answer.headers[b"content-length"]) > 0


@pytest.mark.parametrize(
    "endless",
    [b"3;" + b"x" * 300_000, ABC + b"0\r\nx: " + b"y" * 300_000, ABC + b"0\r\n" + b"x: y\r\n" * 50_000],
)
async def test_an_extension_and_trailers_have_an_end(
    control: Control, front: FrontName, endless: bytes
) -> None:
    """They bring the app nothing, so nothing else would end them; and the parsers keep a line until it is whole."""
    statuses, asked = await sent(control, front, chunks(endless))
    assert statuses in ([400], [431])
    assert asked == []


async def test_the_part_of_a_head_that_came_with_a_request_has_its_time_too(
    control: Control, front: FrontName
) -> None:
    began = trio.current_time()
    raw = await talk(small_server(control, []), front, [ask() + HIDDEN[:20]])
    assert [answer.status for answer in answers(raw)] == [200, 408]
    assert trio.current_time() - began == pytest.approx(DEADLINES.head_s, abs=2 * DEADLINES.sweep_s)


@pytest.mark.parametrize(
    "behind", [b"", HIDDEN, HIDDEN[:20], b"\0"], ids=["nothing", "one", "a part", "garbage"]
)
async def test_a_stream_without_end_ends_with_its_client_whatever_was_sent_behind(
    control: Control, front: FrontName, behind: bytes
) -> None:
    door = Front(small_server(control, []), 1, DEADLINES, None, lane=front == "lane")
    with trio.fail_after(4 * DROP_S):
        async with trio.open_nursery() as nursery, connect(door, nursery) as stream:
            await stream.send_all(get(b"/drip") + behind)
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", [b"Origin", b"Access-Control-Request-Headers"])
async def test_no_value_that_is_echoed_adds_a_header(control: Control, front: FrontName, name: bytes) -> None:
    plain = [b"Origin: http://localhost:1", b"Access-Control-Request-Method: GET"]
    known: set[bytes] | None = None
    for code in (None, *range(33), *range(127, 161), 255):
        odd = b"" if code is None else bytes([code]) + b"Set-Cookie: a=b"
        lines = [line for line in plain if not line.startswith(name)]
        value = b"http://localhost:1" if name == b"Origin" else b"x-one"
        data = ask(*lines, name + b": " + value + odd, top=b"OPTIONS /short HTTP/1.1")
        server = small_server(control, [])
        answer, *more = answers(await talk(server, front, [data]))
        assert more == []
        assert b"set-cookie" not in answer.headers
        if code is None:
            assert answer.status == 204
            known = set(answer.headers)
        elif answer.status == 204:
            assert known is not None
            assert set(answer.headers) <= known
