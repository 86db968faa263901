"""Where does the time of one append go? Each part alone, then the whole of it in a server, 32 connections.

The request appends one object of 200 bytes. "handled" is the lane over a connection in memory, with a space that
answers at once: parse, route, authorize, decode, encode and frame. "route and authorize" is a handler that has
nothing to do. "stored" is the engine in process with 32 callers: mailbox, turn, its share of the commit, handing
over the flush to a thread. What is left of the whole are sockets, whose client must be woken as well, and the event
loop's own turns.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
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
from edgequeues.control import Control
from edgequeues.http import codec, envelope, problems
from edgequeues.http.auth import Auth
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.incoming import Incoming
from edgequeues.http.lane import Lane
from edgequeues.http.routes import Dialect, Head, Request, Response, Route
from edgequeues.http.server import Server
from edgequeues.http.waits import Waits
from edgequeues.models import AppendAnswer, Appended
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from shards.clock import SystemClock
from shards.testing import Direct, FakeClock

CALLERS = 32
ANSWER = AppendAnswer([Appended("0" * 26, 1, "0000000000000001@00000000", "new")], "A" * 38)


def measure(rig: Rig) -> Iterator[Figure]:
    """The parts, the sums of some of them, and the whole."""
    count, rounds = rig.pick(20_000, 5_000, 50), rig.pick(5, 3, 1)
    requests = list(islice(native_append(1), count))
    with quiet_collector():
        parts = _parts(requests) | {"route and authorize": partial(_routed, rig, requests)}
        found = rig.rounds(rounds, parts | {"handled": partial(_handled, rig, requests)})
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
        "read a socket": partial(_socket, requests, write=False),
        "write a socket": partial(_socket, requests, write=True),
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


def _socket(requests: list[bytes], *, write: bool) -> float:
    """What the server does of it, while nobody else runs: it reads the request, or writes an answer."""
    took = 0.0
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for request in requests:
            client.sendall(request)
            began = time.perf_counter()
            server.recv(65_536)
            read = time.perf_counter()
            server.send(request)
            took += time.perf_counter() - read if write else read - began
            client.recv(65_536)
    return took / len(requests) * 1e6


class _Forgotten:
    """An answer that nobody takes."""

    async def whole(self, *_args: object) -> None:
        pass

    async def begin(self, *_args: object) -> None:
        raise AssertionError("it is whole")

    async def piece(self, *_args: object, **_more: object) -> None:
        raise AssertionError("it is whole")


def _routed(rig: Rig, requests: list[bytes]) -> float:
    """The way of a request from its head to its handler, and of the answer to where it is framed."""
    incoming = Incoming()
    incoming.feed(requests[0])
    asked = incoming.heads.popleft()
    head = Head(
        asked.method, asked.target, b"", [one for one in asked.headers if one[0] != b"content-length"]
    )

    async def nothing(_request: Request) -> Response:
        return Response(b"{}")

    async def run(server: Server) -> float:
        began = time.perf_counter()
        for _ in requests:
            await server.serve(head, cast(Any, None), _Forgotten())
        return (time.perf_counter() - began) / len(requests) * 1e6

    with rig.place() as folder, Control.open(folder) as control:
        auth = Auth("auto", "127.0.0.1", control, SystemClock())
        dialect = Dialect("bench", ("/",), [Route("POST", "/v1/{dxn}", nothing, "append")], problems.refuse)
        rest, hosts = cast(Any, None), Hosts("127.0.0.1")
        return trio.run(run, Server([dialect], rest, Waits(), auth=auth, hosts=hosts, origins=Origins()))


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
