"""What the tests of the space share: a shard with short verbs, in memory or in a file that can be reopened."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from edgequeues.models import AppendAnswer, Entry, NewEntry, Page, QueueConfig, RangeQuery
from edgequeues.space.shard import SpaceShard
from shards import migrate
from shards.shard import Context
from shards.testing import Direct, FakeClock

P = ParamSpec("P")
T = TypeVar("T")

ULID = "01HZY3V0000000000000000001"
OTHER = "01HZY3V0000000000000000002"


class Space(Direct[SpaceShard]):
    """A space in memory."""

    clock: FakeClock

    def __init__(self) -> None:
        super().__init__(SpaceShard, FakeClock())

    def append(self, queue: str, *entries: NewEntry) -> AppendAnswer:
        return self.call(SpaceShard.append, queue, entries)

    def put(self, queue: str, data: str, object_id: str | None = None) -> int:
        """Append one object; its position."""
        return self.append(queue, NewEntry(data, object_id)).results[0].position

    def fill(self, queue: str, count: int, first: int = 0) -> AppendAnswer:
        """Append objects named by number, whose data is the number."""
        numbers = range(first, first + count)
        return self.append(queue, *[NewEntry(str(number), f"o{number}") for number in numbers])

    def read(self, queue: str, ask: RangeQuery | None = None) -> Page:
        return self.call(SpaceShard.read, queue, ask or RangeQuery())

    def pages(self, queue: str, ask: RangeQuery) -> Iterator[Page]:
        """Follow `resume` to the end, as a caller does."""
        after, before, left = ask.after, ask.before, ask.limit
        while True:
            page = self.read(queue, changed(ask, after=after, before=before, limit=left))
            yield page
            if page.resume is None:
                return
            after, before = (after, page.resume) if ask.reverse else (page.resume, before)
            left = None if left is None else left - len(page.entries)

    def all(self, queue: str, ask: RangeQuery | None = None) -> list[Entry]:
        return [entry for page in self.pages(queue, ask or RangeQuery()) for entry in page.entries]

    def data(self, queue: str) -> list[str]:
        return [entry.data for entry in self.all(queue)]

    def configure(self, queue: str, **settings: object) -> None:
        self.call(SpaceShard.configure, queue, QueueConfig(**settings))  # type: ignore[arg-type]

    def count(self, queue: str) -> int:
        return self.call(SpaceShard.stats, queue).entries

    def etag(self, queue: str) -> str:
        return self.call(SpaceShard.etag, queue)

    def rows(self) -> int:
        """Rows stored, whoever may see them."""
        rows: int = self.db.execute("SELECT count(*) FROM queue_entries").get
        return rows

    def sweep(self) -> int:
        """Run the alarm until it has nothing more to do at once; how often it ran."""
        for ran in range(1, 1_000):
            self.run_alarm()
            if not self.alarm_due():
                return ran
        raise AssertionError("the sweep never ends")


class SpaceFile(Space):
    """A space in a file."""

    def __init__(self, path: Path, clock: FakeClock | None = None, file_id: str = "the file") -> None:
        self.clock = clock or FakeClock()
        self.events = []
        self.path = path
        self.file_id = file_id
        self.opened = 0
        self.open()

    def open(self) -> None:
        db = apsw.Connection(str(self.path))
        db.pragma("synchronous", "off")  # what a power cut does is another test's business
        self.opened += 1
        self.context = Context(
            db,
            "test",
            random.Random(f"{self.file_id} {self.opened}"),
            self.file_id,
            now_ms=self.clock.now_ms(),
        )
        self.shard = SpaceShard(self.context)
        migrate.migrate(db, SpaceShard.migrations, now_ms=self.context.now_ms)
        self.call(SpaceShard.opened)

    def close(self) -> None:
        self.db.close()

    def reopen(self) -> None:
        self.close()
        self.open()


def changed(ask: RangeQuery, **fields: object) -> RangeQuery:
    values = {field: getattr(ask, field) for field in ask.__struct_fields__}
    return RangeQuery(**{**values, **fields})


def numbers(entries: Sequence[Entry]) -> list[int]:
    """Data of entries that `fill` made."""
    return [int(entry.data) for entry in entries]


def turn(space: Space, verb: Callable[Concatenate[SpaceShard, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a verb for its refusal, and check that it left every row as it was."""
    before = dump(space.db)
    try:
        return space.call(verb, *args, **kwargs)
    except Exception:
        assert dump(space.db) == before
        raise


def tables(db: apsw.Connection) -> list[str]:
    """Every table that holds state."""
    rows = db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'sqlite_sequence' ORDER BY name"
    ).fetchall()
    return [str(row[0]) for row in rows]


def dump(db: apsw.Connection) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables."""
    return {
        table: sorted(db.execute(f'SELECT * FROM "{table}"').fetchall(), key=repr) for table in tables(db)
    }
