"""What a shell is told when somebody presses Tab."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.shell_completion import CompletionItem

from edgequeues.cli import completing
from edgequeues.cli.completing import addresses
from edgequeues.cli.main import edgequeues

from .shell import Shell


def completed(*words: str, **variables: str) -> list[str]:
    """What bash is told for these words, of which the last one is begun."""
    env = {
        "PATH": "/usr/bin:/bin",
        "_EDGEQUEUES_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["edgequeues", *words]),
        "COMP_CWORD": str(len(words)),
        **variables,
    }
    args = [sys.executable, "-m", "edgequeues.cli.main"]
    done = subprocess.run(args, env=env, capture_output=True, text=True, check=False)
    assert not done.stderr
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_each_shell_is_given_a_script(shell: Shell, shell_name: str) -> None:
    assert "_EDGEQUEUES_COMPLETE" in shell.ok("completion", shell_name).out


def test_bash_itself_reads_its_script(shell: Shell) -> None:
    script = shell.ok("completion", "bash").out
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_commands_and_options_are_completed() -> None:
    assert completed("rel") == ["release"]
    assert set(completed("peek", "dxn:queue:demo:jobs", "--st")) == {"--state"}


def test_commands_are_completed_without_importing_them() -> None:
    found = edgequeues.shell_complete(None, "do")  # type: ignore[arg-type]
    assert [one.value for one in found if isinstance(one, CompletionItem)] == ["doctor"]


def test_without_a_server_nothing_is_completed_and_nothing_is_said() -> None:
    assert completed("peek", "dxn:queue:de", EDGEQUEUES_SERVER="http://127.0.0.1:9") == []
    assert completed("peek", "d") == ["dxn:queue:"]


def test_spaces_and_queues_are_asked_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str | None, str]] = []

    def answer(server: str, token: str | None, begun: str) -> list[str]:
        asked.append((server, token, begun))
        return ["demo:jobs"]

    monkeypatch.setattr(completing, "_asked", answer)
    monkeypatch.setenv("EDGEQUEUES_TOKEN", "t")
    assert addresses({"server": "http://x"}, "dxn:queue:demo:j") == ["dxn:queue:demo:jobs"]
    assert asked == [("http://x", "t", "demo:j")]
