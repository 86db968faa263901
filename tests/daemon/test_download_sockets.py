"""Downloads over real sockets: a large object in little memory, a connection that is cut, and one given back."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256

import h11
import trio

from edgequeues.daemon.downloads import open_downloads
from edgequeues.events.event import BlobRef

SIZE = 48 * 1024 * 1024
BLOCK = bytes(range(256)) * 1024
MEMORY_BYTES_MAX = 4 * 1024 * 1024


class Server:
    """Serves one object of BLOCKs, a request a connection. cuts: bytes after which each is cut, in turn."""

    def __init__(self) -> None:
        self.port = 0
        self.cuts: list[int] = []
        self.ranges: list[str] = []
        self.open = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        self.open += 1
        try:
            async with stream:
                await self._answer(stream)
        except trio.BrokenResourceError:
            pass  # the client has hung up
        finally:
            self.open -= 1

    async def _answer(self, stream: trio.SocketStream) -> None:
        parser = h11.Connection(h11.SERVER)
        while not isinstance(request := parser.next_event(), h11.Request):
            parser.receive_data(await stream.receive_some())
        wanted = dict(request.headers).get(b"range", b"bytes=0-").decode()
        self.ranges.append(wanted)
        at = int(wanted.removeprefix("bytes=").partition("-")[0])
        head = f"HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {at}-{SIZE - 1}/{SIZE}\r\n"
        await stream.send_all(f'{head}etag: "1"\r\ncontent-length: {SIZE - at}\r\n\r\n'.encode())
        end = at + self.cuts.pop(0) if self.cuts else SIZE
        while at < end:
            block = BLOCK[at % len(BLOCK) :][: end - at]
            await stream.send_all(block)
            at += len(block)


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server = Server()
    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        server.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, server.serve, [listener])
        yield server
        nursery.cancel_scope.cancel()


def ref(server: Server) -> BlobRef:
    return BlobRef(bucket="b", key="k", presigned_get_url=f"http://127.0.0.1:{server.port}/o")


async def test_a_large_object_needs_little_memory_also_when_it_is_cut_midway() -> None:
    digest, size = sha256(), 0
    async with serving() as server, open_downloads(hosts=[f"127.0.0.1:{server.port}"]) as downloads:
        server.cuts = [10_000_001, 7]
        async with downloads.open(ref(server), start=1) as download:
            tracemalloc.start()
            async for piece in download:
                digest.update(piece)
                size += len(piece)
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
    assert size == SIZE - 1
    assert digest.digest() == sha256((BLOCK * (SIZE // len(BLOCK)))[1:]).digest()
    assert most < MEMORY_BYTES_MAX
    assert len(server.ranges) == 3


async def test_whoever_stops_reading_gives_the_connection_back() -> None:
    async with serving() as server, open_downloads(hosts=[f"127.0.0.1:{server.port}"]) as downloads:
        for _ in range(3):
            async with downloads.open(ref(server)) as download:
                async for _piece in download:
                    break
            with trio.fail_after(20):
                while server.open:  # noqa: ASYNC110 - the server sees it when it sends
                    await trio.sleep(0.01)
    assert len(server.ranges) == 3
