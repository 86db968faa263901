"""`edgequeues token`, and what a token is to the other commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgequeues.control import Control
from edgequeues.core.grants import VERBS

from .shell import Q, Result, Shell


class Tokens:
    """`edgequeues token` on the shell's folder."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def __call__(self, command: str, *args: str, terminal: bool = False) -> Result:
        return self.shell("token", command, *args, "--data", str(self.shell.data), terminal=terminal)

    def ok(self, command: str, *args: str, terminal: bool = False) -> Result:
        result = self(command, *args, terminal=terminal)
        assert result.code == 0, result.err
        return result

    def create(self, name: str, *args: str) -> str:
        """The text of a new token."""
        return self.ok("create", name, *args).out.removesuffix("\n")


@pytest.fixture
def tokens(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Tokens:
    for name in ("EDGEQUEUES_TOKEN", "EDGEQUEUES_DATA", "EDGEQUEUES_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return Tokens(shell)


# -- create ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_create_prints_the_token_and_nothing_else_on_stdout(tokens: Tokens, terminal: bool) -> None:
    result = tokens.ok("create", "laptop", terminal=terminal)
    [text] = result.out.splitlines()
    with Control.open(tokens.shell.data) as control:
        [made] = control.tokens()
        assert control.access().find(text, made.created) == made
    assert f"laptop may {','.join(VERBS)} in spaces *, queues * ({made.id})" in result.err
    assert "not shown again" in result.err
    assert "within a second" in result.err
    assert text not in result.err


def test_create_says_that_the_first_token_closes_the_server(tokens: Tokens) -> None:
    assert "It is the first" in tokens.ok("create", "one").err
    assert "It is the first" not in tokens.ok("create", "two").err


def test_create_takes_what_the_token_may_do_and_where(tokens: Tokens) -> None:
    tokens.create(
        "narrow",
        "--verbs",
        "read, list",
        "--space",
        "demo",
        "--space",
        "x*",
        "--queue",
        "log",
        "--expires",
        "2h",
    )
    [listed] = tokens.ok("list").records
    assert (listed["verbs"], listed["spaces"], listed["queues"]) == (
        ["read", "list"],
        ["demo", "x*"],
        ["log"],
    )
    assert listed["expires"] - listed["created"] == 2 * 3_600_000


def test_what_everybody_may_do_has_no_token(tokens: Tokens) -> None:
    result = tokens.ok("create", "dxos", "--anonymous", "--space", "demo", "--verbs", "read")
    assert result.out == ""
    assert "everybody, without a token, may read in spaces demo, queues *" in result.err
    [listed] = tokens.ok("list").records
    assert listed["anonymous"] is True


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("a", "--verbs", "read,fly"), 2, "verb 'fly': none of read, append, delete, configure, list"),
        (("a", "--space", "two words"), 2, "space 'two words': write a name"),
        (("a", "--queue", ""), 2, "queue '': write a name"),
        (("a", "--expires", "soon"), 2, "is no length of time"),
        (("a", "--expires", "9000000000d"), 2, "is too long"),
        (("a", "--expires", "90000000d"), 1, "cannot expire after the year 9999"),
        (("",), 1, "is no name for a token"),
        ((), 2, "NAME"),
    ],
)
def test_a_token_that_cannot_be_is_refused_and_not_made(
    tokens: Tokens, args: tuple[str, ...], code: int, said: str
) -> None:
    result = tokens("create", *args)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    with Control.open(tokens.shell.data) as control:
        assert control.tokens() == []


def test_a_folder_that_is_misspelt_is_not_made(shell: Shell) -> None:
    data = shell.folder / "dta"
    for args in (("list",), ("revoke", "laptop"), ("create", "laptop", "--verbs", "fly")):
        result = shell("token", *args, "--data", str(data))
        assert result.code != 0
        assert result.out == ""
    assert not data.exists()
    assert "control.db is not there" in shell("token", "list", "--data", str(data)).err


@pytest.mark.parametrize("terminal", [False, True])
def test_as_json_create_prints_the_token_with_what_it_may_do(tokens: Tokens, terminal: bool) -> None:
    [made] = tokens.ok("create", "laptop", "--json", "--verbs", "read", terminal=terminal).records
    text = made.pop("token")
    assert [made] == tokens.ok("list").records
    with Control.open(tokens.shell.data) as control:
        assert control.access().find(text, made["created"]) is not None
    [everybody] = tokens.ok("create", "dxos", "--json", "--anonymous").records
    assert (everybody["token"], everybody["anonymous"]) == (None, True)


# -- list, revoke ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("terminal", [False, True])
def test_list_shows_no_secret(tokens: Tokens, terminal: bool) -> None:
    secret = tokens.create("laptop").split("_", 2)[2]
    listed = tokens.ok("list", terminal=terminal).out
    assert "laptop" in listed
    assert secret not in listed
    assert "hash" not in listed


