"""The verbs about sessions: messages for them, how they stand, and what operators do to them. Each is one turn.

A session is an ordering key of a queue whose setting `sessions` is on. Its messages are pulled and answered like any
others; whoever is meant here is the consumer `default`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from edgequeues import inbound
from edgequeues.core.errors import ConfigConflict
from edgequeues.inbound import Inbound
from edgequeues.models import NewEntry
from edgequeues.models_sessions import (
    DEPTH_MAX,
    SESSIONS_MAX,
    Cleaned,
    Received,
    SessionClosed,
    SessionHead,
    SessionInfo,
    SessionPage,
)
from edgequeues.space import deliveries, endings, log, standings
from edgequeues.space.consumers import DEFAULT, Consumer
from edgequeues.space.deliveries import Delivery
from edgequeues.space.ingest_verbs import IngestVerbs
from edgequeues.space.log import Victim
from edgequeues.space.profiles import INBOUND
from edgequeues.space.queues import Queue
from edgequeues.space.work_verbs import WorkVerbs
from edgequeues.spec.values import Arriving
from shards.shard import grows, reads

ROWS = 1_000  # messages that one turn closes, takes from a worker, or removes
SESSIONS_LOOKED_AT = 100_000  # messages that one turn counts


class SessionVerbs(IngestVerbs, WorkVerbs):
    """`queue` is a queue's id or its name, checked by the caller.

    Each raises QueueNotFound, and ConfigConflict for a queue that is not for sessions.
    """

    @grows
    def receive(self, queue: str, messages: Sequence[Inbound], *, make: bool = True) -> list[Received]:
        """Append messages, but for those that came before. All of them or, if this raises, none.

        They come as `inbound.check` gave them. make: may a queue that is not there be made? Raises QueueFull.
        """
        if self._find(queue) is not None:
            self._for_sessions(queue)
        arriving = [
            Arriving(
                NewEntry(inbound.body(one), key=one.session_id),
                () if (key := inbound.repeat_key(one)) is None else (key,),
            )
            for one in messages
        ]
        taken = self.ingest(
            queue, arriving, make=INBOUND if make else None, window_ms=inbound.KEPT_MS, lasting=True
        )
        return [
            Received(None, None) if one.outcome == "duplicate" else Received(one.id, one.position)
            for one in taken
        ]

    def close_session(self, queue: str, session: str, through: int | None = None) -> SessionClosed:
        """Have all that is unfinished in a session expire, what is handed out too, a bounded number in a turn.

        through: the newest position that is meant; None: the newest there is.
        """
        self._settle()
        row, consumer = self._for_sessions(queue)
        through = row.tail if through is None else through
        gone = deliveries.of_line(self.db, consumer.consumer_id, session, through, ROWS)
        desk = self._desk(row)
        desk.close_session(consumer, gone)
        self._worked(desk)
        if gone:
            self._record("close_session", row, session=session, count=len(gone))
        return SessionClosed(len(gone), through if len(gone) == ROWS else None)

    def skip_head(self, queue: str, session: str) -> str | None:
        """Give up the message that a session waits for; return its id. None: there is none, or it is handed out."""
        self._settle()
        _, consumer = self._for_sessions(queue)
        head = standings.first_of(self.db, consumer.consumer_id, session)
        if head is None or head.state == "leased":
            return None
        object_id = self._id_of(head)
        self.skip(queue, DEFAULT, object_id)
        return object_id

    def hurry_head(self, queue: str, session: str) -> str | None:
        """Have the message that a session waits for be ready now; return its id. None: it waits for no time."""
        self._settle()
        row, consumer = self._for_sessions(queue)
        head = standings.first_of(self.db, consumer.consumer_id, session)
        if head is None or not self._hurry(row, consumer, head):
            return None
        object_id = self._id_of(head)
        self._record("retry_now", row, session=session, id=object_id)
        return object_id

    def reclaim(self, queue: str, worker: str) -> int:
        """Have the leases of a worker that is gone lapse now, a bounded number in a turn; return how many did."""
        self._settle()
        row, consumer = self._for_sessions(queue)
        left = deliveries.leased_by(self.db, consumer.consumer_id, worker, ROWS)
        desk = self._desk(row)
        desk.lapse(consumer, left)
        self._worked(desk)
        if left:
            self._record("reclaim", row, worker=worker, count=len(left))
        return len(left)

    def clean(self, queue: str, before_ms: int) -> Cleaned:
        """Remove what was finished before this unix ms, a bounded number of messages in a turn."""
        row, _ = self._for_sessions(queue)
        old = endings.before(self.db, row.queue_id, before_ms, ROWS)
        self._drop(row, [Victim(position, size, False) for position, size in old])
        if old:
            self._record("clean_sessions", row, before=before_ms, count=len(old))
        return Cleaned(len(old), len(old) == ROWS)

    # -- looking ----------------------------------------------------------------------------------------

    @reads
    def sessions(self, queue: str, after: str | None, limit: int) -> SessionPage:
        """Sessions with unfinished messages, by id from above `after`; where they are long, fewer than `limit`."""
        _, consumer = self._for_sessions(queue)
        found, resume = standings.lines(
            self.db,
            consumer.consumer_id,
            after,
            min(limit, SESSIONS_MAX),
            depth_max=DEPTH_MAX,
            rows_max=SESSIONS_LOOKED_AT,
        )
        return SessionPage([self._session(head, depth) for head, depth in found], resume)

    @reads
    def session(self, queue: str, session: str) -> SessionInfo | None:
        """One session; None: it has no unfinished messages."""
        _, consumer = self._for_sessions(queue)
        head = standings.first_of(self.db, consumer.consumer_id, session)
        if head is None:
            return None
        return self._session(head, standings.depth(self.db, consumer.consumer_id, session, DEPTH_MAX))

    def _session(self, head: Delivery, depth: int) -> SessionInfo:
        entry = log.at(self.db, head.position)
        assert entry is not None
        assert head.line is not None
        failures = head.attempts - (head.state == "leased")
        return SessionInfo(
            head.line,
            depth,
            entry.updated,
            SessionHead(
                entry.id,
                head.position,
                _origin(entry.data),
                head.state,
                failures,
                head.due,
                head.error,
                head.first if failures else None,
            ),
        )

    # -- rows -------------------------------------------------------------------------------------------

    def _for_sessions(self, queue: str) -> tuple[Queue, Consumer]:
        row = self._require(queue)
        if not row.sessions:
            raise ConfigConflict(f"sessions: queue {row.name or row.queue_id} is not for sessions")
        return row, self._consumer(row, DEFAULT)

    def _id_of(self, row: Delivery) -> str:
        entry = log.at(self.db, row.position)
        assert entry is not None
        return entry.id


class _Origin(msgspec.Struct):
    origin: str = ""


def _origin(data: str) -> str:
    """By which adapter it came; "" for what somebody pushed by another way."""
    try:
        return msgspec.json.decode(data, type=_Origin).origin
    except msgspec.MsgspecError:
        return ""
