"""Signatures that the providers themselves published."""

from __future__ import annotations

import pytest

from edgequeues.core.signatures import Signed, verifier

SLACK = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
TWILIO = b"CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212"
TWILIO_JSON = b'{"property": "value", "boolean": true}'
TWILIO_URL = "https://mycompany.com/myapp.php?foo=1&bar=2"
TWILIO_HASH = "&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"

VECTORS = {
    "GitHub": (
        "github",
        "It's a Secret to Everybody",
        {"X-Hub-Signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        Signed((), b"Hello, World!"),
        0,
    ),
    "Slack": (
        "slack",
        "8f742231b10e8888abcd99yyyzzz85a5",
        {
            "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            "X-Slack-Request-Timestamp": "1531420618",
        },
        Signed((), SLACK),
        1_531_420_618,
    ),
    "Twilio form": (
        "twilio",
        "12345",
        {"X-Twilio-Signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
        Signed((), TWILIO, TWILIO_URL, is_form=True),
        0,
    ),
    "Twilio JSON": (
        "twilio",
        "12345",
        {"X-Twilio-Signature": "a9nBmqA0ju/hNViExpshrM61xv4="},
        Signed((), TWILIO_JSON, TWILIO_URL + TWILIO_HASH),
        0,
    ),
    "Standard Webhooks": (
        "standard",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        {
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
        },
        Signed((), b'{"test": 2432232314}'),
        1_614_265_330,
    ),
}


@pytest.mark.parametrize(
    ("scheme", "secret", "headers", "request_", "now_s"), VECTORS.values(), ids=list(VECTORS)
)
def test_a_published_signature_verifies(
    scheme: str, secret: str, headers: dict[str, str], request_: Signed, now_s: int
) -> None:
    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    hook = verifier(scheme, header=next(iter(headers)), secrets=[secret])
    assert hook.check(request_._replace(headers=sent), now_s) is None
    refused = hook.check(request_._replace(headers=sent, body=request_.body + b" "), now_s)
    assert refused is not None
    assert refused.kind == "mismatch"
