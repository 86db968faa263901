"""What is no sound copy of such a shard is refused before it counts, and before anything in it is run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from shards.errors import NotACopy
from shards.testing import running

from .examples import Notes
from .hands import Hand, copy_of, left_in


def drop_a_table(db: apsw.Connection) -> None:
    db.execute("DROP TABLE pad")


def add_a_trigger(db: apsw.Connection) -> None:
    db.execute("CREATE TRIGGER t AFTER INSERT ON note BEGIN DELETE FROM note; END")


def add_a_table(db: apsw.Connection) -> None:
    db.execute("CREATE TABLE more (x)")


def be_ahead(db: apsw.Connection) -> None:
    db.execute("INSERT INTO shard_schema (version, applied_ms) VALUES (99, 0)")


def add_a_reserved_trigger(db: apsw.Connection) -> None:
    """SQLite makes none of this name, and reads one that is there."""
    db.execute("CREATE TRIGGER evil AFTER INSERT ON note BEGIN DELETE FROM note; END")
    db.pragma("writable_schema", 1)
    db.execute(
        "UPDATE sqlite_schema SET name = 'sqlite_evil', sql = replace(sql, 'evil', 'sqlite_evil')"
        " WHERE type = 'trigger'"
    )


def add_a_check(db: apsw.Connection) -> None:
    """One that fails, as SQLite would say if it looked at it: another may go on for hours."""
    db.execute("CREATE TABLE more (x CHECK (x > 0))")
    db.pragma("ignore_check_constraints", 1)
    db.execute("INSERT INTO more VALUES (0)")


def lose_its_alarm(db: apsw.Connection) -> None:
    db.execute("DELETE FROM shard_alarm")


def lose_its_identity(db: apsw.Connection) -> None:
    db.execute("DELETE FROM shard_file")


def have_another_version_table(db: apsw.Connection) -> None:
    db.execute("DROP TABLE shard_schema")
    db.execute("CREATE TABLE shard_schema (x)")


def have_its_version_computed(db: apsw.Connection) -> None:
    """By what fails if it is run: another may go on for hours."""
    db.execute("DROP TABLE shard_schema")
    db.execute("CREATE VIEW shard_schema AS SELECT abs(-9223372036854775808) AS version")


def be_wrong(db: apsw.Connection) -> None:
    db.execute("INSERT INTO note (text) VALUES ('wrong')")


@pytest.mark.parametrize(
    ("also", "why"),
    [
        (drop_a_table, "table pad"),
        (add_a_trigger, "trigger t"),
        (add_a_table, "table more"),
        (be_ahead, "it has schema 99, this program knows 2"),
        (be_wrong, "a text is wrong"),
        (add_a_reserved_trigger, "trigger sqlite_evil"),
        (add_a_check, "table more"),
        (lose_its_alarm, "it cannot be read as one of ours"),
        (lose_its_identity, "it cannot be read as one of ours"),
        (have_another_version_table, "not as it must be: shard_schema"),
        (have_its_version_computed, "not as it must be: shard_schema"),
    ],
)
async def test_a_file_that_is_not_as_ours_are_is_refused(
    also: Callable[[apsw.Connection], None], why: str
) -> None:
    content = await copy_of("x", also=also)
    async with running(Notes) as namespace:
        await namespace.ref("a").call(Notes.add, "old")
        with pytest.raises(NotACopy, match=why):
            await Hand(namespace).put(content)
        assert await namespace.ref("a").call(Notes.texts) == ["old"]
        assert left_in(namespace) == []


async def test_statistics_that_somebody_has_made_do_no_harm() -> None:
    content = await copy_of("x", also=lambda db: db.execute("ANALYZE"))
    async with running(Notes) as namespace:
        await Hand(namespace).put(content)
        assert await namespace.ref("a").call(Notes.texts) == ["x"]


async def test_what_is_no_whole_database_is_refused(tmp_path: Path) -> None:
    content = await copy_of(*map(str, range(1_000)))
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE x (y)")
    other.close()
    empty = apsw.Connection(str(tmp_path / "empty.db"))
    empty.pragma("user_version", 1)
    empty.close()
    async with running(Notes) as namespace:
        hand = Hand(namespace)
        for what, why in [
            (b"", "it is no SQLite database"),
            (b"rubbish" * 1_000, "it is no SQLite database"),
            (content[:100], "its end is missing"),
            (content[:-100], "its end is missing"),
            (content[:16] + bytes(2) + content[18:], "no whole pages of 0"),
            (content[: len(content) // 2], "."),
            (content[:4096] + bytes(4096) + content[8192:], "."),
            ((tmp_path / "other.db").read_bytes(), "it holds the tables of another program"),
            ((tmp_path / "empty.db").read_bytes(), "it is empty"),
        ]:
            with pytest.raises(NotACopy, match=why):
                await hand.put(what)
        with pytest.raises(NotACopy, match=r"bytes came whose SHA-256 is"):
            await hand.put(content, sha256="0" * 64)
        assert namespace.names() == []
        assert left_in(namespace) == []


async def test_where_it_lay_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = await copy_of("x", also=be_ahead)
    async with running(Notes, Path("data")) as namespace:
        with pytest.raises(NotACopy, match=r"^it has schema 99, this program knows 2: "):
            await Hand(namespace).put(content)
