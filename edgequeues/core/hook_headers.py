"""Which headers of a request to a hook are kept with the message, and which never are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from edgequeues.core.signature_schemes import SCHEMES, Header

KEPT_MAX = 64
KEPT_BYTES_MAX = 1024  # of one value
LEFT_OUT = "x-edgequeues-left-out"  # names of those that were too many or too long

KEPT_HEADERS = frozenset(
    {
        "content-type",
        "i-twilio-idempotency-token",
        "svix-id",
        "svix-timestamp",
        "traceparent",
        "tracestate",
        "user-agent",
        "webhook-id",
        "webhook-timestamp",
        "x-github-delivery",
        "x-github-event",
        "x-github-hook-id",
        "x-github-hook-installation-target-id",
        "x-github-hook-installation-target-type",
        "x-gitlab-event",
        "x-gitlab-event-uuid",
        "x-gitlab-webhook-uuid",
        "x-request-id",
        "x-slack-request-timestamp",
        "x-slack-retry-num",
        "x-slack-retry-reason",
        "x-webhook-id",
        "x-webhook-subscription",
    }
)

NEVER_KEPT = frozenset(row.header.decode() for rows in SCHEMES.values() for row in rows if row.header) | {
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "x-api-key",
    "x-gitlab-token",
    "x-hub-signature",
    "x-telegram-bot-api-secret-token",
}
_SECRET_WORD = re.compile(
    r"(?:^|-)(?:authorization|cookie|password|secret|signature|token|api-key|apikey)s?(?:-|$)"
)


def never_kept(name: str) -> bool:
    """Does a header of this name hold a signature or a secret, or sound as if it did?"""
    name = name.lower()
    return name in NEVER_KEPT or (name not in KEPT_HEADERS and _SECRET_WORD.search(name) is not None)


def kept(headers: Iterable[Header], extra: Iterable[str] = (), never: Collection[str] = ()) -> dict[str, str]:
    """What is kept, by lower-case name in the order of its first value; values as Latin-1, several after a comma.

    extra: names besides the usual ones. never: names that hold this hook's secret or signature, in lower case. Values
    above KEPT_BYTES_MAX and names beyond KEPT_MAX are left out, whole; LEFT_OUT then lists their names.
    """
    wanted = {name for name in map(str.lower, extra) if not never_kept(name)} | KEPT_HEADERS
    wanted.difference_update(never)
    found: dict[str, list[bytes]] = {}
    for key, value in headers:
        name = key.decode("latin-1").lower()
        if name in wanted:
            found.setdefault(name, []).append(value)
    texts: dict[str, str] = {}
    left_out = []
    for name, values in found.items():
        whole = b", ".join(values)
        if len(whole) > KEPT_BYTES_MAX or len(texts) == KEPT_MAX:
            left_out.append(name)
        else:
            texts[name] = whole.decode("latin-1")
    if left_out:
        texts[LEFT_OUT] = ", ".join(left_out)
    return texts
