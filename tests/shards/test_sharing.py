"""Other programs at a shard's file: their locks delay, their readers do not let the -wal grow, their files stay."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest
import trio

from shards import files
from shards.errors import SchemaTooNew, ShardBusy, UnusableFile
from shards.limits import Limits
from shards.namespace import Namespace, open_namespace
from shards.shard import Shard
from shards.testing import running

from .examples import Notes, SlowDisk, foreign, path_of, wal_bytes

KIB = 1024


async def write_for_ever(db: apsw.Connection, held_s: float, pause_s: float) -> None:
    """Select, then update, as a command-line tool would in a loop."""
    number = 0
    while True:
        try:
            db.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            await trio.sleep(0.0007)
            continue
        db.execute("SELECT count(*) FROM note").fetchall()
        db.execute("INSERT INTO note (text) VALUES (?)", (f"foreign {number}",))
        await trio.sleep(held_s)
        db.execute("COMMIT")
        number += 1
        await trio.sleep(pause_s)


async def read_for_ever(db: apsw.Connection, held_s: float, pause_s: float) -> None:
    """Hold a snapshot, let go, again."""
    while True:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM note").fetchall()
        await trio.sleep(held_s)
        db.execute("COMMIT")
        await trio.sleep(pause_s)


async def test_sq_s01_no_busy_error_reaches_a_caller_while_another_connection_writes() -> None:
    """In virtual time: the other one holds the lock three quarters of the time; the shard is reopened too."""
    async with running(Notes, disk=SlowDisk(0.001)) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "ours")
        with foreign(path_of(namespace, "a")) as db:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(write_for_ever, db, 0.0031, 0.0011)
                for number in range(200):
                    await ref.call(Notes.add, "ours")
                    if number % 20 == 0:
                        await namespace.evict("a")
                nursery.cancel_scope.cancel()
        texts = await ref.call(Notes.texts)
        assert texts.count("ours") == 201
        assert any(text.startswith("foreign") for text in texts)


async def test_sq_s01_a_lock_that_is_never_given_back_is_said_so_and_the_shard_goes_on() -> None:
    async with running(Notes) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "ours")
        with foreign(path_of(namespace, "a")) as db:
            db.execute("BEGIN IMMEDIATE")
            start = trio.current_time()
            with pytest.raises(ShardBusy, match="Close that program"):
                await ref.call(Notes.add, "refused")
            assert 4 < trio.current_time() - start < 7
            db.execute("ROLLBACK")
            await ref.call(Notes.add, "after")
        assert await ref.call(Notes.texts) == ["ours", "after"]


async def test_sq_s01_opening_waits_for_a_reader_of_another_program(tmp_path: Path) -> None:
    async with running(Notes, tmp_path) as namespace:
        ref = namespace.ref("a")
        await ref.call(Notes.add, "x")
        with foreign(path_of(namespace, "a")) as db:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read_for_ever, db, 0.0031, 0.0011)
                await trio.lowlevel.checkpoint()
                for _ in range(20):
                    await ref.call(Notes.add, "x")
                    await namespace.evict("a")
                    await ref.call(Notes.texts)
                nursery.cancel_scope.cancel()


@pytest.mark.slow
def test_sq_s01_no_busy_error_reaches_a_caller_while_another_process_writes() -> None:
    """In real time, with real threads and a real process."""
    script = (
        "import apsw, sys, time\n"
        "db = apsw.Connection(sys.argv[1]); db.set_busy_timeout(10_000); ends = time.monotonic() + 3\n"
        "left = 20\n"
        "while left > 0 or time.monotonic() < ends:\n"
        "    left -= 1\n"
        "    with db:\n"
        "        pass\n"
        "    db.execute('BEGIN IMMEDIATE')\n"
        "    db.execute('SELECT count(*) FROM note').fetchall()\n"
        "    db.execute(\"INSERT INTO note (text) VALUES ('foreign')\")\n"
        "    db.execute('COMMIT')\n"
    )

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with open_namespace(Notes, Path(folder)) as namespace:
                ref = namespace.ref("a")
                await ref.call(Notes.add, "ours")
                command = [sys.executable, "-c", script, str(path_of(namespace, "a"))]
                other = subprocess.Popen(command)  # noqa: ASYNC220 (returns at once)
                written = 1
                while other.poll() is None:
                    await ref.call(Notes.add, "ours")
                    written += 1
                assert other.returncode == 0
                texts = await ref.call(Notes.texts)
                assert texts.count("ours") == written
                assert texts.count("foreign") >= 20

    trio.run(main)


async def steady_load(namespace: Namespace[Notes], seconds: float) -> int:
    """Rewrite a few rows as fast as the disk lets us; return the longest that the -wal got, in bytes."""
    ref, longest = namespace.ref("a"), 0
    path = path_of(namespace, "a")
    pads = [await ref.call(Notes.pad, 8 * KIB) for _ in range(20)]
    ends = trio.current_time() + seconds

    async def caller(number: int) -> None:
        nonlocal longest
        while trio.current_time() < ends:
            await ref.call(Notes.rewrite, number, 8 * KIB)
            longest = max(longest, wal_bytes(path))

    async with trio.open_nursery() as nursery:
        for number in pads:
            nursery.start_soon(caller, number)
    return longest


SMALL = Limits(wal_checkpoint_bytes=256 * KIB, wal_bytes_max=1024 * KIB)


async def test_sq_s02_the_wal_stays_within_its_bound_under_a_steady_load() -> None:
    async with running(Notes, disk=SlowDisk(0.002), limits=SMALL) as namespace:
        assert await steady_load(namespace, 1.0) < 2048 * KIB


@pytest.mark.parametrize("pause_s", [0.002, 0.000_01])
async def test_sq_s02_readers_of_other_programs_do_not_let_the_wal_grow(pause_s: float) -> None:
    """Four of them, out of step, so that there is never a moment without one."""
    async with running(Notes, disk=SlowDisk(0.002), limits=SMALL) as namespace:
        await namespace.ref("a").call(Notes.texts)
        path = path_of(namespace, "a")
        with foreign(path) as one, foreign(path) as two, foreign(path) as three, foreign(path) as four:
            async with trio.open_nursery() as nursery:
                for number, db in enumerate((one, two, three, four)):
                    nursery.start_soon(read_for_ever, db, 0.0101 + 0.0013 * number, pause_s)
                longest = await steady_load(namespace, 1.5)
                nursery.cancel_scope.cancel()
        assert longest < 2048 * KIB
        assert await namespace.ref("a").call(Notes.counted) == 0


async def test_sq_s02_a_reader_that_never_ends_delays_calls_but_stops_none() -> None:
    async with running(Notes, disk=SlowDisk(0.002), limits=SMALL) as namespace:
        await namespace.ref("a").call(Notes.texts)
        with foreign(path_of(namespace, "a")) as db:
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM note").fetchall()
            await steady_load(namespace, 2.0)
            db.execute("COMMIT")
        assert await steady_load(namespace, 0.5) > 0
        await namespace.evict("a")
        assert wal_bytes(path_of(namespace, "a")) == 0


class Newer(Notes):
    """A later version."""

    migrations = (*Notes.migrations, "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT;")


def put(folder: Path, content: bytes) -> Path:
    """Lay a file where shard a's would be."""
    path = files.path_of(folder, "a")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def foreign_database(folder: Path, mode: str) -> Path:
    """Lay another program's database there."""
    path = put(folder, b"")
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", mode)
    db.execute("CREATE TABLE theirs (id INTEGER PRIMARY KEY); INSERT INTO theirs VALUES (7)").fetchall()
    db.close(True)
    return path


