from __future__ import annotations

import hmac
import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest

from edgequeues.core.signatures import Refused, Signed, event_id, form_rule, is_timed, scheme_of, verifier
from tests.core.captures import capture
from tests.core.signing import BODY, NAMED, NOW_S, SECRET, at, configured, digest, kind, request

GOOD = b"v1=" + digest(BODY)


def test_svix_headers_are_those_of_standard_webhooks_by_another_name() -> None:
    genuine = request("standard", BODY)
    renamed = [(name.replace(b"webhook", b"svix"), value) for name, value in genuine.headers]
    hook = configured("standard")
    assert hook.check(Signed(renamed, BODY), NOW_S) is None
    forged_id = [*renamed, (b"webhook-id", b"msg_2"), (b"webhook-timestamp", b"1")]
    assert hook.check(Signed(forged_id, BODY), NOW_S) is None
    assert event_id("standard", forged_id, None) == "msg_1"


def test_a_standard_secret_may_leave_out_its_prefix_and_its_padding() -> None:
    whole = b64encode(SECRET.encode()).decode()
    assert whole.endswith("=")
    for secret in (whole, f"whsec_{whole}", whole.rstrip("=")):
        hook = verifier("standard", header="svix-signature", secrets=[secret])
        assert hook.check(request("standard", BODY), NOW_S) is None


def generic(value: bytes, *headers: tuple[bytes, bytes], **settings: Any) -> Refused | None:
    hook = verifier("hmac", header="X-Signature", secrets=[SECRET], **settings)
    return hook.check(Signed([(b"x-signature", value), *headers], BODY), NOW_S)


@pytest.mark.parametrize("algo", ["sha1", "sha256", "sha512"])
@pytest.mark.parametrize("encoding", ["hex", "base64"])
@pytest.mark.parametrize("prefix", ["", "sha=", "v1,", "HMAC "])
def test_a_generic_signature_has_the_digest_encoding_and_prefix_it_was_told(
    algo: str, encoding: str, prefix: str
) -> None:
    raw = hmac.digest(SECRET.encode(), BODY, algo)
    value = prefix.encode() + (raw.hex().encode() if encoding == "hex" else b64encode(raw))
    settings: dict[str, Any] = {"algo": algo, "encoding": encoding, "prefix": prefix}
    assert generic(value, **settings) is None
    assert kind(generic(value[:-3], **settings)) == "malformed"
    assert kind(generic(b"x" + value, **settings)) == "malformed"


def test_a_generic_time_is_signed_in_front_of_the_body() -> None:
    signature = digest(at(NOW_S) + b"." + BODY)
    time = (b"x-ts", at(NOW_S))
    assert generic(signature, time, timestamp_header="X-Ts") is None
    assert kind(generic(signature, (b"x-ts", at(NOW_S + 1)), timestamp_header="X-Ts")) == "mismatch"
    assert kind(generic(digest(BODY), time, timestamp_header="X-Ts")) == "mismatch"
    stale = digest(at(1) + b"." + BODY)
    assert kind(generic(stale, (b"x-ts", b"1"), timestamp_header="X-Ts")) == "stale"


def test_base64_is_compared_in_its_case() -> None:
    value = b64encode(hmac.digest(SECRET.encode(), BODY, "sha256"))
    assert kind(generic(value.swapcase(), encoding="base64")) == "mismatch"


@pytest.mark.parametrize(
    "value", [b"tg-dumm", b"tg-dummyy", b"TG-DUMMY", b"tg-dummy,x", b" tg", b"\xff", "\u00e9".encode()]
)
def test_a_shared_token_is_the_secret_and_nothing_else(value: bytes) -> None:
    genuine = capture("telegram")
    assert kind(genuine.verifier().check(genuine.signed(value), 0)) == "mismatch"


def test_a_shared_token_may_hold_a_comma_or_other_letters_than_ascii() -> None:
    hook = verifier("token", header="X-Token", secrets=["a,b", "caf\u00e9"])
    for value in (b"a,b", "caf\u00e9".encode()):
        assert hook.check(Signed([(b"x-token", value)], b""), 0) is None
    assert kind(hook.check(Signed([(b"x-token", b"")], b""), 0)) == "malformed"


def twilio(text: str, algo: str = "sha1") -> bytes:
    return b64encode(hmac.digest(SECRET.encode(), text.encode(), algo))


