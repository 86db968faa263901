"""What a space means, in lists and dicts: slow, without indexes, counters or sweeping by parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from edgequeues.models import NewEntry, Outcome, QueueConfig
from edgequeues.space.retention import TRIM_EXTRA


class Refused(Exception):
    """The whole call is refused."""


@dataclass(frozen=True)
class Item:
    """One entry."""

    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    expires: int | None
    data: str


@dataclass(frozen=True)
class Bounds:
    """What a read asks for, in positions."""

    after: int = 0
    before: int = 1 << 62
    limit: int | None = None
    reverse: bool = False
    type: str | None = None
    since: int | None = None
    until: int | None = None
    ids: tuple[str, ...] = ()


@dataclass
class Log:
    """One queue, in position order."""

    config: QueueConfig = field(default_factory=QueueConfig)
    items: list[Item] = field(default_factory=list)

    def live(self, at: int) -> list[Item]:
        return [item for item in self.items if not self.expired(item, at)]

    def expired(self, item: Item, at: int) -> bool:
        if item.expires is not None and item.expires <= at:
            return True
        return self.config.max_age_ms is not None and item.updated + self.config.max_age_ms <= at


@dataclass
class Model:
    """All queues of a space, and the counters they share."""

    actor: str
    logs: dict[str, Log] = field(default_factory=dict)
    position: int = 0
    lamport: int = 0
    clock_ms: int = 0
    wall_ms: int = 0

    def at(self, now_ms: int) -> int:
        """The clock; after it was stepped back, half its pace from where it was."""
        return max(now_ms, self.clock_ms + max(now_ms - self.wall_ms, 0) // 2)

    def passed(self, now_ms: int) -> int:
        """It is `now_ms` for good: whatever has expired never was."""
        gone = self.at(now_ms) - self.clock_ms
        self.clock_ms += gone
        self.wall_ms = now_ms if now_ms < self.wall_ms else min(now_ms, self.wall_ms + 2 * gone)
        for log in self.logs.values():
            log.items = log.live(self.clock_ms)
        return self.clock_ms

    def append(self, name: str, entries: Sequence[NewEntry], now_ms: int) -> list[tuple[Outcome, int, str]]:
        """Outcome, position and version of each. Raises Refused, and then this model is of no more use."""
        at, log = self.at(now_ms), self.logs.setdefault(name, Log(QueueConfig(name)))
        told = [self._append(log, entry, at) for entry in entries]
        added = sum(outcome in ("new", "moved") for outcome, _, _ in told)
        if added:
            self.passed(now_ms)
            if log.config.max_entries is not None:
                excess = max(0, len(log.items) - log.config.max_entries)
                del log.items[: min(excess, 2 * added + TRIM_EXTRA)]
        return told

    def _append(self, log: Log, entry: NewEntry, at: int) -> tuple[Outcome, int, str]:
        assert entry.object_id is not None
        stated = int(entry.if_version[:16], 16) if entry.if_version else None
        if stated is not None and stated > self.lamport + (1 << 20):
            raise Refused
        old = next((item for item in log.live(at) if item.id == entry.object_id), None)
        if old is not None and old.data == entry.data:
            return "same", old.position, old.version
        if old is not None and not log.config.mutable:
            raise Refused
        if old is not None and entry.if_version and entry.if_version <= old.version:
            return "stale", old.position, old.version
        self.position += 1
        self.lamport = self.lamport + 1 if stated is None else max(self.lamport, stated)
        version = entry.if_version or f"{self.lamport:016x}@{self.actor}"
        created = at if old is None else old.created
        expires = None if entry.ttl_ms is None else at + entry.ttl_ms
        item = Item(entry.object_id, self.position, version, entry.type, created, at, expires, entry.data)
        log.items = [other for other in log.items if other.id != item.id] + [item]
        return "new" if old is None else "moved", item.position, version

    def delete(self, name: str, positions: Iterable[int], now_ms: int) -> int:
        """Delete entries; how many of them had not expired."""
        log, gone = self.logs.get(name, Log()), set(positions)
        deleted = sum(item.position in gone for item in log.live(self.at(now_ms)))
        log.items = [item for item in log.items if item.position not in gone]
        return deleted

    def configure(self, name: str, config: QueueConfig, now_ms: int) -> None:
        log = self.logs.get(name)
        if log is None:
            self.logs[name] = Log(replace_name(config, name))
        elif log.config != replace_name(config, name):
            self.passed(now_ms)
            log.config = replace_name(config, name)

    def sweep(self, now_ms: int) -> None:
        """Nothing anyone sees, but for queues longer than a lowered max_entries."""
        self.passed(now_ms)
        for log in self.logs.values():
            if log.config.max_entries is not None:
                del log.items[: max(0, len(log.items) - log.config.max_entries)]

    def read(self, name: str, ask: Bounds, now_ms: int) -> list[Item]:
        items = self.logs.get(name, Log()).live(self.at(now_ms))
        found = [item for item in items if ask.after < item.position < ask.before and matches(item, ask)]
        return found[::-1][: ask.limit] if ask.reverse else found[: ask.limit]


def matches(item: Item, ask: Bounds) -> bool:
    return (
        (ask.type is None or item.type == ask.type)
        and (ask.since is None or item.created >= ask.since)
        and (ask.until is None or item.created <= ask.until)
        and (not ask.ids or item.id in ask.ids)
    )


def replace_name(config: QueueConfig, name: str) -> QueueConfig:
    return QueueConfig(name, config.kind, config.max_age_ms, config.max_entries, config.mutable)


def widened(ask: Bounds) -> Bounds:
    """The same without a limit."""
    return replace(ask, limit=None)
