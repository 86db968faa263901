"""Where does the time of one append go? Each part alone, then the whole of it in a server, 32 connections.

The request appends one object of 200 bytes. "handled" is the lane over a connection in memory, with a space that
answers at once: parse, route, authorize, decode, encode and frame. "stored" is the engine in process with 32 callers:
mailbox, turn, its share of the commit and of handing the flush to a thread. What is left of the whole are sockets and
the event loop's own turns.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

import trio
from hypercorn.trio.worker_context import WorkerContext

from bench import served
from bench.figures import Against, Figure, figure, ratio
from bench.http_load import drive
from bench.http_requests import native_append
from bench.rig import OURS, Rig, append_all, deal, new_entries, quiet_collector
from bench.served import Served
from edgequeues.app import open_app
from edgequeues.http import codec, envelope
from edgequeues.http.incoming import Incoming
from edgequeues.http.lane import Lane
from edgequeues.models import AppendAnswer, Appended
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct, FakeClock

CALLERS = 32
ANSWER = AppendAnswer([Appended("0" * 26, 1, "0000000000000001@00000000", "new")], "A" * 38)


def measure(rig: Rig) -> Iterator[Figure]:
    """The parts, the sums of some of them, and the whole."""
    count, rounds = rig.pick(20_000, 5_000, 50), rig.pick(5, 3, 1)
    requests = list(islice(native_append(1), count))
    with quiet_collector():
        found = rig.rounds(rounds, _parts(requests) | {"handled": partial(_handled, rig, requests)})
        found |= rig.rounds(rounds, {"stored": partial(_stored, rig, count)})
        asked = _whole(rig, rounds)
    found |= {case: [cpu_us for _, cpu_us in rounds_] for case, rounds_ in asked.items()}
    whole = zip(found["whole"], found["handled"], found["stored"], strict=True)
    found["whole, less handled and stored"] = [all_ - handled - stored for all_, handled, stored in whole]
    for case, took in found.items():
        yield figure("budget", case, took, "us")
    lane, other = ([rate for rate, _ in rounds_] for rounds_ in asked.values())
    against = [Against(what="--front hypercorn", value=ratio(lane, other), target=5)]
    yield figure("budget", f"append 1, {CALLERS} connections", lane, "requests/s", against=against)
    yield figure("budget", f"append 1, {CALLERS} connections, --front hypercorn", other, "requests/s")


def _parts(requests: list[bytes]) -> dict[str, Callable[[], float]]:
    bodies = [request.partition(b"\r\n\r\n")[2] for request in requests]
    entries = [envelope.entries(body) for body in bodies]
    space = Direct(SpaceShard, FakeClock())
    incoming = Incoming()

    def parse(request: bytes) -> None:
        incoming.feed(request)
        incoming.heads.popleft()

    def turn(batch: Any) -> None:
        space.call(SpaceShard.append, "bench", batch)

    return {
        "parse": partial(_each, parse, requests),
        "decode": partial(_each, envelope.entries, bodies),
        "turn, in memory": partial(_turns, space, turn, entries),
        "encode": partial(_each, codec.encode, [ANSWER] * len(requests)),
        "read and write a socket": partial(_socket, requests),
    }


def _each(work: Callable[[Any], object], values: list[Any]) -> float:
    began = time.perf_counter()
    for value in values:
        work(value)
    return (time.perf_counter() - began) / len(values) * 1e6


def _turns(space: Direct[SpaceShard], turn: Callable[[Any], None], entries: list[Any]) -> float:
    while space.call(SpaceShard.delete_range, "bench").resume is not None:
        pass
    return _each(turn, entries)


def _socket(requests: list[bytes]) -> float:
    """What the server does of it: a read of the request, a write of an answer."""
    took = 0.0
    client, server = socket.socketpair()
    with closing(client), closing(server):
        for request in requests:
            client.sendall(request)
            began = time.perf_counter()
            server.recv(65_536)
            server.send(request)
            took += time.perf_counter() - began
            client.recv(65_536)
    return took / len(requests) * 1e6


class _Memory:
    """A connection in memory: each read is a request, and what is written is forgotten."""

    def __init__(self, requests: list[bytes]) -> None:
        self._requests = iter(requests)

    async def read(self) -> bytes:
        return next(self._requests, b"")

    async def write(self, data: bytes) -> None:
        pass

    async def lost(self) -> None:
        await trio.sleep_forever()

    def request_began(self) -> None:
        pass

    def request_ended(self) -> None:
        pass

    def head_began(self) -> None:
        pass


class _Ready:
    """A space whose answer is there already."""

    async def call(self, *_args: object, **_more: object) -> AppendAnswer:
        return ANSWER


def _handled(rig: Rig, requests: list[bytes]) -> float:
    async def run(folder: Path) -> float:
        async with open_app(folder) as app:
            lane = Lane(app, _Memory(requests), WorkerContext(None), {})
            began = time.perf_counter()
            await lane.run()
            return (time.perf_counter() - began) / len(requests) * 1e6

    async def ready(*_args: object, **_more: object) -> Any:
        return _Ready()

    make = Router.make
    cast(Any, Router).make = ready
    try:
        with rig.place() as folder:
            return trio.run(run, folder)
    finally:
        cast(Any, Router).make = make


def _stored(rig: Rig, count: int) -> float:
    """Microseconds of the loop's thread for one append."""
    entries = new_entries(count)
    with rig.place() as folder:
        took = trio.run(append_all, OURS, folder, deal(entries, 1, CALLERS))
    return took.cpu / count * 1e6


def _whole(rig: Rig, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Requests a second, and microseconds of the loop's thread for one, at each front."""

    def ask(one: Served) -> tuple[float, float]:
        before = one.cpu_s()
        seconds = rig.pick(1.0, 0.5, 0.05)
        load = drive(one.port, native_append(1), connections=CALLERS, seconds=seconds, status=200)
        return load.rate, (one.cpu_s() - before) / len(load.took) * 1e6

    with (
        rig.place() as folder,
        rig.place() as other,
        served.edgequeues(folder) as lane,
        served.edgequeues(other, "--front", "hypercorn") as before,
    ):
        cases = {"whole": partial(ask, lane), "whole, --front hypercorn": partial(ask, before)}
        return rig.rounds(rounds, cases)
