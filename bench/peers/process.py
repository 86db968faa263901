"""How does a peer run? As a process of its own on loopback ports of its own, ended when it was measured."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.served import end

READY_S = 60.0
OTHER_USER = "nobody"


class Absent(Exception):
    """This peer cannot take part, and why."""


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextmanager
def running(
    command: Sequence[str | Path],
    port: int,
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    user: str | None = None,
    folder: Path | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run until the port accepts, and end it afterwards. Raises Absent if it does not start."""
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [str(one) for one in command],
            env=dict(os.environ) | dict(env or {}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [],
            cwd=folder,
        ) as process,
    ):
        try:
            _await(process, port, log)
            yield process
        finally:
            end(process)


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + READY_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise Absent(f"does not start: {log.read_text(errors='replace').strip()[-300:]}")


def unprivileged(place: Path) -> str | None:
    """The user to run as what refuses to run as root, to whom the folder is given; None: the one who asks."""
    if os.geteuid() != 0:
        return None
    other = pwd.getpwnam(OTHER_USER)
    os.chown(place, other.pw_uid, other.pw_gid)
    closed = [str(one) for one in place.parents if not one.stat().st_mode & 0o001]
    if closed:
        raise Absent(f"does not run as root, and {OTHER_USER} may not enter {closed[-1]}")
    return OTHER_USER
