"""What of the webhooks and commands of a spec does not fit together, or is not allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit

from edgequeues.core import signatures
from edgequeues.core.attrs import AttrType, wanted
from edgequeues.core.hostnames import is_loopback
from edgequeues.spec import ir
from edgequeues.spec.check_queues import check_command, check_types
from edgequeues.spec.checking import JSON, KEY, STRING, TIME, Checking
from edgequeues.spec.faults import Path, listed, meant

SCHEMES: dict[str, ir.Scheme] = {  # header in lower case: the scheme it belongs to
    "x-pagerduty-signature": "pagerduty",
    "x-hub-signature-256": "github",
    "stripe-signature": "stripe",
    "x-slack-signature": "slack",
    "x-twilio-signature": "twilio",
    "webhook-signature": "standard",
    "svix-signature": "standard",
}
TIMED = frozenset({"stripe", "slack", "standard"})  # schemes that sign a time
REQUEST: dict[str, AttrType] = {
    "payload": JSON,
    "headers": AttrType("map", of=STRING),
    "source_ip": STRING,
    "received_at": TIME,
}
_COMMAND = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\.[A-Za-z_][A-Za-z0-9_]{0,127}")
_OF_HMAC = ("algo", "encoding", "prefix", "timestamp_header")


def scheme_of(hmac: ir.Hmac) -> ir.Scheme | None:
    """The scheme that is said, or that the header tells."""
    return hmac.scheme or SCHEMES.get(hmac.header.lower())


def check_webhooks(checking: Checking) -> None:
    """Look at each webhook."""
    for name, webhook in checking.spec.webhooks.items():
        path: Path = ("webhooks", name)
        _check_verify(checking, (*path, "verify"), webhook.verify)
        _check_networks(checking, path, webhook)
        scope = REQUEST if webhook.for_each is None else {**REQUEST, "item": JSON}
        _check_target(checking, path, webhook, scope)
        items = checking.expression((*path, "for_each"), webhook.for_each, REQUEST)
        if items is not None and items.type != "json":
            what = f"{wanted(items)} where a list is wanted"
            checking.blame((*path, "for_each"), what, "Write where the list is, as in `payload.events`.")
        checking.expression((*path, "filter"), webhook.filter, REQUEST)  # of the whole request
        checking.expression((*path, "idempotency_key"), webhook.idempotency_key, scope, KEY)
        _check_message(checking, path, webhook, scope)


def check_commands(checking: Checking) -> None:
    """Look at each command."""
    for name, command in checking.spec.commands.items():
        path: Path = ("commands", name)
        if not _COMMAND.fullmatch(name):
            checking.blame(path, f"`{name}` is no name of a command", "Write `Entity.Command`.")
        check_types(checking, (*path, "input"), command.input)
        if command.python is not None and command.http is not None:
            checking.blame((*path, "http"), "a command is run in one way only", "Leave out one of the two.")
        if command.secret_env is not None and command.http is None:
            what = "a secret signs what is sent over HTTP, and nothing is"
            checking.blame((*path, "secret_env"), what, "Leave it out.")
        if command.http is not None:
            _check_url(checking, (*path, "http"), command.http)
            if command.secret_env is None:
                what = "whoever receives what is sent over HTTP cannot know that it is from here"
                checking.blame(
                    (*path, "http"),
                    what,
                    "Write `secret_env: ...`, the variable with the secret that signs it.",
                )
        if command.python is not None:
            _check_module(checking, (*path, "python"), command.python)
        if command.secret_env is not None:
            _check_secret(checking, (*path, "secret_env"), command.secret_env)
            _check_signs(checking, (*path, "secret_env"), command.secret_env)


def _check_verify(checking: Checking, path: Path, verify: ir.Verify) -> None:
    given = [verify.hmac is not None, verify.token is not None, verify.none]
    if sum(given) != 1:
        what = (
            "it is not said how senders are known" if not any(given) else "senders are known in one way only"
        )
        ways = listed(("verify_hmac { ... }", "verify_token { ... }", "verify: none"))
        checking.blame(path, what, f"Write one of {ways}.")
    if verify.hmac is not None:
        _check_hmac(checking, (*path, "hmac"), verify.hmac)
    for kind, part in (("hmac", verify.hmac), ("token", verify.token)):
        for secret in part.secret_envs if part is not None else ():
            _check_secret(checking, (*path, kind, "secret_envs"), secret)


def _check_hmac(checking: Checking, path: Path, hmac: ir.Hmac) -> None:
    scheme = scheme_of(hmac)
    if scheme is None:
        known = listed(SCHEMES, "and")
        what = f"the header `{hmac.header}` does not tell the scheme of the signature"
        checking.blame((*path, "header"), what, f"Write `scheme: hmac`, or another; known are {known}.")
        return
    plain = ir.Hmac(hmac.header, hmac.secret_envs)
    for name in _OF_HMAC:
        if scheme != "hmac" and getattr(hmac, name) != getattr(plain, name):
            what = f"`{name}` has no meaning: the scheme {scheme} says it itself"
            checking.blame((*path, name), what, "Leave it out, or write `scheme: hmac`.")
    timed = scheme in TIMED or (scheme == "hmac" and hmac.timestamp_header is not None)
    if hmac.tolerance_seconds != plain.tolerance_seconds and not timed:
        what = f"`tolerance_seconds` has no meaning: the scheme {scheme} signs no time"
        remedy = "Leave it out." if scheme != "hmac" else "Leave it out, or say the `timestamp_header`."
        checking.blame((*path, "tolerance_seconds"), what, remedy)


def _check_networks(checking: Checking, path: Path, webhook: ir.WebhookSpec) -> None:
    for index, text in enumerate(webhook.allow_ips):
        try:
            ip_network(text)
        except ValueError:
            remedy = "Write an address or a network, as in `10.0.0.0/8` or `2001:db8::1`."
            with suppress(ValueError):
                remedy = f"Write `{ip_network(text, strict=False)}`."
            checking.blame((*path, "allow_ips", index), f"`{text}` is no network", remedy)


def _check_target(
    checking: Checking, path: Path, webhook: ir.WebhookSpec, request: Mapping[str, AttrType]
) -> None:
    if (webhook.on_type is None) != (webhook.command is None):
        checking.blame((*path, "on_type"), "half of a command", "Give both `on_type` and `command`.")
    if webhook.on_type is None and webhook.input_map:
        checking.blame((*path, "input_map"), "input without a command", "Give `on_type` and `command`.")
    if webhook.queue is None and webhook.on_type is None:
        checking.blame(path, "it is not said where requests go", "Write `queue: Name`.")
    known = webhook.queue is not None and checking.known_queue((*path, "queue"), webhook.queue)
    if webhook.on_type is None or webhook.command is None:
        return
    scope = request if webhook.queue is None else checking.scope(webhook.queue)
    check_command(checking, path, webhook.on_type, webhook.command, webhook.input_map, scope)
    if webhook.queue is not None and known and checking.spec.queues[webhook.queue].map_to is not None:
        what = f"the messages of queue `{webhook.queue}` lead somewhere already"
        checking.blame((*path, "on_type"), what, "Leave out `on` here, or `map_to` there.")
    elif known:
        others = [one for one in checking.spec.webhooks.values() if one.queue == webhook.queue]
        first = next(one for one in others if one.on_type is not None)
        if (first.on_type, first.command, first.input_map) != (
            webhook.on_type,
            webhook.command,
            webhook.input_map,
        ):
            what = f"another webhook has the messages of queue `{webhook.queue}` lead to another command"
            checking.blame((*path, "on_type"), what, "Give each a queue of its own.")


def _check_message(
    checking: Checking, path: Path, webhook: ir.WebhookSpec, scope: dict[str, AttrType]
) -> None:
    target, whose = checking.message_type(webhook.queue), f"queue `{webhook.queue}`"
    if webhook.message is not None and webhook.queue is None:
        what = "there is no queue that a message could go to"
        checking.blame(
            (*path, "message"), what, "Write the fields behind `on: Entity.Command`, or name a queue."
        )
    elif webhook.message is not None:
        checking.fields((*path, "message"), webhook.message, scope, target, whose)
    elif target is not None:
        how = "Fill it in `message { ... }`, or declare"
        checking.fit((*path, "queue"), REQUEST, target, whose, how, partly=True)


def _check_url(checking: Checking, path: Path, url: str) -> None:
    """Blame a URL that is none, that others could read on its way, or that the server does not allow."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.fragment:
        checking.blame(path, f"`{url}` is no URL to post to", "Write one like `https://hooks.example.com/x`.")
        return
    if parts.scheme == "http" and not is_loopback(host):
        what = "what is sent without TLS can be read and changed on its way"
        checking.blame(path, what, "Write `https`; `http` will do for this machine alone.")
    if checking.allowed is not None and not checking.allowed.lets_call(host, port):
        private = "an address of a private network, " if _is_private(host) else ""
        what = f"the server does not let specs call {private}`{host}`"
        checking.blame(path, what, "Its setting `commands_http_allow` lists the hosts it does.")


