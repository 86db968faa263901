from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from edgequeues.app import open_app
from edgequeues.cli.main import run
from edgequeues.cli.session import Surroundings
from edgequeues.client import Client, Transport
from edgequeues.settings import Settings

from .shell import Shell

SPEC = "app shop {\n  queue orders {}\n  queue mails {}\n  webhook paid { queue: orders verify: none }\n}\n"
SIGNED = SPEC.replace("verify: none", 'verify_hmac { header: "X-Hub-Signature-256" secret_env: "GH_HOOK" }')
MISSPELT = "app shop {\n  queue orders {\n    orderng: fifo\n  }\n}\n"


def a_file(shell: Shell, text: str, name: str = "shop.spec") -> str:
    return str(shell.file(name, text.encode()))


def words(table: str) -> list[list[str]]:
    """The rows of a table, without its head."""
    return [line.split() for line in table.splitlines()[2:]]


def test_a_spec_holds_once_it_is_applied(shell: Shell) -> None:
    file = a_file(shell, SPEC)
    result = shell.ok("spec", "apply", file, "--server", "http://localhost:1/")
    made: list[Any] = [{"queue": name, "change": "made", "fields": []} for name in ("orders", "mails")]
    assert result.records == [{"app": "shop", "queues": made}]
    assert result.err == "the spec of shop holds in space shop\nwebhook paid: http://localhost:1/hook/paid\n"
    [listed] = shell.ok("spec", "list", "shop").records
    assert listed.pop("applied") > 0
    assert listed == {
        "app": "shop",
        "origin": file,
        "queues": ["orders", "mails"],
        "webhooks": ["paid"],
        "blocked": None,
        "schedules": [],
    }
    assert {one["config"]["name"] for one in shell.ok("queues", "shop").records} == {"orders", "mails"}


def test_on_a_terminal_changes_are_a_table_that_names_the_fields(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    changed = SPEC.replace(
        "orders {}", "orders { delay_ms: 5 retention { max_age_seconds: 9 max_depth: 9 } }"
    )
    changed = changed.replace("queue mails {}", "queue post {}")
    shown = shell.ok("spec", "apply", a_file(shell, changed), terminal=True)
    assert sorted(words(shown.out)) == [
        ["mails", "removed"],
        ["orders", "changed", "delay_ms,", "retention.max_age_seconds,", "retention.max_depth"],
        ["post", "made"],
    ]


def test_a_dry_run_changes_nothing_and_says_so(shell: Shell) -> None:
    file = a_file(shell, SPEC)
    result = shell.ok("spec", "apply", file, "--dry-run")
    assert [one["change"] for one in result.records[0]["queues"]] == ["made", "made"]
    assert result.err == "nothing was changed: this is what it would do\n"
    assert shell.ok("spec", "list", "shop").records == []
    shell.ok("spec", "apply", file)
    result = shell.ok("spec", "remove", "shop", "--dry-run")
    assert [one["change"] for one in result.records[0]["queues"]] == ["removed", "removed"]
    assert result.err == "nothing was changed: this is what it would do\n"
    assert len(shell.ok("spec", "list", "shop").records) == 1


def test_a_spec_is_read_from_stdin_and_may_be_json(shell: Shell) -> None:
    as_json = shell.ok("spec", "show", "--json", a_file(shell, SPEC)).out.encode()
    for content in (SPEC.encode(), as_json):
        shell.ok("spec", "apply", "-", stdin=content)
        assert shell.ok("spec", "list", "shop").records[0]["origin"] == "stdin"


def test_a_spec_may_hold_in_a_space_of_another_name(shell: Shell) -> None:
    assert "in space east" in shell.ok("spec", "apply", a_file(shell, SPEC), "--space", "east").err
    assert shell.ok("spec", "list", "shop").records == []
    assert [one["app"] for one in shell.ok("spec", "list", "east").records] == ["shop"]
    assert "[spec_not_found]" in shell("spec", "remove", "shop", "--yes").err
    shell.ok("spec", "remove", "shop", "--space", "east", "--yes")
    assert shell.ok("spec", "list", "east").records == []


def test_what_is_wrong_with_a_file_is_told_before_a_server_is_asked(shell: Shell) -> None:
    file = a_file(shell, MISSPELT)
    result = shell("spec", "apply", file)
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"{file}:3:5: `queue` has no key `orderng`\n"
        "      orderng: fifo\n"
        "      ^^^^^^^\n"
        "  Did you mean `ordering`?\n"
        f"edgequeues: {file} is no spec that could be used\n"
    )
    assert not shell.data.exists()
    assert shell("spec", "apply", "no.spec").err == (
        "edgequeues: cannot read no.spec: no such file or directory\n"
    )


