"""Values about dead letters that cross an edge: which ones are meant, and what became of them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from edgequeues.models import UnixMs

LetterReason = Literal["exhausted", "permanent", "skipped", "malformed"]
ReplayOutcome = Literal["replayed", "already", "no_queue", "later", "invalid", "unknown"]
FilterText = Annotated[str, Meta(min_length=1, max_length=4_096)]


class LetterFilter(Struct, frozen=True, forbid_unknown_fields=True):
    """Which dead letters of a queue: those for which all holds that is given.

    reason: one of these. queue: where they come from, by id or name. key, type: of the message.
    since, until: bounds on the unix ms at which they failed, both inclusive.
    error: a part of the last error, as it is written. replayed: was a new message made of them?
    where: an expression that holds for them, see `edgequeues.spec.conditions`.
    """

    reason: Annotated[tuple[LetterReason, ...], Meta(max_length=8)] = ()
    queue: FilterText | None = None
    key: FilterText | None = None
    type: FilterText | None = None
    since: UnixMs | None = None
    until: UnixMs | None = None
    error: FilterText | None = None
    replayed: bool | None = None
    where: FilterText | None = None


class Replayed(Struct, frozen=True):
    """What became of a dead letter that was to be replayed. message: the id of the message that was made of it.

    outcome: `replayed`; `already`: `message` was made before; `no_queue`: where it came from is gone; `later`: at
    this pace its turn would come when the message is old already; `invalid`: the queue takes no such message;
    `unknown`.
    """

    id: str
    message: str | None
    outcome: ReplayOutcome
