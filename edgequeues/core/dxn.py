"""DXNs: how queues and objects are addressed. No other module takes one apart."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from edgequeues.core.errors import InvalidDxn, InvalidId
from edgequeues.core.ids import check_object_id, check_queue, check_space, shown

Tag = Literal["data", "trace"]

_TRACE_SHARD = "~trace"  # a space id holds no tilde
_PREFIXES = ("dxn:edge:queue:", "dxn:queue:")
_ECHO = "echo://"


class Dxn(Struct, frozen=True):
    """The address of a queue, or of an object in it. `tag`: one of the space's own queues, or of its traces."""

    space: str
    queue: str
    object: str | None = None
    tag: Tag = "data"

    def __str__(self) -> str:
        tag = "" if self.tag == "data" else f"{self.tag}:"
        object_part = "" if self.object is None else f":{self.object}"
        return f"dxn:queue:{tag}{self.space}:{self.queue}{object_part}"

    @property
    def shard(self) -> str:
        """The name of the shard that owns the queue; `from_shard` takes it apart."""
        return self.space if self.tag == "data" else self.space + _TRACE_SHARD


def from_shard(name: str) -> tuple[str, Tag]:
    """Space and tag of a shard. Raises InvalidId if no space has a shard of this name."""
    space = name.removesuffix(_TRACE_SHARD)
    return check_space(space), "data" if space == name else "trace"


def parse(text: str) -> Dxn:
    """The address, in any form the protocol accepts. Raises InvalidDxn. Percent-decoding is the caller's."""
    tag: Tag = "data"
    if text.startswith(_ECHO):
        separator = "/"
        parts = text.removeprefix(_ECHO).split("/")
    else:
        separator = ":"
        parts = _after_prefix(text).split(":")
        if parts[0] == "data" or parts[0] == "trace":  # always a tag: no space has this id
            tag = "trace" if parts[0] == "trace" else "data"
            del parts[0]
    if not 2 <= len(parts) <= 3:
        form = f"<space>{separator}<queue>[{separator}<object>]"
        raise InvalidDxn(f"{shown(text)}: {len(parts)} part(s) where {form} belongs")
    try:
        return Dxn(
            check_space(parts[0]),
            check_queue(parts[1]),
            check_object_id(parts[2]) if len(parts) == 3 else None,
            tag,
        )
    except InvalidId as error:
        raise InvalidDxn(f"{shown(text)}: {error.detail}") from None


def _after_prefix(text: str) -> str:
    for prefix in _PREFIXES:
        if text.startswith(prefix):
            return text[len(prefix) :]
    raise InvalidDxn(f"{shown(text)}: begins with none of {', '.join(_PREFIXES)}, {_ECHO}")
