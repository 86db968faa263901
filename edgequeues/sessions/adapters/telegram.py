"""From what Telegram sends to a webhook to messages for sessions.

Shapes: https://core.telegram.org/bots/api#update. Updates come again until they are answered with 2xx.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field

from edgequeues.core import jsontext
from edgequeues.inbound import Inbound, MessageType
from edgequeues.sessions.adapters import contract
from edgequeues.sessions.adapters.contract import Adapter

ADAPTER = Adapter(origin="telegram", numbers_messages=True, numbers_by_channel=True)

SessionOf = Callable[[str, str | None], str | None]

_Id = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # Telegram's have 52 bits


class _User(Struct):
    id: _Id
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""


class _Chat(Struct):
    id: _Id


class _File(Struct):
    """A file of any kind; what its kind does not have is not there."""

    file_id: str
    file_unique_id: str | None = None
    file_name: str | None = None
    mime_type: str | None = None
    file_size: _Id | None = None
    duration: _Id | None = None


class _Message(Struct):
    message_id: _Id
    chat: _Chat
    sender: _User | None = field(name="from", default=None)
    message_thread_id: _Id | None = None
    is_topic_message: bool = False
    text: str | None = None
    caption: str = ""
    voice: _File | None = None
    photo: list[_File] = []
    video: _File | None = None
    video_note: _File | None = None
    animation: _File | None = None
    audio: _File | None = None
    document: _File | None = None


class _Update(Struct):
    update_id: _Id
    message: _Message | None = None


def message(update: bytes, session_of: SessionOf, adapter: Adapter = ADAPTER) -> Inbound | None:
    """The message in an update, which is the body of the request. Raises BadMessage.

    None: it holds none that a session could take: an edit, which has the id of what it changes; a post of a channel;
    what a bot said; stickers, places and the like. session_of: which session a chat, and a topic in it, talks to;
    None: none. adapter: another one than ADAPTER where there are several bots, each with an origin of its own.

    Voice and files: `payload` is what Telegram knows of the file, its `file_id` first; of pictures the largest; their
    caption is the content. Ids are text, as all 52 bits of them do not fit in every reader's numbers.
    """
    found = contract.read(update, _Update).message
    if found is None or found.sender is None or found.sender.is_bot:
        return None
    kind, content, payload = _what(found)
    if kind is None:
        return None
    chat = str(found.chat.id)
    in_topic = found.is_topic_message and found.message_thread_id is not None
    session_id = session_of(chat, str(found.message_thread_id) if in_topic else None)
    if session_id is None:
        return None
    sender = found.sender
    return contract.check(
        adapter,
        Inbound(
            session_id=session_id,
            origin=adapter.origin,
            message_type=kind,
            content=contract.whole(content),
            payload=payload,
            actor_id=str(sender.id),
            actor_name=contract.name(sender.first_name, sender.last_name) or contract.name(sender.username),
            source_message_id=str(found.message_id),
            source_channel_id=chat,
        ),
    )


def _what(found: _Message) -> tuple[MessageType | None, str, Raw | UnsetType]:
    """What kind of message it is, its text, and the facts of its file."""
    if found.text is not None:
        return "text", found.text, UNSET
    if found.voice is not None:
        return "voice", found.caption, _facts("voice", found.voice)
    if found.photo:
        return "file", found.caption, _facts("photo", found.photo[-1])
    # An animation comes as a document, too.
    for kind in ("animation", "video", "video_note", "audio", "document"):
        file: _File | None = getattr(found, kind)
        if file is not None:
            return "file", found.caption, _facts(kind, file)
    return None, "", UNSET


def _facts(kind: str, file: _File) -> Raw:
    facts = contract.facts(
        file_id=file.file_id,
        kind=kind,
        file_unique_id=file.file_unique_id,
        file_name=file.file_name,
        mime_type=file.mime_type,
        file_size=file.file_size,
        duration=file.duration,
    )
    return Raw(jsontext.write(facts))
