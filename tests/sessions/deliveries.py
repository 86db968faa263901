"""A function that delivers, as a test wants it to, and keeps account of that."""

from __future__ import annotations

from collections.abc import Callable

import trio

from edgequeues.inbound import InboundRow
from edgequeues.sessions.manager import SessionManager


class Deliveries:
    """Delivers in `lasts_s` seconds. faults: what deliveries raise, one after the other.

    begun: each that began, with the seconds that had passed by then. done: contents, in the order of their ends.
    """

    def __init__(self, lasts_s: float = 0.0, *faults: BaseException | Callable[[], BaseException]) -> None:
        self.lasts_s = lasts_s
        self.faults = list(faults)
        self.begun: list[InboundRow] = []
        self.times: list[float] = []
        self.done: list[str] = []
        self.cancelled: list[str] = []
        self.most = 0  # that ran at once in one session
        self._running: dict[str, int] = {}
        self._began_s = trio.current_time()

    async def __call__(self, row: InboundRow) -> None:
        session = row["session_id"]
        self.begun.append(row)
        self.times.append(round(trio.current_time() - self._began_s, 3))
        self._running[session] = self._running.get(session, 0) + 1
        self.most = max(self.most, self._running[session])
        try:
            await trio.sleep(self.lasts_s)
            if self.faults:
                fault = self.faults.pop(0)
                raise fault if isinstance(fault, BaseException) else fault()
        except trio.Cancelled:
            self.cancelled.append(row["content"])
            raise
        finally:
            self._running[session] -= 1
        self.done.append(row["content"])

    @property
    def contents(self) -> list[str]:
        """Of those that began."""
        return [row["content"] for row in self.begun]

    @property
    def attempts(self) -> list[int]:
        """How many had failed before, of those that began."""
        return [row["attempt_count"] for row in self.begun]


async def enqueue(manager: SessionManager, content: str, session_id: str = "s") -> int:
    """A message of which no other is a repeat; return its position."""
    position = await manager.enqueue(session_id=session_id, origin="telegram", content=content)
    assert position is not None
    return position
