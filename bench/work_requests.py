"""What is asked of a work queue over HTTP? The same in every dialect, as bytes, made before they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bench.http_requests import SPACE, head, native
from bench.rig import ROW_BYTES
from bench.served import Served
from edgequeues.models import LEASE_MS_MAX, PULL_MAX

CLOUDFLARE = f"/client/v4/accounts/{SPACE}/queues"
DATA = {"text": "x" * (ROW_BYTES - len('{"text":""}'))}


class Asked(NamedTuple):
    """A request, before it is bytes."""

    path: str
    body: Mapping[str, Any]

    def text(self) -> bytes:
        """Its JSON."""
        return json.dumps(self.body, separators=(",", ":")).encode()

    def request(self) -> bytes:
        """All of it."""
        body = self.text()
        return head("POST", self.path, length=len(body)) + body

    def of(self, served: Served) -> Any:
        """Ask; return the JSON value of the answer."""
        return served.ask("POST", self.path, self.text(), **{"content-type": "application/json"}).json()


class Dialect(NamedTuple):
    """How it is said. A queue is addressed by what `made` returns of its name.

    push: so many messages. pull: up to so many. leases: of the answer to that. ack: of these leases.
    """

    made: Callable[[Served, str], str]
    push: Callable[[str, int], Asked]
    pull: Callable[[str, int], Asked]
    leases: Callable[[Any], list[str]]
    ack: Callable[[str, Sequence[str]], Asked]


def _native_made(served: Served, name: str) -> str:
    served.ask("PUT", f"{native(name)}/config", b'{"kind":"work"}', **{"content-type": "application/json"})
    return native(name)


def _cloudflare_made(served: Served, name: str) -> str:
    queue_id = Asked(CLOUDFLARE, {"queue_name": name}).of(served)["result"]["queue_id"]
    Asked(f"{CLOUDFLARE}/{queue_id}/consumers", {"type": "http_pull"}).of(served)
    return f"{CLOUDFLARE}/{queue_id}/messages"


def _cloudflare_push(path: str, each: int) -> Asked:
    if each == 1:
        return Asked(path, {"body": DATA})
    return Asked(f"{path}/batch", {"messages": [{"body": DATA}] * each})


DIALECTS: Mapping[str, Dialect] = {
    "native": Dialect(
        made=_native_made,
        push=lambda path, each: Asked(f"{path}/push", {"entries": [{"data": DATA}] * each}),
        pull=lambda path, each: Asked(f"{path}/pull", {"batch": each, "lease_ms": LEASE_MS_MAX}),
        leases=lambda answer: [one["lease"] for one in answer["messages"]],
        ack=lambda path, leases: Asked(f"{path}/ack", {"leases": leases}),
    ),
    "Cloudflare": Dialect(
        made=_cloudflare_made,
        push=_cloudflare_push,
        pull=lambda path, each: Asked(
            f"{path}/pull", {"batch_size": each, "visibility_timeout_ms": LEASE_MS_MAX}
        ),
        leases=lambda answer: [one["lease_id"] for one in answer["result"]["messages"]],
        ack=lambda path, leases: Asked(f"{path}/ack", {"acks": [{"lease_id": one} for one in leases]}),
    ),
}


def push_all(served: Served, dialect: Dialect, path: str, count: int) -> None:
    """Push so many messages, a hundred a call."""
    for at in range(0, count, PULL_MAX):
        dialect.push(path, min(PULL_MAX, count - at)).of(served)


def pull_all(served: Served, dialect: Dialect, path: str, count: int) -> Iterator[str]:
    """Pull so many messages, which are there; yield their leases."""
    left = count
    while left:
        leases = dialect.leases(dialect.pull(path, min(PULL_MAX, left)).of(served))
        assert leases
        left -= len(leases)
        yield from leases
