"""Handlers that do what the first tag of an event says, in each way that a function can be written."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import time
from typing import Any

import trio

from edgequeues.daemon.contract import Artifact, GiveUp, Result, SmsReply, TryAgain
from edgequeues.daemon.handlers.faces import AsyncioContext, PlainContext
from edgequeues.events.event import BlobRef, SwitchboardEvent

GONE = BlobRef(bucket="b", key="gone")
ended: list[str] = []  # handlers that were told to stop, and heard of it
held = threading.Event()  # what blocking handlers wait for


class Odd(Exception):
    """What nobody else raises."""


def note(text: object) -> Result:
    return Result(artifacts=[Artifact(kind="note", note=str(text))])


def _simple(event: SwitchboardEvent, ctx: Any) -> object:  # noqa: PLR0911
    """What needs no waiting."""
    todo, text = event.tags[0], event.content.text or ""
    match todo:
        case "reply":
            return Result(reply=SmsReply(body=text))
        case "dict":
            return {"reply": {"channel": "sms", "body": text}}
        case "artifacts":
            return note(f"attempt {ctx.attempt}")
        case "big":
            return note(len(text))
        case "count":
            ctx.logger.info("counting", colour="blue")
            ctx.metrics.count("things", 2, colour="blue")
            ctx.metrics.observe("size", 1.5, colour="blue")
        case "nonsense":
            return {"reply": {"channel": "smoke"}}
        case "list":
            return []
        case "raise":
            raise Odd("no such thing")
        case "again":
            raise TryAgain("later", delay_s=7.0)
        case "never":
            raise GiveUp("not for us")
        case "exit":
            sys.exit(3)
        case "now":
            return note(ctx.now().isoformat())
    return None


async def on_trio(event: SwitchboardEvent, ctx: Any) -> object:
    match event.tags[0]:
        case "hang":
            await trio.sleep_forever()
        case "object":
            async with ctx.download(event.content.attachments[0].r2) as download:
                pieces = [piece async for piece in download]
            return note(f"{download.size} {len(b''.join(pieces))}")
        case "read":
            async with ctx.download(event.content.attachments[0].r2, start=6, end=11) as download:
                return note((await download.read()).decode())
        case "gone":
            async with ctx.download(GONE):
                pass
        case "send":
            await ctx.send_sms(SmsReply(body="now"))
        case "blocked":
            await ctx.send_sms(SmsReply(body="now", to="+15550666"))
        case "mail":
            await ctx.send_email(_mail())
    return _simple(event, ctx)


async def on_asyncio(event: SwitchboardEvent, ctx: AsyncioContext) -> object:  # noqa: PLR0912
    asyncio.get_running_loop()
    match event.tags[0]:
        case "hang":
            try:
                await asyncio.sleep(3_600)
            finally:
                ended.append(event.id)
        case "stubborn":
            while not held.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    ended.append(event.id)
        case "cancel":
            raise asyncio.CancelledError
        case "impatient":
            try:
                await asyncio.wait_for(ctx.send_email(_mail()), 0.01)
            except TimeoutError:
                while not held.is_set():  # noqa: ASYNC110 - another thread sets it
                    await asyncio.sleep(0.01)
                return note("gave up waiting")
        case "parallel":
            await asyncio.gather(*(ctx.send_sms(SmsReply(body=str(n))) for n in range(5)))
        case "object":
            async with ctx.download(event.content.attachments[0].r2) as download:
                pieces = [piece async for piece in download]
            return note(f"{download.size} {len(b''.join(pieces))}")
        case "read":
            async with ctx.download(event.content.attachments[0].r2, start=6, end=11) as download:
                return note((await download.read()).decode())
        case "gone":
            async with ctx.download(GONE):
                pass
        case "send":
            await ctx.send_sms(SmsReply(body="now"))
        case "blocked":
            await ctx.send_sms(SmsReply(body="now", to="+15550666"))
        case "mail":
            await ctx.send_email(_mail())
    return _simple(event, ctx)


def plain(event: SwitchboardEvent, ctx: PlainContext) -> object:
    match event.tags[0]:
        case "hang":
            time.sleep(0.6)
        case "hold":
            held.wait(30)
        case "late":
            held.wait(30)
            try:
                ctx.send_sms(SmsReply(body="too late"))
            except TryAgain as fault:
                ended.append(str(fault))
        case "object":
            with ctx.download(event.content.attachments[0].r2) as download:
                pieces = list(download)
            return note(f"{download.size} {len(b''.join(pieces))}")
        case "read":
            with ctx.download(event.content.attachments[0].r2, start=6, end=11) as download:
                return note(download.read().decode())
        case "gone":
            with ctx.download(GONE):
                pass
        case "send":
            ctx.send_sms(SmsReply(body="now"))
        case "blocked":
            ctx.send_sms(SmsReply(body="now", to="+15550666"))
        case "mail":
            ctx.send_email(_mail())
    return _simple(event, ctx)


def _mail() -> Any:
    from edgequeues.daemon.contract import EmailReply

    return EmailReply(text="never sent")


class Shop:
    """An object that can be called, and has methods that can."""

    async def __call__(self, event: SwitchboardEvent, ctx: Any) -> object:
        await trio.lowlevel.checkpoint()
        return note("called")

    async def method(self, event: SwitchboardEvent, ctx: Any) -> object:
        await trio.lowlevel.checkpoint()
        return note("method")

    def plain(self, event: SwitchboardEvent, ctx: Any) -> object:
        return note("plain")


async def _three(word: str, event: SwitchboardEvent, ctx: Any) -> object:
    await trio.lowlevel.checkpoint()
    return note(word)


shop = Shop()
part = functools.partial(_three, "part")
number = 5


def disguised(event: SwitchboardEvent, ctx: Any) -> object:
    """Looks plain, and is not."""
    return on_trio(event, ctx)


def lonely(event: SwitchboardEvent) -> None:
    """Takes no context."""
