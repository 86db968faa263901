"""Typing into panes of a real tmux, each with a program that keeps every byte it is sent."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from edgequeues.sessions.delivery import Session, deliver_inbound
from edgequeues.sessions.errors import Rejected
from edgequeues.sessions.local import open_inbox
from edgequeues.sessions.manager import SessionManager, open_manager
from edgequeues.sessions.tmux import (
    TEXT_BYTES_MAX,
    Tmux,
    TmuxFailed,
    TmuxTerminal,
    clean,
    name_of,
    needs_brackets,
)

from .test_delivery import Host

BEGIN, END, ENTER = b"\x1b[200~", b"\x1b[201~", b"\r"

EXAMPLE = Path(__file__).parents[2] / "examples/sessions/tmux_host.py"

KEEPER = """
import os, sys, tty
kept = open(sys.argv[1], "ab", buffering=0)
tty.setraw(0)
os.write(1, b"\\x1b[?2004h" if sys.argv[2] == "brackets" else b"plain")
open(sys.argv[1] + ".ready", "w").close()
while given := os.read(0, 65536):
    kept.write(given)
"""


@pytest.fixture
def socket() -> Iterator[str]:
    """The name of a server of tmux that this test alone has."""
    assert shutil.which("tmux"), "this test types into a real tmux: install it (Debian: apt-get install tmux)"
    name = f"edgequeues-test-{uuid4().hex[:12]}"
    yield name
    subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, timeout=10, check=False)
    folder = Path(os.environ.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}")
    (folder / name).unlink(missing_ok=True)  # tmux leaves it


@pytest.fixture
def tmux(socket: str) -> Tmux:
    return Tmux(socket=socket, config=Path("/dev/null"))


async def until(holds: Callable[[], Awaitable[object]]) -> None:
    with trio.fail_after(20):
        while not await holds():  # noqa: ASYNC110 - other processes do it, and tell nobody
            await trio.sleep(0.02)


class Keeper:
    """A pane with a program that writes what it is sent into a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = ""

    async def start(self, tmux: Tmux, mode: str = "brackets") -> Keeper:
        self.path.touch()
        command = [sys.executable, "-c", KEEPER, str(self.path), mode]
        self.name = await tmux.adopt(self.path.name, command)
        await until(trio.Path(f"{self.path}.ready").exists)
        await trio.sleep(0.2)  # the terminal reads what the program asked it for
        return self

    async def got(self, size: int) -> bytes:
        """What it was sent, once there are so many bytes of it, and no more come."""

        async def is_there() -> bool:
            return (await trio.Path(self.path).stat()).st_size >= size

        await until(is_there)
        await trio.sleep(0.1)
        return await trio.Path(self.path).read_bytes()


def pasted(text: str) -> bytes:
    return BEGIN + text.encode() + END + ENTER


@pytest.mark.parametrize(
    "text",
    [
        "👨‍👩‍👧 says `rm -rf` & $HOME; #{pane_id} \\n 'one' \"two\";",
        "line one\nline two\n\n\tline four",
        "-t looks like an option?",
        "/run two words",
        "x = '\N{SNOWMAN}' * 3\n" * 3_449,
    ],
    ids=["signs", "lines", "option", "words", "64 KiB"],
)
async def test_a_text_is_pasted_as_it_is(tmux: Tmux, tmp_path: Path, text: str) -> None:
    keeper = await Keeper(tmp_path / "kept").start(tmux)
    expected = pasted(text.rstrip("\n"))
    assert await tmux.send(keeper.name, text)
    assert await keeper.got(len(expected)) == expected


@pytest.mark.parametrize("text", ["/compact", "yes, go on", "Ж 17"])
async def test_commands_and_plain_words_are_typed(tmux: Tmux, tmp_path: Path, text: str) -> None:
    keeper = await Keeper(tmp_path / "kept").start(tmux)
    assert await tmux.send(keeper.name, text)
    expected = text.encode() + ENTER
    assert await keeper.got(len(expected)) == expected


async def test_a_program_that_knows_no_brackets_gets_none(tmux: Tmux, tmp_path: Path) -> None:
    keeper = await Keeper(tmp_path / "kept").start(tmux, "plain")
    assert await tmux.send(keeper.name, "what (now)?")
    assert await keeper.got(12) == b"what (now)?" + ENTER


