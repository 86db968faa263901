"""Is a request from who it says it is? Signatures over the bytes as they came, and secrets sent as they are.

Whatever a header holds, the answer is a refusal and never an exception. No refusal tells a secret or a signature.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Sequence
from itertools import product
from math import ceil
from typing import Literal, NamedTuple

from edgequeues.core import forms
from edgequeues.core.errors import InvalidRequest
from edgequeues.core.hook_headers import KEPT_HEADERS, NEVER_KEPT, kept, never_kept
from edgequeues.core.signature_schemes import (
    SCHEMES,
    Encoding,
    Header,
    Layout,
    Part,
    event_id,
    form_rule,
    is_timed,
    layout,
    scheme_of,
    values,
)

__all__ = [
    "KEPT_HEADERS",
    "NEVER_KEPT",
    "Refused",
    "Signed",
    "Verifier",
    "event_id",
    "form_rule",
    "is_timed",
    "kept",
    "never_kept",
    "scheme_of",
    "verifier",
]

ENTRIES_MAX = 100  # signatures of one request that are looked at
VALUE_BYTES_MAX = 4 * 1024  # of each header that signing takes
DEFAULT_TOLERANCE_S = 300

_TIME = re.compile(rb"[0-9]{1,12}")
_DIGITS: dict[Encoding, re.Pattern[bytes]] = {
    "hex": re.compile(rb"[0-9A-Fa-f]+"),
    "base64": re.compile(rb"[A-Za-z0-9+/]+={0,2}"),
}
_HOST = re.compile(r"(https?)://([^/?#]*)", re.IGNORECASE)
_PORT = re.compile(r":\d*\Z")
_PORTS = {"http": ":80", "https": ":443"}
_BODY_DIGEST = re.compile(r"[?&]bodySHA256=([^&#]*)")
_TWILIO_SETTINGS = b"x-twilio-webhooks-signature-settings"
_TWILIO_DIGESTS = {b"HMAC_SHA1": "sha1", b"HMAC_SHA256": "sha256"}

Kind = Literal["missing", "malformed", "mismatch", "stale"]


class Refused(NamedTuple):
    """Why a request is not believed. detail: for the log, the answer to the sender tells nothing of it.

    missing: no signature. malformed: one that cannot be right. mismatch: of other bytes, or by another secret.
    stale: right, but of another time than ours.
    """

    kind: Kind
    detail: str


class Signed(NamedTuple):
    """A request as it came. headers: names in lower case, as often as they were sent. url: the whole public one."""

    headers: Sequence[Header]
    body: bytes
    url: str = ""
    is_form: bool = False


class _Unfit(Exception):
    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__(detail)
        self.refused = Refused(kind, detail)


class Verifier:
    """Checks requests of one hook against its secrets, any of which will do. Made by `verifier`."""

    __slots__ = ("_layouts", "_secrets", "_tolerance_s")

    def __init__(self, layouts: tuple[Layout, ...], secrets: Sequence[bytes], tolerance_s: int) -> None:
        self._layouts = layouts
        self._secrets = tuple(secrets)
        self._tolerance_s = tolerance_s

    @property
    def is_timed(self) -> bool:
        """Does what is checked cover a time? Where it does not, an old request can be sent anew."""
        return self._layouts[0].is_timed

    @property
    def headers(self) -> frozenset[str]:
        """Names of the headers with the signature or the secret, in lower case: not to be kept."""
        return frozenset(row.header.decode() for row in self._layouts)

    def check(self, request: Signed, now_s: float) -> Refused | None:
        """None: it is genuine. now_s: unix seconds."""
        try:
            row = self._layout(request.headers)
            entries = _entries(row, request.headers)
            signed_at = _time(row, entries, request.headers) if row.is_timed else None
            row = _of_twilio(row, request.headers)
            given = _given(row, entries)
            texts = _texts(row, request, signed_at)
        except _Unfit as unfit:
            return unfit.refused
        if not self._matches(row, given, texts):
            name, sent = row.header.decode(), f"{len(given)} of {len(request.body)} bytes"
            return Refused("mismatch", f"{name}: none matches ({sent}, {len(self._secrets)} secrets)")
        # Only now is the time looked at: that a request is stale is told of genuine ones alone, so the log of it
        # means a clock that is wrong or a request sent anew, and not that anybody made up a header.
        return None if signed_at is None else self._stale(int(signed_at), now_s)

    def _layout(self, headers: Sequence[Header]) -> Layout:
        found = layout(self._layouts, headers)
        if found is None:
            names = " or ".join(row.header.decode() for row in self._layouts)
            raise _Unfit("missing", f"no header {names}")
        return found

    def _matches(self, row: Layout, given: list[bytes], texts: list[bytes]) -> bool:
        """Compares all with all, so that the time it takes does not tell which one was near."""
        matched = False
        for secret, text in product(self._secrets, texts):
            expected = _expected(row, secret, text)
            for signature in given:
                matched |= hmac.compare_digest(expected, signature)
        return matched

    def _stale(self, signed_at: int, now_s: float) -> Refused | None:
        age = now_s - signed_at
        beyond = abs(age) - self._tolerance_s
        if beyond <= 0:
            return None
        side = "signed too long ago, or our clock is ahead" if age > 0 else "our clock is behind"
        return Refused("stale", f"timestamp outside window by {ceil(beyond)} s: {side}")


def verifier(
    scheme: str,
    *,
    header: str,
    secrets: Sequence[str],
    algo: str = "sha256",
    encoding: Encoding = "hex",
    prefix: str = "",
    timestamp_header: str | None = None,
    tolerance_s: int = DEFAULT_TOLERANCE_S,
) -> Verifier:
    """A verifier of a scheme's name, `hmac`, or `token` (the header holds the secret).

    header: of `hmac` and `token`, and of other schemes where a proxy gave theirs another name. algo, encoding, prefix
    and timestamp_header are for `hmac`; with the last, `<time>.<body>` is signed. Raises ValueError, which tells no
    secret, for one that is empty, has blanks around it, or is not base64 where it must be; for none; and for a header
    that will not do.
    """
    if not secrets:
        raise ValueError("no secret")
    if not header:
        raise ValueError("no header")
    rows = SCHEMES[scheme]
    name = header.lower().encode()
    if scheme == "hmac":
        time = (timestamp_header or "").lower().encode()
        version = prefix.encode()
        signs = (Part.TIME, b".", Part.BODY) if time else (Part.BODY,)
        separator = b" " if b"," in version else b","
        rows = (rows[0]._replace(signs=signs, version=version, separator=separator, time=time),)
        rows = (rows[0]._replace(digest=algo, encoding=encoding),)
    if name not in {row.header for row in rows}:
        if len(rows) > 1:
            known = " or ".join(row.header.decode() for row in rows)
            raise ValueError(f"the header of scheme {scheme} is {known}")
        rows = (rows[0]._replace(header=name),)
    keys = [_key(secret, number, is_base64=scheme == "standard") for number, secret in enumerate(secrets, 1)]
    return Verifier(rows, keys, tolerance_s)


def standard_headers(secret: str, message_id: str, at_s: int, body: bytes) -> list[tuple[str, str]]:
    """The headers by which a receiver that checks as Standard Webhooks has it knows us. at_s: unix seconds.

    Raises ValueError, which tells no secret, for one that will not do.
    """
    key = _key(secret, 1, is_base64=True)
    signed = b"%s.%d.%s" % (message_id.encode(), at_s, body)
    code = b64encode(hmac.digest(key, signed, "sha256")).decode()
    return [
        ("webhook-id", message_id),
        ("webhook-timestamp", str(at_s)),
        ("webhook-signature", f"v1,{code}"),
    ]


def _key(secret: str, number: int, *, is_base64: bool) -> bytes:
    """The bytes to sign with. What a secret is stays out of every message: `from None` keeps it out of tracebacks."""
    if not secret.strip():
        raise ValueError(f"secret {number} is empty")
    if secret != secret.strip():
        raise ValueError(f"secret {number} has blanks or a line end around it")
    if not is_base64:
        return secret.encode(errors="surrogateescape")
    text = secret.removeprefix("whsec_")
    try:
        key = b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (NotBase64, ValueError):
        raise ValueError(f"secret {number} is not base64 after whsec_") from None
    if not key:
        raise ValueError(f"secret {number} is empty after whsec_")
    return key


def _entries(row: Layout, headers: Iterable[Header]) -> list[bytes]:
    """What the header lists. Sent twice, it is one list."""
    found = []
    for value in values(headers, row.header):
        if len(value) > VALUE_BYTES_MAX:
            raise _Unfit("malformed", f"{row.header.decode()}: {len(value)} bytes")
        parts = value.split(row.separator, ENTRIES_MAX) if row.separator else [value]
        found += [part.strip(b" \t") for part in parts]
    return found[:ENTRIES_MAX]


def _single(headers: Iterable[Header], name: bytes) -> bytes:
    """The value of a header that is signed. One that was sent twice would let the sender choose what is believed."""
    sent = values(headers, name)
    if len(sent) != 1:
        raise _Unfit("malformed", f"{name.decode()}: given {len(sent)} times")
    if len(sent[0]) > VALUE_BYTES_MAX:
        raise _Unfit("malformed", f"{name.decode()}: {len(sent[0])} bytes")
    return sent[0]


def _time(row: Layout, entries: list[bytes], headers: Iterable[Header]) -> bytes:
    if row.time.endswith(b"="):
        times = [entry.removeprefix(row.time) for entry in entries if entry.startswith(row.time)]
        if len(times) != 1:
            raise _Unfit("malformed", f"{row.header.decode()}: {len(times)} times in it")
        time = times[0]
    else:
        time = _single(headers, row.time)
    if not _TIME.fullmatch(time):
        raise _Unfit("malformed", f"{row.time.decode()}: not unix seconds")
    return time


def _of_twilio(row: Layout, headers: Iterable[Header]) -> Layout:
    """Twilio names the digest in a header of its own, where it is not SHA-1."""
    if Part.FORM not in row.signs:
        return row
    for settings in values(headers, _TWILIO_SETTINGS):
        for part in settings[:VALUE_BYTES_MAX].split(b",", ENTRIES_MAX):
            name, _, value = part.partition(b"=")
            if name.strip() == b"algorithm":
                digest = _TWILIO_DIGESTS.get(value.strip().upper())
                if digest is None:
                    raise _Unfit("malformed", f"{_TWILIO_SETTINGS.decode()}: not HMAC_SHA1 or HMAC_SHA256")
                return row._replace(digest=digest)
    return row


def _given(row: Layout, entries: list[bytes]) -> list[bytes]:
    """The signatures that could be right, in the one case that is compared. Other versions count for nothing."""
    if not row.digest:
        found = [hashlib.sha256(entry).digest() for entry in entries if entry]
        wanted = "a secret"
    else:
        length = len(_expected(row, b"", b""))
        of_version = [entry[len(row.version) :] for entry in entries if entry.startswith(row.version)]
        digits = _DIGITS[row.encoding]
        found = [entry for entry in of_version if len(entry) == length and digits.fullmatch(entry)]
        wanted = f"{row.version.decode()} and {length} digits of {row.encoding}"
    if not found:
        raise _Unfit("malformed", f"{row.header.decode()}: nothing in it is {wanted}")
    return [entry.lower() for entry in found] if row.digest and row.encoding == "hex" else found


def _expected(row: Layout, secret: bytes, text: bytes) -> bytes:
    if not row.digest:
        return hashlib.sha256(secret).digest()  # of digests, not even the length is told by the time it takes
    digest = hmac.digest(secret, text, row.digest)
    return digest.hex().encode() if row.encoding == "hex" else b64encode(digest)


def _texts(row: Layout, request: Signed, time: bytes | None) -> list[bytes]:
    """What may have been signed: one text, or two where it is not known how the provider writes our URL."""
    if row.signs == (Part.BODY,):
        return [request.body]
    parts = {Part.BODY: request.body, Part.TIME: time or b""}
    if Part.ID in row.signs:
        parts[Part.ID] = _single(request.headers, row.id_header)
        if not parts[Part.ID]:
            raise _Unfit("malformed", f"{row.id_header.decode()}: empty")
    if Part.FORM in row.signs:
        parts[Part.FORM] = _form(request)
    urls = _urls(request.url) if Part.URL in row.signs else [b""]
    return [
        b"".join(part if isinstance(part, bytes) else parts.get(part, url) for part in row.signs)
        for url in urls
    ]


def _form(request: Signed) -> bytes:
    """What is signed after the URL. Other bodies than forms are signed by a digest in the URL's query."""
    digest = _BODY_DIGEST.search(request.url)
    if digest:
        # Looked at with forms, too: else who has one signed request could send it anew with an empty form.
        sent = digest[1].lower().encode(errors="replace")
        if not hmac.compare_digest(hashlib.sha256(request.body).hexdigest().encode(), sent):
            raise _Unfit("mismatch", "the body is not the one of bodySHA256")
    if request.is_form:
        try:
            pairs = forms.pairs(request.body)
        except InvalidRequest as error:
            raise _Unfit("malformed", error.detail) from None
        return "".join(name + value for name, value in sorted(set(pairs))).encode()
    if request.body and not digest:
        raise _Unfit("malformed", "a body that is no form, and no bodySHA256 in the URL: it is not signed")
    return b""


def _urls(url: str) -> list[bytes]:
    """The URL without a port and with one, as Twilio may have signed either."""
    host = _HOST.match(url)
    if not host:
        return [url.encode(errors="replace")]
    bare = _PORT.sub("", host[2])
    port = _PORT.search(host[2])
    ported = host[2] if port else bare + _PORTS[host[1].lower()]
    return [f"{host[1]}://{name}{url[host.end() :]}".encode(errors="replace") for name in (bare, ported)]
