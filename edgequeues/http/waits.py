"""Handlers that wait for events, and the one switch that ends all their waits when the server stops."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio


class Waits:
    """Every wait of one server. Once `end` was called, no wait lasts: handlers answer with what they have."""

    def __init__(self) -> None:
        self._ended = False
        self._waiting: set[trio.CancelScope] = set()

    def over(self) -> bool:
        """Has `end` been called?"""
        return self._ended

    async def at_most(self, wait_s: float, work: Callable[[], Awaitable[object]]) -> bool:
        """Do `work`, for `wait_s` at most and not longer than the server serves; return whether it was done.

        Less than no time is none: who waits for the rest of a time may come too late.
        """
        done = False
        if not self._ended:
            with trio.move_on_after(max(wait_s, 0)) as scope:
                self._waiting.add(scope)
                try:
                    await work()
                    done = True
                finally:
                    self._waiting.discard(scope)
        return done

    async def pause(self, wait_s: float) -> None:
        """Sleep, unless the server stops."""
        await self.at_most(wait_s, trio.sleep_forever)

    def end(self) -> None:
        """End all waits, now and from now on."""
        self._ended = True
        for scope in self._waiting:
            scope.cancel()
