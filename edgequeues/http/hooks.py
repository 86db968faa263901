"""Webhooks: a signed POST becomes a durable message, or a command, once. docs/protocol/hooks.md is the contract.

The order is fixed: size, signature, taking apart, filter, type, repeats, depth. Before the signature nothing of a
request counts, whatever it carries; and senders give up for good after 4xx, so what may pass by itself is a 5xx.
"""

from __future__ import annotations

import base64
import logging
from typing import Any, NamedTuple

from msgspec.structs import replace

from edgequeues.core import jsontext, signatures
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import (
    BadSignature,
    CommandRejected,
    EdgeQueuesError,
    InvalidJson,
    InvalidMessage,
    InvalidRequest,
    QueueFull,
    QueueNotFound,
    TooLarge,
    UnsupportedMedia,
)
from edgequeues.core.signatures import Signed
from edgequeues.http import hook_body, hook_calls, problems
from edgequeues.http.hook_body import FORM, Sources
from edgequeues.http.problems import Forbidden, NotReady
from edgequeues.http.routes import ClientGone, Dialect, Request, Response, Route
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.hook_targets import CommandHook, Delivered, QueueHook
from edgequeues.spec.hooks import Call, Hook, digest_of
from edgequeues.spec.values import Taken
from edgequeues.specs import Specs
from edgequeues.tracing import mark
from edgequeues.workers.executors import Executors
from shards.clock import Clock

TWIML = b'<?xml version="1.0" encoding="UTF-8"?><Response></Response>'  # nothing to be said or sent

log = logging.getLogger("edgequeues.hooks")


class Ingress(NamedTuple):
    """What webhooks have to do with.

    base_url: under which the server is reached from outside; a scheme alone: the host is as the request says.
    """

    specs: Specs
    router: Router
    executors: Executors
    clock: Clock
    sources: Sources
    body_bytes_max: int
    base_url: str


class Sent(NamedTuple):
    """A request that has proved who sent it."""

    body: bytes
    source_ip: str
    at_ms: int


def dialect(ingress: Ingress) -> Dialect:
    """The table."""

    async def hook(request: Request) -> Response:
        """Take what was sent; 2xx: it is on disk, or it was before, or it is not wanted."""
        first, second = request.params["hook"], request.params.get("in_space")
        found = ingress.specs.hook(first) if second is None else ingress.specs.hook(second, first)
        told: list[str] = []  # what became of it
        try:
            sent = await _proved(ingress, found, request, told)
            response = await _taken(ingress, found, request, sent, told)
        except Exception as error:
            told.append(_outcome(error))
            status = 0 if isinstance(error, ClientGone) else problems.fault(error).status
            found.happened(ingress.clock.now_ms(), status, told, failed=True)
            raise
        found.happened(ingress.clock.now_ms(), response.status, told, failed=False)
        return response

    return Dialect(
        "hooks",
        ("/hook/",),
        [Route("POST", "/hook/{hook}", hook, None), Route("POST", "/hook/{hook}/{in_space}", hook, None)],
        problems.refuse,
    )


async def _proved(ingress: Ingress, hook: Hook, request: Request, told: list[str]) -> Sent:
    """Read a request, and see that it may be taken. Raises TooLarge, Forbidden, BadSignature."""
    head = request.head
    source_ip = ingress.sources.of(head.peer, head.headers)
    if not hook.admits(source_ip):
        log.warning("hook %s: refused, %s is none of allow_ips", hook.name, source_ip)
        raise Forbidden(f"webhook {hook.name} takes no calls from this address")
    body = await request.body(ingress.body_bytes_max)
    at_ms = ingress.clock.now_ms()
    if hook.verifier is not None:
        is_form = hook_body.media_of(request.headers) == FORM
        signed = Signed(head.headers, body, hook_body.url_of(ingress.base_url, request), is_form)
        refused = hook.verifier.check(signed, at_ms / 1_000)
        if refused is not None:
            log.warning("hook %s: refused, %s: %s", hook.name, refused.kind, refused.detail)
            told.append(f"refused_{refused.kind}")
            raise BadSignature(f"webhook {hook.name}")
    return Sent(body, source_ip, at_ms)


async def _taken(
    ingress: Ingress, hook: QueueHook | CommandHook, request: Request, sent: Sent, told: list[str]
) -> Response:
    try:
        text = _text(ingress, hook, request, sent.body)
    except (InvalidJson, InvalidRequest) as error:
        if isinstance(hook, CommandHook):
            raise
        messages: list[Delivered] | None = [_raw(hook, sent.body, error)]
    else:
        call = _call(hook, request, sent, text)
        if hook.scheme == "slack" and _is_challenge(call.payload):
            told.append("challenge")
            return Response(jsontext.write({"challenge": call.payload["challenge"]}))
        if isinstance(hook, CommandHook):
            return await _called(ingress, hook, call, sent, told)
        messages = hook.messages(call)
    if messages is None:
        return _not_wanted(hook, told)
    taken = await _ingest(ingress, hook, messages)
    told += [one.outcome for one in taken]
    return _answer(hook, messages, taken)


