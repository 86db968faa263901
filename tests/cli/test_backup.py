"""`edgequeues backup` and `restore`: the files of a running server, whole, and back again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edgequeues.cli.archive import SUMS
from edgequeues.control import Control
from shards.files import path_of

from .shell import Shell

JOBS = "dxn:queue:demo:jobs"
LOG = "dxn:queue:Shop:log"
TRACE = "dxn:queue:trace:demo:log"
SPEC = b'app "shop" { queue orders { } }'


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """Two spaces and traces: a work queue with an ack, a lease and a dead letter; logs."""
    shell.ok("append", LOG, '"a"', '"b"')
    shell.ok("append", TRACE, '"t"')
    shell.ok("push", JOBS, "0", "1", "2", "3")
    leases = [one["lease"] for one in shell.ok("pull", JOBS, "--batch", "2").records]
    shell.ok("ack", JOBS, leases[0])
    shell.ok("retry", JOBS, leases[1], "--permanent", "--error", "bad")
    shell.ok("pull", JOBS, "--lease", "1h")
    return shell


def backed_up(shell: Shell, *spaces: str) -> Path:
    folder = shell.folder / "backups" / "today"
    shell.ok("backup", str(folder), *spaces)
    return folder


def test_a_backup_is_a_data_folder_that_passes_the_check(filled: Shell) -> None:
    filled.ok("token", "create", "everybody", "--anonymous", "--data", str(filled.data))
    folder = backed_up(filled)
    checked = filled.ok("check", str(folder)).records
    assert sorted((one["name"], one["problems"]) for one in checked) == [
        ("Shop", []),
        ("demo", []),
        ("demo~trace", []),
    ]
    subprocess.run(["sha256sum", "--strict", "--quiet", "-c", SUMS], cwd=folder, check=True)
    with Control.open(folder, create=False) as control:
        assert [one.name for one in control.tokens()] == ["everybody"]
    taken = [folder / SUMS, folder / "control.db", *(path_of(folder, one["name"]) for one in checked)]
    assert [one for one in taken if one.stat().st_mode & 0o077] == []
    before = filled.ok("dlq", "list", JOBS).records
    filled.data = filled.folder / "elsewhere"
    shutil.copytree(folder, filled.data)
    assert [one["data"] for one in filled.ok("read", LOG).records] == ["a", "b"]
    assert filled.ok("dlq", "list", JOBS).records == before


def test_what_is_copied_is_listed(filled: Shell) -> None:
    folder = filled.folder / "all"
    records = filled.ok("backup", str(folder)).records
    assert [(one["space"], one["tag"]) for one in records] == [
        (None, None),
        ("Shop", "data"),
        ("demo", "data"),
        ("demo", "trace"),
    ]
    for one in records:
        assert one["bytes"] == Path(one["file"]).stat().st_size
        assert one["sha256"] in (folder / SUMS).read_text()
    told = filled.ok("backup", str(filled.folder / "one"), "Shop", terminal=True)
    assert [line.split()[0] for line in told.out.splitlines() if "Shop" in line or "tokens" in line] == [
        "Shop"
    ]
    assert not (filled.folder / "one" / "control.db").exists()


def test_a_backup_goes_into_another_server_and_passes_the_check_there(filled: Shell) -> None:
    folder = backed_up(filled)
    explained = filled.ok("peek", JOBS).records
    filled.data = filled.folder / "other"
    records = filled.ok("restore", str(folder)).records
    assert [(one["space"], one["tag"], one["replaced"]) for one in records] == [
        ("Shop", "data", False),
        ("demo", "data", False),
        ("demo", "trace", False),
    ]
    assert [one["data"] for one in filled.ok("read", TRACE).records] == ["t"]
    now = filled.ok("peek", JOBS).records
    assert [(one["id"], one["state"]) for one in now] == [(one["id"], one["state"]) for one in explained]
    assert [one["problems"] for one in filled.ok("check", str(filled.data)).records] == [[], [], []]
    [record] = filled.ok("audit", "Shop").records[-1:]
    assert record["action"] == "restore"


def test_spaces_that_are_there_stay_unless_they_are_to_be_replaced(filled: Shell) -> None:
    folder = backed_up(filled)
    filled.ok("append", LOG, '"later"')
    refused = filled("restore", str(folder), "Shop")
    assert refused.code == 1
    assert "space Shop is there already" in refused.err
    assert "nothing was done" in refused.err
    assert len(filled.ok("read", LOG).records) == 3
    all_of_them = filled("restore", str(folder))
    assert "spaces Shop, demo, demo~trace are there already" in all_of_them.err
    asked = filled("restore", str(folder), "Shop", "--replace", terminal=True)
    assert (asked.code, len(filled.ok("read", LOG).records)) == (130, 3)
    unasked = filled("restore", str(folder), "Shop", "--replace")
    assert (unasked.code, len(filled.ok("read", LOG).records)) == (2, 3)
    assert "say --yes" in unasked.err
    told = filled.ok("restore", str(folder), "Shop", "--replace", "--yes", terminal=True)
    assert "replaced" in told.out
    assert [one["data"] for one in filled.ok("read", LOG).records] == ["a", "b"]


def test_one_file_becomes_a_space_of_any_name(filled: Shell) -> None:
    file = path_of(backed_up(filled), "Shop")
    filled.ok("restore", str(file), "shop-of-then")
    assert [one["data"] for one in filled.ok("read", "dxn:queue:shop-of-then:log").records] == ["a", "b"]
    assert filled("restore", str(file)).code == 2
    assert filled("restore", str(file), "no space").code == 2


def test_what_is_no_whole_backup_is_said_before_anything_is_done(filled: Shell) -> None:
    folder = backed_up(filled)
    again = filled("backup", str(folder))
    assert again.code == 1
    assert "holds something already" in again.err
    assert "no space nowhere" in filled("restore", str(folder), "nowhere").err
    assert "nowhere is left out" in filled("backup", str(filled.folder / "new"), "nowhere").err
    assert filled("backup", str(filled.folder / "new"), "no space").code == 2
    assert not (filled.folder / "new").exists()
    filled.data = filled.folder / "other"
    path_of(folder, "Shop").unlink()
    assert "+s+hop.db is missing" in filled("restore", str(folder)).err
    sums = folder / SUMS
    sums.write_text("0" * 64 + "  ../../etc/passwd\n")
    assert "is not what `edgequeues backup` writes" in filled("restore", str(folder)).err
    sums.unlink()
    assert "is no whole backup" in filled("restore", str(folder)).err
    assert filled.ok("spaces").records == []


def test_a_file_that_is_not_as_it_was_is_not_restored_and_the_others_are(filled: Shell) -> None:
    folder = backed_up(filled)
    damaged = path_of(folder, "Shop")
    damaged.write_bytes(damaged.read_bytes().replace(b'"b"', b'"c"'))
    filled.data = filled.folder / "other"
    result = filled("restore", str(folder))
    assert result.code == 1
    assert "Shop is not restored" in result.err
    assert "of 3, 1 is not restored" in result.err
    assert [one["id"] for one in filled.ok("spaces").records] == ["demo", "demo"]


def test_a_space_that_cannot_be_copied_is_named_and_the_others_are_copied(filled: Shell) -> None:
    broken = path_of(filled.data, "Shop")
    broken.write_bytes(b"SQLite format 3\x00" + bytes(8_176))
    folder = filled.folder / "backup"
    result = filled("backup", str(folder))
    assert result.code == 1
    assert "Shop is left out" in result.err
    assert "1 space is not copied" in result.err
    filled.data = filled.folder / "other"
    assert [one["space"] for one in filled.ok("restore", str(folder)).records] == ["demo", "demo"]


def test_a_token_for_one_space_is_enough_for_that_space(filled: Shell) -> None:
    where = ("--data", str(filled.data))
    words = ("--space", "demo", "--verbs", "backup,restore")
    taker = filled.ok("token", "create", "taker", *words, *where).out.strip()
    everything = filled("backup", str(filled.folder / "all"), "--token", taker)
    assert everything.code == 1
    assert "forbidden" in everything.err
    folder = filled.folder / "demo"
    taken = filled.ok("backup", str(folder), "demo", "--token", taker).records
    assert [(one["space"], one["tag"]) for one in taken] == [("demo", "data"), ("demo", "trace")]
    refused = filled("restore", str(folder), "--token", taker)
    assert filled("restore", str(folder), "--replace", "--token", taker).code == 2
    assert refused.code == 1
    assert "space_exists" in refused.err
    restored = filled.ok("restore", str(folder), "--replace", "--yes", "--token", taker).records
    assert [one["replaced"] for one in restored] == [True, True]


def test_a_backup_that_breaks_off_is_no_backup(filled: Shell) -> None:
    filled.lost.append("/spaces/demo/backup")
    folder = filled.folder / "backup"
    filled.lost *= 9
    result = filled("backup", str(folder))
    assert result.code == 1
    assert f"({folder} is no whole backup: remove it)" in result.err
    assert not (folder / SUMS).exists()
