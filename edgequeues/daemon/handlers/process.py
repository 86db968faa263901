"""A process that speaks lines: starting it, saying, hearing, and ending it with all that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import trio

from edgequeues.daemon.handlers import messages
from edgequeues.daemon.handlers.messages import LINE_BYTES_MAX, FromCommand, Hello, Ready, Stop, ToCommand

START_S = 30.0  # from the start to `ready`
STOP_S = 2.0  # after `stop`, and again after SIGTERM
END_S = 1.0  # after it has closed its output
CHUNK_BYTES = 64 * 1024
LOG_BYTES_MAX = 8_192  # of a line on standard error; the rest of it is left out
LOG_LINES_MAX = 600  # a minute


class Gone(Exception):
    """The process ends, or else says what makes no sense. Says which."""

    def __init__(self, text: str, *, ends: bool = False) -> None:
        super().__init__(text)
        self.ends = ends


class Process:
    """One running command. Whatever raises Gone, or is cancelled while it says something, leaves it of no use."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._heard = bytearray()
        self._searched = 0  # bytes of it that have no line end
        self._saying = trio.Lock()
        self._how: str | None = None  # it ended
        self._torn = False  # a line was begun, and not ended

    @property
    def pid(self) -> int:
        """Of the process, and of the group of all that it starts."""
        return self._process.pid

    @property
    def is_usable(self) -> bool:
        """Whether something can be said to it still, as far as is known."""
        return self._how is None and not self._torn

    @classmethod
    async def start(cls, words: Sequence[str]) -> Process:
        """Start a command, which is not ready yet. Raises OSError."""
        with trio.CancelScope(shield=True):  # a process that nobody knows would run on
            process = await trio.lowlevel.open_process(
                list(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        return cls(process)

    async def ready(self) -> None:
        """Say hello, and wait until it may be given events. Raises Gone."""
        try:
            with trio.fail_after(START_S):
                await self.say(Hello())
                if not isinstance(await self.hear(), Ready):
                    raise Gone('the first line that it wrote is not {"type":"ready"}')
        except trio.TooSlowError:
            raise Gone(f'it did not write {{"type":"ready"}} within {START_S:.0f} s') from None

    async def say(self, message: ToCommand) -> None:
        """Write a line. Raises Gone."""
        async with self._saying:
            self._torn = True
            try:
                await self._stdin.send_all(messages.line(message))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise Gone("it reads no more", ends=True) from None
            self._torn = False

    async def hear(self) -> FromCommand:
        """Read a line. Raises Gone."""
        while (end := self._heard.find(b"\n", self._searched)) < 0:
            self._searched = len(self._heard)
            if self._searched >= LINE_BYTES_MAX:
                raise Gone(f"it wrote a line of more than {LINE_BYTES_MAX} bytes")
            try:
                chunk = await self._stdout.receive_some(CHUNK_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                chunk = b""
            if not chunk:
                raise Gone("it ended", ends=True)
            self._heard += chunk
        text = bytes(self._heard[:end])
        del self._heard[: end + 1]
        self._searched = 0
        try:
            return messages.heard(text)
        except msgspec.DecodeError as fault:
            raise Gone(
                f"it wrote a line that is no message ({fault}); what is printed must go to standard error"
            ) from None

    async def stop(self) -> None:
        """End it in good order, or by force where it does not end."""
        with trio.CancelScope(shield=True):
            with trio.move_on_after(STOP_S), suppress(Gone):
                if self.is_usable:
                    await self.say(Stop())
            await self._stdin.aclose()
            if not await self._ended(STOP_S):
                self._signal(signal.SIGTERM)
                await self._ended(STOP_S)
            await self.kill()

    async def kill(self, fault: Gone | None = None) -> str:
        """End it, and what it has started, at once; return how it ended. One that ends by itself is let to do so."""
        if self._how is not None:
            return self._how
        with trio.CancelScope(shield=True):
            if fault is not None and fault.ends:
                await self._ended(END_S)
            self._signal(signal.SIGKILL)
            status = await self._process.wait()
            for stream in (self._stdin, self._stdout):
                await stream.aclose()
        self._how = f"status {status}"
        if status < 0:
            self._how = f"signal {-status}, {signal.strsignal(-status) or 'unknown'}"
        return self._how

    def has_ended(self) -> bool:
        """Whether it has, before its status was asked for, which `kill` does."""
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _signal(self, number: int) -> None:
        """Before its status was asked for: until then the number is its group's, and no other's."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _ended(self, limit_s: float) -> bool:
        """Wait for its end, and leave its status to be asked for."""
        ends_s = trio.current_time() + limit_s
        while not self.has_ended():
            if trio.current_time() >= ends_s:
                return False
            await trio.sleep(0.01)
        return True

    async def log(self, logger: Any, redact: Callable[[str], str]) -> None:
        """Have what it writes to standard error logged, line by line, until it closes that."""
        logger = logger.bind(pid=self.pid)
        budget = _LogBudget()
        rest = b""
        async with self._stderr:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                while chunk := await self._stderr.receive_some(CHUNK_BYTES):
                    *lines, rest = (rest + chunk).split(b"\n")
                    rest = rest[:LOG_BYTES_MAX]
                    for text in lines:
                        budget.tell(logger, redact, text)
            budget.tell(logger, redact, rest)


class _LogBudget:
    """How many lines of a process are logged."""

    def __init__(self) -> None:
        self._began_s = -60.0
        self._lines = 0

    def tell(self, logger: Any, redact: Callable[[str], str], text: bytes) -> None:
        """Log a line, while there is room for it."""
        if not text.strip():
            return
        now_s = trio.current_time()
        if now_s >= self._began_s + 60.0:
            self._began_s, self._lines = now_s, 0
        self._lines += 1
        if self._lines <= LOG_LINES_MAX:
            said = text[:LOG_BYTES_MAX].decode(errors="replace").rstrip()
            logger.info("the handler wrote", line=redact(said))
        elif self._lines == LOG_LINES_MAX + 1:
            logger.warning(
                "the handler writes too much to standard error; the rest of the minute is left out"
            )