async def _called(ingress: Ingress, hook: CommandHook, call: Call, sent: Sent, told: list[str]) -> Response:
    """Carry out what is asked for at once; 200: it is done, or it was before."""
    calls = hook.calls(call)
    if calls is None:
        return _not_wanted(hook, told)
    answers = await hook_calls.carry_out(ingress.router, ingress.executors, hook, calls, sent.at_ms)
    told += ["duplicate" if one.duplicate else "done" for one in answers]
    said = [
        b'"idempotency_key":%b,%b"result":%b'
        % (jsontext.write(one.key), b'"duplicate":true,' if answer.duplicate else b"", answer.result.encode())
        for one, answer in zip(calls, answers, strict=True)
    ]
    if hook.spec.for_each is None:
        return _told(hook, b'{"ok":true,%b}' % said[0], 200)
    return _told(hook, b'{"ok":true,"commands":[%b]}' % b",".join(b"{%b}" % one for one in said), 200)


def _not_wanted(hook: Hook, told: list[str]) -> Response:
    told.append("filtered")
    return _told(hook, b'{"ok":true,"filtered":true}', 200)


def _text(ingress: Ingress, hook: Hook, request: Request, body: bytes) -> bytes:
    body = hook_body.unpacked(request.headers, body, ingress.body_bytes_max)
    rule = "either" if hook.scheme is None else signatures.form_rule(hook.scheme)
    return hook_body.json_of(hook_body.media_of(request.headers), body, rule)


def _raw(hook: QueueHook, body: bytes, error: EdgeQueuesError) -> Delivered:
    """A body that is no JSON, whole, as a dead letter. Raises the error where the queue makes none."""
    if not hook.buries:
        raise error
    try:
        data, kind = jsontext.write(body.decode()), "text"
    except UnicodeDecodeError:
        data, kind = jsontext.write(base64.b64encode(body).decode()), "bytes"
    return hook.unfit(data, digest_of(body), f"payload: {error.detail}", kind)


def _call(hook: Hook, request: Request, sent: Sent, text: bytes) -> Call:
    payload = jsontext.value(text)
    headers = request.head.headers
    sent_id = None if hook.scheme is None else signatures.event_id(hook.scheme, headers, payload)
    return Call(
        text,
        payload,
        signatures.kept(headers, hook.spec.headers, () if hook.verifier is None else hook.verifier.headers),
        sent.source_ip,
        sent.at_ms / 1_000,
        sent_id,
        digest_of(sent.body),
    )


async def _ingest(ingress: Ingress, hook: QueueHook, messages: list[Delivered]) -> list[Taken]:
    if not messages:
        return []
    try:
        space = await ingress.router.require(Dxn(space=hook.space, queue=hook.queue))
        arriving = [replace(one.arriving, entry=mark(one.arriving.entry)) for one in messages]
        return await space.call(SpaceShard.ingest, hook.queue, arriving)
    except QueueNotFound as error:
        # A spec that is being changed, or a folder that was put back in part. Its sender can do nothing about it.
        raise NotReady(f"webhook {hook.name}: {error.detail}") from error


# -- answers ------------------------------------------------------------------------------------------------


def _answer(hook: Hook, messages: list[Delivered], taken: list[Taken]) -> Response:
    """200 where all of it is over already; 202: some is still to be worked."""
    said = [_said(one, what) for one, what in zip(messages, taken, strict=True)]
    status = 202 if any(one.state in ("queued", "dead") for one in taken) else 200
    if hook.spec.for_each is None:
        return _told(hook, b'{"ok":true,' + b",".join(said[0]) + b"}", status)
    queued = b"true" if any(one.state == "queued" for one in taken) else b"false"
    listed = b",".join(b"{" + b",".join(one) + b"}" for one in said)
    return _told(hook, b'{"ok":true,"queued":%b,"messages":[%b]}' % (queued, listed), status)


def _told(hook: Hook, said: bytes, status: int) -> Response:
    """What was to be said, in the form that the sender wants."""
    if hook.spec.answer == "twiml":
        return Response(TWIML, status=status, media=b"text/xml; charset=utf-8")
    return Response(said, status=status)


def _said(one: Delivered, taken: Taken) -> list[bytes]:
    """What is said of a message."""
    if taken.outcome == "filtered":
        return [b'"filtered":true']
    fields: dict[str, Any] = {
        "queued": taken.state == "queued",
        "idempotency_key": one.key,
        "message_id": taken.id,
    }
    if taken.outcome == "duplicate":
        fields["duplicate"] = True
    if taken.state != "queued":
        fields["state"] = taken.state
    if taken.error is not None:
        fields["error"] = taken.error
    parts = [b'"%b":%b' % (name.encode(), jsontext.write(value)) for name, value in fields.items()]
    if taken.result is not None:
        parts.append(b'"result":' + taken.result.encode())
    return parts


def _outcome(error: Exception) -> str:
    """Under which name a failure is counted."""
    if isinstance(error, QueueFull):
        return "shed"
    if isinstance(error, BadSignature | Forbidden):
        return "refused"
    if isinstance(error, TooLarge):
        return "too_large"
    if isinstance(error, CommandRejected):
        return "rejected"
    if isinstance(error, InvalidJson | InvalidMessage | InvalidRequest | UnsupportedMedia):
        return "invalid"
    return "failed"


def _is_challenge(payload: object) -> bool:
    return (
        isinstance(payload, dict)
        and payload.get("type") == "url_verification"
        and isinstance(payload.get("challenge"), str)
    )
