"""How each provider signs what it sends: one table. `edgequeues.core.signatures` checks by it.

docs/providers says the same in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Literal, NamedTuple

from edgequeues.core.forms import FormRule

Header = tuple[bytes, bytes]  # name in lower case, and value
Encoding = Literal["hex", "base64"]

EVENT_ID_CHARACTERS_MAX = 256
_EVENT_NUMBER_MAX = 10**40  # longer ones are no ids, and Python is slow to write them


class Part(Enum):
    """What signed bytes are made of, besides text that is always the same."""

    BODY = auto()
    TIME = auto()  # as it was sent
    ID = auto()
    URL = auto()  # under which the provider knows us
    FORM = auto()  # names and values of a form, sorted and run together


class Layout(NamedTuple):
    """One way to sign.

    header: of the signature. signs: what is signed. version: stands in front of each signature that counts.
    separator: between signatures; empty: there is one a header. digest: empty where the header holds the secret.
    time: the header of the signed time; where it ends in `=`, the entry beside the signatures. id_header: of the
    signed id. event_ids: where the provider's id of the event is, the best first: bytes name a header, a text a path
    in the body; of those in one row, the first is needed and the others are added where they are there.
    """

    header: bytes
    signs: tuple[bytes | Part, ...]
    version: bytes = b""
    separator: bytes = b","
    digest: str = "sha256"
    encoding: Encoding = "hex"
    time: bytes = b""
    id_header: bytes = b""
    event_ids: tuple[tuple[bytes | str, ...], ...] = ()
    form: FormRule = "either"

    @property
    def is_timed(self) -> bool:
        """Does the signature cover a time?"""
        return Part.TIME in self.signs


def _standard(family: bytes) -> Layout:
    return Layout(
        header=family + b"-signature",
        signs=(Part.ID, b".", Part.TIME, b".", Part.BODY),
        version=b"v1,",
        separator=b" ",
        encoding="base64",
        time=family + b"-timestamp",
        id_header=family + b"-id",
        event_ids=((family + b"-id",),),
    )


# Where a scheme has several layouts, the first one whose header was sent counts.
SCHEMES: dict[str, tuple[Layout, ...]] = {
    "pagerduty": (
        Layout(
            header=b"x-pagerduty-signature",
            signs=(Part.BODY,),
            version=b"v1=",
            event_ids=(("event.id",), (b"x-webhook-id",)),
        ),
    ),
    "github": (
        Layout(
            header=b"x-hub-signature-256",
            signs=(Part.BODY,),
            version=b"sha256=",
            event_ids=((b"x-github-delivery",),),
            form="payload",
        ),
    ),
    "stripe": (
        Layout(
            header=b"stripe-signature",
            signs=(Part.TIME, b".", Part.BODY),
            version=b"v1=",
            time=b"t=",
            event_ids=(("id",),),
        ),
    ),
    "slack": (
        Layout(
            header=b"x-slack-signature",
            signs=(b"v0:", Part.TIME, b":", Part.BODY),
            version=b"v0=",
            time=b"x-slack-request-timestamp",
            event_ids=(("event_id",),),
        ),
    ),
    "twilio": (
        Layout(
            header=b"x-twilio-signature",
            signs=(Part.URL, Part.FORM),
            digest="sha1",
            encoding="base64",
            # A message or a call is reported on several times: each state of it is an event.
            event_ids=(("MessageSid", "MessageStatus"), ("CallSid", "CallStatus", "SequenceNumber")),
            form="fields",
        ),
    ),
    "standard": (_standard(b"webhook"), _standard(b"svix")),
    "hmac": (Layout(header=b"", signs=(Part.BODY,)),),
    "token": (Layout(header=b"", signs=(), separator=b"", digest=""),),
}


def scheme_of(header: str) -> str | None:
    """The scheme whose signature is in the header of this name; None: it is nobody's."""
    name = header.lower().encode(errors="replace")
    return next(
        (scheme for scheme, rows in SCHEMES.items() if name and name in {row.header for row in rows}), None
    )


def is_timed(scheme: str) -> bool:
    """Does the signature cover a time, by itself? One of `hmac` does where it is told a header of it."""
    return SCHEMES[scheme][0].is_timed


def form_rule(scheme: str) -> FormRule:
    """What a form's event is, where the scheme's provider sends one."""
    return SCHEMES[scheme][0].form


def values(headers: Iterable[Header], name: bytes) -> list[bytes]:
    """Every value of a header, in the order in which they were sent."""
    return [value for key, value in headers if key == name]


def layout(rows: tuple[Layout, ...], headers: Iterable[Header]) -> Layout | None:
    """The layout whose header was sent, the first if there are several; None: no header of any."""
    names = {key for key, _ in headers}
    return next((row for row in rows if row.header in names), None)


def event_id(scheme: str, headers: Iterable[Header], body: object) -> str | None:
    """The provider's id of the event, of at most 256 printable characters; None: it has none that will do.

    body: decoded, or None. A header that was sent twice is no id.
    """
    headers = list(headers)
    rows = SCHEMES[scheme]
    for places in (layout(rows, headers) or rows[0]).event_ids:
        first, *others = (_found(place, headers, body) for place in places)
        if first is not None:
            whole = ":".join([first, *(other for other in others if other is not None)])
            return whole if len(whole) <= EVENT_ID_CHARACTERS_MAX else None
    return None


def _found(place: bytes | str, headers: list[Header], body: object) -> str | None:
    if isinstance(place, bytes):
        sent = values(headers, place)
        return _id(sent[0].decode("latin-1")) if len(sent) == 1 else None
    for name in place.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return _id(body)


def _id(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _EVENT_NUMBER_MAX:
        return str(value)
    if isinstance(value, str) and 0 < len(value) <= EVENT_ID_CHARACTERS_MAX and value.isprintable():
        return value  # halves of surrogate pairs and NUL are not printable
    return None
