"""What does this machine give? The time of a flush in the data's folder, and what else explains a figure."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import apsw
import trio

from bench.figures import Figure, figure, quantile

BLOCK = 4096
BLOCKS = 64


def flush_times_ms(folder: Path, count: int) -> list[float]:
    """Overwrite 4 KiB of a file and fdatasync it, `count` times: what a commit waits for at least."""
    path = folder / "flush"
    block = os.urandom(BLOCK)
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    took = []
    try:
        os.write(fd, block * BLOCKS)
        os.fsync(fd)
        for number in range(count):
            began = time.perf_counter()
            os.pwrite(fd, block, number % BLOCKS * BLOCK)
            os.fdatasync(fd)
            took.append((time.perf_counter() - began) * 1000)
    finally:
        os.close(fd)
        path.unlink()
    return took


def flush(times_ms: Sequence[float]) -> Figure:
    """The flush as a figure: without it none of the others means much."""
    p99 = quantile(times_ms, 0.99)
    return figure("machine", "flush, 4 KiB overwritten", times_ms, "ms", more={"p99": p99})


def facts(folder: Path) -> dict[str, str | int | float]:
    """Processors, memory, kernel, file system, versions, and how busy it is already."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cores": os.cpu_count() or 0,
        "memory_gib": round(pages / 2**30, 1),
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "file_system": file_system(folder),
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "trio": trio.__version__,
        "sqlite": apsw.sqlite_lib_version(),
    }


def file_system(folder: Path) -> str:
    """The type of the file system that holds `folder`, "?" where there is no /proc."""
    mounts = Path("/proc/self/mounts")
    best, kind = "", "?"
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        _, point, found = line.split()[:3]
        inside = folder.resolve().is_relative_to(point)
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind
