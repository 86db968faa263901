"""The seam for replication: what a journal is handed, when, and what follows when it refuses."""

from __future__ import annotations

import random
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from shards.errors import Moved, ShardBroken
from shards.namespace import Namespace, Ref, open_namespace
from shards.shard import Shard
from shards.testing import InlineDisk, MemoryJournal, MemoryLog, TrioClock


class Ledger(Shard):
    """Rows that are added, changed and deleted, and an alarm."""

    migrations = (
        "CREATE TABLE line (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",
        "CREATE TABLE tag (name TEXT NOT NULL PRIMARY KEY, line INTEGER) STRICT, WITHOUT ROWID",
    )

    def add(self, text: str) -> int:
        self.db.execute("INSERT INTO line (text) VALUES (?)", (text,))
        return self.db.last_insert_rowid()

    def shuffle(self, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(rng.randint(1, 5)):
            number = rng.randint(1, 20)
            match rng.randint(0, 4):
                case 0:
                    self.db.execute("INSERT OR REPLACE INTO line VALUES (?, ?)", (number, rng.choice("abc")))
                case 1:
                    self.db.execute("DELETE FROM line WHERE id = ?", (number,))
                case 2:
                    self.db.execute("UPDATE line SET text = text || ? WHERE id > ?", ("x", number))
                case 3:
                    self.db.execute("INSERT OR REPLACE INTO tag VALUES (?, ?)", (rng.choice("pqr"), number))
                case _:
                    self.set_alarm(self.now_ms + 10**9 + number)

    def lines(self) -> list[str]:
        return [str(text) for (text,) in self.db.execute("SELECT text FROM line ORDER BY id").fetchall()]

    def rows(self) -> dict[str, list[tuple[object, ...]]]:
        """Every row of every table that is replicated."""
        tables = ("line", "tag", "shard_alarm")
        return {name: list(self.db.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()) for name in tables}


def owner(
    folder: Path, log: MemoryLog, *, append_takes: float = 0.0
) -> tuple[AbstractAsyncContextManager[Namespace[Ledger]], list[MemoryJournal]]:
    """One node: a folder of its own over the shared log; the journals it made, newest last."""
    made: list[MemoryJournal] = []

    def journal(_name: str) -> MemoryJournal:
        made.append(MemoryJournal(log, append_takes=append_takes))
        return made[-1]

    opened = open_namespace(Ledger, folder, clock=TrioClock(), disk=InlineDisk(), journal=journal)
    return opened, made


async def test_a_second_owner_sees_all_that_was_confirmed_and_the_first_steps_down(tmp_path: Path) -> None:
    """Takeover: claim, catch up, serve. The old owner's next call is answered `Moved`, nothing of it is kept."""
    log = MemoryLog()
    first, _ = owner(tmp_path / "one", log)
    second, _ = owner(tmp_path / "two", log)
    async with first as one, second as two:
        ours, theirs = one.ref("s"), two.ref("s")
        assert [await ours.call(Ledger.add, text) for text in "abc"] == [1, 2, 3]
        assert await theirs.call(Ledger.lines) == ["a", "b", "c"]
        with pytest.raises(Moved):
            await ours.call(Ledger.add, "lost")
        assert await theirs.call(Ledger.lines) == ["a", "b", "c"]


async def test_a_fenced_owner_does_not_answer_reads_either(tmp_path: Path) -> None:
    log = MemoryLog()
    first, _ = owner(tmp_path / "one", log)
    second, _ = owner(tmp_path / "two", log)
    async with first as one, second as two:
        await one.ref("s").call(Ledger.add, "a")
        await two.ref("s").call(Ledger.add, "b")
        with pytest.raises(Moved):
            await one.ref("s").call(Ledger.lines)
        assert await one.ref("s").call(Ledger.lines) == ["a", "b"]  # a new claim, caught up


async def test_a_lost_answer_is_an_unknown_outcome_and_the_record_is_found_on_reopening(
    tmp_path: Path,
) -> None:
    """The record was kept: the caller is told to look, and looking shows the row once."""
    log = MemoryLog()
    opened, journals = owner(tmp_path, log)
    async with opened as namespace:
        ref = namespace.ref("s")
        await ref.call(Ledger.add, "a")
        journals[-1].lose_answers = 1
        with pytest.raises(ShardBroken):
            await ref.call(Ledger.add, "b")
        assert await ref.call(Ledger.lines) == ["a", "b"]


async def test_nothing_is_answered_before_the_journal_has_it(tmp_path: Path) -> None:
    log = MemoryLog()
    opened, journals = owner(tmp_path, log)
    async with opened as namespace:
        ref = namespace.ref("s")
        await ref.call(Ledger.lines)
        journals[-1].append_takes = 5
        start, records = trio.current_time(), len(log.records)
        await ref.call(Ledger.add, "a")
        assert trio.current_time() - start >= 5
        assert [record.kind for record in log.records[records:]] == ["effects"]


async def test_calls_wait_together_for_one_append(tmp_path: Path) -> None:
    log = MemoryLog()
    opened, journals = owner(tmp_path, log)
    async with opened as namespace:
        ref = namespace.ref("s")
        await ref.call(Ledger.lines)
        journals[-1].append_takes = 1
        records = len(log.records)
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(ref.call, Ledger.add, str(number))
        assert len(log.records) - records <= 2
        assert len(await ref.call(Ledger.lines)) == 50


async def _shuffled(ref: Ref[Ledger], seeds: range) -> dict[str, list[tuple[object, ...]]]:
    for seed in seeds:
        await ref.call(Ledger.shuffle, seed)
    return await ref.call(Ledger.rows)


@pytest.mark.parametrize("seed", range(20))
async def test_replaying_the_recorded_effects_gives_the_same_rows(tmp_path: Path, seed: int) -> None:
    log = MemoryLog()
    first, _ = owner(tmp_path / "one", log)
    second, _ = owner(tmp_path / "two", log)
    async with first as one:
        wanted = await _shuffled(one.ref("s"), range(seed * 1000, seed * 1000 + 40))
    async with second as two:
        assert await two.ref("s").call(Ledger.rows) == wanted


async def test_a_folder_that_lags_behind_catches_up_from_where_it_is(tmp_path: Path) -> None:
    log = MemoryLog()
    for turn in range(4):
        opened, _ = owner(tmp_path / ("one" if turn % 2 else "two"), log)
        async with opened as namespace:
            assert len(await namespace.ref("s").call(Ledger.lines)) == turn
            await namespace.ref("s").call(Ledger.add, str(turn))


async def test_an_image_replaces_the_history_and_a_new_node_starts_from_it(tmp_path: Path) -> None:
    log = MemoryLog()
    first, _ = owner(tmp_path / "one", log)
    second, _ = owner(tmp_path / "two", log)
    async with first as one:
        await _shuffled(one.ref("s"), range(50))
        await one.checkpoint_journal("s")
        assert [record.kind for record in log.records] == ["image"]
        wanted = await _shuffled(one.ref("s"), range(50, 60))
    async with second as two:
        assert await two.ref("s").call(Ledger.rows) == wanted
