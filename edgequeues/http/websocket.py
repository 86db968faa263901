"""WebSockets: Hypercorn's, but for the faults of a client that it would sit out."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from hypercorn.protocol.events import Data, StreamClosed
from hypercorn.protocol.events import Request as StreamRequest
from hypercorn.protocol.h11 import STREAM_ID
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from wsproto.events import CloseConnection
from wsproto.frame_protocol import CloseReason

_OPEN = (
    ASGIWebsocketState.CONNECTED,
    ASGIWebsocketState.CLOSED,
)  # closed: by us, the client has yet to agree


class WebSocket(WSStream):
    """Hypercorn's WebSocket, which ends when it is refused, when a message is too large and when the server stops."""

    async def handle(self, event: Any) -> None:
        """Take an event of the connection in."""
        if self.closed:
            return
        if isinstance(event, Data) and self.state not in _OPEN:
            if self.state is ASGIWebsocketState.HANDSHAKE:  # a client has to wait for the answer
                await self._send_error_response(HTTPStatus.BAD_REQUEST)
                await self.send(StreamClosed(stream_id=STREAM_ID))
            return
        await super().handle(event)
        refused = isinstance(event, StreamRequest) and self.closed
        if refused or self.buffer.length > self.buffer.max_length:  # the client has been told so
            await self.send(StreamClosed(stream_id=STREAM_ID))

    async def go_away(self) -> None:
        """Say that the server stops, and end."""
        if self.state is ASGIWebsocketState.CONNECTED:
            await self._send_wsproto_event(CloseConnection(code=CloseReason.GOING_AWAY))
        await self.send(StreamClosed(stream_id=STREAM_ID))
