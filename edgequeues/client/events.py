"""A subscription: the stream of events of a queue as entries, taken up again where it broke off."""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import NamedTuple

from edgequeues.client import answers, wire
from edgequeues.client.errors import ClientError, Unavailable, Unreachable
from edgequeues.client.http import ByteStream, Retry, Transport
from edgequeues.client.values import Entry

TAIL = "tail"


class Event(NamedTuple):
    """One event of a stream: its name, the last id seen, the data lines joined."""

    name: str
    id: str | None
    data: bytes


class EventParser:
    """Turns the bytes of a text/event-stream into events, wherever the pieces were cut. Sans IO."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._name = "message"
        self._id: str | None = None
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[Event]:
        """Take the next bytes; return the events they completed."""
        self._rest += piece
        if b"\n" not in piece and b"\r" not in self._rest[-len(piece) - 1 :]:
            return []  # still inside one line, perhaps a long one
        text = bytes(self._rest)
        held = text.endswith(b"\r")  # a line feed may follow; until then the line is not over
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        rest = lines.pop()
        self._rest = bytearray(lines.pop() + b"\r" if held else rest)
        return [event for line in lines if (event := self._line(line))]

    def _line(self, line: bytes) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode()
        elif field == b"id" and b"\0" not in value:
            self._id = value.decode()
        return None

    def _dispatch(self) -> Event | None:
        name, data, self._name, self._data = self._name, self._data, "message", []
        return Event(name, self._id, b"\n".join(data)) if data else None


class Subscription:
    """The entries of a queue as they are appended: `async for entry in subscription`.

    A dropped stream is opened again after the last entry received, so none is missed and none comes twice. It
    gives up after as many failures in a row as `retry` allows. Cancelling a wait loses nothing. Use `async with`,
    or call `aclose` when done.
    """

    def __init__(
        self, transport: Transport, dxn: str, *, after: str | None, type: str | None, retry: Retry
    ) -> None:
        self._transport = transport
        self._dxn = dxn
        self._after = after
        self._type = type
        self._retry = retry
        self._received: str | None = None  # cursor of the last entry that came over the wire
        self._ready: deque[Event] = deque()
        self._failures = 0
        self._stream: ByteStream | None = None
        self._parser = EventParser()
        self.cursor: str | None = (
            None  # of the last entry given to the caller: pass it as `after` to go on later
        )

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Entry:
        """Wait for the next entry. Raises Refused at once, Unreachable and Unavailable when patience ends."""
        while not self._ready:
            try:
                stream = self._stream or await self._open()
                self._stream = (
                    None  # an interrupted wait leaves a spoilt stream behind; the next opens another
                )
                self._take(await stream.receive())
                self._stream = stream
            except (Unreachable, Unavailable) as error:
                await self._pause(error)
        event = self._ready.popleft()
        self.cursor = event.id
        return answers.entry(event.data)

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection. Iterating again opens a new one after the last entry received."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    async def _open(self) -> ByteStream:
        if self._after == TAIL and self._received is None:
            await self._pin_tail()
        self._parser = EventParser()
        return await self._transport.open_stream(
            wire.subscribe(self._dxn, after=self._after, last_event_id=self._received, type=self._type)
        )

    async def _pin_tail(self) -> None:
        """Turn `tail` into the cursor it means now, so that a drop before the first entry loses nothing."""
        newest = await self._transport.send(wire.read(self._dxn, limit=1, reverse=True))
        self._after = answers.page(newest).next_cursor

    def _take(self, piece: bytes | None) -> None:
        if piece is None:
            raise Unreachable("the server ended the stream", maybe_done=True)
        self._failures = 0
        events = [event for event in self._parser.feed(piece) if event.name == "entry"]
        if events:
            self._received = events[-1].id
        self._ready.extend(events)

    async def _pause(self, error: ClientError) -> None:
        self._failures += 1
        pause_s = self._retry.pause_s(self._failures, error, self._transport.chance)
        if pause_s is None:
            raise error
        await self._transport.sleep(pause_s)
