"""The context as handlers see it that do not run on trio: the same, without `await`, or with asyncio's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from edgequeues.daemon.contract import Context, EmailReply, SmsReply
from edgequeues.daemon.handlers.bridge import Bridge, Stream
from edgequeues.events.event import BlobRef

T = TypeVar("T")


class _Face:
    """What needs no waiting is the same for all."""

    def __init__(self, ctx: Context, bridge: Bridge) -> None:
        self.attempt = ctx.attempt
        self.metrics = ctx.metrics
        self._ctx = ctx
        self._bridge = bridge

    @property
    def logger(self) -> Any:
        """See `contract.Context.logger`."""
        return self._ctx.logger

    def now(self) -> datetime:
        """The time in UTC, by the daemon's clock."""
        return self._ctx.now()

    async def _hold(self, ref: BlobRef, start: int, end: int | None) -> Stream:
        return await self._bridge.hold(self._ctx.download(ref, start=start, end=end))


class PlainContext(_Face):
    """For a plain function: each call returns when it is done."""

    @contextmanager
    def download(self, ref: BlobRef, *, start: int = 0, end: int | None = None) -> Iterator[PlainDownload]:
        """See `contract.Context.download`."""
        stream = self._wait(self._hold, ref, start, end)
        try:
            yield PlainDownload(stream, self._wait)
        finally:
            self._wait(stream.close)

    def send_email(self, reply: EmailReply) -> None:
        """See `contract.Context.send_email`."""
        self._wait(self._ctx.send_email, reply)

    def send_sms(self, reply: SmsReply) -> None:
        """See `contract.Context.send_sms`."""
        self._wait(self._ctx.send_sms, reply)

    def _wait(self, do: Callable[..., Awaitable[T]], *args: Any) -> T:
        return self._bridge.submit(do, *args).result()


class PlainDownload:
    """A `contract.Download` that is read with `for`."""

    def __init__(self, stream: Stream, wait: Callable[..., Any]) -> None:
        self.size = stream.size
        self.content_type = stream.content_type
        self._stream = stream
        self._wait = wait

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self._wait(self._stream.piece)) is not None:
            yield piece

    def read(self, *limit: int) -> bytes:
        """All that is left. Raises GiveUp above `limit` bytes."""
        data: bytes = self._wait(self._stream.read, *limit)
        return data


class AsyncioContext(_Face):
    """For an `async def` on asyncio. What is cancelled there is ended on trio too."""

    @asynccontextmanager
    async def download(
        self, ref: BlobRef, *, start: int = 0, end: int | None = None
    ) -> AsyncIterator[AsyncioDownload]:
        """See `contract.Context.download`."""
        stream = await self._call(self._hold, ref, start, end)
        try:
            yield AsyncioDownload(stream, self._call)
        finally:
            await self._call(stream.close)

    async def send_email(self, reply: EmailReply) -> None:
        """See `contract.Context.send_email`."""
        await self._call(self._ctx.send_email, reply)

    async def send_sms(self, reply: SmsReply) -> None:
        """See `contract.Context.send_sms`."""
        await self._call(self._ctx.send_sms, reply)

    async def _call(self, do: Callable[..., Awaitable[T]], *args: Any) -> T:
        return await self._bridge.wait(do, *args)


class AsyncioDownload:
    """A `contract.Download` for asyncio."""

    def __init__(self, stream: Stream, call: Callable[..., Awaitable[Any]]) -> None:
        self.size = stream.size
        self.content_type = stream.content_type
        self._stream = stream
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._call(self._stream.piece)) is not None:
            yield piece

    async def read(self, *limit: int) -> bytes:
        """All that is left. Raises GiveUp above `limit` bytes."""
        data: bytes = await self._call(self._stream.read, *limit)
        return data
