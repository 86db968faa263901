"""The control file: what it keeps of a token, who finds it, and two processes at once."""

from __future__ import annotations

import multiprocessing
import os
import random
import stat
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import apsw
import pytest

from edgequeues import control as controls
from edgequeues.control import BUSY_MS, EXPIRES_MAX, FILE_NAME, NAME_LENGTH_MAX, Access, Control, ControlError
from edgequeues.core.grants import Grant, grant
from shards.testing import FaultyDisk

NOW = 1_700_000_000_000
ALL = grant([])
READ = grant(["read"], ["demo"])


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Control]:
    with Control.open(tmp_path) as control:
        yield control


@pytest.fixture
def other(control: Control, tmp_path: Path) -> Iterator[Control]:
    """A second connection, as another process has one."""
    with Control.open(tmp_path) as other:
        yield other


def granted(access: Access, text: str, now_ms: int) -> Grant | None:
    """What the holder of a token may do."""
    token = access.find(text, now_ms)
    return None if token is None else token.grant


def made(control: Control, name: str = "laptop", *, expires: int | None = None) -> str:
    """The text of a new token."""
    _, text = control.create(name, READ, now_ms=NOW, expires=expires)
    assert text is not None
    return text


# -- the file --------------------------------------------------------------------------------------------


def test_only_the_owner_can_read_the_file_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Control.open(tmp_path / "new" / "data"):
            pass
    finally:
        os.umask(before)
    path = tmp_path / "new" / "data" / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_must_be_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match=r"control\.db is not there: name the data folder"):
        Control.open(tmp_path / "data", create=False)
    assert list(tmp_path.iterdir()) == []
    with Control.open(tmp_path / "data"), Control.open(tmp_path / "data", create=False) as control:
        assert control.tokens() == []


def test_nothing_lies_beside_the_file(control: Control, tmp_path: Path) -> None:
    made(control)
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_what_was_made_is_there_after_opening_again(tmp_path: Path) -> None:
    with Control.open(tmp_path) as control:
        token, text = control.create("laptop", READ, now_ms=NOW, expires=NOW + 5)
    with Control.open(tmp_path) as control:
        assert control.tokens() == [token]
        assert text is not None
        assert granted(control.access(), text, NOW) == READ


def test_only_a_digest_of_the_secret_is_in_the_file(control: Control, tmp_path: Path) -> None:
    text = made(control)
    secret = text.split("_", 2)[2]
    content = (tmp_path / FILE_NAME).read_bytes()
    assert text.split("_")[1].encode() in content
    assert secret.encode() not in content
    assert urlsafe_b64decode(secret + "=") not in content


