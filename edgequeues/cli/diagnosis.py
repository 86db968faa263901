"""What `edgequeues doctor` looks at: a data folder, the disk under it, the clock, the port, settings, a server."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from edgequeues.core.errors import reason
from edgequeues.settings import Settings

Verdict = Literal["ok", "warning", "fault"]

GOOD_SYSTEMS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs"})
REMOTE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "virtiofs"}
)
VOLATILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "overlay"})
FLUSHES, FLUSH_BYTES = 50, 4_096
FLUSH_SLOW_MS = 20.0
FLUSH_UNLIKELY_MS = 0.02  # no disk is that fast: nothing is flushed
FREE_SHARE_MIN = 0.05
FREE_BYTES_MIN = 256 * 1024 * 1024
FILES_MIN = 1_024
CLOCK_S = 0.2
CLOCK_OFF_MS = 20.0
YEAR_MIN_S = 1_700_000_000  # this was written later


class Finding(Struct, frozen=True):
    """What was looked at, how it is, and what to do about it ("" where nothing is to be done)."""

    about: str
    verdict: Verdict
    says: str
    advice: str = ""


def of_machine(settings: Settings, mounts: Callable[[], str]) -> Iterator[Finding]:
    """Look at this machine as a server with these settings would find it. mounts: what /proc/self/mounts says."""
    yield _sqlite()
    folder = Path(settings.data)
    yield from of_folder(folder, mounts)
    yield _open_files(settings)
    yield _clock()
    yield _port(settings)
    yield _exposure(settings)


def of_folder(folder: Path, mounts: Callable[[], str]) -> Iterator[Finding]:
    """Look at a data folder; where it is not there yet, at the nearest folder above it that is."""
    there = folder if folder.exists() else next(one for one in folder.absolute().parents if one.exists())
    if not there.is_dir():
        yield Finding("folder", "fault", f"{there} is no folder", "name another one by --data")
        return
    if there is not folder:
        yield Finding("folder", "ok", f"{folder.absolute()} is not there yet; the server makes it")
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(
            "folder", "fault", f"you may not read and write {there}", "let the server's user own it"
        )
        return
    if there is folder:
        yield from _contents(folder)
    yield _system(there, mounts())
    yield _room(there)
    yield _flush(there)


def _contents(folder: Path) -> Iterator[Finding]:
    from shards import files, repair
    from shards.errors import FolderLocked
    from shards.folders import locked

    spaces = list(files.walk(folder))
    size = sum(path.stat().st_size for _, path in spaces)
    try:
        with locked(folder):
            served = "nobody serves it now"
    except FolderLocked:
        served = "a server is at work in it"
    count = "1 space" if len(spaces) == 1 else f"{len(spaces)} spaces"
    yield Finding("folder", "ok", f"{folder.absolute()}: {count}, {_size(size)}; {served}")
    refused = [name for name, path in spaces if repair.needed(path)]
    if refused:
        names = ", ".join(refused[:5])
        yield Finding(
            "folder",
            "fault",
            f"the disk refused flushes of {len(refused)} of them ({names}), so they are not opened",
            f"stop the server, copy the folder to a disk that is sound, then: edgequeues check {folder} --repair",
        )
    if not (folder / "reserve").exists():
        yield Finding(
            "folder",
            "warning",
            "there is no reserve, so deletes may fail when the disk is full",
            "start the server with room on the disk, and with reserve_bytes above 0; it makes one",
        )


def _system(folder: Path, mounts: str) -> Finding:
    kind = system_of(folder.resolve(), mounts)
    if kind in REMOTE_SYSTEMS:
        return Finding(
            "file system",
            "fault",
            f"{kind} is over a network: locks and flushes do not hold there what SQLite needs",
            "put the data on a disk of this machine",
        )
    if kind in VOLATILE_SYSTEMS:
        return Finding(
            "file system",
            "warning",
            f"{kind} does not outlive this machine or container",
            "mount a disk or a volume where the data lies",
        )
    if kind in GOOD_SYSTEMS:
        return Finding("file system", "ok", kind)
    return Finding(
        "file system",
        "warning",
        f"{kind or 'unknown'}: nobody has tried what it keeps after a power cut",
        "ext4, xfs and btrfs were",
    )


def system_of(folder: Path, mounts: str) -> str:
    """The kind of file system that a folder is on, of the lines of /proc/self/mounts; "" if that cannot be told."""
    best, kind = "", ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = fields[1].replace("\\040", " ")
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def _room(folder: Path) -> Finding:
    usage, inodes = shutil.disk_usage(folder), os.statvfs(folder)
    said = f"{_size(usage.free)} of {_size(usage.total)} are free"
    if inodes.f_files and inodes.f_favail / inodes.f_files < FREE_SHARE_MIN:
        return Finding("room", "warning", f"{said}, but hardly any inodes", "remove small files")
    if usage.free < max(FREE_BYTES_MIN, FREE_SHARE_MIN * usage.total):
        return Finding("room", "warning", said, "make room: a full disk refuses appends")
    return Finding("room", "ok", said)


def _flush(folder: Path) -> Finding:
    try:
        took = sorted(flush_times_ms(folder))
    except OSError as error:
        return Finding("disk", "fault", f"cannot write to {folder}: {reason(error)}")
    half, most = took[len(took) // 2], took[int(len(took) * 0.99)]
    said = f"a flush takes {half:.2f} ms, {most:.2f} ms at the 99th percentile"
    if half < FLUSH_UNLIKELY_MS:
        return Finding(
            "disk",
            "warning",
            f"{said}: too fast to be true",
            "is it memory, or a disk that lies about flushes?",
        )
    if half > FLUSH_SLOW_MS:
        return Finding(
            "disk", "warning", f"{said}: every answer waits for one", "use a disk with a faster flush"
        )
    return Finding("disk", "ok", said)


def flush_times_ms(folder: Path) -> list[float]:
    """Overwrite a block of a file in the folder again and again; how long each fdatasync took. Raises OSError."""
    path = folder / f".doctor-{os.getpid()}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    took = []
    try:
        os.write(fd, bytes(FLUSH_BYTES))
        os.fsync(fd)
        for _ in range(FLUSHES):
            began_s = time.perf_counter()
            os.pwrite(fd, os.urandom(FLUSH_BYTES), 0)
            os.fdatasync(fd)
            took.append((time.perf_counter() - began_s) * 1_000)
    finally:
        os.close(fd)
        path.unlink()
    return took


def _sqlite() -> Finding:
    from shards.errors import UnsupportedSQLite
    from shards.sqlite import check_version

    try:
        check_version()
    except UnsupportedSQLite as error:
        return Finding("SQLite", "fault", str(error), "install a newer apsw, which brings its own SQLite")
    import apsw

    return Finding("SQLite", "ok", apsw.sqlite_lib_version())


def _open_files(settings: Settings) -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.connections_max + 5 * settings.spaces_open_max
    if hard != resource.RLIM_INFINITY and hard < FILES_MIN:
        return Finding(
            "open files", "fault", f"{hard} are allowed", "raise `ulimit -n`, LimitNOFILE of systemd"
        )
    if hard != resource.RLIM_INFINITY and hard < wanted:
        return Finding(
            "open files",
            "warning",
            f"{hard} are allowed, {wanted} would be used at most: fewer spaces stay open",
            "raise `ulimit -n`, or lower connections_max",
        )
    return Finding(
        "open files", "ok", f"{'any number' if hard == resource.RLIM_INFINITY else hard} are allowed"
    )


def _clock() -> Finding:
    wall_s, even_s = time.time(), time.monotonic()
    time.sleep(CLOCK_S)
    off_ms = abs((time.time() - wall_s) - (time.monotonic() - even_s)) * 1_000
    if wall_s < YEAR_MIN_S:
        return Finding("clock", "fault", f"it says {time.ctime(wall_s)}", "set it, and keep it set by NTP")
    if off_ms > CLOCK_OFF_MS:
        return Finding(
            "clock", "warning", f"it is being changed: {off_ms:.0f} ms in {CLOCK_S:g} s", "look at NTP"
        )
    return Finding("clock", "ok", f"it says {time.ctime(wall_s)}, and runs evenly")


def _port(settings: Settings) -> Finding:
    where = f"{settings.host}:{settings.port}"
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(found[0], socket.SOCK_STREAM) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(found[4])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            said = f"{where} is taken; by edgequeues, if the server runs"
            if _answers(settings):
                return Finding("port", "ok", said)
            return Finding("port", "warning", said, "stop the program that has it, or choose another --port")
        said = f"cannot listen on {where}: {reason(error)}"
        return Finding("port", "fault", said, "choose another --host or --port")
    return Finding("port", "ok", f"{where} is free")


def _answers(settings: Settings) -> bool:
    """Does something that says it is healthy listen there?"""
    import httpx

    scheme = "https" if settings.cert else "http"
    try:  # whose certificate it has does not matter: nothing is told to it
        found = httpx.get(f"{scheme}://{settings.host}:{settings.port}/healthz", timeout=2, verify=False)
    except httpx.HTTPError:
        return False
    return found.status_code == 200 and found.content == b'{"status":"ok"}'


def _exposure(settings: Settings) -> Finding:
    from edgequeues.core.hostnames import bare, is_loopback

    if is_loopback(bare(settings.host)):
        return Finding("access", "ok", "only this machine reaches the server")
    if settings.insecure or settings.auth == "off":
        return Finding(
            "access",
            "fault",
            f"everybody who reaches {settings.host} may read, write and delete",
            "make a token, and leave `insecure` and auth = off out",
        )
    if not settings.cert:
        return Finding(
            "access",
            "warning",
            f"tokens pass to {settings.host} in plain text",
            "set cert and key, or use a proxy",
        )
    return Finding("access", "ok", "tokens and TLS")


def of_settings(environment: Mapping[str, str], names: Sequence[str]) -> Iterator[Finding]:
    """Variables that look like settings and are none. names: of the variables that there are."""
    import difflib

    own = {"EDGEQUEUES_SERVER", "EDGEQUEUES_TOKEN", "EDGEQUEUES_CONFIG", *names}
    for name in sorted(environment):
        if name.startswith("EDGEQUEUES_") and name not in own:
            near = difflib.get_close_matches(name, sorted(own), 1)
            yield Finding(
                "settings",
                "warning",
                f"{name} names no setting",
                f"did you mean {near[0]}?" if near else "docs/guides/settings.md has them all",
            )


def _size(count: int) -> str:
    from edgequeues.cli.render import size

    return size(count)
