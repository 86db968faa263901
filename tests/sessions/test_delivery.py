"""The delivery of a message into a session's terminal, step by step, on trio and on asyncio."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio
from msgspec.structs import replace

from edgequeues.inbound import InboundRow
from edgequeues.sessions import delivery
from edgequeues.sessions.delivery import Session, StillStarting, deliver_inbound
from edgequeues.sessions.errors import Rejected, SessionClosed, SessionNotFound, SessionUnavailable
from edgequeues.sessions.manager import open_manager

from .memory import MemoryInbox

ROW = InboundRow(
    id=7,
    session_id="s",
    origin="telegram",
    message_type="text",
    content="run the tests",
    payload_json=None,
    actor_id=None,
    actor_name=None,
    actor_avatar_url=None,
    status="processing",
    created_at="2026-01-01T00:00:00.000Z",
    attempt_count=0,
    locked_at="2026-01-01T00:00:00.000Z",
    source_message_id=None,
    source_channel_id=None,
)
ACTIVE = Session(session_id="s", lifecycle="active", terminal="%1")


class Host:
    """A program with one session, and all that a Client is. calls: what was done, in order.

    faults: by the name of a call, what it raises; hangs: calls that never end. sends: what the terminal answers.
    """

    def __init__(self, session: Session | None = ACTIVE) -> None:
        self.session = session
        self.calls: list[tuple[Any, ...]] = []
        self.faults: dict[str, Exception] = {}
        self.hangs: set[str] = set()
        self.sends = [True]
        self.looks = 0

    @property
    def sessions(self) -> Host:
        return self

    @property
    def terminal(self) -> Host:
        return self

    @property
    def outputs(self) -> Host:
        return self

    @property
    def done(self) -> list[str]:
        return [call[0] for call in self.calls]

    async def get(self, session_id: str) -> Session | None:
        self.looks += 1
        return self.session if session_id == "s" else None

    async def save(self, session: Session) -> None:
        self.session = session
        await self._call("save", session)

    async def note_input(self, session_id: str, *, last_message_sent: str, last_input_origin: str) -> None:
        await self._call("note_input", session_id, last_message_sent, last_input_origin)

    async def note_activity(self, session_id: str) -> None:
        await self._call("note_activity", session_id)

    async def send(self, session: Session, text: str) -> bool:
        await self._call("send", session.terminal, text)
        return self.sends.pop(0) if len(self.sends) > 1 else self.sends[0]

    async def adopt(self, session: Session) -> Session:
        await self._call("adopt", session.session_id)
        return replace(session, lifecycle="active", terminal="%9")

    async def broadcast(self, session: Session, row: InboundRow) -> None:
        await self._call("broadcast", row["id"])

    async def break_thread(self, session: Session) -> None:
        await self._call("break_thread", session.session_id)

    async def poll(self, session: Session) -> None:
        await self._call("poll", session.terminal)

    async def _call(self, name: str, *what: object) -> None:
        self.calls.append((name, *what))
        if name in self.hangs:
            await anyio.sleep_forever()
        await anyio.lowlevel.checkpoint()
        if name in self.faults:
            raise self.faults[name]


def bound(host: Host) -> Callable[[InboundRow], Awaitable[None]]:
    return partial(deliver_inbound, client=host, start_polling=host.poll)


async def deliver(host: Host, **fields: Any) -> None:
    await bound(host)({**ROW, **fields})  # type: ignore[typeddict-item]


# -- the steps ---------------------------------------------------------------------------------------------


async def test_a_message_is_noted_shown_typed_and_answered_in_this_order() -> None:
    host = Host(replace(ACTIVE, threaded=True))
    await deliver(host)
    beside = [("break_thread", "s"), ("broadcast", 7)]
    assert all(call in host.calls for call in beside)
    assert [call for call in host.calls if call not in beside] == [
        ("note_input", "s", "run the tests", "telegram"),
        ("send", "%1", "run the tests"),
        ("note_activity", "s"),
        ("poll", "%1"),
    ]


def test_the_steps_are_the_ones_that_were_asked_for() -> None:
    assert [step.name for step in delivery.STEPS] == [
        "find",
        "wait for start",
        "adopt",
        "break thread",
        "note input",
        "broadcast",
        "send",
        "note activity",
        "start polling",
    ]


async def test_a_session_that_is_not_there_is_no_matter_of_time() -> None:
    host = Host()
    with pytest.raises(SessionNotFound, match="'other'"):
        await deliver(host, session_id="other")
    assert host.calls == []


@pytest.mark.parametrize("lifecycle", ["closing", "closed"])
async def test_a_session_that_is_over_is_no_matter_of_time(lifecycle: delivery.Lifecycle) -> None:
    host = Host(replace(ACTIVE, lifecycle=lifecycle))
    with pytest.raises(SessionClosed, match=lifecycle):
        await deliver(host)
    assert host.calls == []


async def test_a_session_that_starts_is_waited_for() -> None:
    host = Host(replace(ACTIVE, lifecycle="initializing"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deliver, host)
        await trio.sleep(14.6)
        assert host.calls == []
        host.session = ACTIVE
        await trio.sleep(0.3)
        assert host.done[-1] == "poll"
    assert host.looks == 60  # four a second


async def test_a_session_that_does_not_start_is_given_up_after_15_seconds_for_now() -> None:
    host = Host(replace(ACTIVE, lifecycle="initializing"))
    began = trio.current_time()
    with pytest.raises(StillStarting, match="15 s"):
        await deliver(host)
    assert trio.current_time() - began == pytest.approx(15)
    assert host.calls == []
    assert not issubclass(StillStarting, Rejected)


async def test_a_session_that_closes_while_it_starts_is_not_waited_for() -> None:
    host = Host(replace(ACTIVE, lifecycle="initializing"))
    began = trio.current_time()

    async def close() -> None:
        await trio.sleep(1)
        host.session = replace(ACTIVE, lifecycle="closed")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(close)
        with pytest.raises(SessionClosed):
            await deliver(host)
    assert trio.current_time() - began == pytest.approx(1.25, abs=0.26)


async def test_a_headless_session_is_given_a_terminal_once() -> None:
    host = Host(Session(session_id="s", lifecycle="headless"))
    await deliver(host)
    await deliver(host)
    assert host.done.count("adopt") == 1
    assert host.session == replace(ACTIVE, terminal="%9")
    assert [call for call in host.calls if call[0] == "send"] == [("send", "%9", "run the tests")] * 2


async def test_output_is_broken_off_only_where_it_is_threaded() -> None:
    host = Host()
    await deliver(host)
    assert "break_thread" not in host.done


async def test_what_a_session_was_last_told_is_cut_and_what_is_typed_is_not() -> None:
    host, text = Host(), "x" * 201
    await deliver(host, content=text)
    assert ("note_input", "s", "x" * 200, "telegram") in host.calls
    assert ("send", "%1", text) in host.calls


@pytest.mark.parametrize("call", ["broadcast", "break_thread"])
@pytest.mark.parametrize("hangs", [False, True])
async def test_what_people_are_shown_is_no_condition(
    call: str, hangs: bool, caplog: pytest.LogCaptureFixture
) -> None:
    host = Host(replace(ACTIVE, threaded=True))
    if hangs:
        host.hangs.add(call)
    else:
        host.faults[call] = OSError("run the tests")
    began = trio.current_time()
    await deliver(host)
    assert trio.current_time() - began == pytest.approx(10 if hangs else 0)
    assert host.done[-1] == "poll"
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert "run the tests" not in record.getMessage()


async def test_showing_does_not_hold_up_typing() -> None:
    host = Host()
    host.hangs.add("broadcast")
    with trio.move_on_after(1):
        await deliver(host)
    assert host.done[-1] == "poll"


async def test_what_the_terminal_does_not_take_raises() -> None:
    host = Host()
    host.sends = [False]
    with pytest.raises(RuntimeError, match="'s'") as raised:
        await deliver(host)
    assert not isinstance(raised.value, Rejected)
    assert sorted(host.done) == ["broadcast", "note_input", "send"]


@pytest.mark.parametrize("call", ["note_input", "adopt", "save", "send"])
async def test_any_other_fault_before_or_in_typing_comes_out_as_it_is(call: str) -> None:
    host = Host(Session(session_id="s", lifecycle="headless"))
    host.faults[call] = fault = SessionUnavailable("no input")
    with pytest.raises(SessionUnavailable) as raised:
        await deliver(host)
    assert raised.value is fault


@pytest.mark.parametrize("call", ["note_activity", "poll"])
async def test_a_text_that_was_typed_is_not_typed_again_for_a_later_fault(call: str) -> None:
    host = Host()
    host.faults[call] = OSError("away")
    await deliver(host)
    assert host.done.count("send") == 1
    assert host.done[-1] == "poll"


@pytest.mark.parametrize(
    ("fields", "typed"),
    [
        (
            {"content": "", "message_type": "voice", "payload_json": '{"file_id":"v"}'},
            '[voice] {"file_id":"v"}',
        ),
        ({"content": "", "message_type": "file"}, "[file]"),
        ({"content": "see", "message_type": "file", "payload_json": "{}"}, "see"),
        ({"content": ""}, ""),
    ],
)
async def test_a_voice_or_a_file_without_words_says_what_it_is(fields: dict[str, Any], typed: str) -> None:
    host = Host()
    await deliver(host, **fields)
    assert ("send", "%1", typed) in host.calls


# -- where it runs -----------------------------------------------------------------------------------------


def test_it_runs_on_asyncio_too() -> None:
    host = Host(replace(ACTIVE, lifecycle="initializing", threaded=True))

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(deliver(host))
            await asyncio.sleep(0)
            host.session = ACTIVE
        with pytest.raises(SessionNotFound):
            await deliver(host, session_id="other")

    asyncio.run(main())
    assert host.done[-1] == "poll"


async def test_with_a_manager_a_text_that_was_not_taken_is_typed_5_seconds_later() -> None:
    host, inbox = Host(), MemoryInbox()
    host.sends = [False, True]
    async with open_manager(inbox, bound(host)) as manager:
        await manager.enqueue(session_id="s", origin="telegram", content="one")
        await manager.enqueue(session_id="other", origin="telegram", content="two")
        await trio.sleep(4.9)
        assert host.done.count("send") == 1
        await trio.sleep(0.2)
    assert host.done.count("send") == 2
    assert [one.status for one in inbox.kept] == ["delivered", "expired"]
