"""The life of a delivery: which states there are, and every way from one to the next.

The schema repeats the states, docs/lifecycle.md is made from the table, and every move of `edgequeues/space/moves.py`
is held against it.
"""

from __future__ import annotations

from typing import Literal, get_args

State = Literal["scheduled", "waiting", "ready", "leased", "backoff", "acked", "dead", "expired", "cancelled"]
Event = Literal[
    "due", "turn", "lease", "ack", "retry", "release", "lapse", "bury", "expire", "cancel", "close", "hold"
]

STATES: tuple[State, ...] = get_args(State)
UNFINISHED: tuple[State, ...] = ("scheduled", "waiting", "ready", "leased", "backoff")

# How an entry stands with a consumer: unfinished, done with, or with no consumer at all.
Stand = State | Literal["finished", "none"]
STANDS: tuple[Stand, ...] = (*UNFINISHED, "finished", "none")

MEANINGS: dict[State, str] = {
    "scheduled": "not to be handed out before its time",
    "waiting": "behind another message of its ordering key",
    "ready": "can be pulled",
    "leased": "handed out, hidden until its lease ends",
    "backoff": "failed, to be tried again later",
    "acked": "done",
    "dead": "given up: failed for good, or too often",
    "expired": "too old, or its session is over",
    "cancelled": "deleted, purged, or replaced by a newer version",
}

# Whether a message whose turn comes is scheduled or ready is a matter of its time; so is what a retry makes of it.
TRANSITIONS: dict[tuple[State, Event], tuple[State, ...]] = {
    ("scheduled", "due"): ("ready",),
    ("waiting", "turn"): ("ready", "scheduled"),
    ("ready", "lease"): ("leased",),
    # The pace of the queue lets it go no sooner; what was handed out before may still be acked.
    ("ready", "hold"): ("scheduled", "backoff"),
    ("leased", "ack"): ("acked",),
    ("leased", "retry"): ("ready", "backoff"),
    ("leased", "release"): ("ready",),
    ("leased", "lapse"): ("ready", "backoff"),
    ("leased", "bury"): ("dead",),
    ("backoff", "due"): ("ready",),
    # A late ack: the lease has lapsed, but nobody else was given the message.
    ("ready", "ack"): ("acked",),
    ("backoff", "ack"): ("acked",),
    # An operator gives up a message that nobody holds, or fewer attempts are allowed than were made already.
    ("ready", "bury"): ("dead",),
    ("backoff", "bury"): ("dead",),
    ("scheduled", "bury"): ("dead",),
    ("waiting", "bury"): ("dead",),
    # What is handed out does not expire before its lease ends.
    **{(state, "expire"): ("expired",) for state in UNFINISHED if state != "leased"},
    **{(state, "cancel"): ("cancelled",) for state in UNFINISHED},
    # Its session is over, and with it whatever is being done for it.
    **{(state, "close"): ("expired",) for state in UNFINISHED},
}


def allowed(state: State, event: Event, then: State) -> bool:
    """May this event take a delivery from one state to the other?"""
    return then in TRANSITIONS.get((state, event), ())


def moves() -> str:
    """The Markdown table of moves of docs/lifecycle.md."""
    rows = [
        f"| `{state}` | `{event}` | {' or '.join(f'`{then}`' for then in targets)} |"
        for (state, event), targets in TRANSITIONS.items()
    ]
    return "\n".join(["| state | event | then |", "|---|---|---|", *rows]) + "\n"


def table() -> str:
    """The Markdown table of states of docs/lifecycle.md."""
    rows = [f"| `{state}` | {MEANINGS[state]} |" for state in STATES]
    return "\n".join(["| state | means |", "|---|---|", *rows]) + "\n"
