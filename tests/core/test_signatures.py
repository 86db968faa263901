from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgequeues.core.signatures import Refused, Signed, verifier
from tests.core.captures import NAMES, capture
from tests.core.signing import BODY, NAMED, NOW_S, SECRET, configured, digest, kind, request

BODIES = {
    "emoji": '{"t": "\U0001f525"}'.encode(),
    "combining accent": '{"t": "e\u0301"}'.encode(),
    "line separator": '{"t": "a\u2028b"}'.encode(),
    "byte order mark": b'\xef\xbb\xbf{"t": 1}',
    "line ends": b'{\r\n"t": 1\r\n}\r\n',
    "Latin-1": '{"t": "caf\xe9"}'.encode("latin-1"),
    "empty": b"",
}


def pagerduty(*values: bytes, body: bytes = BODY, secrets: tuple[str, ...] = (SECRET,)) -> Refused | None:
    headers = [(b"x-pagerduty-signature", value) for value in values]
    hook = verifier("pagerduty", header="X-PagerDuty-Signature", secrets=secrets)
    return hook.check(Signed(headers, body), NOW_S)


@pytest.mark.parametrize("name", NAMES)
def test_a_genuine_request_verifies_and_with_one_changed_byte_does_not(name: str) -> None:
    genuine = capture(name)
    hook = genuine.verifier()
    assert hook.check(genuine.request, genuine.now_s) is None
    body = genuine.request.body
    changed = genuine.request._replace(body=body[:100] + b"!" + body[101:])
    expected = "ok" if genuine.scheme == "token" else "mismatch"  # such a token says nothing of the body
    assert kind(hook.check(changed, genuine.now_s)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_with_another_secret_nothing_verifies(name: str) -> None:
    genuine = capture(name)
    hook = verifier(genuine.scheme, header=genuine.header, secrets=["another"])
    assert kind(hook.check(genuine.request, genuine.now_s)) == "mismatch"


@pytest.mark.parametrize("name", NAMES)
def test_without_the_header_the_signature_is_missing(name: str) -> None:
    genuine = capture(name)
    refused = genuine.verifier().check(genuine.signed(), genuine.now_s)
    assert refused == Refused("missing", f"no header {genuine.header.lower()}")


@pytest.mark.parametrize("which", [0, 1])
def test_either_secret_will_do_while_one_follows_the_other(which: int) -> None:
    genuine = capture("pagerduty")
    hook = verifier("pagerduty", header=genuine.header, secrets=[genuine.secrets[which]])
    assert hook.check(genuine.request, genuine.now_s) is None
    by_one = genuine.value().split(b",")[which]
    both = verifier("pagerduty", header=genuine.header, secrets=genuine.secrets)
    assert both.check(genuine.signed(by_one), genuine.now_s) is None


def test_json_that_is_written_anew_does_not_verify() -> None:
    genuine = capture("stripe")
    minified = json.dumps(json.loads(genuine.request.body), separators=(",", ":")).encode()
    refused = genuine.verifier().check(genuine.request._replace(body=minified), genuine.now_s)
    assert kind(refused) == "mismatch"


@pytest.mark.parametrize("scheme", NAMED)
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_wh_s01_what_is_signed_is_bytes_whatever_they_say(scheme: str, body: bytes) -> None:
    assert configured(scheme).check(request(scheme, body), NOW_S) is None
    assert (
        kind(configured(scheme).check(request(scheme, body + b" ")._replace(body=body), NOW_S)) == "mismatch"
    )


GOOD, BAD = b"v1=" + digest(BODY), b"v1=" + b"0" * 64


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([BAD + b"," + GOOD], "ok"),
        ([GOOD + b"," + BAD], "ok"),
        ([BAD + b", " + GOOD], "ok"),
        ([BAD + b"\t,\t" + GOOD + b" "], "ok"),
        ([b"v2=" + b"0" * 64 + b"," + GOOD], "ok"),
        ([b"v2=x,," + GOOD + b",v1="], "ok"),
        ([b"v1=" + digest(BODY).upper()], "ok"),
        ([BAD, GOOD], "ok"),
        ([GOOD, BAD], "ok"),
        ([b",".join([BAD] * 50), b",".join([BAD] * 49 + [GOOD])], "ok"),
        ([b",".join([BAD] * 50), b",".join([BAD] * 50 + [GOOD])], "mismatch"),
        ([b"v1=" * 101 + b"," + GOOD], "ok"),
        ([b"v1," * 100 + GOOD], "malformed"),
        ([BAD], "mismatch"),
        ([BAD + b"," + BAD], "mismatch"),
        ([b"v2=" + digest(BODY)], "malformed"),
        ([digest(BODY)], "malformed"),
        ([b"V1=" + digest(BODY)], "malformed"),
        ([GOOD[3:] + BAD + b"," + BAD], "mismatch"),
    ],
)
def test_wh_s02_one_matching_signature_among_many_is_enough(values: list[bytes], expected: str) -> None:
    assert kind(pagerduty(*values)) == expected


