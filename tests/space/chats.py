"""A queue for sessions, with short verbs."""

from __future__ import annotations

from typing import Any

from edgequeues.inbound import Inbound, check
from edgequeues.models import Message, Pull, Retry, Verdict
from edgequeues.models_sessions import Cleaned, Received, SessionClosed, SessionInfo
from edgequeues.space.shard import SpaceShard

from .world import Space

QUEUE = "inbound"
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


class Chats:
    """The queue `inbound` of a space, made by its first message. begun: unix ms."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.begun = space.clock.now_ms()

    def at(self, ms: int) -> None:
        """Let time pass until so long after the beginning; what was due by then is done."""
        self.space.clock.advance(self.begun + ms - self.space.clock.now_ms())
        if self.space.alarm_due():
            self.space.sweep()

    def send(self, session: str, content: str = "", number: str | None = None, **fields: Any) -> Received:
        message = check(
            Inbound(
                session_id=session,
                origin=fields.pop("origin", "telegram"),
                content=content,
                source_message_id=number,
                source_channel_id=fields.pop("channel", None),
                **fields,
            )
        )
        return self.space.call(SpaceShard.receive, QUEUE, [message])[0]

    def claim(self, batch: int = 1, worker: str = "manager") -> list[Message]:
        return self.space.call(SpaceShard.pull, QUEUE, None, Pull(batch=batch, worker=worker)).messages

    def one(self) -> Message:
        [found] = self.claim()
        return found

    def contents(self, batch: int = 100) -> list[str]:
        """What is handed out now."""
        return [self.content(one) for one in self.claim(batch)]

    @staticmethod
    def content(message: Message) -> str:
        return message.entry.data.partition('"content":"')[2].partition('"')[0]

    def ack(self, message: Message) -> Verdict:
        return self.space.call(SpaceShard.ack, QUEUE, [message.lease])[0]

    def fail(self, message: Message, error: str = "no", *, permanent: bool = False) -> Verdict:
        said = Retry(message.lease, None, error, permanent)
        return self.space.call(SpaceShard.retry, QUEUE, [said])[0]

    def close(self, session: str, through: int | None = None) -> SessionClosed:
        return self.space.call(SpaceShard.close_session, QUEUE, session, through)

    def session(self, session: str) -> SessionInfo | None:
        return self.space.call(SpaceShard.session, QUEUE, session)

    def clean(self, ms: int) -> Cleaned:
        return self.space.call(SpaceShard.clean, QUEUE, self.begun + ms)

    def rows(self) -> list[dict[str, Any]]:
        """The view, as people see it."""
        cursor = self.space.db.execute("SELECT * FROM inbound_queue ORDER BY id")
        names = [name for name, *_ in cursor.get_description()] if self.space.count(QUEUE) else []
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def statuses(self) -> list[str]:
        return [row["status"] for row in self.rows()]