@pytest.mark.parametrize(
    "attack",
    ["a\x1b[201~\rrm -rf /\r", "a\x9b201~\x03\x04b!", "\x1b\x1b[201~[201~\x7f\x1bc?", "bell\x07, null\x00!"],
)
async def test_no_text_ends_the_paste_or_is_a_key(tmux: Tmux, tmp_path: Path, attack: str) -> None:
    keeper = await Keeper(tmp_path / "kept").start(tmux)
    assert await tmux.send(keeper.name, attack)
    got = await keeper.got(len(pasted(clean(attack))))
    assert got.startswith(BEGIN)
    assert got.endswith(END + ENTER)
    inside = got[len(BEGIN) : -len(END + ENTER)].decode()
    assert not [sign for sign in inside if sign != "\n" and (ord(sign) < 32 or 127 <= ord(sign) < 160)]


async def test_panes_take_no_text_of_each_other(tmux: Tmux, tmp_path: Path) -> None:
    keepers = [await Keeper(tmp_path / f"kept-{number}").start(tmux) for number in range(3)]
    texts = {keeper: f"for {keeper.path.name}: (ä)\n" * 200 + "end" for keeper in keepers}
    async with trio.open_nursery() as nursery:
        for keeper, text in texts.items():
            nursery.start_soon(tmux.send, keeper.name, text)
    for keeper, text in texts.items():
        assert await keeper.got(len(pasted(text))) == pasted(text)


async def test_a_pane_that_somebody_scrolls_in_is_typed_into(tmux: Tmux, socket: str, tmp_path: Path) -> None:
    keeper = await Keeper(tmp_path / "kept").start(tmux)
    await trio.run_process(["tmux", "-L", socket, "copy-mode", "-t", f"={keeper.name}:"])
    assert await tmux.send(keeper.name, "/compact")
    assert await keeper.got(9) == b"/compact" + ENTER


async def test_a_session_that_is_not_there_or_is_over_takes_nothing(
    tmux: Tmux, socket: str, tmp_path: Path
) -> None:
    """Neither where no server runs, nor by the beginning of a name, nor into a pane that outlives its program."""
    assert not await tmux.send("nobody", "hello")
    keeper = await Keeper(tmp_path / "kept").start(tmux)
    assert not await tmux.send(keeper.name[:-1], "hello")
    call = partial(trio.run_process, capture_stdout=True)
    await call(["tmux", "-L", socket, "set-option", "-g", "remain-on-exit", "on"])
    over = await tmux.adopt("over", ["true"])

    async def is_over() -> bool:
        return (
            b"1" in (await call(["tmux", "-L", socket, "display", "-p", "-t", over, "#{pane_dead}"])).stdout
        )

    await until(is_over)
    assert not await tmux.send(over, "hello (you)")
    assert keeper.path.read_bytes() == b""
    assert (await call(["tmux", "-L", socket, "list-buffers"])).stdout == b""


async def test_whoever_is_cancelled_has_pressed_enter(socket: str, tmp_path: Path) -> None:
    """A text that was left without its Enter would stand before the next one, and be typed again."""
    tmux = Tmux(socket=socket, config=Path("/dev/null"), settle_s=0.5)
    keeper = await Keeper(tmp_path / "kept").start(tmux)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tmux.send, keeper.name, "stop (now)")
        await keeper.got(len(BEGIN) + 10)
        nursery.cancel_scope.cancel()
    assert await keeper.got(len(pasted("stop (now)"))) == pasted("stop (now)")


async def test_a_session_is_adopted_once_and_no_shell_reads_its_command(
    tmux: Tmux, socket: str, tmp_path: Path
) -> None:
    spied = tmp_path / "kept; touch spied;"
    keeper = await Keeper(spied).start(tmux)
    assert await tmux.adopt(spied.name, ["false"]) == keeper.name
    await tmux.send(keeper.name, "still here")
    assert await keeper.got(11) == b"still here" + ENTER
    await tmux.adopt("alone", [f"touch {tmp_path / 'alone'}"])
    await tmux.adopt("last", ["touch", f"{tmp_path}/last;"])
    await until(trio.Path(tmp_path / "last;").exists)
    assert not (tmp_path / "alone").exists()


def test_a_program_on_asyncio_types_too(socket: str) -> None:
    async def type_into() -> bool:
        tmux = Tmux(socket=socket, config=Path("/dev/null"))
        return await tmux.send(await tmux.adopt("asyncio", ["cat"]), "hello (you)")

    assert asyncio.run(type_into())


