from __future__ import annotations

import json
from pathlib import Path

import pytest

from .shell import Shell

SAMPLE = (Path(__file__).parents[1] / "spec" / "data" / "incident.spec").read_bytes()
WRONG = b"app Demo {\n  queue Jobs {\n    orderng: fifo\n    priority: 10\n  }\n}\n"
UNTIDY = b"app Demo { queue Jobs { delay_ms: 5 // why\n ordering: fifo } }"
TIDY = "app Demo {\n  queue Jobs {\n    ordering: fifo\n    delay_ms: 5 // why\n  }\n}\n"


def test_a_right_spec_is_exit_code_0(shell: Shell) -> None:
    file = shell.file("incident.spec", SAMPLE)
    result = shell.ok("spec", "check", str(file))
    assert result.records == [{"file": str(file), "app": "IncidentManagement", "faults": []}]
    assert "secrets, hosts and modules was not checked: give its settings" in result.err
    assert shell.ok("spec", "check", str(file), terminal=True).out.split()[-2:] == [
        "IncidentManagement",
        "ok",
    ]


def test_where_nothing_is_secret_there_is_nothing_more_to_check(shell: Shell) -> None:
    assert shell.ok("spec", "check", str(shell.file("a.spec", UNTIDY))).err == ""
    wrong = shell("spec", "check", str(shell.file("b.spec", WRONG)))
    assert wrong.err.endswith("edgequeues: the spec cannot be used\n")
    assert "not checked" not in wrong.err


def test_all_faults_of_all_files_are_told_with_their_lines(shell: Shell) -> None:
    right, wrong = shell.file("a.spec", SAMPLE), shell.file("b.spec", WRONG)
    result = shell("spec", "check", str(right), str(wrong))
    assert result.code == 1
    assert result.err.startswith(
        f"{wrong}:3:5: `queue` has no key `orderng`\n"
        "      orderng: fifo\n"
        "      ^^^^^^^\n"
        "  Did you mean `ordering`?\n"
        f"{wrong}:4:15: there is no priority 10\n"
    )
    assert result.err.endswith("edgequeues: 1 of 2 specs cannot be used\n")
    _, record = result.records
    assert record["faults"][0] == {
        "path": "queues.Jobs.orderng",
        "what": "`queue` has no key `orderng`",
        "remedy": "Did you mean `ordering`?",
        "line": 3,
        "column": 5,
    }


def test_stdin_is_a_file_that_can_be_read_once(shell: Shell) -> None:
    assert shell.ok("spec", "check", "-", stdin=SAMPLE).records[0]["file"] == "stdin"
    for command in (("check", "-", "-"), ("diff", "-", "-"), ("fmt", "--check", "-", "-")):
        result = shell("spec", *command, stdin=SAMPLE)
        assert (result.code, "stdin can be read once" in result.err) == (2, True)


