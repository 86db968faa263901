"""`edgequeues doctor`: what is wrong with a machine, and what to do about it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from edgequeues.cli.diagnosis import Finding, of_folder, of_machine, of_settings, system_of
from edgequeues.settings import Settings
from shards import files
from shards.folders import locked
from shards.repair import marker

from .shell import Shell

EXT4 = "/dev/vda / ext4 rw 0 0\n"


def found(folder: Path, mounts: str = EXT4) -> dict[tuple[str, str], str]:
    """What is found out about a folder, by subject and verdict."""
    return {(one.about, one.verdict): one.says for one in of_folder(folder, lambda: mounts)}


def test_a_folder_that_is_not_there_yet_is_fine(tmp_path: Path) -> None:
    says = found(tmp_path / "data")
    assert "is not there yet" in says["folder", "ok"]
    assert not [verdict for _, verdict in says if verdict == "fault"]
    assert not list(tmp_path.iterdir())


def test_the_spaces_of_a_folder_are_counted_and_whether_it_is_served(shell: Shell) -> None:
    shell.ok("append", "dxn:queue:demo:log", "{}")
    assert "1 space, " in found(shell.data)["folder", "ok"]
    assert found(shell.data)["folder", "ok"].endswith("nobody serves it now")
    with locked(shell.data):
        assert found(shell.data)["folder", "ok"].endswith("a server is at work in it")


def test_a_space_whose_flush_was_refused_is_a_fault_with_its_remedy(shell: Shell) -> None:
    shell.ok("append", "dxn:queue:demo:log", "{}")
    [(_, path)] = files.walk(shell.data)
    marker(path).write_text("no\n")
    result = shell("doctor", "--data", str(shell.data))
    assert result.code == 1
    [fault] = [one for one in result.records if one["verdict"] == "fault"]
    assert "demo" in fault["says"]
    assert f"edgequeues check {shell.data} --repair" in fault["advice"]


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("ext4", "ok"),
        ("xfs", "ok"),
        ("nfs4", "fault"),
        ("cifs", "fault"),
        ("overlay", "warning"),
        ("odd", "warning"),
    ],
)
def test_file_systems_are_told_apart(tmp_path: Path, kind: str, verdict: str) -> None:
    assert ("file system", verdict) in found(tmp_path, f"{EXT4}x {tmp_path} {kind} rw 0 0\n")


def test_the_mount_that_is_nearest_counts(tmp_path: Path) -> None:
    mounts = "a / ext4 rw 0 0\nb /data nfs rw 0 0\nc /data/with\\040space xfs rw 0 0\nd /dat tmpfs rw 0 0\n"
    assert system_of(Path("/data/queues"), mounts) == "nfs"
    assert system_of(Path("/data/with space/x"), mounts) == "xfs"
    assert system_of(Path("/database"), mounts) == "ext4"


def test_a_port_that_another_program_has_is_a_warning(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        settings = Settings(data=str(tmp_path), port=other.getsockname()[1])
        verdicts = {one.about: one for one in of_machine(settings, lambda: EXT4)}
    assert verdicts["port"].verdict == "warning"
    assert "is taken" in verdicts["port"].says


def test_a_server_that_anybody_may_use_is_a_fault(tmp_path: Path) -> None:
    settings = Settings(data=str(tmp_path), host="0.0.0.0", port=0, insecure=True)
    verdicts = {one.about: one.verdict for one in of_machine(settings, lambda: EXT4)}
    assert verdicts["access"] == "fault"


def test_a_misspelt_variable_is_told_with_the_nearest_setting() -> None:
    variables = {"EDGEQUEUES_PROT": "1", "EDGEQUEUES_TOKEN": "secret", "OTHER": "x"}
    [one] = of_settings(variables, ["EDGEQUEUES_PORT", "EDGEQUEUES_HOST"])
    assert one == Finding(
        "settings", "warning", "EDGEQUEUES_PROT names no setting", "did you mean EDGEQUEUES_PORT?"
    )


def test_settings_that_cannot_be_are_a_fault_and_the_rest_is_looked_at(shell: Shell) -> None:
    file = shell.file("bad.toml", b"port = 99999999\n")
    result = shell("doctor", "--config", str(file), "--data", str(shell.folder))
    abouts = {one["about"]: one["verdict"] for one in result.records}
    assert (result.code, abouts["settings"]) == (1, "fault")
    assert {"disk", "clock", "SQLite", "room"} <= abouts.keys()


def test_people_read_a_line_each_and_the_advice_below(shell: Shell) -> None:
    result = shell("doctor", "--data", str(shell.folder), terminal=True)
    assert "a flush takes" in result.out
    signs = ("ok ", "WARNING ", "FAULT ", "  ", "nothing is wrong")
    assert all(line.startswith(signs) for line in result.out.splitlines())