def test_a_file_of_a_newer_version_is_left_alone(control: Control, tmp_path: Path) -> None:
    apsw.Connection(str(tmp_path / FILE_NAME)).pragma("user_version", 3)
    before = (tmp_path / FILE_NAME).read_bytes()
    with pytest.raises(ControlError, match=r"control\.db was written by a newer edgequeues .*: use that"):
        Control.open(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database, whatever its name says\n" * 50)
    with pytest.raises(ControlError, match=r"control\.db cannot be used: .*see that it is a SQLite file"):
        Control.open(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes().startswith(b"not a database")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ControlError, match=r"file/data/control\.db cannot be used: .*see that it is"):
        Control.open(tmp_path / "file" / "data")


def test_a_row_that_makes_no_sense_is_refused_rather_than_guessed(control: Control, tmp_path: Path) -> None:
    made(control)
    apsw.Connection(str(tmp_path / FILE_NAME)).execute("UPDATE tokens SET verbs = '[\"fly\"]'")
    with pytest.raises(ControlError, match="cannot be used"):
        control.access()


# -- tokens ----------------------------------------------------------------------------------------------


def test_a_token_is_its_id_and_256_random_bits(control: Control) -> None:
    token, text = control.create("laptop", READ, now_ms=NOW, expires=NOW + 5)
    assert text is not None
    prefix, token_id, secret = text.split("_", 2)
    assert (prefix, token_id) == ("eq", token.id)
    assert len(urlsafe_b64decode(secret + "=")) == 32
    assert (token.name, token.grant, token.created, token.expires, token.revoked) == (
        "laptop",
        READ,
        NOW,
        NOW + 5,
        None,
    )


def test_no_two_tokens_are_the_same(control: Control) -> None:
    assert len({made(control, "same") for _ in range(20)}) == 20


def test_a_token_is_found_with_its_grant(control: Control) -> None:
    text = made(control)
    made(control, "another")
    assert granted(control.access(), text, NOW) == READ


def test_a_token_that_is_not_quite_one_is_not_found(control: Control) -> None:
    text, stranger = made(control), made(control, "another")
    prefix, token_id, secret = text.split("_", 2)
    access = control.access()
    for wrong in (
        "",
        "_",
        "eq",
        "eq_",
        "eq__",
        secret,
        f"eq_{token_id}",
        f"eq_{token_id}_",
        f"eq_{token_id}_{secret[:-1]}",
        f"eq_{token_id}_{secret}=",
        f"eq_{token_id}_{stranger.split('_', 2)[2]}",
        f"eq_{token_id.upper()}_{secret}",
        f"eq_000000000000_{secret}",
        f"eq__{secret}",
        f"_{token_id}_{secret}",
        f"xq_{token_id}_{secret}",
        f"EQ_{token_id}_{secret}",
        f"eq_{token_id}_é",
        "eq_é_\udc80",
        f"eq_{token_id}_\ud800",
        "\x00" * 10_000,
    ):
        assert granted(access, wrong, NOW) is None, wrong
    assert granted(access, f"{prefix}_{token_id}_{secret}", NOW) == READ


def test_a_token_ends_at_the_millisecond_it_expires(control: Control) -> None:
    text = made(control, expires=NOW + 1_000)
    access = control.access()
    assert granted(access, text, NOW + 999) == READ
    assert granted(access, text, NOW + 1_000) is None


def test_a_token_of_another_folder_is_not_found(control: Control, tmp_path: Path) -> None:
    made(control)
    with Control.open(tmp_path / "other") as other:
        assert granted(control.access(), made(other), NOW) is None


@pytest.mark.parametrize("expires", [EXPIRES_MAX + 1, 2**70])
def test_a_token_that_would_outlast_the_calendar_is_refused(control: Control, expires: int) -> None:
    with pytest.raises(ControlError, match="year 9999: make one that does not expire"):
        made(control, expires=expires)
    text = made(control, expires=EXPIRES_MAX)
    assert granted(control.access(), text, NOW) == READ


def test_what_everybody_may_do_has_no_text_and_is_no_token(control: Control) -> None:
    token, text = control.create("dxos", READ, now_ms=NOW, expires=NOW + 10, anonymous=True)
    access = control.access()
    assert (token.anonymous, text) == (True, None)
    assert access.anonymous(NOW) == (READ,)
    assert access.anonymous(NOW + 10) == ()
    for secret in ("", "None", "\0" * 32):
        assert granted(access, f"eq_{token.id}_{secret}", NOW) is None
    control.revoke("dxos", now_ms=NOW)
    assert control.access().anonymous(NOW) == ()


@pytest.mark.parametrize("name", ["", "a" * (NAME_LENGTH_MAX + 1), "two\nlines", "\x1b[2J"])
def test_a_name_that_would_not_show_well_is_refused(control: Control, name: str) -> None:
    with pytest.raises(ControlError, match=f"1 to {NAME_LENGTH_MAX} printable characters"):
        control.create(name, ALL, now_ms=NOW)
    assert control.tokens() == []


def test_tokens_are_bounded_in_number(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controls, "TOKENS_MAX", 2)
    made(control)
    made(control)
    with pytest.raises(ControlError, match="holds 2 tokens, which is all it may"):
        made(control)
    assert len(control.tokens()) == 2


def test_a_file_has_tokens_for_ever_once_it_had_one(control: Control) -> None:
    assert not control.access().exists
    made(control)
    assert control.access().exists
    control.revoke("laptop", now_ms=NOW)
    assert control.access().exists


# -- revoking --------------------------------------------------------------------------------------------


def test_a_token_is_revoked_by_name_or_by_id(control: Control) -> None:
    texts = [made(control, name) for name in ("one", "two", "three")]
    assert control.revoke("one", now_ms=NOW).name == "one"
    assert control.revoke(texts[1].split("_")[1], now_ms=NOW).name == "two"
    access = control.access()
    assert [granted(access, text, NOW) for text in texts] == [None, None, READ]
    assert [token.revoked for token in control.tokens() if token.name != "three"] == [NOW, NOW]


def test_a_name_that_several_have_needs_the_id(control: Control) -> None:
    first, second = made(control, "same"), made(control, "same")
    with pytest.raises(ControlError, match="2 tokens are called 'same': give one of the ids") as caught:
        control.revoke("same", now_ms=NOW)
    first_id, second_id = first.split("_")[1], second.split("_")[1]
    assert first_id in str(caught.value)
    assert second_id in str(caught.value)
    control.revoke(first_id, now_ms=NOW)
    assert control.revoke("same", now_ms=NOW).id == second_id  # the only one left of that name
    assert granted(control.access(), second, NOW) is None


def test_a_token_can_be_revoked_by_its_id_though_another_is_named_so(control: Control) -> None:
    one = made(control)
    one_id = one.split("_")[1]
    other = made(control, one_id)
    for _ in range(2):  # also where it is revoked already
        assert control.revoke(one_id, now_ms=NOW).name == "laptop"
    access = control.access()
    assert (granted(access, one, NOW), granted(access, other, NOW)) == (None, READ)


@pytest.mark.parametrize("named", ["nobody", "", "\udcff"])
def test_a_token_nobody_made_cannot_be_revoked(control: Control, named: str) -> None:
    with pytest.raises(ControlError, match=r"no token '.*': `edgequeues token list` shows them"):
        control.revoke(named, now_ms=NOW)


def test_a_power_cut_brings_no_revoked_token_back(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Control.open(folder) as control:
        text = made(control)
    with closing(FaultyDisk(folder)) as disk:
        with Control.open(folder, vfs=disk.vfs) as control:
            control.revoke("laptop", now_ms=NOW)
        for seed in range(20):
            left = tmp_path / f"left-{seed}"
            left.mkdir()
            disk.cut(disk.now, random.Random(seed), left)
            with Control.open(left) as control:
                assert control.access().exists
                assert granted(control.access(), text, NOW) is None, f"seed {seed}"


def test_a_token_that_is_revoked_stays_so_since_when_it_was(control: Control) -> None:
    made(control)
    assert control.revoke("laptop", now_ms=NOW).revoked is None
    assert control.revoke("laptop", now_ms=NOW + 5).revoked == NOW
    [token] = control.tokens()
    assert token.revoked == NOW


# -- two at once -----------------------------------------------------------------------------------------


def test_what_another_connection_writes_is_noticed(control: Control, other: Control) -> None:
    control.access()
    assert not control.changed()
    text = made(other)
    assert control.changed()
    assert granted(control.access(), text, NOW) == READ
    assert not control.changed()
    other.revoke("laptop", now_ms=NOW)
    assert control.changed()
    assert granted(control.access(), text, NOW) is None


def test_a_server_does_not_wait_for_a_writer_and_reads_later(control: Control, tmp_path: Path) -> None:
    control.access()
    control.never_wait()
    writer = apsw.Connection(str(tmp_path / FILE_NAME))
    writer.execute("BEGIN EXCLUSIVE; UPDATE tokens SET name = ''; PRAGMA user_version = 1")
    began = time.monotonic()
    assert not control.changed()
    with pytest.raises(ControlError, match="locked"):
        control.access()
    assert time.monotonic() - began < BUSY_MS / 1_000
    writer.execute("COMMIT")
    assert control.changed()


def test_reading_waits_for_no_reader_and_keeps_none_waiting(control: Control, tmp_path: Path) -> None:
    made(control)
    control.access()
    reader = apsw.Connection(str(tmp_path / FILE_NAME))
    reader.execute("BEGIN; SELECT id FROM tokens").fetchall()  # holds a shared lock from here on
    with Control.open(tmp_path, create=False) as other:
        other.never_wait()
        assert len(other.tokens()) == 1
    reader.execute("COMMIT")
    assert not control.changed()


def test_a_file_that_stays_locked_is_said_to_be(
    control: Control, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls, "BUSY_MS", 1)
    writer = apsw.Connection(str(tmp_path / FILE_NAME))
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(ControlError, match=r"control\.db is locked by another process, .*try again"):
        Control.open(tmp_path)
    writer.execute("ROLLBACK")


def write(folder: Path, name: str, ready: Barrier) -> None:
    """Make a token, in a process of its own."""
    ready.wait()
    with Control.open(folder) as control:
        made(control, name)


@pytest.mark.slow
def test_processes_that_write_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """Also for the one that makes the file."""
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(6)
    writers = [spawn.Process(target=write, args=(tmp_path, f"t{n}", ready)) for n in range(ready.parties)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * ready.parties
    with Control.open(tmp_path) as control:
        assert len(control.tokens()) == ready.parties


@pytest.mark.slow
def test_a_process_that_writes_waits_for_a_read_that_is_under_way(control: Control, tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(2)
    reader = apsw.Connection(str(tmp_path / FILE_NAME))
    reader.execute("BEGIN; SELECT id FROM tokens").fetchall()
    writer = spawn.Process(target=write, args=(tmp_path, "laptop", ready))
    writer.start()
    ready.wait()
    writer.join(BUSY_MS / 1_000 / 10)
    assert writer.is_alive()
    assert control.tokens() == []
    reader.execute("COMMIT")
    writer.join()
    assert writer.exitcode == 0
    assert [token.name for token in control.tokens()] == ["laptop"]
