"""From lines that somebody types to messages for sessions. Nobody sends a line again, so none has an id."""

from __future__ import annotations

from edgequeues.inbound import Inbound
from edgequeues.sessions.adapters import contract
from edgequeues.sessions.adapters.contract import Adapter

ADAPTER = Adapter(origin="terminal", numbers_messages=False)


def message(line: str, session_id: str, *, actor_name: str | None = None) -> Inbound | None:
    """The message a line is, without its end. None: it is blank. Raises BadMessage for a session that cannot be."""
    content = contract.whole(line).rstrip("\r\n")
    if not content.strip():
        return None
    return contract.check(
        ADAPTER,
        Inbound(
            session_id=session_id,
            origin=ADAPTER.origin,
            content=content,
            actor_name=contract.name(actor_name),
        ),
    )
