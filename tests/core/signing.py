"""Requests signed as providers sign them, written down here anew."""

from __future__ import annotations

import hmac
from base64 import b64encode
from hashlib import sha256

from edgequeues.core.signatures import Refused, Signed, Verifier, verifier

SECRET = "a dummy secret"
NOW_S = 1_767_225_600
BODY = b'{"event": {"id": "e1"}}'

NAMED = {
    "pagerduty": "X-PagerDuty-Signature",
    "github": "X-Hub-Signature-256",
    "stripe": "Stripe-Signature",
    "slack": "X-Slack-Signature",
    "standard": "webhook-signature",
    "hmac": "X-Signature",
}


def digest(text: bytes, secret: str = SECRET) -> bytes:
    return hmac.new(secret.encode(), text, sha256).hexdigest().encode()


def at(now_s: int) -> bytes:
    return str(now_s).encode()


def request(scheme: str, body: bytes, *, secret: str = SECRET, signed_at: int = NOW_S) -> Signed:
    """A request as a provider would sign it, written down here anew."""
    time = at(signed_at)
    headers: dict[str, list[tuple[bytes, bytes]]] = {
        "pagerduty": [(b"x-pagerduty-signature", b"v1=" + digest(body, secret))],
        "github": [(b"x-hub-signature-256", b"sha256=" + digest(body, secret))],
        "stripe": [(b"stripe-signature", b"t=" + time + b",v1=" + digest(time + b"." + body, secret))],
        "slack": [
            (b"x-slack-request-timestamp", time),
            (b"x-slack-signature", b"v0=" + digest(b"v0:" + time + b":" + body, secret)),
        ],
        "standard": [
            (b"webhook-id", b"msg_1"),
            (b"webhook-timestamp", time),
            (
                b"webhook-signature",
                b"v1," + b64encode(bytes.fromhex(digest(b"msg_1." + time + b"." + body, secret).decode())),
            ),
        ],
        "hmac": [(b"x-signature", digest(body, secret))],
    }
    return Signed(headers[scheme], body)


def configured(scheme: str) -> Verifier:
    secret = "whsec_" + b64encode(SECRET.encode()).decode() if scheme == "standard" else SECRET
    return verifier(scheme, header=NAMED[scheme], secrets=[secret])


def kind(refused: Refused | None) -> str:
    return "ok" if refused is None else refused.kind
