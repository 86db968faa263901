"""What does Hypercorn alone give? An app that reads the body and says hello, behind its trio handler as it comes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

Message = MutableMapping[str, Any]
BODY = b"hello world"
HEADERS = ((b"content-length", b"%d" % len(BODY)),)


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer every request alike."""
    assert scope["type"] == "http"
    while (await receive()).get("more_body", False):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})


async def main() -> None:
    """Serve on a free port, told as `edgequeues serve` tells it, until the process is ended."""
    wrapped, config, context = ASGIWrapper(cast(Any, app)), Config(), WorkerContext(None)

    async def handle(stream: trio.SocketStream) -> None:
        await TCPServer(wrapped, config, context, ConnectionState({}), cast(Any, stream))

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    print(f"ready http://127.0.0.1:{listeners[0].socket.getsockname()[1]}", flush=True)
    await trio.serve_listeners(handle, listeners)


if __name__ == "__main__":
    trio.run(main)
