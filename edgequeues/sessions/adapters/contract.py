"""What an adapter is: it makes messages for sessions out of what its platform sends, and hands them to a manager.

An adapter is a module with pure functions: neither I/O nor delivery is in it. Its messages are as in
`edgequeues.inbound`; what it was sent is from anybody, and may be anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from msgspec import UNSET, Struct

from edgequeues import inbound
from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidJson, InvalidRequest
from edgequeues.inbound import Inbound

T = TypeVar("T")

Enqueue = Callable[..., Awaitable[int | None]]  # of a manager, on trio or on asyncio


class BadMessage(ValueError):
    """What came is no message of its platform, or an adapter left something out. The text names the field.

    It will not get better: answer the platform that it was wrong (400), and do not have it sent again.
    """


class Adapter(Struct, frozen=True, kw_only=True):
    """What is known of a platform.

    origin: by which its messages are told from others'; two bots that have a chat each with one user need two.
    numbers_messages: it names every message, so that a repeat can be known. numbers_by_channel: by names that are
    unique within a chat only.
    """

    origin: str
    numbers_messages: bool
    numbers_by_channel: bool = False


def read(body: bytes, kind: type[T]) -> T:
    """What a platform sent, as a Struct of what matters in it. Raises BadMessage, which says where it is wrong."""
    try:
        jsontext.check(body)
    except InvalidJson as error:
        raise BadMessage(error.detail) from None
    return convert(jsontext.value(body), kind)


def convert(value: object, kind: type[T]) -> T:
    """The same, of JSON that was read."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadMessage(str(error)) from None
    except UnicodeEncodeError:
        raise BadMessage("a name of a member holds half of a surrogate pair") from None


def whole(text: str) -> str:
    """A text without halves of surrogate pairs, which no message may hold: U+FFFD stands for each."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def name(*parts: str | None) -> str | None:
    """Somebody's name out of the parts that are given, cut to what a message takes. None: there are none."""
    return whole(" ".join(part for part in parts if part))[: inbound.NAME_CHARS_MAX] or None


def facts(**given: str | float | None) -> dict[str, object]:
    """What is known of a file, for a payload: what is given of it."""
    known = {name: value for name, value in given.items() if value is not None}
    return {name: whole(value) if isinstance(value, str) else value for name, value in known.items()}


def check(adapter: Adapter, message: Inbound) -> Inbound:
    """The message itself, if it holds what this adapter must give. Raises BadMessage, which names what is missing."""
    if message.origin != adapter.origin:
        raise BadMessage(
            f"origin: {message.origin!r} is not {adapter.origin!r}, which this adapter's messages have"
        )
    if adapter.numbers_messages and message.source_message_id is None:
        raise BadMessage(f"source_message_id: missing, and {adapter.origin} names every message")
    if adapter.numbers_by_channel and message.source_channel_id is None:
        raise BadMessage(
            f"source_channel_id: missing, and {adapter.origin} names messages within a channel only"
        )
    try:
        return inbound.check(message)
    except (InvalidJson, InvalidRequest) as error:
        raise BadMessage(error.detail) from None


async def receive(
    adapter: Adapter,
    message: Inbound,
    enqueue: Enqueue,
    typing: Callable[[str, str], object] | None = None,
) -> int | None:
    """Hand a message over; return its position once it is on disk. None: it came before.

    enqueue: of a manager, which has `typing` called with session and origin after a success, and for that only; what
    becomes of the sign matters to nobody. Raises BadMessage before anything is handed over, and what `enqueue` does:
    then the message is not taken in, and the platform should send it again.
    """
    fields = msgspec.structs.asdict(check(adapter, message))
    if message.payload is not UNSET:
        fields["payload"] = jsontext.value(bytes(message.payload))
    else:
        del fields["payload"]
    return await enqueue(**fields, typing=typing)
