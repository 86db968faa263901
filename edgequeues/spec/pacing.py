"""How fast a queue's spec has messages worked: a generic cell rate algorithm, over all or for each value of a key.

What is remembered is one time, the theoretical arrival: when all that was let through so far would have come, had it
come evenly. A message may go while that time is not more than a burst ahead. Times are unix microseconds here.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from math import ceil
from typing import NamedTuple

import msgspec

from edgequeues.core import attrs, jsontext
from edgequeues.core.errors import InvalidMessage
from edgequeues.core.expressions import Env, ExprError, compile_expr
from edgequeues.models import Entry
from edgequeues.spec.ir import MessageType, QueueSpec, RateLimit
from edgequeues.spec.judging import text_of

KEY_MAX = 128  # characters; of a longer key its digest is remembered
NO_KEY = ""  # of messages without one, and of all where the rate has none
HELD_MAX_US = 60_000_000  # for how long a message is put off before it is looked at again
_SECOND_US = 1_000_000


class Taken(NamedTuple):
    """What was let through of a key. arrival: the theoretical one. next: when one more could go that comes then."""

    arrival: int = 0
    next: int = 0


class Pace:
    """A rate limit, compiled."""

    def __init__(self, limit: RateLimit, declared: MessageType) -> None:
        burst = max(limit.per_second / 10, 1) if limit.burst is None else limit.burst
        self.step = max(round(_SECOND_US / limit.per_second), 1)
        self.ahead = round((burst - 1) * self.step)
        self.is_keyed = limit.key is not None
        self._type = declared
        self._key = None if limit.key is None else compile_expr(limit.key)

    def key(self, entry: Entry, at: int) -> str:
        """What a message is counted by. Those without a key, or whose key is none, are counted together."""
        if self._key is None:
            return NO_KEY
        fields = attrs.fields_of(self._type, jsontext.value(entry.data))
        try:
            found = self._key(Env(fields, at / _SECOND_US))
            text = NO_KEY if found is None else text_of(found)
        except (ExprError, InvalidMessage):
            return NO_KEY
        return text if len(text) <= KEY_MAX else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def free(self, taken: Taken, at: int) -> int:
        """How many messages may go at a time."""
        return max((at + self.ahead - max(taken.arrival, at)) // self.step + 1, 0)

    def opens(self, taken: Taken) -> int:
        """When the next one may go, if none may now."""
        return taken.arrival - self.ahead

    def let(self, taken: Taken, count: int, at: int) -> Taken:
        """Let so many through."""
        return taken._replace(arrival=max(taken.arrival, at) + count * self.step)

    def put_off(self, taken: Taken, at: int, *, is_next: bool) -> tuple[Taken, int]:
        """Put a message off, behind those that were before; and until when. is_next: is it the first that waits?

        Alarms go by whole ms, and what goes late has those behind it go late. So the one that is next may come a
        little before it may go: it keeps its place, and the others go on behind it.
        """
        opens = self.opens(taken)
        turn = opens if is_next and opens - at < self.step else max(taken.next, opens)
        if turn > at + HELD_MAX_US:
            return taken, at + HELD_MAX_US
        return taken._replace(next=max(taken.next, turn + self.step)), turn


def ms_after(us: int) -> int:
    """The first unix ms that is not before a time."""
    return ceil(us / 1_000)


@lru_cache(maxsize=1_024)
def of_rules(rules: str) -> Pace | None:
    """The pace of a queue whose row says this; None: as fast as can be."""
    spec = msgspec.json.decode(rules, type=QueueSpec)
    return None if spec.rate_limit is None else Pace(spec.rate_limit, spec.message_type or {})
