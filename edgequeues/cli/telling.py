"""Why a message is not delivered, as a sentence that a human reads."""

from __future__ import annotations

from typing import NamedTuple

from edgequeues.cli.render import when
from edgequeues.client import Explanation, Standing


class Head(NamedTuple):
    """The message that a line waits for. key: of the line; "": the whole queue is one."""

    message: Standing
    key: str


def sentence(told: Explanation, head: Head | None, dxn: str) -> str:
    """What `told` means. head: where the message waits behind others, the first of them, if it is known."""
    said = {
        "ready": f"it is ready, the next pull may get it{_tried(told.attempts)}",
        "paused": f"it is ready, but the queue is paused: `edgequeues resume {dxn}` goes on",
        "delayed": f"it waits for its time, {when(told.until)}{_tried(told.attempts)}",
        "behind": _behind(told, head),
        "leased": f"it {_leased(told.worker, told.until)}, for attempt {told.attempts}",
        "backing_off": f"it {_backing_off(told.attempts, told.until, told.last_error)}",
        "filling": "its turn is to come: the consumer is new and still given what was there before it",
        "expired": "it has expired and will not be handed out any more",
        "finished": f"nothing is left to be done: it was acked, given up, cancelled or expired{_last(told)}",
    }
    return said.get(told.why, told.why.replace("_", " "))  # a newer server may know more reasons


def _behind(told: Explanation, head: Head | None) -> str:
    count = "1 message" if told.behind == 1 else f"{told.behind} messages"
    if head is None:
        line = f" of key {told.key}" if told.key else ""
        return f"it waits behind {count}{line}"
    line = f" of key {head.key}" if head.key else ", since the queue is worked in order"
    return f"it waits behind {count}{line}; the head, {head.message.id}, {_standing(head.message)}"


def _standing(one: Standing) -> str:
    said = {
        "leased": _leased(one.worker, one.due),
        "backoff": _backing_off(one.attempts, one.due, one.last_error),
        "scheduled": f"waits for its time, {when(one.due)}",
    }
    return said.get(one.state, f"is {one.state}")


def _leased(worker: str | None, until: int | None) -> str:
    return f"is leased by {worker or 'somebody without a name'} until {when(until)}"


def _backing_off(attempts: int, until: int | None, error: str | None) -> str:
    times = "once" if attempts == 1 else f"{attempts} times"
    why = f": {error}" if error else ""
    return f"has failed {times} and is tried again at {when(until)}{why}"


def _tried(attempts: int) -> str:
    if not attempts:
        return ""
    return f", after {attempts} {'attempt' if attempts == 1 else 'attempts'}"


def _last(told: Explanation) -> str:
    if not told.history:
        return ""
    last = told.history[-1]
    why = f", {last.error}" if last.error else ""
    return f"; the last attempt that was not acked: {last.ending}{why}"
