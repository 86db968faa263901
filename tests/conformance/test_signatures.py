"""The vendors' own Python libraries beside ours: what they accept we accept, what they refuse we refuse.

Where the two differ it is on purpose: `DIFFERENCES` below has each case with its reason, and a test of it. Random
requests keep clear of these cases, and nothing else.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from types import SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch
from urllib.parse import parse_qsl, urlencode

import pytest
import standardwebhooks.webhooks
import stripe._webhook
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.signature import Clock, SignatureVerifier
from twilio.request_validator import (  # type: ignore[import-untyped]
    RequestValidator,
    get_signature_algorithm,
)
from werkzeug.datastructures import MultiDict

from edgequeues.core.signatures import Signed, verifier

NOW_S = 1_767_225_600
SECRET = "a dummy secret"
STANDARD_SECRET = "whsec_" + base64.b64encode(b"a dummy secret of 24 bytes").decode()
BODY = '{"t": "caf\u00e9"}'
URL = "https://hooks.example.com/hook/sms"


class FixedClock(Clock):
    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def now(self) -> float:
        return self.now_s


def stripe_says(request: Signed, secret: str, now_s: float) -> bool:
    header = dict(request.headers)[b"stripe-signature"].decode("latin-1")
    check = stripe._webhook.WebhookSignature.verify_header
    with patch.object(stripe._webhook, "time", SimpleNamespace(time=lambda: now_s)):
        return bool(check(request.body, header, secret, 300))


def slack_says(request: Signed, secret: str, now_s: float) -> bool:
    headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
    return SignatureVerifier(secret, FixedClock(now_s)).is_valid_request(request.body, headers)


def twilio_says(request: Signed, secret: str, now_s: float) -> bool:
    headers = {name: value.decode("latin-1") for name, value in request.headers}
    params: object = request.body.decode()
    if request.is_form:
        params = MultiDict(parse_qsl(request.body.decode(), keep_blank_values=True))
    algorithm = get_signature_algorithm(headers.get(b"x-twilio-webhooks-signature-settings", ""))
    signature = headers[b"x-twilio-signature"]
    return bool(RequestValidator(secret).validate(request.url, params, signature, algorithm))


def standard_says(request: Signed, secret: str, now_s: float) -> bool:
    class At(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> At:
            return cls.fromtimestamp(now_s, tz)

    headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
    with patch.object(standardwebhooks.webhooks, "datetime", At):
        standardwebhooks.webhooks.Webhook(secret).verify(request.body, headers, json_parse=False)
    return True


SAY: dict[str, Callable[[Signed, str, float], bool]] = {
    "stripe": stripe_says,
    "slack": slack_says,
    "twilio": twilio_says,
    "standard": standard_says,
}
HEADERS = {
    "stripe": "Stripe-Signature",
    "slack": "X-Slack-Signature",
    "twilio": "X-Twilio-Signature",
    "standard": "webhook-signature",
}


def they_accept(scheme: str, request: Signed, secret: str, now_s: float = NOW_S) -> bool:
    """A library that raises refuses, whatever it raises: some headers end in an IndexError there."""
    try:
        return SAY[scheme](request, secret, now_s)
    except Exception:
        return False


def we_accept(scheme: str, request: Signed, secret: str, now_s: float = NOW_S) -> bool:
    return verifier(scheme, header=HEADERS[scheme], secrets=[secret]).check(request, now_s) is None


def by_stripe(body: str, secret: str = SECRET, time: int = NOW_S) -> Signed:
    make = stripe._webhook.WebhookSignature.generate_signature_header
    value = make(body, secret, time)
    return Signed([(b"stripe-signature", value.encode())], body.encode())


def by_slack(body: str, secret: str = SECRET, time: int | str = NOW_S) -> Signed:
    value = SignatureVerifier(secret).generate_signature(timestamp=str(time), body=body)
    assert value is not None
    headers = [(b"x-slack-request-timestamp", str(time).encode()), (b"x-slack-signature", value.encode())]
    return Signed(headers, body.encode())


def by_twilio(
    fields: list[tuple[str, str]], url: str = URL, secret: str = SECRET, algorithm: str = ""
) -> Signed:
    value = RequestValidator(secret).compute_signature(url, MultiDict(fields), algorithm)
    headers = [(b"x-twilio-signature", value.encode())]
    if algorithm:
        headers.append((b"x-twilio-webhooks-signature-settings", f"key=k1,algorithm={algorithm}".encode()))
    return Signed(headers, urlencode(fields).encode(), url, is_form=True)


def by_standard(
    body: str, secret: str = STANDARD_SECRET, time: int = NOW_S, message: str = "msg_1"
) -> Signed:
    hook = standardwebhooks.webhooks.Webhook(secret)
    value = hook.sign(message, datetime.fromtimestamp(time, UTC), body)
    headers = [
        (b"webhook-id", message.encode()),
        (b"webhook-timestamp", str(time).encode()),
        (b"webhook-signature", value.encode()),
    ]
    return Signed(headers, body.encode())


def with_value(request: Signed, change: Callable[[bytes], bytes], scheme: str) -> Signed:
    """The same with another value in the header of the signature."""
    name = HEADERS[scheme].lower().encode()
    return request._replace(headers=[(k, change(v) if k == name else v) for k, v in request.headers])


bodies = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
secrets = st.text("abcXYZ019_-\u00e9", min_size=1, max_size=8)
standard_secrets = st.binary(min_size=1, max_size=32).map(
    lambda raw: "whsec_" + base64.b64encode(raw).decode()
)
offsets_s = st.sampled_from([-300, -299, -1, 0, 1, 299, 299.5, 300, 300.5, 301, 86_400])
both_ways_s = offsets_s | st.sampled_from([-300.5, -301, -86_400])
fields = st.lists(st.tuples(st.sampled_from(["A", "a", "B", "Body", "", "\u00e9"]), bodies), max_size=5)
urls = st.sampled_from(
    [
        URL,
        "https://hooks.example.com:443/hook/sms",
        "https://hooks.example.com:8443/hook/sms?a=1&b=%20",
        "http://hooks.example.com/?x",
        "http://hooks.example.com:80/a",
    ]
)


@st.composite
def changed(draw: st.DrawFn, request: Signed, scheme: str, letters: str, until: int | None = None) -> Signed:
    """The request, or the same with another body, or another character in its header, or with one less."""
    what = draw(st.sampled_from(["nothing", "body", "replace", "delete", "cut"]))
    if what == "body":
        return request._replace(body=request.body + b"x=" if request.is_form else request.body + b" ")
    value = dict(request.headers)[HEADERS[scheme].lower().encode()]
    at = draw(st.integers(0, len(value[:until]) - 1))
    letter = draw(st.sampled_from(letters)).encode()
    changes: dict[str, Callable[[bytes], bytes]] = {
        "nothing": lambda v: v,
        "replace": lambda v: v[:at] + letter + v[at + 1 :],
        "delete": lambda v: v[:at] + v[at + 1 :],
        "cut": lambda v: v[:at],
    }
    return with_value(request, changes[what], scheme)


@given(st.data(), bodies, secrets, secrets, offsets_s)
def test_stripe_agrees(data: st.DataObject, body: str, secret: str, other: str, after_s: float) -> None:
    request = data.draw(changed(by_stripe(body, secret), "stripe", "0123456789abcdeftv=,"))
    for key in (secret, other):
        expected = they_accept("stripe", request, key, NOW_S + after_s)
        assert we_accept("stripe", request, key, NOW_S + after_s) == expected


@given(st.data(), bodies, secrets, secrets, both_ways_s)
def test_slack_agrees(data: st.DataObject, body: str, secret: str, other: str, after_s: float) -> None:
    request = data.draw(changed(by_slack(body, secret), "slack", "0123456789abcdefv="))
    for key in (secret, other):
        expected = they_accept("slack", request, key, NOW_S + after_s)
        assert we_accept("slack", request, key, NOW_S + after_s) == expected


@given(st.data(), bodies, standard_secrets, standard_secrets, both_ways_s)
def test_standard_webhooks_agree(
    data: st.DataObject, body: str, secret: str, other: str, after_s: float
) -> None:
    # The last digit of base64 before `=` has bits that mean nothing: it is among the differences.
    request = data.draw(changed(by_standard(body, secret), "standard", "v1, ABCabc019+/=", until=45))
    for key in (secret, other):
        expected = they_accept("standard", request, key, NOW_S + after_s)
        assert we_accept("standard", request, key, NOW_S + after_s) == expected


@given(st.data(), fields, urls, urls, st.sampled_from(["", "HMAC_SHA1", "HMAC_SHA256", "hmac_sha256"]))
def test_twilio_agrees(
    data: st.DataObject, pairs: list[tuple[str, str]], signed_url: str, url: str, algorithm: str
) -> None:
    request = by_twilio(pairs, signed_url, algorithm=algorithm)._replace(url=url)
    request = data.draw(changed(request, "twilio", "ABCabc019+/="))
    for key in (SECRET, "another"):
        assert we_accept("twilio", request, key) == they_accept("twilio", request, key)


@given(bodies.filter(bool), urls, st.sampled_from(["", "body", "url"]))
def test_twilio_agrees_on_json(body: str, url: str, change: str) -> None:
    whole = url + ("&" if "?" in url else "?") + "bodySHA256=" + sha256(body.encode()).hexdigest()
    request = by_twilio([], whole)._replace(body=body.encode(), is_form=False)
    if change == "body":
        request = request._replace(body=request.body + b" ")
    if change == "url":
        request = request._replace(url=request.url + "&x=1")
    assert they_accept("twilio", request, SECRET) == (change == "")
    assert we_accept("twilio", request, SECRET) == (change == "")


class Difference(NamedTuple):
    """Why the two do not agree on a request. accepted: by us, and not by them; or the other way round."""

    why: str
    scheme: str
    request: Signed
    accepted: bool
    after_s: float = 0


def latin_1(scheme: str) -> Signed:
    """A genuine request whose body is no UTF-8."""
    body, time = b'{"t": "caf\xe9"}', str(NOW_S).encode()
    start = {"stripe": time + b".", "slack": b"v0:" + time + b":"}[scheme]
    digest = hmac.new(SECRET.encode(), start + body, sha256).hexdigest().encode()
    if scheme == "stripe":
        return Signed([(b"stripe-signature", b"t=" + time + b",v1=" + digest)], body)
    return Signed([(b"x-slack-request-timestamp", time), (b"x-slack-signature", b"v0=" + digest)], body)


def upper(value: bytes) -> bytes:
    """Its hex in the other case, names and versions as they are."""
    start, equals, digits = value.rpartition(b"=")
    return start + equals + digits.upper()


def other_bits(value: bytes) -> bytes:
    """The same bytes in another base64: the last digit has two bits that mean nothing."""
    assert value.endswith(b"=")
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return value[:-2] + alphabet[alphabet.index(value[-2]) + 1 :][:1] + b"="


def with_time(request: Signed, name: bytes, time: bytes) -> Signed:
    return request._replace(headers=[(k, time if k == name else v) for k, v in request.headers])


BYTES = "bytes are signed, and they need not be UTF-8; what becomes of them is decided later"
CASE = "hex in capitals is the same number"
BLANKS = "a proxy that joins headers puts blanks behind commas"
FUTURE = "a time is held to the window both ways: one far ahead could be sent anew for as long"
DIGITS = "a time is digits and nothing else, so that one text means one time"
STRICT = "there is one text of a signature, not a family of them"
JUNK = "what is no signature stands in nobody's way"
QUERY_HASH = "else who has one signed JSON request could send it anew with an empty form"

genuine_stripe, genuine_slack, genuine_standard = by_stripe(BODY), by_slack(BODY), by_standard(BODY)
of_json = by_twilio([], f"{URL}?bodySHA256={sha256(BODY.encode()).hexdigest()}")

DIFFERENCES = [
    Difference(BYTES, "stripe", latin_1("stripe"), accepted=True),
    Difference(BYTES, "slack", latin_1("slack"), accepted=True),
    Difference(CASE, "stripe", with_value(genuine_stripe, upper, "stripe"), accepted=True),
    Difference(CASE, "slack", with_value(genuine_slack, upper, "slack"), accepted=True),
    Difference(
        BLANKS,
        "stripe",
        with_value(genuine_stripe, lambda v: v.replace(b",", b", "), "stripe"),
        accepted=True,
    ),
    Difference(FUTURE, "stripe", genuine_stripe, accepted=False, after_s=-301),
    Difference(
        DIGITS,
        "stripe",
        with_value(genuine_stripe, lambda v: v.replace(b"t=", b"t=+"), "stripe"),
        accepted=False,
    ),
    Difference(DIGITS, "slack", by_slack(BODY, time=f"+{NOW_S}"), accepted=False),
    Difference(DIGITS, "slack", by_slack(BODY, time=f" {NOW_S}"), accepted=False),
    Difference(
        DIGITS,
        "standard",
        with_time(genuine_standard, b"webhook-timestamp", f"{NOW_S}.5".encode()),
        accepted=False,
    ),
    Difference(STRICT, "stripe", with_value(genuine_stripe, lambda v: v + b"=x", "stripe"), accepted=False),
    Difference(STRICT, "standard", with_value(genuine_standard, other_bits, "standard"), accepted=False),
    Difference(
        STRICT,
        "standard",
        with_value(genuine_standard, lambda v: v[:10] + b"!" + v[10:], "standard"),
        accepted=False,
    ),
    Difference(
        JUNK, "standard", with_value(genuine_standard, lambda v: b"junk " + v, "standard"), accepted=True
    ),
    Difference(
        JUNK, "standard", with_value(genuine_standard, lambda v: b"v1,A " + v, "standard"), accepted=True
    ),
    Difference(
        "several signatures are a list with every scheme",
        "slack",
        with_value(genuine_slack, lambda v: b"v0=" + b"0" * 64 + b"," + v, "slack"),
        accepted=True,
    ),
    Difference(QUERY_HASH, "twilio", of_json, accepted=False),
]


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda d: f"{d.scheme}: {d.why}")
def test_we_differ_where_we_mean_to_and_only_so(difference: Difference) -> None:
    secret = STANDARD_SECRET if difference.scheme == "standard" else SECRET
    now_s = NOW_S + difference.after_s
    assert we_accept(difference.scheme, difference.request, secret, now_s) == difference.accepted
    assert they_accept(difference.scheme, difference.request, secret, now_s) != difference.accepted


def test_the_clocks_of_the_libraries_are_in_our_hand() -> None:
    """What agrees above agrees on verdicts of both kinds, and not because a library always refuses."""
    for scheme, request, secret in (
        ("stripe", genuine_stripe, SECRET),
        ("slack", genuine_slack, SECRET),
        ("standard", genuine_standard, STANDARD_SECRET),
    ):
        verdicts = [they_accept(scheme, request, secret, NOW_S + after_s) for after_s in (0, 300, 301)]
        assert verdicts == [True, True, False]
    assert they_accept("twilio", by_twilio([("A", "1")]), SECRET)
