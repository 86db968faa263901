"""What the server and the processes that run functions say to each other: MessagePack, each after its length."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from edgequeues.spec.calling import Call, Effects

FRAME_BYTES_MAX = 64 * 1024 * 1024
LENGTH_BYTES = 4


class Job(Struct, frozen=True, tag=True):
    """Run a function. at: unix ms; created: of what it is run for, which `id` names."""

    function: str
    call: Call
    id: str
    attempt: int
    space: str
    at: int
    created: int


class Found(Struct, frozen=True, tag=True):
    """The answer to Look. entity: type, id, state, attributes as JSON, version; None: there is none."""

    entity: tuple[str, str, str | None, str, int] | None


class Ready(Struct, frozen=True, tag=True):
    """The process has started."""


class Look(Struct, frozen=True, tag=True):
    """Tell me of an entity."""

    entity_type: str
    entity_id: str


class Did(Struct, frozen=True, tag=True):
    """The function has returned."""

    effects: Effects


class Failed(Struct, frozen=True, tag=True):
    """The function has not. permanent: it will not, however often it is tried."""

    error: str
    permanent: bool = False


ToChild = Job | Found
FromChild = Ready | Look | Did | Failed

_to_child = msgspec.msgpack.Decoder(ToChild)
_from_child = msgspec.msgpack.Decoder(FromChild)


def frame(message: Struct) -> bytes:
    """A message as it is sent."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def told(body: bytes) -> FromChild:
    """A message of a process, without its length. Raises msgspec.DecodeError."""
    found: FromChild = _from_child.decode(body)
    return found


def asked(body: bytes) -> ToChild:
    """A message for a process, without its length. Raises msgspec.DecodeError."""
    found: ToChild = _to_child.decode(body)
    return found


def length(header: bytes) -> int:
    """The length of what follows. Raises ValueError where that is too much."""
    size = int.from_bytes(header, "big")
    if size > FRAME_BYTES_MAX:
        raise ValueError(f"a message of {size} bytes, at most {FRAME_BYTES_MAX} are taken")
    return size