def by_twilio(
    signature: bytes,
    *,
    body: bytes = b"",
    url: str = "https://x.example/hook/sms",
    is_form: bool = True,
    settings: tuple[bytes, ...] = (),
) -> str:
    hook = verifier("twilio", header="X-Twilio-Signature", secrets=[SECRET])
    headers = [(b"x-twilio-signature", signature)]
    headers += [(b"x-twilio-webhooks-signature-settings", value) for value in settings]
    return kind(hook.check(Signed(headers, body, url, is_form), NOW_S))


def test_twilio_signs_the_url_and_each_field_once_by_name() -> None:
    url = "https://x.example/hook/sms"
    assert by_twilio(twilio(url + "A1" + "A2" + "B "), body=b"B=+&A=2&A=1&A=2") == "ok"
    assert by_twilio(twilio(url + "A1B "), body=b"B=+&A=2&A=1&A=2") == "mismatch"
    assert by_twilio(twilio(url), body=b"A=%") == "malformed"
    assert by_twilio(twilio(url), body=b"A=%ff") == "malformed"


@pytest.mark.parametrize(
    ("url", "signed"),
    [
        ("https://x.example/h?a=1", "https://x.example:443/h?a=1"),
        ("http://x.example/h", "http://x.example:80/h"),
        ("https://x.example:443/h", "https://x.example/h"),
        ("https://x.example:8443/h", "https://x.example/h"),
        ("https://x.example:8443/h", "https://x.example:8443/h"),
        ("https://[::1]:8443/h", "https://[::1]/h"),
        ("https://[::1]/h", "https://[::1]:443/h"),
    ],
)
def test_twilio_may_write_the_port_or_not(url: str, signed: str) -> None:
    assert by_twilio(twilio(signed), url=url) == "ok"
    assert (
        by_twilio(twilio(signed.replace("x.example", "y.example").replace("::1", "::2")), url=url)
        == "mismatch"
    )


def test_twilio_signs_json_by_a_digest_in_the_url() -> None:
    url = f"https://x.example/h?bodySHA256={sha256(BODY).hexdigest()}"
    assert by_twilio(twilio(url), body=BODY, url=url, is_form=False) == "ok"
    assert by_twilio(twilio(url), body=BODY + b" ", url=url, is_form=False) == "mismatch"
    assert by_twilio(twilio(url), body=b"", url=url, is_form=True) == "mismatch"  # the same as an empty form
    bare = "https://x.example/h"
    assert by_twilio(twilio(bare), body=BODY, url=bare, is_form=False) == "malformed"
    assert by_twilio(twilio(bare), body=b"", url=bare, is_form=False) == "ok"


@pytest.mark.parametrize(
    ("settings", "algo", "expected"),
    [
        ((b"key=k1,algorithm=HMAC_SHA256",), "sha256", "ok"),
        ((b"key=k1, algorithm = hmac_sha1",), "sha1", "ok"),
        ((b"key=k1",), "sha1", "ok"),
        ((b"",), "sha1", "ok"),
        ((), "sha256", "malformed"),
        ((b"algorithm=HMAC_SHA256",), "sha1", "malformed"),
        ((b"algorithm=none",), "sha1", "malformed"),
        ((b"algorithm=",), "sha1", "malformed"),
    ],
)
def test_twilio_may_name_its_digest(settings: tuple[bytes, ...], algo: str, expected: str) -> None:
    assert by_twilio(twilio("https://x.example/hook/sms", algo), settings=settings) == expected


def test_a_proxy_may_have_renamed_the_header() -> None:
    hook = verifier("pagerduty", header="X-Original-Signature", secrets=[SECRET])
    assert hook.headers == {"x-original-signature"}
    assert hook.check(Signed([(b"x-original-signature", GOOD)], BODY), NOW_S) is None
    assert kind(hook.check(Signed([(b"x-pagerduty-signature", GOOD)], BODY), NOW_S)) == "missing"


def test_standard_webhooks_have_the_headers_they_have() -> None:
    with pytest.raises(ValueError, match="webhook-signature or svix-signature"):
        verifier("standard", header="X-Signature", secrets=["whsec_AAAA"])