def test_secrets_are_checked_where_settings_allow_some(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    config = shell.file("server.toml", b'secrets_env = ["PAGERDUTY_WEBHOOK_SECRET"]')
    file = str(shell.file("incident.spec", SAMPLE))
    monkeypatch.delenv("PAGERDUTY_WEBHOOK_SECRET", raising=False)
    result = shell("spec", "check", "--config", str(config), file)
    assert result.code == 1
    assert "the variable `PAGERDUTY_WEBHOOK_SECRET` is not set" in result.err
    monkeypatch.setenv("PAGERDUTY_WEBHOOK_SECRET", "s3cret")
    result = shell.ok("spec", "check", "--config", str(config), file)
    assert "not checked" not in result.err
    monkeypatch.setenv("EDGEQUEUES_SECRETS_ENV", "OTHER")
    assert "does not let specs use the variable" in shell("spec", "check", file).err


def test_settings_that_cannot_be_are_wrong_usage(shell: Shell) -> None:
    config, file = shell.file("server.toml", b"prot = 1"), shell.file("incident.spec", SAMPLE)
    result = shell("spec", "check", "--config", str(config), str(file))
    assert result.code == 2
    assert "prot: no such setting" in result.err


def test_a_file_that_is_not_there_is_a_failure_in_one_line(shell: Shell) -> None:
    for command in (
        ("check", "no.spec"),
        ("show", "no.spec"),
        ("diff", "no.spec", "no.spec"),
        ("fmt", "no.spec"),
    ):
        result = shell("spec", *command)
        assert (result.code, result.err) == (
            1,
            "edgequeues: cannot read no.spec: no such file or directory\n",
        )


def test_a_spec_is_shown_as_text_and_as_json_and_both_are_read(shell: Shell) -> None:
    file = str(shell.file("incident.spec", SAMPLE))
    text = shell.ok("spec", "show", file).out.encode()
    as_json = shell.ok("spec", "show", "--json", file).out.encode()
    assert json.loads(as_json)["app"] == "IncidentManagement"
    for content in (text, as_json):
        assert shell.ok("spec", "show", "--json", "-", stdin=content).out.encode() == as_json
    assert shell.ok("spec", "diff", file, str(shell.file("same.json", as_json))).out == ""


def test_what_is_wrong_is_not_shown_but_told(shell: Shell) -> None:
    result = shell("spec", "show", str(shell.file("wrong.spec", WRONG)))
    assert (result.code, result.out) == (1, "")
    assert "`queue` has no key `orderng`" in result.err


def test_a_difference_is_a_line_and_exit_code_1(shell: Shell) -> None:
    old = str(shell.file("old.spec", TIDY.encode()))
    new = str(shell.file("new.spec", TIDY.replace("5", "6").encode()))
    shown = shell("spec", "diff", old, new, terminal=True)
    assert (shown.code, shown.out, shown.err) == (1, "~ queues.Jobs.delay_ms: 5 -> 6\n", "")
    piped = shell("spec", "diff", old, new)
    change = {"path": ["queues", "Jobs", "delay_ms"], "kind": "changed", "old": "5", "new": "6"}
    assert (piped.code, piped.records) == (1, [change])


def test_a_text_is_laid_out_with_its_comments(shell: Shell) -> None:
    file = shell.file("a.spec", UNTIDY)
    assert shell.ok("spec", "fmt", str(file)).out == TIDY
    result = shell("spec", "fmt", "--check", str(file))
    assert (result.code, result.out) == (1, "")
    assert f"not laid out: {file}" in result.err
    assert file.read_bytes() == UNTIDY


def test_a_file_is_written_in_its_place_and_is_a_file_that_passes(shell: Shell) -> None:
    file = shell.file("a.spec", UNTIDY)
    file.chmod(0o640)
    assert f"{file}: written" in shell.ok("spec", "fmt", "--write", str(file)).err
    assert (file.read_text(), file.stat().st_mode & 0o777) == (TIDY, 0o640)
    assert shell.ok("spec", "fmt", "--check", str(file)).err == ""
    assert shell.ok("spec", "fmt", "--write", str(file)).err == ""
    assert sorted(path.name for path in shell.folder.glob("*a.spec*")) == ["a.spec"]


def test_a_link_stays_a_link(shell: Shell) -> None:
    file, link = shell.file("a.spec", UNTIDY), shell.folder / "link.spec"
    link.symlink_to(file)
    shell.ok("spec", "fmt", "--write", str(link))
    assert link.is_symlink()
    assert file.read_text() == TIDY


def test_what_cannot_be_read_is_not_written(shell: Shell) -> None:
    file = shell.file("wrong.spec", WRONG)
    result = shell("spec", "fmt", "--write", str(file))
    assert result.code == 1
    assert "cannot be laid out before it is right" in result.err
    assert file.read_bytes() == WRONG


def test_json_is_printed_as_text_and_has_no_layout(shell: Shell) -> None:
    file = str(
        shell.file("a.json", b'{"version":0,"app":"Demo","queues":{"Jobs":{"ordering":"fifo","delay_ms":5}}}')
    )
    assert shell.ok("spec", "fmt", file).out == TIDY.replace(" // why", "")
    assert "is JSON, which has no layout" in shell("spec", "fmt", "--check", file).err


@pytest.mark.parametrize(
    "arguments",
    [("--check", "--write", "a"), ("a", "b"), ("--write", "-"), ()],
    ids=["both", "two", "stdin", "none"],
)
def test_what_fmt_cannot_do_is_wrong_usage(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell("spec", "fmt", *arguments).code == 2
