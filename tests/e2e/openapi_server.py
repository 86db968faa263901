"""A server for requests that are made of its own description, and what must be there for them to find something."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx

from edgequeues.http import admin, binding, blobs, cloudflare, dxos, hooks, ingest, native
from edgequeues.http.waits import Waits
from edgequeues.openapi import serving
from edgequeues.openapi.chapters import CHAPTERS
from edgequeues.openapi.document import document
from edgequeues.spec import ir
from edgequeues.spec.load import load

from .process import PROGRAM, environment

SPACE = "BJ2LZLOCDR3ZVJQ4M4LVF5HRKMCEHHJPP"
LIST = "01J00J9B45YHYSGZQTQMSKMGJ6"
NOTE = "01J00J9B45YHYSGZQTQMSKMGJ7"
CONSUMERS = "/client/v4/accounts/{space}/queues/{queue_hex}/consumers"
SESSION_ROUTES = [f"sessions{one}" for one in ("", "/close", "/skip", "/retry", "/reclaim", "/clean")]
CF_QUEUES = "/client/v4/accounts/demo/queues"
JOBS, LOG, INBOX = "dxn:queue:demo:jobs", "dxn:queue:demo:log", "dxn:queue:demo:inbox"
SPEC = """
app shop {
  queue orders { }
  queue Incidents {
    message_type { name: string  title: string }
    map_to: command Incident.UpsertIncident { entity_id: name  title: title }
  }
  webhook shop { queue: orders  verify: none }
  schedule nightly { cron: "0 3 * * *"  queue: orders }
}
"""

THERE = {
    "dxn": [JOBS],
    "dxn of /v1/{dxn}": [JOBS, LOG, f"{LOG}:e1"],
    "dxn of POST /v1/{dxn}": [LOG],
    **{f"dxn of /v1/{{dxn}}/{one}": [INBOX] for one in ("inbound", *SESSION_ROUTES)},
    "space": ["demo"],
    "space of spaces": [SPACE],
    "queue": [LIST],
    "tag": ["data"],
    "consumer": ["default"],
    "app": ["shop"],
    "schedule": ["nightly"],
    "name": ["jobs"],
    "hook": ["shop"],
    "hook of /hook/{hook}/{in_space}": ["demo"],
    "in_space": ["shop"],
    "bucket": ["files"],
    "key": ["one"],
    "id of POST /v1/{dxn}/hurry": ["later"],
    "key of PUT /blobs/{space}/{bucket}/{key}": [],  # a new one each time
    "tenant_id": ["demo"],
    "event": ["e-1"],
    "session_id": ["chat"],
    "entity_type": ["Incident"],
    "entity_id": ["i-1"],
}


def described() -> dict[str, Any]:
    """The document, as a server would write it, without one."""
    nothing = cast(Any, None)
    dialects = [build(nothing, Waits()) for build in (dxos.dialect, cloudflare.dialect)]
    dialects += [native.dialect(nothing, Waits(), nothing), admin.dialect(nothing, Waits(), nothing, nothing)]
    dialects += [binding.dialect(nothing, nothing), hooks.dialect(nothing), ingest.dialect(nothing)]
    dialects += [blobs.dialect(nothing, nothing, "")]
    return document([*dialects, serving.dialect(dialects)], CHAPTERS)


def spec() -> bytes:
    """The spec that holds, as JSON."""
    found = load(SPEC.encode())
    assert found.spec is not None, found.render()
    return ir.encode(found.spec)


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server over a new folder; its URL."""
    log = folder / "server.log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*PROGRAM, "serve", "--data", str(folder / "data"), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment() | {"TWILIO_AUTH_TOKEN": "0" * 32},  # else no text message would be looked at
        )
    try:
        assert process.stdout is not None
        word, _, url = process.stdout.readline().decode().strip().partition(" ")
        assert word == "ready", log.read_text()
        yield url
    finally:
        process.terminate()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        text = log.read_text()
        assert "Traceback" not in text, text