def test_wh_s02_each_of_two_secrets_is_tried_with_each_signature() -> None:
    value = BAD + b",v1=" + digest(BODY, "old")
    assert pagerduty(value, secrets=("new", "old")) is None
    assert pagerduty(value, secrets=("old", "new")) is None
    assert kind(pagerduty(value, secrets=("new", "newer"))) == "mismatch"


MALFORMED = {
    "not ASCII": "sha256=\u00e9".encode(),
    "Latin-1": b"sha256=\xe9",
    "FF": b"\xff" * 64,
    "FF behind the prefix": b"sha256=" + b"\xff" * 64,
    "empty": b"",
    "blank": b" ",
    "prefix alone": b"sha256=",
    "prefix without =": b"sha256",
    "too short": b"sha256=" + digest(BODY)[:-2],
    "too long": b"sha256=" + digest(BODY) + b"00",
    "odd": b"sha256=" + digest(BODY)[:-1],
    "no hex": b"sha256=" + b"g" * 64,
    "blanks within": b"sha256= " + digest(BODY)[1:],
    "base64": b"sha256=" + b64encode(bytes.fromhex(digest(BODY).decode())),
    "10 kB": b"sha256=" + digest(BODY) + b"," + b"x" * 10_000,
    "another digest": b"sha1=" + digest(BODY)[:40],
    "NUL": b"sha256=" + digest(BODY)[:-1] + b"\x00",
}


@pytest.mark.parametrize("value", MALFORMED.values(), ids=list(MALFORMED))
def test_wh_s03_a_malformed_value_is_refused_and_tells_nothing(value: bytes) -> None:
    hook = verifier("github", header="X-Hub-Signature-256", secrets=[SECRET])
    refused = hook.check(Signed([(b"x-hub-signature-256", value)], BODY), NOW_S)
    assert refused is not None
    assert refused.kind == "malformed"
    assert SECRET not in refused.detail
    assert digest(BODY).decode() not in refused.detail


def test_wh_s03_a_mismatch_tells_neither_the_secret_nor_what_would_be_right() -> None:
    refused = pagerduty(BAD)
    assert refused is not None
    assert refused.detail == "x-pagerduty-signature: none matches (1 of 23 bytes, 1 secrets)"


LIKE_SIGNATURES = st.lists(
    st.sampled_from(
        [
            b"v1=",
            b"v1,",
            b"v0=",
            b"t=",
            b"sha256=",
            b",",
            b" ",
            b"=",
            b"0" * 64,
            b"1767225600",
            b"\xff",
            b"-1",
            b"%",
        ]
    )
    | st.binary(max_size=4)
).map(b"".join)


@given(
    st.sampled_from([*NAMED, "twilio", "token"]),
    st.lists(LIKE_SIGNATURES, max_size=3),
    st.lists(LIKE_SIGNATURES, max_size=2),
    st.binary(max_size=20),
    st.text(st.characters(exclude_categories=[]), max_size=20),
    st.booleans(),
)
@example("twilio", [b"A" * 27 + b"="], [], b"%", "https://x:\ud800/?bodySHA256=\ud800", True)
@example("twilio", [b"A" * 27 + b"="], [], b"", "https://x:99999999/?bodySHA256=\ud800", False)
def test_wh_s03_whatever_the_headers_hold_the_answer_is_a_refusal(
    scheme: str, signatures: list[bytes], others: list[bytes], body: bytes, url: str, is_form: bool
) -> None:
    header = NAMED.get(scheme, f"X-{scheme}-Signature")
    secret = b64encode(SECRET.encode()).decode() if scheme == "standard" else SECRET
    hook = verifier(scheme, header=header, secrets=[secret])
    headers = [(header.lower().encode(), value) for value in signatures]
    headers += [
        (name, value)
        for value in others
        for name in (b"webhook-id", b"webhook-timestamp", b"x-slack-request-timestamp")
    ]
    headers += [(b"x-twilio-webhooks-signature-settings", value) for value in others]
    refused = hook.check(Signed(headers, body, url, is_form), NOW_S)
    assert refused is not None
    assert refused.kind != "stale"


@pytest.mark.parametrize("secret", ["", " ", "\n", "\t \r\n", "\u00a0"])
@pytest.mark.parametrize("scheme", [*NAMED, "twilio", "token"])
def test_wh_s04_an_empty_secret_is_refused_before_any_request(scheme: str, secret: str) -> None:
    good = b64encode(SECRET.encode()).decode()
    with pytest.raises(ValueError, match="secret 2 is empty"):
        verifier(scheme, header=NAMED.get(scheme, "X-Sig"), secrets=[good, secret])


def test_wh_s04_no_secret_or_no_header_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="no secret"):
        verifier("github", header="X-Hub-Signature-256", secrets=[])
    with pytest.raises(ValueError, match="no header"):
        verifier("token", header="", secrets=[SECRET])


