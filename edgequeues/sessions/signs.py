"""Shows users that their message came in, where the platform has a sign for that: beside everything else."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from edgequeues.sessions.calling import Function, alone, is_ours

TYPING_S = 10.0  # that a sign may take: by then its user has seen that it does not come
TYPING_MAX = 100  # signs on their way; more are left out

Typing = Callable[[str, str], object]


class Signs:
    """Calls functions that show a sign, once `run` runs. What becomes of them is logged, and matters to nobody."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._calls = 0
        self._asked: list[tuple[Typing, str, str]] = []  # while nothing runs
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Have signs shown, for ever."""
        try:
            async with trio.open_nursery() as self._nursery:
                for asked in self._asked:
                    self._nursery.start_soon(self._show, *asked)
                self._asked.clear()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    def show(self, typing: Typing, session_id: str, origin: str) -> None:
        """Call `typing` with session and origin, soon. It is left out where too many are under way."""
        if self._calls >= TYPING_MAX:
            self._log.warning("no sign of typing for session %s: %d are under way", session_id, self._calls)
            return
        self._calls += 1
        if self._nursery is None:
            self._asked.append((typing, session_id, origin))
        else:
            self._nursery.start_soon(self._show, typing, session_id, origin)

    async def _show(self, typing: Typing, session_id: str, origin: str) -> None:
        try:
            with trio.move_on_after(TYPING_S) as limit:
                await Function(typing, 1).call(session_id, origin)
            if limit.cancelled_caught:
                self._log.warning("no sign of typing for session %s within %g s", session_id, TYPING_S)
        except BaseException as fault:
            if is_ours(fault):
                raise
            self._log.warning("no sign of typing for session %s: %s", session_id, type(alone(fault)).__name__)
        finally:
            self._calls -= 1