def test_the_name_of_a_header_tells_its_scheme() -> None:
    known = {scheme: header for scheme, header in NAMED.items() if scheme != "hmac"}
    assert {scheme: scheme_of(header) for scheme, header in known.items()} == {s: s for s in known}
    assert scheme_of("Svix-Signature") == "standard"
    assert scheme_of("X-Twilio-Signature") == "twilio"
    assert [scheme_of(name) for name in ("X-Hub-Signature", "", "caf\u00e9", "\ud800")] == [None] * 4


def test_a_scheme_with_a_signed_time_says_so() -> None:
    assert {scheme for scheme in [*NAMED, "twilio", "token"] if is_timed(scheme)} == {
        "stripe",
        "slack",
        "standard",
    }
    plain = verifier("hmac", header="X-Sig", secrets=["s"])
    timed = verifier("hmac", header="X-Sig", secrets=["s"], timestamp_header="X-Ts")
    assert (plain.is_timed, timed.is_timed, configured("slack").is_timed) == (False, True, True)


def test_a_form_of_github_is_its_payload_and_one_of_twilio_its_fields() -> None:
    assert (form_rule("github"), form_rule("twilio"), form_rule("hmac")) == ("payload", "fields", "either")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pagerduty", "01EXAMPLEEVENT0000000000001"),
        ("github", "5a0c0000-0000-11f0-8000-00000000aaaa"),
        ("stripe", "evt_dummy_0001"),
        ("slack", "Ev0DUMMY01"),
        ("telegram", None),
    ],
)
def test_a_captured_event_has_its_providers_id(name: str, expected: str | None) -> None:
    found = capture(name)
    assert event_id(found.scheme, found.request.headers, json.loads(found.request.body)) == expected


EVENT_IDS: list[tuple[str, dict[bytes, bytes], Any, str | None]] = [
    ("pagerduty", {b"x-webhook-id": b"w1"}, {"event": {"id": "e1"}}, "e1"),
    ("pagerduty", {b"x-webhook-id": b"w1"}, {"event": {"id": None}}, "w1"),
    ("pagerduty", {b"x-webhook-id": b"w1"}, {"event": []}, "w1"),
    ("pagerduty", {b"x-webhook-id": b"w1"}, None, "w1"),
    ("pagerduty", {}, {}, None),
    ("pagerduty", {b"x-webhook-id": b""}, {}, None),
    ("pagerduty", {b"x-webhook-id": b"x" * 256}, {}, "x" * 256),
    ("pagerduty", {b"x-webhook-id": b"x" * 257}, {}, None),
    ("stripe", {}, {"id": 7}, "7"),
    ("stripe", {}, {"id": True}, None),
    ("stripe", {}, {"id": 1.5}, None),
    ("stripe", {}, {"id": {}}, None),
    ("stripe", {}, {"id": 10**5_000}, None),
    ("stripe", {}, {"id": "a\x00"}, None),
    ("stripe", {}, {"id": "\ud800"}, None),
    ("stripe", {}, ["id"], None),
    ("twilio", {}, {"MessageSid": "SM1", "SmsStatus": "received"}, "SM1"),
    ("twilio", {}, {"MessageSid": "SM1", "MessageStatus": "sent"}, "SM1:sent"),
    ("twilio", {}, {"CallSid": "CA1", "CallStatus": "ringing", "SequenceNumber": "0"}, "CA1:ringing:0"),
    ("twilio", {}, {"MessageSid": ["SM1", "SM2"], "CallSid": "CA1"}, "CA1"),
    ("standard", {b"webhook-id": b"m1", b"webhook-signature": b""}, {"id": "x"}, "m1"),
    ("standard", {b"svix-id": b"m1", b"svix-signature": b"", b"webhook-id": b"m2"}, None, "m1"),
    ("hmac", {b"x-request-id": b"r"}, {"id": "x"}, None),
    ("token", {}, {"update_id": 1}, None),
]


@pytest.mark.parametrize(("scheme", "headers", "body", "expected"), EVENT_IDS)
def test_an_event_id_is_a_short_printable_text_from_its_place(
    scheme: str, headers: dict[bytes, bytes], body: Any, expected: str | None
) -> None:
    assert event_id(scheme, list(headers.items()), body) == expected


def test_an_id_header_that_was_sent_twice_is_no_id() -> None:
    assert event_id("github", [(b"x-github-delivery", b"a"), (b"x-github-delivery", b"b")], None) is None
