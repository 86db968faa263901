"""A handler that says back what was said: `edgequeues consume --handler examples.handlers.echo:handle`."""

from __future__ import annotations

from edgequeues.daemon.contract import Context, EmailReply, Result, SmsReply
from edgequeues.events.event import SwitchboardEvent


async def handle(event: SwitchboardEvent, ctx: Context) -> Result | None:
    """Answer where an answer goes."""
    ctx.metrics.count("messages", source=event.source)
    if event.reply is None:
        ctx.logger.info("nobody to answer")
        return None
    text = f"You wrote: {event.content.text or ''}"
    if event.reply.channel == "email":
        return Result(reply=EmailReply(text=text))
    return Result(reply=SmsReply(body=text[:1600]))
