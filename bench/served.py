"""Which processes are measured over HTTP? A server as anybody starts it, and the bare app beside it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
STOP_S = 20.0
SETTLE_S = 0.05
SETTLE_S_MAX = 20.0
BUSY_SHARE = 0.1  # of a core: below it a server has nothing left to do


class Answer(NamedTuple):
    """A whole answer, for what is not timed."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body's JSON value."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Served:
    """A server that accepts requests on 127.0.0.1."""

    pid: int
    port: int

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Ask once, on a connection of its own. Raises ValueError for any answer but a 2xx."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body or None, headers)
            got = connection.getresponse()
            answer = Answer(got.status, dict(got.getheaders()), got.read())
        if answer.status // 100 != 2:
            raise ValueError(f"{method} {path[:100]} was answered {answer.status}: {answer.body[:200]!r}")
        return answer

    def cpu_s(self) -> float:
        """Seconds the event loop's thread has run for; 0 where the system does not tell."""
        stat = self._proc("schedstat")
        return int(stat.read_text().split()[0]) / 1e9 if stat.exists() else 0.0

    def resident_mib(self) -> float:
        """Memory of the process that is in RAM now. Raises FileNotFoundError where there is no /proc."""
        return self._memory("VmRSS")

    def peak_mib(self) -> float:
        """The most there ever was."""
        return self._memory("VmHWM")

    def settle(self) -> None:
        """Return when the event loop has nothing left to do, or after SETTLE_S_MAX."""
        before, until = self.cpu_s(), time.monotonic() + SETTLE_S_MAX
        while time.monotonic() < until:
            time.sleep(SETTLE_S)
            now = self.cpu_s()
            if now - before < SETTLE_S * BUSY_SHARE:
                return
            before = now

    def _memory(self, field: str) -> float:
        return float(self._proc("status").read_text().partition(f"{field}:")[2].split()[0]) / 1024

    def _proc(self, name: str) -> Path:
        return Path(f"/proc/{self.pid}/{name}")


@contextmanager
def edgequeues(folder: Path, *extra: str) -> Iterator[Served]:
    """`edgequeues serve` over a fresh folder, with its defaults but for lines of requests and what `extra` says."""
    quiet = ("--log-requests", "off")  # a line costs about a tenth of a small request; peers write none
    options = ("edgequeues.cli.main", "serve", "--port", "0", "--data", str(folder / "data"), *quiet, *extra)
    with _process(folder / "edgequeues.log", *options) as served:
        yield served


@contextmanager
def bare(folder: Path) -> Iterator[Served]:
    """The bare app."""
    with _process(folder / "bare.log", "bench.bare") as served:
        yield served


@contextmanager
def _process(log: Path, module: str, *options: str) -> Iterator[Served]:
    """Run `python -m module` until it says `ready URL`, and end it afterwards. Raises ValueError if it does not."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("EDGEQUEUES_")}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", module, *options],
            env=given | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().strip().partition(" ")
            if word != "ready":
                raise ValueError(f"{module} did not start: {log.read_text().strip()}")
            yield Served(process.pid, int(url.rpartition(":")[2]))
        finally:
            end(process)


def end(process: subprocess.Popen[Any]) -> None:
    """Have a process end, and kill it if it does not."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
