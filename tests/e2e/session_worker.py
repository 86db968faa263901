"""A program that delivers messages of sessions, and says so, until it is killed.

`python -m tests.e2e.session_worker URL SPACE WORKER LOCK_MS HELD_S`: a line `ready N` once it has reclaimed what an
earlier life of WORKER held, then for each delivery a JSON object when it begins, and one when it is marked.
"""

from __future__ import annotations

import json
import sys

import trio

from edgequeues.sessions.inbox import Claimed, Inbox
from edgequeues.sessions.remote import open_inbox


async def main(url: str, space: str, worker: str, lock_ms: int, held_s: float) -> None:
    async with open_inbox(url, space, worker=worker) as inbox, trio.open_nursery() as nursery:
        print("ready", await inbox.reclaim(), flush=True)
        while True:
            for claimed in await inbox.claim(100, lock_ms=lock_ms, wait_s=5):
                nursery.start_soon(deliver, inbox, claimed, held_s)


async def deliver(inbox: Inbox, claimed: Claimed, held_s: float) -> None:
    row = claimed.row
    told = {name: row[name] for name in ("id", "session_id", "content", "attempt_count")}
    print(json.dumps({"did": "begin", **told}), flush=True)
    await trio.sleep(held_s)
    outcome = await inbox.delivered(claimed.lease)
    print(json.dumps({"did": outcome, **told}), flush=True)


if __name__ == "__main__":
    url, space, worker, lock_ms, held_s = sys.argv[1:]
    trio.run(main, url, space, worker, int(lock_ms), float(held_s))