async def expect_refusal(folder: Path, path: Path, error: type[Exception], kind: type[Shard]) -> None:
    """Calls get `error`, again and again; the file keeps its bytes; other shards work."""
    before = await trio.Path(path).read_bytes()
    async with running(kind, folder) as namespace:
        for _ in range(2):
            with pytest.raises(error):
                await namespace.ref("a").call(kind.get_alarm)
        await namespace.ref("b").call(kind.get_alarm)
        assert namespace.unready() == []
    assert await trio.Path(path).read_bytes() == before


@pytest.mark.parametrize("content", [b"nonsense " * 1000, b"SQLite format 3\0" + b"\xff" * 5000, bytes(5000)])
async def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    await expect_refusal(tmp_path, put(tmp_path, content), UnusableFile, Notes)


@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path, mode: str) -> None:
    await expect_refusal(tmp_path, foreign_database(tmp_path, mode), UnusableFile, Notes)


async def test_a_file_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    async with running(Newer, tmp_path) as namespace:
        await namespace.ref("a").call(Newer.add, "x")
    await expect_refusal(tmp_path, files.path_of(tmp_path, "a"), SchemaTooNew, Notes)
    async with running(Newer, tmp_path) as namespace:
        assert await namespace.ref("a").call(Newer.texts) == ["x"]


async def test_a_file_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    async with running(Notes, tmp_path) as namespace:
        await namespace.ref("a").call(Notes.add, "x")
    async with running(Newer, tmp_path) as namespace:
        assert await namespace.ref("a").call(Newer.texts) == ["x"]
        await namespace.ref("a").call(lambda shard: shard.db.execute("INSERT INTO extra VALUES (1)").get)


async def test_an_empty_file_becomes_a_shard(tmp_path: Path) -> None:
    put(tmp_path, b"")
    async with running(Notes, tmp_path) as namespace:
        await namespace.ref("a").call(Notes.add, "x")


async def test_a_damaged_page_is_an_error_for_its_reader_and_not_for_others(tmp_path: Path) -> None:
    async with running(Notes, tmp_path) as namespace:
        for _ in range(50):
            await namespace.ref("a").call(Notes.pad, 4 * KIB)
        await namespace.ref("b").call(Notes.add, "x")
        path = path_of(namespace, "a")
    content = bytearray(path.read_bytes())
    content[4096 * 12 :] = b"\xff" * (len(content) - 4096 * 12)
    path.write_bytes(content)
    async with running(Notes, tmp_path) as namespace:
        with pytest.raises(Exception, match=r"damaged|malformed"):
            await namespace.ref("a").call(
                lambda shard: shard.db.execute("SELECT sum(length(bytes)) FROM pad").get
            )
        assert await namespace.ref("b").call(Notes.texts) == ["x"]
