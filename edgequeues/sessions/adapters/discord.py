"""From events of Discord, of its gateway or sent to a webhook, to messages for sessions.

Shapes: https://discord.com/developers/docs/resources/message#message-object, of the gateway
https://discord.com/developers/docs/events/gateway-events#message-create, of webhooks
https://discord.com/developers/docs/events/webhook-events. Without the intent MESSAGE_CONTENT Discord leaves most
texts empty, and then there is no message in an event.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct

from edgequeues.core import jsontext
from edgequeues.inbound import Inbound
from edgequeues.sessions.adapters import contract
from edgequeues.sessions.adapters.contract import Adapter

ADAPTER = Adapter(origin="discord", numbers_messages=True)

_TYPES = (0, 19)  # what somebody wrote, and an answer to that; the others say what happened in a channel
_SENT_BY_WEBHOOK = ("LOBBY_MESSAGE_CREATE", "GAME_DIRECT_MESSAGE_CREATE")
_VOICE = 1 << 13  # IS_VOICE_MESSAGE
_AVATAR = re.compile(r"(?:a_)?[0-9a-f]{1,64}").fullmatch

_Id = Annotated[str, Meta(pattern=r"\A[0-9]{1,20}\Z")]  # a snowflake


class _User(Struct):
    id: _Id
    username: str
    global_name: str | None = None
    avatar: str | None = None
    bot: bool = False


class _File(Struct):
    id: _Id
    filename: str
    url: str
    size: int | None = None
    content_type: str | None = None
    duration_secs: float | None = None


class _Message(Struct):
    id: _Id
    channel_id: _Id
    author: _User
    content: str = ""
    type: int = 0
    flags: int = 0
    webhook_id: str | None = None
    attachments: list[_File] = []


class _Event(Struct):
    """Of the gateway `t` and `d`, of a webhook `event`."""

    t: str | None = None
    d: object = None
    event: object = None


class _WebhookEvent(Struct):
    type: str
    data: object = None


def message(
    event: bytes, session_of: Callable[[str], str | None], adapter: Adapter = ADAPTER
) -> Inbound | None:
    """The message in an event, as its JSON came. Raises BadMessage.

    None: it holds none that a session could take: an edit, a reaction, a ping, what a bot or a webhook said, and what
    has neither text nor files. session_of: which session a channel, as which Discord counts a thread, talks to;
    None: none. adapter: another one than ADAPTER where messages come by several origins.

    With files `payload` is {"files": [...]}, what Discord knows of each; their links end within a day or so.
    """
    found = _message_in(event)
    if found is None or found.author.bot or found.webhook_id is not None or found.type not in _TYPES:
        return None
    if not found.content and not found.attachments:
        return None
    session_id = session_of(found.channel_id)
    if session_id is None:
        return None
    author, files = found.author, found.attachments
    return contract.check(
        adapter,
        Inbound(
            session_id=session_id,
            origin=adapter.origin,
            message_type="text" if not files else "voice" if found.flags & _VOICE else "file",
            content=contract.whole(found.content),
            payload=Raw(jsontext.write({"files": [_facts(file) for file in files]})) if files else UNSET,
            actor_id=author.id,
            actor_name=contract.name(author.global_name) or contract.name(author.username),
            actor_avatar_url=_picture(author),
            source_message_id=found.id,
            source_channel_id=found.channel_id,
        ),
    )


def _message_in(event: bytes) -> _Message | None:
    outer = contract.read(event, _Event)
    if outer.t == "MESSAGE_CREATE":
        return contract.convert(outer.d, _Message)
    if outer.event is None:
        return None
    inner = contract.convert(outer.event, _WebhookEvent)
    return contract.convert(inner.data, _Message) if inner.type in _SENT_BY_WEBHOOK else None


def _facts(file: _File) -> dict[str, object]:
    return contract.facts(
        id=file.id,
        filename=file.filename,
        url=file.url,
        size=file.size,
        content_type=file.content_type,
        duration_secs=file.duration_secs,
    )


def _picture(author: _User) -> str | None:
    if author.avatar is None or _AVATAR(author.avatar) is None:
        return None
    return f"https://cdn.discordapp.com/avatars/{author.id}/{author.avatar}.png"
