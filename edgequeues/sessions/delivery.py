"""Delivers a message into the terminal of its session: what is done, in which order, and what may fail.

It runs on trio and on asyncio. What a session is, and where it is kept, is the program's: it gives a Client.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple, Protocol

import anyio
from msgspec import Struct

from edgequeues.inbound import InboundRow
from edgequeues.sessions.errors import SessionClosed, SessionNotFound

START_S = 15.0  # that a session may take to start, from when its message's turn comes
POLL_S = 0.25  # between two looks at a session that starts
BESIDE_S = 10.0  # that something may take which the delivery does not depend on
SHOWN_CHARS_MAX = 200  # of a message, where a session says what it was last told

Lifecycle = Literal["initializing", "headless", "active", "closing", "closed"]


class Session(Struct, frozen=True, kw_only=True):
    """A session, as far as delivery wants to know it.

    lifecycle: headless has no terminal yet. terminal: what its Terminal calls it. threaded: its output goes on in one
    message of the platform, until input breaks that off.
    """

    session_id: str
    lifecycle: Lifecycle
    terminal: str | None = None
    threaded: bool = False


class Sessions(Protocol):
    """Where sessions are kept."""

    async def get(self, session_id: str) -> Session | None:
        """The session as it is now. None: there is none."""
        ...

    async def save(self, session: Session) -> None:
        """Keep what became of a session that was given a terminal."""
        ...

    async def note_input(self, session_id: str, *, last_message_sent: str, last_input_origin: str) -> None:
        """Keep what a session is told, and by which adapter."""
        ...

    async def note_activity(self, session_id: str) -> None:
        """Keep that a session was active now."""
        ...


class Terminal(Protocol):
    """Where sessions take input."""

    async def send(self, session: Session, text: str) -> bool:
        """Type a text and submit it. False: it could not be, and may be typed again later.

        Raises SessionUnavailable where no later time would do.
        """
        ...

    async def adopt(self, session: Session) -> Session:
        """Give a headless session a terminal; return it as it is then."""
        ...


class Outputs(Protocol):
    """The adapters, which show people what goes on in sessions."""

    async def broadcast(self, session: Session, row: InboundRow) -> None:
        """Show what somebody said to those who follow by other adapters. Every attempt calls it, with the same id."""
        ...

    async def break_thread(self, session: Session) -> None:
        """Have what a session says next begin a message of its own."""
        ...


class Client(Protocol):
    """All that delivery works with."""

    @property
    def sessions(self) -> Sessions:
        """Where sessions are kept."""
        ...

    @property
    def terminal(self) -> Terminal:
        """Where they take input."""
        ...

    @property
    def outputs(self) -> Outputs:
        """Where people see them."""
        ...


StartPolling = Callable[
    [Session], Awaitable[None]
]  # for output of the session; harmless where it is polled already


class StillStarting(Exception):
    """The session has not started within START_S: it is tried again later."""


class NotSent(RuntimeError):
    """The terminal did not take the text: it is tried again later."""


class Delivery:
    """One attempt to deliver a message. session: known from the first step on."""

    session: Session

    def __init__(
        self, row: InboundRow, client: Client, start_polling: StartPolling, log: logging.Logger
    ) -> None:
        self.row = row
        self.client = client
        self.start_polling = start_polling
        self.log = log

    async def find(self) -> None:
        """Raises SessionNotFound, SessionClosed: no attempt will do better."""
        session_id = self.row["session_id"]
        session = await self.client.sessions.get(session_id)
        if session is None:
            raise SessionNotFound(f"there is no session {session_id!r}")
        if session.lifecycle in ("closing", "closed"):
            raise SessionClosed(f"session {session_id!r} is {session.lifecycle}")
        self.session = session

    async def wait_for_start(self) -> None:
        """Raises StillStarting after START_S, and what `find` does should it end meanwhile."""
        with anyio.move_on_after(START_S) as limit:
            while self.session.lifecycle == "initializing":
                await anyio.sleep(POLL_S)
                await self.find()
        if limit.cancelled_caught:
            raise StillStarting(f"session {self.session.session_id!r} has not started within {START_S:g} s")

    async def adopt(self) -> None:
        """Give a headless session a terminal."""
        if self.session.lifecycle == "headless":
            self.session = await self.client.terminal.adopt(self.session)
            await self.client.sessions.save(self.session)

    async def break_thread(self) -> None:
        """Break threaded output off, where there is some."""
        if self.session.threaded:
            await self.client.outputs.break_thread(self.session)

    async def note_input(self) -> None:
        """Note what the session is told."""
        await self.client.sessions.note_input(
            self.session.session_id,
            last_message_sent=words(self.row)[:SHOWN_CHARS_MAX],
            last_input_origin=self.row["origin"],
        )

    async def broadcast(self) -> None:
        """Show the input to those who follow by other adapters."""
        await self.client.outputs.broadcast(self.session, self.row)

    async def send(self) -> None:
        """Raises NotSent, and SessionUnavailable where no attempt will do better."""
        if not await self.client.terminal.send(self.session, words(self.row)):
            raise NotSent(f"the terminal of session {self.session.session_id!r} did not take the text")

    async def note_activity(self) -> None:
        """Note that the session is active."""
        await self.client.sessions.note_activity(self.session.session_id)

    async def poll(self) -> None:
        """Look for what the session will say."""
        await self.start_polling(self.session)


class Step(NamedTuple):
    """needed: its failure is the delivery's, others are logged. beside: the steps after it do not wait for it."""

    name: str
    run: Callable[[Delivery], Awaitable[None]]
    needed: bool = True
    beside: bool = False