def ask(client: httpx.Client, method: str, path: str, body: object = None) -> Any:
    """The answer to a request that must go well."""
    reply = client.request(method, path, json=body)
    assert reply.status_code < 300, (method, path, reply.text)
    return reply.json()


def seed(url: str) -> dict[str, list[str]]:
    """Make what requests may find, again where one before has removed it; values that lead there.

    A value is told by the name of the parameter, with `of` and an operation, a path or the path's first segment where
    it is another one there.
    """
    with httpx.Client(base_url=url) as client:
        make(client)
        return THERE | found(client)


def make(client: httpx.Client) -> None:
    """Make it."""
    for name in ("jobs", "inbox", "log"):  # whatever became of them
        reply = client.delete(f"/v1/dxn:queue:demo:{name}/config")
        assert reply.status_code in (200, 404), reply.text
    entries = [{"data": {"n": n}, "id": f"e{n}"} for n in range(3)]
    ask(client, "POST", f"/v1/{LOG}", {"entries": entries})
    ask(client, "PUT", f"/v1/{JOBS}/config", {"profile": "work"})
    ask(client, "PUT", f"/v1/{JOBS}/consumers/default", {"attempts_max": 1})
    ask(client, "POST", f"/v1/{JOBS}/push", {"entries": [{"data": {"n": n}} for n in range(4)]})
    later = {"data": 1, "id": "later", "delay_ms": 3_600_000}
    ask(client, "POST", f"/v1/{JOBS}/push", {"entries": [later]})
    pulled = ask(client, "POST", f"/v1/{JOBS}/pull", {"batch": 2})
    retries = [{"lease": one["lease"], "permanent": True, "error": "no"} for one in pulled["messages"]]
    ask(client, "POST", f"/v1/{JOBS}/retry", {"retries": retries})
    ask(client, "PUT", "/v1/spaces/demo/specs/shop", json.loads(spec()))
    incident = {"id": "i-1", "data": {"name": "i-1", "title": "t"}}
    client.post(
        "/v1/dxn:queue:demo:Incidents/push", json={"entries": [incident]}
    )  # 409 but for the first time
    ask(client, "POST", f"/v1/{INBOX}/inbound", {"session_id": "chat", "origin": "web"})
    objects = {"objects": [{"id": NOTE, "@type": "dxn:type:example.com/Note"}]}
    ask(client, "POST", f"/spaces/data/{SPACE}/queue/{LIST}", objects)
    about = {"x-event-id": "e-1", "x-source": "test", "content-type": "text/plain"}
    reply = client.put("/blobs/demo/files/one", content=b"hello", headers=about)
    assert reply.status_code in (200, 201), reply.text


def found(client: httpx.Client) -> dict[str, list[str]]:
    """What is named by the server."""
    letters = ask(client, "GET", "/admin/queues/jobs/dlq?tenant_id=demo")["dead_letters"]
    waiting = ask(client, "GET", f"/v1/{JOBS}/peek")["messages"]
    queues = {one["queue_name"]: one for one in ask(client, "GET", CF_QUEUES)["result"]}
    return {
        "id": [one["id"] for one in waiting],
        "id of admin": [one["id"] for one in letters],
        "queue_hex": [queues["jobs"]["queue_id"]],
        f"queue_hex of POST {CONSUMERS}": [queues["log"]["queue_id"]],
        "consumer of client": [queues["jobs"]["consumers"][0]["consumer_id"]],
    }


def pulled(url: str) -> list[str]:
    """Leases of messages that are handed out now."""
    with httpx.Client(base_url=url) as client:
        client.post(f"/v1/{JOBS}/push", json={"entries": [{"data": 1}]})
        found = client.post(f"/v1/{JOBS}/pull", json={"batch": 1, "lease_ms": 60_000}).json()
    return [one["lease"] for one in found.get("messages", ())]
