"""The leases a store object keeps of what it handed out, by message id, and how many it may keep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from edgequeues.core.dxn import Dxn
from edgequeues.store.base import LeaseLost, NotHeld, StoredMessage, TooManyHeld

Answer = Literal["ack", "retry", "dead_letter", "extend"]

_WHY = {
    "finished": "it is finished already",
    "stale": "its lease was answered, or somebody else was handed it since",
    "lapsed": "its lease has lapsed",
    "superseded": "it was replaced by newer data",
    "unknown": "the store knows no such lease: was the queue removed, or the data restored?",
}


class Held(NamedTuple):
    """A lease. until_s: when it lapses, about, by the clock of the event loop."""

    queue: Dxn
    lease: str
    until_s: float


class Holding:
    """Leases by message id, `held_max` at most."""

    def __init__(self, held_max: int) -> None:
        self._held_max = held_max
        self._held: dict[str, Held] = {}
        self._asked = 0  # for messages that are on their way

    def __len__(self) -> int:
        return len(self._held)

    @contextmanager
    def room(self, now_s: float) -> Iterator[None]:
        """Keep room for one more lease. Raises TooManyHeld."""
        if len(self._held) + self._asked >= self._held_max:
            self._held = {name: one for name, one in self._held.items() if one.until_s > now_s}
        if len(self._held) + self._asked >= self._held_max:
            raise TooManyHeld(f"{self._held_max} messages are handed out and not answered")
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    def keep(self, message: StoredMessage, held: Held) -> StoredMessage:
        """Note a hand-out; an earlier one of the same message is over."""
        self._held[message.id] = held
        return message

    def find(self, message_id: str) -> Held:
        """The newest lease of a message. Raises NotHeld."""
        found = self._held.get(message_id)
        if found is None:
            raise NotHeld(f"{message_id}: this store object has no lease of such a message")
        return found

    def answered(self, message_id: str, held: Held, answer: Answer, outcome: str) -> None:
        """Let go of a lease whose answer the store has judged. Raises LeaseLost where it did not count."""
        if self._held.get(message_id) is held:
            del self._held[message_id]
        # An ack of what is finished asks for what is so; anything else would have changed something.
        if outcome != "done" and not (answer == "ack" and outcome == "finished"):
            raise LeaseLost(f"{answer} {message_id}: {_WHY.get(outcome, outcome)}")

    def extended(self, message_id: str, held: Held, outcome: str, until_s: float) -> None:
        """Note that a lease lasts longer. Raises LeaseLost where it does not."""
        if outcome != "done":
            self.answered(message_id, held, "extend", outcome)
        elif self._held.get(message_id) is held:
            self._held[message_id] = held._replace(until_s=until_s)


def id_of(queue: Dxn, object_id: str) -> str:
    """A message's id: unlike the object's it says in which queue, so that no two are the same in a space."""
    return f"{queue.queue}:{object_id}"