def test_the_example_has_each_session_told_its_lines(socket: str, tmp_path: Path) -> None:
    keeper = "import sys; open(sys.argv[1] + sys.stdin.readline().strip(), 'w').write(sys.stdin.readline())"
    told = tmp_path / "told-"
    host = [sys.executable, str(EXAMPLE), "--data", str(tmp_path / "data"), "--socket", socket, "--"]
    command = [*host, sys.executable, "-c", keeper, str(told)]
    done = subprocess.run(
        command,
        input="a one\nb two\nnobody\na first line\nb 2nd line\n",
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["a", "b", "a", "b"]
    assert "type a session and a text" in done.stderr
    deadline = time.monotonic() + 20
    while not all(map(filled, (tmp_path / "told-one", tmp_path / "told-two"))):
        assert time.monotonic() < deadline, "the programs in the panes were not told all"
        time.sleep(0.02)
    assert (tmp_path / "told-one").read_text() == "first line\n"
    assert (tmp_path / "told-two").read_text() == "2nd line\n"


def filled(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


async def test_texts_that_cannot_be_typed_are_rejected(tmux: Tmux) -> None:
    for text in ("", " \n", "\x1b\x07"):
        with pytest.raises(Rejected, match="no text"):
            await tmux.send("any", text)
    with pytest.raises(Rejected, match=f"{TEXT_BYTES_MAX + 1} bytes"):
        await tmux.send("any", "x" * (TEXT_BYTES_MAX + 1))


async def test_a_tmux_that_is_missing_or_hangs_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(TmuxFailed, match="Install tmux"):
        await Tmux(program=str(tmp_path / "none")).send("any", "hello")
    hanging = tmp_path / "hanging"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)
    with pytest.raises(TmuxFailed, match="display-message took more than"):
        await Tmux(program=str(hanging), timeout_s=0.2).send("any", "hello")


def test_names_are_taken_by_tmux_and_differ() -> None:
    names = [name_of(one) for one in ("a:b", "a.b", "-a", "a", "Ж" * 200, "")]
    assert len(set(names)) == len(names)
    assert all(set(name) & set(":.=%@$ ") == set() and not name.startswith("-") for name in names)


def test_line_ends_become_newlines_and_only_signs_need_brackets() -> None:
    assert clean("a\r\nb\rc\td\r\n") == "a\nb\nc\td"
    assert [needs_brackets(text) for text in ("/a", "/a b", "a b", "a;", "a\nb")] == [
        False,
        True,
        False,
        True,
        True,
    ]


class Program(Host):
    """A program whose session has no terminal before its first message, and then a keeper."""

    def __init__(self, tmux: Tmux, kept: Path) -> None:
        super().__init__(Session(session_id="s", lifecycle="headless"))
        self._panes = TmuxTerminal(tmux, [sys.executable, "-c", KEEPER, str(kept), "brackets"])
        self._ready = trio.Path(f"{kept}.ready")

    async def send(self, session: Session, text: str) -> bool:
        return await self._panes.send(session, text)

    async def adopt(self, session: Session) -> Session:
        await self._ready.unlink(missing_ok=True)
        adopted = await self._panes.adopt(session)
        await until(self._ready.exists)
        await trio.sleep(0.2)
        return adopted


async def test_messages_go_from_the_queue_through_all_steps_into_a_pane(tmux: Tmux, tmp_path: Path) -> None:
    """The session has no terminal at first, and the program in it dies between two messages."""
    kept = tmp_path / "kept"
    kept.touch()
    host = Program(tmux, kept)
    deliver = partial(deliver_inbound, client=host, start_polling=host.poll)
    async with open_inbox(tmp_path / "data") as inbox, open_manager(inbox, deliver) as manager:

        async def say(content: str) -> None:
            await manager.enqueue(session_id="s", origin="terminal", content=content)

        await say("first")
        await say("second; \N{SNOWMAN}")
        expected = b"first" + ENTER + pasted("second; \N{SNOWMAN}")
        keeper = Keeper(kept)
        assert await keeper.got(len(expected)) == expected
        assert host.session is not None
        assert host.session.terminal == name_of("s")
        assert host.done.count("save") == 1
        await until(_is_empty(manager))
        await trio.run_process([*tmux._call, "kill-session", "-t", f"={name_of('s')}"])
        await say("third")
        await until(lambda: _has_failed(manager))
        [stuck] = (await manager.sessions()).sessions
        assert stuck.head.last_error is not None
        assert "did not take the text" in stuck.head.last_error
        host.session = Session(session_id="s", lifecycle="headless")
        assert await manager.retry_now("s")
        await until(_is_empty(manager))
    assert host.done.count("poll") == 3


def _is_empty(manager: SessionManager) -> Callable[[], Awaitable[bool]]:
    async def is_empty() -> bool:
        return not (await manager.sessions()).sessions

    return is_empty


async def _has_failed(manager: SessionManager) -> bool:
    return any(one.head.failures for one in (await manager.sessions()).sessions)