# Once a text is typed nothing may fail: it would be typed again.
STEPS = (
    Step("find", Delivery.find),
    Step("wait for start", Delivery.wait_for_start),
    Step("adopt", Delivery.adopt),
    Step("break thread", Delivery.break_thread, needed=False, beside=True),
    Step("note input", Delivery.note_input),
    Step("broadcast", Delivery.broadcast, needed=False, beside=True),
    Step("send", Delivery.send),
    Step("note activity", Delivery.note_activity, needed=False),
    Step("start polling", Delivery.poll, needed=False),
)


def words(row: InboundRow) -> str:
    """What is typed for a message: its content; of a voice or a file that has none, what it is."""
    if row["content"] or row["message_type"] == "text":
        return row["content"]
    return f"[{row['message_type']}] {row['payload_json'] or ''}".rstrip()


async def deliver_inbound(
    row: InboundRow, *, client: Client, start_polling: StartPolling, log: logging.Logger | None = None
) -> None:
    """Deliver a message: type it into its session's terminal, and tell everybody who should know.

    With `functools.partial` around it for the rest it is what a manager calls with each row. Raises SessionNotFound,
    SessionClosed and SessionUnavailable where no other attempt could deliver it, whatever else where one may. A
    cancelled attempt may have typed the text: delivery is at least once.
    """
    delivery = Delivery(row, client, start_polling, log or logging.getLogger("edgequeues.sessions"))
    fault: Exception | None = None
    async with anyio.create_task_group() as beside:
        try:
            for step in STEPS:
                if step.beside:
                    beside.start_soon(_try, step, delivery)
                elif step.needed:
                    await step.run(delivery)
                else:
                    await _try(step, delivery)
        except Exception as error:  # raised below: in here it would come out inside a group
            fault = error
    if fault is not None:
        raise fault


async def _try(step: Step, delivery: Delivery) -> None:
    """A step that may fail. Its fault is named by its kind alone: its text may hold what somebody said."""
    where = step.name, delivery.row["session_id"]
    try:
        with anyio.move_on_after(BESIDE_S) as limit:
            await step.run(delivery)
    except Exception as error:
        delivery.log.warning("%s failed for session %s: %s", *where, type(error).__name__)
    else:
        if limit.cancelled_caught:
            delivery.log.warning("%s was not done for session %s within %g s", *where, BESIDE_S)
