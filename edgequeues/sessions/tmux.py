"""Types messages into tmux panes, as their users would: a session of tmux for each session of messages.

What a chat user writes is text, and never a key: nothing in it can end the paste, or be a command of the terminal.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE, CompletedProcess

import anyio
from msgspec.structs import replace

from edgequeues.sessions.delivery import Session
from edgequeues.sessions.errors import Rejected

TEXT_BYTES_MAX = 1_048_576  # that are typed at once
TIMEOUT_S = 10.0  # of one call of tmux
SETTLE_S = (
    0.1  # between a paste and its Enter, which programs take for a part of the paste where they come as one
)
COLUMNS, LINES = 200, 50  # of a pane that nobody looks at

_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)  # all but tab and newline; C1 too, where U+009B is ESC [
_COMMAND = re.compile(r"/[\w.:-]+")
_PLAIN = re.compile(r"[\w .,:-]+")
_STATE = "#{pane_id} #{pane_dead} #{pane_in_mode}"


class TmuxFailed(RuntimeError):
    """tmux is missing, hangs, or could not do as it was told. See the words it said, and try again."""


class Tmux:
    """One server of tmux.

    socket: its name, as of `tmux -L`; None: the user's own. config: its file of settings, read when it starts.
    program: what is run. timeout_s: of each call of it. settle_s: between a paste and its Enter.
    """

    def __init__(
        self,
        *,
        socket: str | None = None,
        config: Path | None = None,
        program: str = "tmux",
        timeout_s: float = TIMEOUT_S,
        settle_s: float = SETTLE_S,
    ) -> None:
        self._call = [program]
        self._call += ["-L", socket] if socket else []
        self._call += ["-f", str(config)] if config else []
        self._timeout_s = timeout_s
        self._settle_s = settle_s

    async def send(self, name: str, text: str) -> bool:
        """Type a text into the active pane of session `name`, and press Enter.

        False: there is no such session, or its program has ended. Raises Rejected for a text that leaves nothing to
        type or is too long, TmuxFailed where tmux does not work. Whoever is cancelled waits until Enter is pressed:
        a text without it would stand before the next one.
        """
        typed = clean(text)
        if not typed.strip():
            raise Rejected("nothing in the message can be typed: it has no text")
        if (size := len(typed.encode())) > TEXT_BYTES_MAX:
            raise Rejected(f"the text has {size} bytes, and {TEXT_BYTES_MAX} can be typed: send it as a file")
        pane = await self._pane(name)
        if pane is None:
            return False
        entered = False
        with anyio.CancelScope(shield=True):
            if await self._paste(pane, typed):
                await anyio.sleep(self._settle_s)
                entered = (await self._run("send-keys", "-t", pane, "Enter")).returncode == 0
        return entered

    async def adopt(self, session_id: str, command: Sequence[str], folder: Path | None = None) -> str:
        """Have a session of tmux for a session of messages, which runs `command`; return its name.

        One that is there stays as it is. The command is a program and its arguments; no shell reads them. Raises
        TmuxFailed where tmux cannot make it.
        """
        if not command:
            raise ValueError("command: no program is named")
        name = name_of(session_id)
        if await self.has(name):
            return name
        where = ["-c", str(folder)] if folder else []
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        words = [_argument(word) for word in command]
        words = words if len(words) > 1 else ["env", *words]  # tmux has a shell read a word that stands alone
        made = await self._run("new-session", "-d", "-s", name, *size, *where, "--", *words)
        if made.returncode and not await self.has(name):  # another call may have made it meanwhile
            raise TmuxFailed(f"no session of tmux could be made: {_said(made)}")
        return name

    async def has(self, name: str) -> bool:
        """Is there a session of this very name?"""
        return (await self._run("has-session", "-t", f"={name}")).returncode == 0

    async def _pane(self, name: str) -> str | None:
        """The id of the active pane of a session, ready to be typed into; None: none, or its program has ended."""
        found = await self._run("display-message", "-p", "-t", f"={name}:", _STATE)
        match found.stdout.decode().split():
            case [pane, "0", "0"]:
                return pane
            case [pane, "0", _]:  # somebody scrolls in it, and Enter would end up there
                await self._run("copy-mode", "-q", "-t", pane)
                return pane
        return None

    async def _paste(self, pane: str, text: str) -> bool:
        """Put a text before the program in a pane. It goes by a pipe: arguments are there for all users to see."""
        buffer = f"edgequeues-{secrets.token_hex(8)}"
        bracketed = ["-p"] if needs_brackets(text) else []
        paste = ["paste-buffer", *bracketed, "-r", "-d", "-b", buffer, "-t", pane]
        try:
            done = await self._run("load-buffer", "-b", buffer, "-", ";", *paste, given=text.encode())
        except TmuxFailed:
            await self._run("delete-buffer", "-b", buffer)
            raise
        if done.returncode:
            await self._run("delete-buffer", "-b", buffer)
        return done.returncode == 0

    async def _run(self, *words: str, given: bytes = b"") -> CompletedProcess[bytes]:
        """Call tmux. A session it does not have is a status; what keeps it from working raises TmuxFailed."""
        try:
            with anyio.fail_after(self._timeout_s):
                return await anyio.run_process(
                    [*self._call, *words], input=given, stdout=PIPE, stderr=PIPE, check=False
                )
        except TimeoutError:
            raise TmuxFailed(
                f"tmux {words[0]} took more than {self._timeout_s} s: is its server stopped?"
            ) from None
        except OSError as error:
            raise TmuxFailed(f"{self._call[0]} cannot be run: {error}. Install tmux.") from None


class TmuxTerminal:
    """Panes of tmux as the Terminal of `delivery`: a session's `terminal` is the name of its session of tmux.

    command: what a session runs that has no terminal yet, in `folder`.
    """

    def __init__(self, tmux: Tmux, command: Sequence[str], folder: Path | None = None) -> None:
        self._tmux = tmux
        self._command = command
        self._folder = folder

    async def send(self, session: Session, text: str) -> bool:
        """See Terminal. What nobody could type is Rejected."""
        return session.terminal is not None and await self._tmux.send(session.terminal, text)

    async def adopt(self, session: Session) -> Session:
        """See Terminal. Raises TmuxFailed."""
        name = await self._tmux.adopt(session.session_id, self._command, self._folder)
        return replace(session, lifecycle="active", terminal=name)


def clean(text: str) -> str:
    """A text without what a terminal would obey: of the control characters, newlines and tabs alone stay."""
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).rstrip("\n")


def needs_brackets(text: str) -> bool:
    """Must a program be told that this is pasted? A single-word command is taken for one only where it is typed."""
    return not (_COMMAND.fullmatch(text) or _PLAIN.fullmatch(text))


def name_of(session_id: str) -> str:
    """What tmux calls the session of an id: letters it takes, and a digest, so that no two ids share a name."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", session_id)[:32]
    return f"{readable}-{hashlib.sha256(session_id.encode()).hexdigest()[:12]}".lstrip("-")


def _argument(word: str) -> str:
    """A word as tmux takes it: one that ends in a semicolon would end the command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word


def _said(done: CompletedProcess[bytes]) -> str:
    return done.stderr.decode(errors="replace").strip()[:500] or f"tmux ended with {done.returncode}"