def test_what_would_strand_messages_is_refused_in_one_line(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    shell.ok("push", "dxn:queue:shop:mails", "1")
    without = a_file(shell, SPEC.replace("queue mails {}", ""))
    for command in (("apply", without), ("apply", without, "--dry-run"), ("remove", "shop", "--yes")):
        result = shell("spec", *command)
        [line] = result.err.splitlines()
        assert (result.code, result.out) == (1, "")
        assert "[spec_conflict]" in line
        assert "queue mails: messages in it: 1;" in line
    assert len(shell.ok("spec", "list", "shop").records) == 1


def test_a_webhook_of_another_spec_is_refused_naming_both_files(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    other = a_file(shell, SPEC.replace("app shop", "app other"), "other.spec")
    result = shell("spec", "apply", other)
    assert (result.code, "[hook_taken]" in result.err) == (1, True)
    assert "other.spec" in result.err
    assert "shop.spec declares it, too" in result.err


def test_a_secret_that_the_server_does_not_allow_is_refused_by_name(shell: Shell) -> None:
    result = shell("spec", "apply", a_file(shell, SIGNED))
    assert (result.code, "[invalid_spec]" in result.err) == (1, True)
    assert "GH_HOOK" in result.err


def test_a_spec_is_removed_only_after_a_yes(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    assert shell("spec", "remove", "shop").code == 2
    refused = shell("spec", "remove", "shop", terminal=True, stdin=b"n\n")
    assert (refused.code, "Remove the spec of shop from space shop" in refused.err) == (1, True)
    result = shell.ok("spec", "remove", "shop", "-y", terminal=True)
    assert sorted(words(result.out)) == [["mails", "removed"], ["orders", "removed"]]
    assert result.err == "the spec of shop holds no more in space shop\n"
    assert shell.ok("hooks").records == []
    assert "[spec_not_found]" in shell("spec", "remove", "shop", "--yes").err


@pytest.mark.parametrize("command", [("apply",), ("list",), ("remove",), ("apply", "a", "b"), ("aply", "a")])
def test_what_cannot_be_asked_is_wrong_usage(shell: Shell, command: tuple[str, ...]) -> None:
    assert shell("spec", *command).code == 2


def test_a_webhook_whose_secret_is_gone_is_listed_as_blocked_with_the_reason(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.settings = Settings(secrets_env=["GH_HOOK"])
    monkeypatch.setenv("GH_HOOK", "s3cret")
    shell.ok("spec", "apply", a_file(shell, SIGNED))
    [found] = shell.ok("hooks").records
    assert (found["name"], found["state"], found["why"], found["counts"]) == ("paid", "open", None, {})
    monkeypatch.delenv("GH_HOOK")
    [found] = shell.ok("hooks").records
    assert found["state"] == "blocked"
    assert "`GH_HOOK` is not set" in found["why"]
    monkeypatch.setenv("COLUMNS", "200")
    assert "GH_HOOK" in shell.ok("hooks", terminal=True).out
    assert "GH_HOOK" in shell.ok("spec", "list", "shop", terminal=True).out


def test_the_calls_of_a_webhook_are_counted_by_what_became_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "shop.spec").write_text(SIGNED)

    def signed(body: bytes) -> dict[str, str]:
        return {"X-Hub-Signature-256": f"sha256={hmac.new(b's3cret', body, 'sha256').hexdigest()}"}

    calls = [(body, signed(body)) for body in (b'{"n": 1}', b'{"n": 2}', b'{"n": 2}', b"{")]
    calls += [(b"{}", {}), (b"{}", {}), (b"{}", signed(b"[]"))]

    @asynccontextmanager
    async def called(url: str, token: str | None) -> AsyncIterator[Client]:
        """A server whose webhook was called before."""
        settings = Settings(spec=[str(tmp_path / "shop.spec")], secrets_env=["GH_HOOK"])
        async with open_app(tmp_path / "data", settings, environment={"GH_HOOK": "s3cret"}) as server:
            transport = httpx.ASGITransport(cast(Any, server))
            async with httpx.AsyncClient(transport=transport, base_url=url) as sender:
                for body, headers in calls:
                    await sender.post("/hook/paid", content=body, headers=headers)
            async with Client(url, transport=Transport(url, token=token, transport=transport)) as client:
                yield client

    counts = "1 duplicate, 1 invalid, 2 queued, 3 refused (1 mismatch, 2 missing)"
    assert run(["hooks"], Surroundings(called, terminal=True)) == 0
    [row] = words(capsys.readouterr().out)
    assert row[:5] == ["paid", "shop", "shop", "orders", "open"]
    assert " ".join(row[5:]) == counts
    (tmp_path / "data").rename(tmp_path / "before")
    assert run(["hooks", "--json"], Surroundings(called, terminal=True)) == 0
    [told] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert told["counts"] == {
        "duplicate": 1,
        "invalid": 1,
        "queued": 2,
        "refused": 3,
        "refused_mismatch": 1,
        "refused_missing": 2,
    }


def test_a_webhook_without_calls_says_so(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    assert words(shell.ok("hooks", terminal=True).out)[0][5:] == ["none", "yet"]