@pytest.mark.parametrize("secret", ["s\n", " s", "s\r\n"])
def test_wh_s04_blanks_around_a_secret_are_reported_without_it(secret: str) -> None:
    with pytest.raises(ValueError, match=r"^secret 1 has blanks or a line end around it$"):
        verifier("github", header="X-Hub-Signature-256", secrets=[secret])


@pytest.mark.parametrize("secret", ["whsec_", "whsec_****", "caf\u00e9", "whsec_A"])
def test_wh_s04_a_standard_secret_that_is_no_base64_is_refused_without_it(secret: str) -> None:
    with pytest.raises(ValueError, match=r"^secret 1 is (not base64|empty) after whsec_$") as caught:
        verifier("standard", header="webhook-signature", secrets=[secret])
    assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize("scheme", NAMED)
def test_wh_s04_a_request_signed_with_the_empty_key_never_verifies(scheme: str) -> None:
    assert kind(configured(scheme).check(request(scheme, BODY, secret=""), NOW_S)) == "mismatch"


TIMED = ["stripe", "slack", "standard"]


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize(
    ("after_s", "detail"),
    [
        (300, None),
        (-300, None),
        (301, "timestamp outside window by 1 s: signed too long ago, or our clock is ahead"),
        (300.2, "timestamp outside window by 1 s: signed too long ago, or our clock is ahead"),
        (600, "timestamp outside window by 300 s: signed too long ago, or our clock is ahead"),
        (-301, "timestamp outside window by 1 s: our clock is behind"),
        (-600, "timestamp outside window by 300 s: our clock is behind"),
    ],
)
def test_wh_s14_a_clock_that_is_off_is_told_with_its_side_and_seconds(
    scheme: str, after_s: float, detail: str | None
) -> None:
    refused = configured(scheme).check(request(scheme, BODY), NOW_S + after_s)
    assert refused == (detail and Refused("stale", detail))


@pytest.mark.parametrize("scheme", TIMED)
def test_wh_s14_only_what_is_genuine_is_told_to_be_stale(scheme: str) -> None:
    forged = request(scheme, BODY, secret="another")
    assert kind(configured(scheme).check(forged, NOW_S + 10_000)) == "mismatch"


def test_wh_s14_the_window_is_as_wide_as_it_was_told() -> None:
    hook = verifier("stripe", header="Stripe-Signature", secrets=[SECRET], tolerance_s=10)
    assert hook.check(request("stripe", BODY), NOW_S + 10) is None
    assert kind(hook.check(request("stripe", BODY), NOW_S + 11)) == "stale"


@pytest.mark.parametrize(
    "time",
    [
        b"",
        b"x",
        b"-1",
        b"+1",
        b" 1",
        b"1.5",
        b"1e9",
        b"1_0",
        b"9" * 13,
        b"9" * 4_000,
        b"\xff",
        "\u0661".encode(),
    ],
)
@pytest.mark.parametrize("scheme", ["stripe", "slack", "standard", "hmac"])
def test_a_time_that_is_none_is_malformed_even_if_it_is_signed(scheme: str, time: bytes) -> None:
    hook = verifier(
        scheme,
        header=NAMED[scheme],
        secrets=[b64encode(SECRET.encode()).decode() if scheme == "standard" else SECRET],
        timestamp_header="X-Time",
    )
    headers = [
        (b"webhook-id", b"msg_1"),
        (b"webhook-timestamp", time),
        (b"webhook-signature", b"v1," + b"A" * 43 + b"="),
        (b"x-slack-request-timestamp", time),
        (b"x-slack-signature", b"v0=" + digest(b"v0:" + time + b":" + BODY)),
        (b"stripe-signature", b"t=" + time + b",v1=" + digest(time + b"." + BODY)),
        (b"x-time", time),
        (b"x-signature", digest(time + b"." + BODY)),
    ]
    assert kind(hook.check(Signed(headers, BODY), NOW_S)) == "malformed"


@pytest.mark.parametrize("name", ["x-slack-request-timestamp", "webhook-timestamp", "webhook-id"])
@pytest.mark.parametrize("count", [0, 2])
def test_a_signed_header_that_is_missing_or_given_twice_is_malformed(name: str, count: int) -> None:
    scheme = "slack" if "slack" in name else "standard"
    genuine = request(scheme, BODY)
    key = name.encode()
    others = [pair for pair in genuine.headers if pair[0] != key]
    same = [pair for pair in genuine.headers if pair[0] == key]
    refused = configured(scheme).check(genuine._replace(headers=[*others, *same * count]), NOW_S)
    assert refused == Refused("malformed", f"{name}: given {count} times")


def test_two_times_in_one_signature_are_malformed() -> None:
    genuine = request("stripe", BODY)
    headers = [(b"stripe-signature", genuine.headers[0][1] + b",t=1")]
    assert kind(configured("stripe").check(Signed(headers, BODY), NOW_S)) == "malformed"


def test_what_is_printed_of_a_verifier_has_no_secret_in_it() -> None:
    assert SECRET not in f"{configured('github')!r} {configured('github')}"
