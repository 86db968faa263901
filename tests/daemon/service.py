"""A stand-in for a queue service, in virtual time: Cloudflare's API by its documentation, or a server of ours.

It speaks over httpx, in this process, and can be told to fail. Tests of the real ones are elsewhere.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import trio

from edgequeues.core.errors import reason
from edgequeues.daemon.connections import Answer, Broken

QUEUE_ID = "0" * 31 + "1"
DEAD_ID = "0" * 31 + "2"
URL = f"https://queues.example/client/v4/accounts/demo/queues/{QUEUE_ID}"
DEAD_URL = f"https://queues.example/client/v4/accounts/demo/queues/{DEAD_ID}"


@dataclass
class Stored:
    """A message that the service has."""

    id: str
    body: Any
    kind: str
    attempts: int = 0
    ready_s: float = 0.0
    lease: str | None = None
    ends_s: float = 0.0
    errors: list[str] = field(default_factory=list)


class Service(httpx.AsyncBaseTransport):
    """One queue with its consumer, and one for dead letters. All that was asked of it is kept.

    call_s: how long each call takes. failing: asked with the path of each call, gives a status, a fault, or None.
    renames: an extension gives leases new names, as Cloudflare's does.
    """

    def __init__(self, *, ours: bool = False, extends: bool = True, renames: bool = False) -> None:
        self.ours, self.extends, self.renames = ours, extends, renames
        self.call_s = 0.0
        self.failing: Callable[[str], int | Exception | None] = lambda path: None
        self.stored: dict[str, Stored] = {}
        self.leases: dict[str, Stored] = {}
        self.calls: list[tuple[str, Any]] = []
        self.acked: list[str] = []
        self.dead: dict[str, str] = {}  # id to error, where this is a server of ours
        self.pushed: list[Any] = []  # on the queue for dead letters
        self.emitted: list[Any] = []
        self.max_retries: int | None = 9
        self.headers: dict[str, str] = {}

    def push(self, *bodies: Any, kind: str = "json") -> None:
        """Put messages on the queue. Of JSON, bodies are values."""
        for body in bodies:
            one = Stored(f"{len(self.stored) + 1:032x}", body, kind)
            self.stored[one.id] = one

    def asked(self, path: str) -> list[Any]:
        """Bodies of all calls of a kind."""
        return [body for name, body in self.calls if name == path]

    @property
    def left(self) -> list[Stored]:
        """What is on the queue still."""
        return [one for one in self.stored.values() if one.id not in self.acked and one.id not in self.dead]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await trio.sleep(self.call_s)
        raw = await request.aread()
        path = request.url.path.rpartition("/")[2]
        body: Any = json.loads(raw) if raw else None
        self.calls.append((path, body))
        failure = self.failing(path)
        if isinstance(failure, Exception):
            raise failure
        if failure is None and path == "extend" and not self.extends:
            failure = 404
        if failure is not None:
            errors = [{"code": 10000, "message": "told to fail"}]
            answer: dict[str, Any] = {"success": False, "errors": errors, "result": None}
            return httpx.Response(failure, json=answer, headers=self.headers)
        if DEAD_ID in request.url.path:
            self.pushed.append(body["body"])
            return httpx.Response(200, json={"success": True, "errors": [], "result": None})
        result = getattr(self, f"_{path}")(body)
        text = json.dumps({"success": True, "errors": [], "result": result})  # halves of pairs as escapes
        return httpx.Response(200, content=text.encode())

    def _consumers(self, _: Any) -> Any:
        settings = {} if self.max_retries is None else {"max_retries": self.max_retries}
        return [{"type": "http_pull", "queue_name": "inbox", "settings": settings}]

    def _queues(self, _: Any) -> Any:
        return [{"queue_id": QUEUE_ID, "queue_name": "inbox"}, {"queue_id": DEAD_ID, "queue_name": "dead"}]

    def _pull(self, ask: Any) -> Any:
        now_s = trio.current_time()
        given: list[Any] = []
        for one in self.left:
            if len(given) == ask["batch_size"]:
                break
            if one.ready_s > now_s or (one.lease is not None and one.ends_s > now_s):
                continue
            one.attempts += 1
            one.ends_s = now_s + ask["visibility_timeout_ms"] / 1000
            given.append(self._shown(one, self._lease(one)))
        metrics = {"edgequeues": 1} if self.ours else {}
        return {"messages": given, "metadata": {"metrics": metrics}}

    def _lease(self, one: Stored) -> str:
        one.lease = f"lease-{len(self.leases) + 1}"
        self.leases[one.lease] = one
        return one.lease

    def _shown(self, one: Stored, lease: str) -> Any:
        body = one.body if one.kind in ("text", "plain") else encoded(one.body)
        kind = "json" if one.kind == "plain" else one.kind
        return {
            "id": one.id,
            "attempts": one.attempts,
            "timestamp_ms": 1,
            "lease_id": lease,
            "body": body,
            "metadata": {"CF-Content-Type": kind},
        }

    def _ack(self, said: Any) -> Any:
        warnings = {}
        for lease in [one["lease_id"] for one in said["acks"]]:
            self.acked.append(self.leases[lease].id)  # late ones, too
        for one in [*said["retries"], *said.get("permanent", [])]:
            lease = one["lease_id"]
            held = self.leases[lease]
            if held.lease != lease or held.id in self.acked:
                warnings[lease] = "the lease is not the newest"
                continue
            held.lease = None
            held.ready_s = trio.current_time() + one.get("delay_seconds", 0)
            held.errors.append(said.get("errors", {}).get(lease, ""))
            if one in said.get("permanent", []):
                self.dead[held.id] = held.errors[-1]
        for one in said.get("releases", []):
            held = self.leases[one["lease_id"]]
            held.lease, held.ready_s = None, trio.current_time()
        self.emitted += said.get("emit", [])
        emitted = [{"queue_name": one["queue"], "queue_id": DEAD_ID} for one in said.get("emit", [])]
        return {"warnings": warnings, "emitted": emitted}

    def _extend(self, ask: Any) -> Any:
        shown, warnings = [], {}
        for old in [one["lease_id"] for one in ask["extend"]]:
            one = self.leases[old]
            if one.lease != old:
                warnings[old] = "the lease is not the newest"
                continue
            one.ends_s = trio.current_time() + ask["visibility_timeout_ms"] / 1000
            new = self._lease(one) if self.renames else old
            shown.append({"lease_id": new, "previous_lease_id": old})
        return {"messages": shown, "warnings": warnings}


class Over:
    """Calls that end in this process, in a transport of httpx."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._client = httpx.AsyncClient(transport=transport)

    async def call(self, method: str, url: str, body: bytes = b"") -> Answer:
        """See `Calls`."""
        try:
            answer = await self._client.request(method, url, content=body or None, timeout=None)
        except httpx.TransportError as fault:
            raise Broken(reason(fault)) from fault
        return Answer(answer.status_code, dict(answer.headers), answer.content)


def encoded(body: Any) -> str:
    """A body as it is handed out: bytes as they are, everything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return base64.b64encode(raw).decode()
