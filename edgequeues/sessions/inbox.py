"""What a manager of sessions works with: an inbox, in a folder of this process or on a server.

`local.open_inbox` and `remote.open_inbox` open one; both pass the same tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from edgequeues.inbound import Inbound, InboundRow
from edgequeues.models_sessions import SessionPage

Outcome = Literal["done", "finished", "stale", "lapsed", "superseded", "unknown"]


class Claimed(Struct, frozen=True):
    """A message that was handed out. id: of its entry. lease: what answers are about. row: for the delivery."""

    id: str
    lease: str
    row: InboundRow


class Inbox(Protocol):
    """The queue of messages for sessions, as one worker sees it. When a call returns, what it did is on disk.

    No two messages of a session are handed out at once, and none before those that came earlier are finished.
    Besides what is said below, every call may raise Unavailable, Refused and StoreFailed of `edgequeues.store`.
    A caller that is cancelled has stopped listening: the call was done as a whole, or not at all.
    """

    async def enqueue(self, message: Inbound) -> int | None:
        """Add a message; return its position, which is its `id` in rows. None: it came before, nothing was done."""
        ...

    async def claim(self, limit: int, *, lock_ms: int, wait_s: float) -> list[Claimed]:
        """Be handed up to `limit` (100) messages, of a session each, locked for `lock_ms`; [] after `wait_s`.

        It waits for what comes in, and for what comes due.
        """
        ...

    async def delivered(self, lease: str) -> Outcome:
        """Finish a message."""
        ...

    async def failed(self, lease: str, error: str) -> Outcome:
        """Have a message delivered again after the next of RETRIES_MS; its session waits for it."""
        ...

    async def rejected(self, lease: str, error: str) -> Outcome:
        """End a message that no other attempt could deliver: it is expired, with this error."""
        ...

    async def release(self, leases: Sequence[str]) -> None:
        """Give messages back as if they had not been handed out."""
        ...

    async def extend(self, leases: Sequence[str], lock_ms: int) -> list[Outcome]:
        """Have locks end `lock_ms` from now."""
        ...

    async def reclaim(self) -> int:
        """End the locks that an earlier life of this worker left; return how many. What it held counts as failed."""
        ...

    async def close(self, session_id: str) -> int:
        """Expire all that is unfinished in a session, what is handed out too; return how many messages."""
        ...

    async def skip(self, session_id: str) -> bool:
        """Expire the message that a session waits for. False: there is none, or it is being delivered."""
        ...

    async def retry_now(self, session_id: str) -> bool:
        """Have the message that backs off in a session delivered now. False: there is none."""
        ...

    async def sessions(self, after: str | None = None, limit: int = 100) -> SessionPage:
        """Sessions with messages that are not finished, by id from above `after`; up to 1,000 a page."""
        ...

    async def cleanup(self, older_than_ms: int) -> int:
        """Remove what was finished before unix ms `older_than_ms`; return how many messages."""
        ...
