"""Values about sessions that cross an edge. A session is an ordering key of a queue with the setting `sessions`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from edgequeues.core.lifecycle import State

SESSIONS_MAX = 1_000  # that one page has
DEPTH_MAX = 10_000  # messages of one session that are counted; there may be more


class Received(Struct, frozen=True):
    """What became of a message for a session. id, position: of the entry; None, both: it came before."""

    id: str | None
    position: int | None


class SessionHead(Struct, frozen=True):
    """The message a session waits for. due: unix ms at which its state changes by itself.

    failures: deliveries of it that failed. last_error: why the last of them did.
    blocked_since: unix ms since when it was tried in vain; None: it has not failed.
    """

    id: str
    position: int
    origin: str
    state: State
    failures: int
    due: int | None
    last_error: str | None
    blocked_since: int | None


class SessionInfo(Struct, frozen=True):
    """A session with messages that are not finished. depth: how many, DEPTH_MAX at most.

    oldest: unix ms at which its head came.
    """

    session_id: str
    depth: int
    oldest: int
    head: SessionHead


class SessionPage(Struct, frozen=True):
    """Sessions in order of their ids. resume: not None when there are more: pass it as `after`."""

    sessions: list[SessionInfo]
    resume: str | None


class SessionClosed(Struct, frozen=True):
    """`expired` messages of a session ended. through: not None when there are more: call again with it, so that
    what comes meanwhile stays.
    """

    expired: int
    through: int | None = None


class Cleaned(Struct, frozen=True):
    """`removed` finished messages are gone. more: call again."""

    removed: int
    more: bool


class SessionName(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request about one session."""

    session_id: Annotated[str, Meta(min_length=1, max_length=256)]
