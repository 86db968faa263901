"""What does a queue inside the program cost? Run by the interpreter of the cache, which has the libraries.

    python inprocess_child.py LIBRARY FOLDER

For each line `JOB CALLERS SECONDS` it works that long and answers with the number of messages a second.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

TEXT = '{"id":"01","@type":"example.org/type/Message","text":"' + "x" * 144 + '"}'  # 200 bytes

Step = Callable[[], object]


class LiteQueue:
    """litequeue, told to sync each commit. A thread has a connection of its own."""

    def __init__(self, folder: Path) -> None:
        self._queue = import_module("litequeue").LiteQueue(folder / "queue.db", timeout=60)
        self._queue.conn.execute("PRAGMA synchronous = FULL")

    def push(self) -> None:
        self._queue.put(TEXT)

    def pull(self) -> None:
        self._queue.done(self._queue.pop().message_id)


class PersistQueue:
    """persist-queue, whose connections sync each commit, as SQLite does by itself."""

    def __init__(self, folder: Path) -> None:
        kind = import_module("persistqueue").SQLiteAckQueue
        self._queue = kind(str(folder), multithreading=True, auto_commit=True, timeout=60)

    def push(self) -> None:
        self._queue.put(TEXT)

    def pull(self) -> None:
        self._queue.ack(self._queue.get())


class Huey:
    """The storage of huey, told to sync each commit. What is taken is gone: there are no acks."""

    def __init__(self, folder: Path) -> None:
        kind = import_module("huey.storage").SqliteStorage
        self._storage = kind("bench", str(folder / "huey.db"), fsync=True, timeout=60)

    def push(self) -> None:
        self._storage.enqueue(TEXT.encode())

    def pull(self) -> None:
        self._storage.dequeue()


Library = LiteQueue | PersistQueue | Huey
KINDS: dict[str, type[Library]] = {"litequeue": LiteQueue, "persist-queue": PersistQueue, "huey": Huey}


def cycle(queue: Library) -> None:
    """One message in, and one out again."""
    queue.push()
    queue.pull()


def rate(steps: Sequence[Step], seconds: float) -> float:
    """Steps a second, each caller making its own again and again."""
    done = [0] * len(steps)
    until = time.perf_counter() + seconds

    def work(number: int, step: Step) -> None:
        while time.perf_counter() < until:
            step()
            done[number] += 1

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(steps)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return sum(done) / (time.perf_counter() - began)


def main() -> None:
    """Answer line by line."""
    kind, folder = KINDS[sys.argv[1]], Path(sys.argv[2])
    queue = kind(folder)
    print("ready", flush=True)
    for line in sys.stdin:
        job, callers, seconds = line.split()
        own = [queue if kind is PersistQueue else kind(folder) for _ in range(int(callers))]
        steps = [one.push if job == "push" else partial(cycle, one) for one in own]
        print(rate(steps, float(seconds)), flush=True)


if __name__ == "__main__":
    main()
