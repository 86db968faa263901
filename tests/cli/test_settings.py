from __future__ import annotations

from pathlib import Path

import pytest

from edgequeues.settings import Settings, SettingsError
from edgequeues.settings_sources import load, settings, settings_table
from shards.limits import Limits

from .shell import Shell

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "settings.md"
BEGIN, END = "<!-- settings -->\n", "<!-- /settings -->"


def toml(folder: Path, text: str) -> Path:
    path = folder / "edgequeues.toml"
    path.write_text(text)
    return path


def test_a_later_source_wins_over_an_earlier_one(tmp_path: Path) -> None:
    file = toml(tmp_path, 'data = "d"\nport = 1\nidle_close_s = 1\nallowed_hosts = ["a"]')
    environment = {
        "EDGEQUEUES_PORT": "2",
        "EDGEQUEUES_IDLE_CLOSE_S": "2.5",
        "EDGEQUEUES_ALLOWED_HOSTS": "b, c:1",
    }
    loaded = load(flags={"port": "3", "host": None}, environment=environment, file=file)
    assert loaded == Settings(data="d", port=3, idle_close_s=2.5, allowed_hosts=["b", "c:1"])


def test_nothing_given_is_the_defaults() -> None:
    assert load(flags={}, environment={"EDGEQUEUES_SERVER": "http://x"}, file=None) == Settings()


def test_defaults_of_the_runtime_are_its_own() -> None:
    ours, limits = Settings(), Limits()
    assert (ours.mailbox_max, ours.spaces_open_max, ours.idle_close_s) == (
        limits.mailbox_max,
        limits.open_max,
        limits.idle_s,
    )
    assert (ours.wal_checkpoint_bytes, ours.wal_bytes_max, ours.reserve_bytes) == (
        limits.wal_checkpoint_bytes,
        limits.wal_bytes_max,
        limits.reserve_bytes,
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('port = "8700"', "port: '8700' will not do; expected `int`, got `str`"),
        ("port = 70000", "port: 70000 will not do; expected `int` <= 65535"),
        ("prot = 1", "prot: no such setting; known are data, host, port"),
        ("port = ", "not TOML"),
        ('log_level = "loud"', "log_level: 'loud' will not do"),
        ("[http]\nport = 1", "http: no such setting"),
        ("allowed_hosts = [1]", "allowed_hosts: [1] will not do; expected `str`, got `int`"),
    ],
)
def test_an_error_names_the_file_and_the_key(tmp_path: Path, text: str, said: str) -> None:
    file = toml(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(flags={}, environment={}, file=file)
    assert str(caught.value).startswith(f"{file}: ")
    assert said in str(caught.value)


def test_an_error_names_the_environment_or_the_flags() -> None:
    with pytest.raises(SettingsError, match="environment: mailbox_max: 'many' will not do; expected `int`"):
        load(flags={}, environment={"EDGEQUEUES_MAILBOX_MAX": "many"}, file=None)
    with pytest.raises(SettingsError, match="flags: port: '-1' will not do"):
        load(flags={"port": "-1"}, environment={}, file=None)


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load(flags={}, environment={}, file=tmp_path / "absent.toml")


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(SettingsError, match="wal_checkpoint_bytes"):
        load(flags={"wal_checkpoint_bytes": "2000000", "wal_bytes_max": "1048576"}, environment={}, file=None)


def test_every_setting_says_what_it_does_and_has_a_flag_and_a_variable() -> None:
    described = settings()
    assert all(one.help.endswith(".") and one.allowed for one in described)
    idle = next(one for one in described if one.name == "idle_close_s")
    assert (idle.flag, idle.variable, idle.default) == ("--idle-close-s", "EDGEQUEUES_IDLE_CLOSE_S", "60.0")


def test_the_table_in_the_guide_is_the_one_made_from_the_fields() -> None:
    _, _, rest = GUIDE.read_text().partition(BEGIN)
    table, end, _ = rest.partition(END)
    assert end, f"{GUIDE.name} has no table between its two marks"
    assert table == settings_table()


@pytest.mark.parametrize(
    "args",
    [
        ("--port", "x"),
        ("--auth", "maybe"),
        ("--cors-origins", "app.example"),
        ("--cert", "chain.pem"),
        ("--config", "absent.toml"),
        ("--wal-bytes-max", "1"),
    ],
)
def test_serve_refuses_bad_settings_as_wrong_usage(shell: Shell, args: tuple[str, ...]) -> None:
    result = shell("serve", *args)
    assert (result.code, result.out) == (2, "")
    [line] = result.err.splitlines()
    assert line.startswith("Error: ")
