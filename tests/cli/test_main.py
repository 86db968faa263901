from __future__ import annotations

import signal
import socket
import sys
from types import TracebackType

import click
import pytest
import trio

from edgequeues.cli.main import COMMANDS, INTERRUPTED, edgequeues, run
from edgequeues.cli.session import Surroundings
from edgequeues.client import BadAnswer, Client, ClientError, ServerError, Unavailable

from .shell import Q, Shell


def failing(error: BaseException) -> Surroundings:
    class Broken(Client):
        async def __aenter__(self) -> Client:
            raise error

    return Surroundings(lambda url, token: Broken(url, token=token), terminal=False)


def commands() -> list[str]:
    """Every command, those inside a group too."""
    found = [""]
    for name in COMMANDS:
        command = edgequeues.get_command(click.Context(edgequeues), name)
        inner = command.commands if isinstance(command, click.Group) else {}
        found += [name, *(f"{name} {one}" for one in inner)]
    return found


@pytest.mark.parametrize("command", commands())
def test_every_command_explains_itself(command: str, shell: Shell) -> None:
    result = shell.ok(*command.split(), "--help")
    assert result.out.startswith(f"Usage: edgequeues {command}")
    for line in result.out.splitlines():
        assert len(line) <= 80


def test_the_version_is_printed(shell: Shell) -> None:
    assert shell.ok("--version").out.startswith("edgequeues 0.")


def test_a_server_that_is_not_there_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:  # bound but not listening: refused at once
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        assert run(["spaces", "--server", f"http://127.0.0.1:{port}"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    assert f"127.0.0.1:{port}" in line
    assert "edgequeues serve" in line


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unavailable("overloaded", "too much", 503, retry_after_s=2.0), "Try again in 2 s"),
        (BadAnswer("not the protocol"), "--server"),
        (ServerError("internal", "a bug", 500), "log"),
    ],
)
def test_every_error_says_what_to_do(
    error: ClientError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["read", Q], failing(error)) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("edgequeues: ")
    assert said in line


def test_an_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["read", Q], failing(KeyboardInterrupt())) == 130
    out, err = capsys.readouterr()
    assert (out, err.strip()) == ("", "")


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="bug"):
        run(["read", Q], failing(RuntimeError("bug")))


def test_benchmarks_that_are_not_installed_are_one_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bench", "bench.main"):
        monkeypatch.setitem(sys.modules, name, None)
    result = shell("bench")
    assert result.code == 1
    assert "make bench" in result.err


def test_a_benchmark_nobody_knows_is_wrong_usage(shell: Shell) -> None:
    assert shell("bench", "--quick", "nothing").code == 2


def test_an_interrupt_strikes_where_a_command_waits_and_nowhere_else() -> None:
    """In the middle of a step it could leave a lock taken, and closing would wait for it for ever."""
    steps = []

    class Interrupted(Client):
        async def __aenter__(self) -> Client:
            signal.raise_signal(signal.SIGINT)
            steps.append("the step is finished")
            with trio.fail_after(60):
                await trio.sleep_forever()

        async def __aexit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            raise AssertionError("never entered")

    surroundings = Surroundings(lambda url, token: Interrupted(url, token=token), terminal=False)
    assert run(["stats", Q], surroundings) == INTERRUPTED
    assert steps == ["the step is finished"]
