"""What is asked over HTTP? Requests as bytes, made before they are sent, with ids that are never used twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from random import Random

from bench.rig import ROW_BYTES, TYPE
from bench.served import Served

SPACE = "B" + "A" * 32  # a name that DXOS clients can write, too
QUEUE = "01" + "0" * 24
ENTRIES_MAX = 1_000  # one call may append
DIGITS = b"########"  # stands for the number of the request

_numbers = count()


def native(queue: str = QUEUE) -> str:
    """The path of a queue."""
    return f"/v1/dxn:queue:{SPACE}:{queue}"


def dxos(queue: str = QUEUE) -> str:
    """The path of the same queue for DXOS clients."""
    return f"/spaces/data/{SPACE}/queue/{queue}"


def head(method: str, path: str, *, length: int | None = None, **headers: str) -> bytes:
    """All of a request but the body, whose length is given if there is one."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if length is not None:
        lines += ["content-type: application/json", f"content-length: {length}"]
    return "\r\n".join([*lines, "", ""]).encode()


def native_append(each: int, queue: str = QUEUE) -> Iterator[bytes]:
    """Append `each` new objects a request, without end."""
    entries = b",".join(b'{"data":%b}' % text for text in _objects(each))
    return _numbered(native(queue), b'{"entries":[%b]}' % entries)


def dxos_append(each: int, queue: str = QUEUE) -> Iterator[bytes]:
    """Append `each` new objects a request as DXOS clients do, without end."""
    return _numbered(dxos(queue), b'{"objects":[%b]}' % b",".join(_objects(each)))


def _numbered(path: str, body: bytes) -> Iterator[bytes]:
    template = head("POST", path, length=len(body)) + body
    for number in _numbers:
        yield template.replace(DIGITS, b"%08d" % number)


def _objects(each: int) -> Iterator[bytes]:
    for index in range(each):
        start = b'{"id":"%b","@type":"%b","number":%d,"text":"' % (_id(DIGITS, index), TYPE.encode(), index)
        yield start + b"x" * (ROW_BYTES - len(start) - 2) + b'"}'


def _id(number: bytes, index: int) -> bytes:
    """A ULID, later ones greater, as far as the number of the request says."""
    return b"01%b%016d" % (number, index)


def fill(served: Served, queue: str, entries: int) -> list[str]:
    """Append new objects, many a call; return their ids."""
    ids: list[str] = []
    while len(ids) < entries:
        each = min(ENTRIES_MAX, entries - len(ids))
        number = b"%08d" % next(_numbers)
        body = b",".join(b'{"data":%b}' % text.replace(DIGITS, number) for text in _objects(each))
        served.ask("POST", native(queue), b'{"entries":[%b]}' % body)
        ids += [_id(number, index).decode() for index in range(each)]
    return ids


def cursors(served: Served, queue: str, entries: int, each: int, wanted: int) -> list[str]:
    """Cursors from everywhere in a queue that have `each` entries behind them, the same ones in every run."""
    found: list[str] = []
    path = native(queue)
    while len(found) * each < entries:
        after = f"&after={found[-1]}" if found else ""
        found.append(served.ask("GET", f"{path}?limit={each}{after}").json()["nextCursor"])
    return Random(entries).choices(found[:-1], k=wanted)
