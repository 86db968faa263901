"""Handlers that wait for events, and the one switch that ends all their waits when the server stops."""

from __future__ import annotations

import trio

from shards.hub import Watch


class Waits:
    """Every wait of one server. Once `end` was called, no wait lasts: handlers answer with what they have."""

    def __init__(self) -> None:
        self._ended = False
        self._waiting: set[trio.CancelScope] = set()

    def over(self) -> bool:
        """Has `end` been called?"""
        return self._ended

    async def until(self, watch: Watch, deadline: float) -> bool:
        """Wait for `watch` until trio time `deadline` at most; return whether it saw something."""
        seen = False
        if not self._ended:
            with trio.CancelScope(deadline=deadline) as scope:
                self._waiting.add(scope)
                try:
                    await watch.wait()
                    seen = True
                finally:
                    self._waiting.discard(scope)
        return seen

    async def pause(self, wait_s: float) -> None:
        """Sleep, unless the server stops."""
        if not self._ended:
            with trio.CancelScope(deadline=trio.current_time() + wait_s) as scope:
                self._waiting.add(scope)
                try:
                    await trio.sleep_forever()
                finally:
                    self._waiting.discard(scope)

    def end(self) -> None:
        """End all waits, now and from now on."""
        self._ended = True
        for scope in self._waiting:
            scope.cancel()
