"""How a manager of sessions works, where nothing else is said, and the limits of that."""

from __future__ import annotations

from msgspec import Struct

from edgequeues.inbound import LOCK_MS
from edgequeues.store.base import LEASE_MS_MAX

CONCURRENCY_MAX = 10_000
LOCK_MS_MIN = 1_000  # a shorter lock could end between extensions
DAY_S = 86_400.0
YEAR_MS = 365 * 86_400_000


class Options(Struct, frozen=True, kw_only=True):
    """What a manager does.

    concurrency: deliveries at once, of a session each.
    lock_ms: after which another worker is given what this one held that died; extended while a delivery runs.
    keep_ms: what was finished longer ago than this is removed, every `clean_every_s` seconds. None: that is left to
        the queue, which removes it by itself when its own setting says, KEPT_MS where nothing else is set.
    grace_s: seconds that deliveries are given when the manager is left.
    """

    concurrency: int = 1_000
    lock_ms: int = LOCK_MS
    clean_every_s: float = 3_600.0
    keep_ms: int | None = None
    grace_s: float = 0.0

    def __post_init__(self) -> None:
        """Raises ValueError for what is out of bounds."""
        for name, value, low, high in (
            ("concurrency", self.concurrency, 1, CONCURRENCY_MAX),
            ("lock_ms", self.lock_ms, LOCK_MS_MIN, LEASE_MS_MAX),
            ("clean_every_s", self.clean_every_s, 1.0, DAY_S),
            ("keep_ms", 0 if self.keep_ms is None else self.keep_ms, 0, YEAR_MS),
            ("grace_s", self.grace_s, 0.0, DAY_S),
        ):
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}; it may be {low:,} to {high:,}")