def _check_module(checking: Checking, path: Path, function: str) -> None:
    module = function.partition(":")[0]
    if checking.allowed is not None and not checking.allowed.lets_run(function):
        remedy = "Its setting `commands_modules` lists the modules it does."
        remedy = meant(module, checking.allowed.modules, remedy)
        checking.blame(path, f"the server does not let specs run functions of `{module}`", remedy)


def _check_secret(checking: Checking, path: Path, variable: str) -> None:
    """Blame a secret that is not allowed, or not set. Never shows one."""
    allowed = checking.allowed
    if allowed is None:
        return
    if variable not in allowed.secrets:
        what = f"the server does not let specs use the variable `{variable}`"
        checking.blame(path, what, "Its setting `secrets_env` lists those it does.")
        return
    value = allowed.environment.get(variable)
    if value is None or not value.strip():
        what = f"the variable `{variable}` is {'not set' if value is None else 'empty'} in the server's environment"
        checking.blame(
            path, what, "Set it to the secret that the other side has, and start the server again."
        )
    elif value != value.strip():
        what = f"the variable `{variable}` has blanks or a line break around its value"
        checking.blame(path, what, "Remove them; they would be part of the secret.")


def _check_signs(checking: Checking, path: Path, variable: str) -> None:
    """Blame a secret by which nothing can be signed. Never shows one."""
    secret = None if checking.allowed is None else checking.allowed.secret(variable)
    if secret is None or not secret.strip() or secret != secret.strip():
        return  # it was blamed
    try:
        signatures.standard_headers(secret, "", 0, b"")
    except ValueError:
        what = f"the variable `{variable}` holds no secret of Standard Webhooks"
        checking.blame(path, what, "Set it to `whsec_` and 24 to 64 random bytes in base64.")


def _is_private(host: str) -> bool:
    try:
        return not ip_address(host).is_global
    except ValueError:
        return is_loopback(host) or host.endswith((".local", ".internal"))