def test_list_tells_the_state_of_each(tokens: Tokens) -> None:
    for name, args in (("on", ()), ("over", ("--expires", "0s")), ("off", ())):
        tokens.create(name, *args)
    tokens.ok("revoke", "off")
    states = {one["name"]: one["state"] for one in tokens.ok("list").records}
    assert states == {"on": "active", "over": "expired", "off": "revoked"}
    assert tokens.ok("list", "--json", terminal=True).records == tokens.ok("list").records


def test_on_a_terminal_list_is_a_table_with_every_column(
    tokens: Tokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_id = tokens.create("laptop", "--space", "demo", "--queue", "log").split("_")[1]
    monkeypatch.setenv("COLUMNS", "80")
    head, _, row = tokens.ok("list", terminal=True).out.splitlines()
    assert head.split() == ["id", "name", "state", "kind", "verbs", "created", "expires", "spaces", "queues"]
    cells = row.split()
    assert cells[:5] == [token_id, "laptop", "active", "token", ",".join(VERBS)]
    assert cells[-2:] == ["demo", "log"]


def test_revoke_takes_a_name_or_an_id_and_says_which_it_was(tokens: Tokens) -> None:
    one, two = (tokens.create(name).split("_")[1] for name in ("one", "two"))
    assert tokens.ok("revoke", "one", terminal=True).out == f"one ({one}) is revoked\n"
    assert tokens.ok("revoke", "one", terminal=True).out == f"one ({one}) was revoked before\n"
    assert tokens.ok("revoke", two).records == [{"id": two, "name": "two"}]


def test_revoke_refuses_what_is_none_and_what_is_several(tokens: Tokens) -> None:
    ids = [tokens.create("same").split("_")[1] for _ in range(2)]
    unknown, several = tokens("revoke", "other"), tokens("revoke", "same")
    assert (unknown.code, unknown.out, several.code, several.out) == (1, "", 1, "")
    assert "`edgequeues token list` shows them" in unknown.err
    assert all(token_id in several.err for token_id in ids)


def test_a_folder_that_will_not_do_is_one_line(shell: Shell) -> None:
    file = shell.file("file", b"")
    result = shell("token", "list", "--data", str(file / "data"))
    assert (result.code, result.out) == (1, "")
    [line] = result.err.splitlines()
    assert str(file) in line


def test_the_folder_is_the_one_the_settings_name(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens.create("laptop")
    config = tokens.shell.file("edgequeues.toml", f'data = "{tokens.shell.data}"'.encode())
    assert len(tokens.shell.ok("token", "list", "--config", str(config)).records) == 1
    monkeypatch.setenv("EDGEQUEUES_DATA", str(tokens.shell.data))
    assert len(tokens.shell.ok("token", "list").records) == 1
    bad = tokens.shell.file("bad.toml", b"prot = 1")
    assert tokens.shell("token", "list", "--config", str(bad)).code == 2


@pytest.mark.parametrize("command", ["create", "list", "revoke"])
def test_every_subcommand_explains_itself(shell: Shell, command: str) -> None:
    shown = shell.ok("token", command, "--help").out
    assert shown.startswith(f"Usage: edgequeues token {command}")
    assert max(map(len, shown.splitlines())) <= 80


# -- the other commands ----------------------------------------------------------------------------------


def test_commands_send_the_token_they_are_given(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = tokens.shell
    shell.ok("append", Q, "1")
    text = tokens.create("laptop")
    assert len(shell.ok("read", Q, "--token", text).records) == 1
    monkeypatch.setenv("EDGEQUEUES_TOKEN", text)
    assert len(shell.ok("read", Q).records) == 1
    wrong = shell("read", Q, "--token", "eq_wrong")
    assert wrong.code == 1
    assert "[unauthenticated]" in wrong.err


def test_a_refusal_says_where_a_token_goes(tokens: Tokens) -> None:
    tokens.shell.ok("append", Q, "1")
    reader = tokens.create("reader", "--verbs", "read")
    for args, code in (
        (("read", Q), "unauthenticated"),
        (("append", Q, "2", "--token", reader), "forbidden"),
    ):
        refused = tokens.shell(*args)
        assert (refused.code, refused.out) == (1, "")
        assert f"[{code}]" in refused.err
        assert "--token or EDGEQUEUES_TOKEN" in refused.err


def test_a_token_is_in_no_error_and_no_help(tokens: Tokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEQUEUES_TOKEN", "eq_very_secret")
    tokens.create("laptop")
    shown = [tokens.shell("read", Q), tokens.shell("read", "--help"), tokens.shell("read", Q, "--nonsense")]
    assert all("very_secret" not in result.out + result.err for result in shown)


@pytest.mark.parametrize("text", ["", "eq_very_secret\n", "eq_very secret", "eq_very_secr\u00e9t", "\udcff"])
def test_a_token_that_cannot_be_sent_is_wrong_usage_and_not_shown(shell: Shell, text: str) -> None:
    result = shell("read", Q, "--token", text)
    assert (result.code, result.out) == (2, "")
    assert "--token: the access token cannot be sent" in result.err
    assert "very" not in result.err


def test_the_file_is_only_its_owners(tokens: Tokens) -> None:
    tokens.create("laptop")
    path: Path = tokens.shell.data / "control.db"
    assert path.stat().st_mode & 0o077 == 0
