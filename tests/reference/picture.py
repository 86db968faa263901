"""The picture of a message's life: the moves between unfinished states as arrows, the ends with what leads to them.

Where the boxes are is decided here; every arrow and every word comes from the table of transitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from edgequeues.core.lifecycle import MEANINGS, STATES, TRANSITIONS, UNFINISHED, State

WIDTH, HEIGHT = 1040, 570
BOX_W, BOX_H = 150, 52
PLACES: dict[State, tuple[int, int]] = {  # centres of the boxes
    "scheduled": (130, 120),
    "waiting": (130, 330),
    "ready": (400, 225),
    "leased": (660, 120),
    "backoff": (660, 330),
}
BORN: tuple[State, ...] = ("scheduled", "waiting", "ready")  # what a new message can be
FRAME = (30, 56, 730, 340)
ENDS_X, ENDS_W, ENDS_H = 782, 232, 76
BEND = 26  # how far an arrow that has one the other way leaves the straight line

STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1b1f24 }
  .name { font-weight: 600; text-anchor: middle }
  .end { font-weight: 600 }
  .small { font-size: 11.5px; fill: #4a5260 }
  .label { font-size: 12.5px; text-anchor: middle; paint-order: stroke; stroke: #f4f7fb; stroke-width: 5px }
  .page { fill: #fff }
  .frame { fill: #f4f7fb; stroke: #9aa7b8; stroke-dasharray: 5 4 }
  .box { fill: #fff; stroke: #3b6ea8; stroke-width: 1.5 }
  .done { fill: #fff; stroke: #6b7280; stroke-width: 1.5 }
  .arrow { fill: none; stroke: #3b6ea8; stroke-width: 1.5; marker-end: url(#head) }
"""


class Arrow(NamedTuple):
    """A move between two unfinished states, with the events that make it."""

    start: State
    then: State
    events: tuple[str, ...]


def arrows() -> list[Arrow]:
    """The moves between unfinished states."""
    found: dict[tuple[State, State], list[str]] = {}
    for (state, event), targets in TRANSITIONS.items():
        for then in targets:
            if then in UNFINISHED:
                found.setdefault((state, then), []).append(event)
    return [Arrow(start, then, tuple(events)) for (start, then), events in found.items()]


def endings(end: State) -> list[str]:
    """What leads to an end: a line for each event, with the states in which it does."""
    found: dict[str, list[State]] = {}
    for (state, event), targets in TRANSITIONS.items():
        if end in targets:
            found.setdefault(event, []).append(state)
    return [f"{event}: from {_states(states)}" for event, states in found.items()]


def svg() -> str:
    """docs/pictures/lifecycle.svg."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="title desc">',
        '<title id="title">The life of a message</title>',
        f'<desc id="desc">{"; ".join(_said())}.</desc>',
        f"<style>{STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#3b6ea8"/></marker></defs>',
        f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *_frame(),
        *_boxes(),
        *_arrows(),
        *_ends(),
        *_meanings(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _said() -> Iterator[str]:
    for arrow in arrows():
        yield f"{arrow.start} to {arrow.then} by {', '.join(arrow.events)}"
    for end in (state for state in STATES if state not in UNFINISHED):
        yield f"{end} by {', '.join(endings(end))}"


def _states(states: list[State]) -> str:
    if len(states) == len(UNFINISHED):
        return "any state"
    if len(states) == len(UNFINISHED) - 1:
        [left] = [state for state in UNFINISHED if state not in states]
        return f"any but {left}"
    return ", ".join(states)


def _frame() -> Iterator[str]:
    x, y, width, height = FRAME
    yield f'<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>'
    yield f'<text x="{x}" y="{y - 14}">unfinished: a row for each message and consumer</text>'
    yield f'<text x="{ENDS_X}" y="{y - 14}">ended: counted, the row is gone</text>'


def _boxes() -> Iterator[str]:
    for state, (x, y) in PLACES.items():
        left, top = x - BOX_W // 2, y - BOX_H // 2
        yield f'<rect class="box" x="{left}" y="{top}" width="{BOX_W}" height="{BOX_H}" rx="8"/>'
        yield f'<text class="name" x="{x}" y="{y + (0 if state in BORN else 5)}">{state}</text>'
        if state in BORN:
            yield f'<text class="small" x="{x}" y="{y + 17}" text-anchor="middle">new messages</text>'


def _arrows() -> Iterator[str]:
    ways = {(arrow.start, arrow.then) for arrow in arrows()}
    for arrow in arrows():
        bend = BEND if (arrow.then, arrow.start) in ways else 0
        (x1, y1), (x2, y2) = PLACES[arrow.start], PLACES[arrow.then]
        length = math.hypot(x2 - x1, y2 - y1)
        across = ((y2 - y1) / length * bend, -(x2 - x1) / length * bend)
        middle = ((x1 + x2) / 2 + 2 * across[0], (y1 + y2) / 2 + 2 * across[1])
        start, end = _edge((x1, y1), middle), _edge((x2, y2), middle)
        path = f"M{start[0]:.0f} {start[1]:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
        yield f'<path class="arrow" d="{path}"/>'
        x = 0.25 * start[0] + 0.5 * middle[0] + 0.25 * end[0]
        y = 0.25 * start[1] + 0.5 * middle[1] + 0.25 * end[1]
        yield f'<text class="label" x="{x:.0f}" y="{y + 4:.0f}">{", ".join(arrow.events)}</text>'


def _edge(centre: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Where the way from a box's centre leaves the box, and a little on."""
    across, down = towards[0] - centre[0], towards[1] - centre[1]
    ratios = [half / abs(way) for half, way in ((BOX_W / 2 + 3, across), (BOX_H / 2 + 3, down)) if way]
    return centre[0] + across * min(ratios), centre[1] + down * min(ratios)


def _ends() -> Iterator[str]:
    ends = [state for state in STATES if state not in UNFINISHED]
    for number, end in enumerate(ends):
        top = FRAME[1] + number * (ENDS_H + 12)
        yield f'<rect class="done" x="{ENDS_X}" y="{top}" width="{ENDS_W}" height="{ENDS_H}" rx="8"/>'
        yield f'<text class="end" x="{ENDS_X + 14}" y="{top + 22}">{end}</text>'
        for line, words in enumerate(endings(end)):
            yield f'<text class="small" x="{ENDS_X + 14}" y="{top + 42 + 17 * line}">{words}</text>'


def _meanings() -> Iterator[str]:
    top = FRAME[1] + FRAME[3] + 34
    for number, state in enumerate(STATES):
        x, y = 30 + 500 * (number // 5), top + 26 * (number % 5)
        yield f'<text x="{x}" y="{y}"><tspan class="end">{state}</tspan>: {MEANINGS[state]}</text>'
