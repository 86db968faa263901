"""From the bytes of a message to an event, or why it is none: told without anything of what was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from edgequeues.core import jsontext, times
from edgequeues.core.errors import InvalidJson
from edgequeues.events.catalogue import CATALOGUE
from edgequeues.events.event import BlobRef, SwitchboardEvent

BYTES_MAX = 128_000  # as much as a message may have at Cloudflare

_DECODER = msgspec.json.Decoder(SwitchboardEvent)
_ENCODER = msgspec.json.Encoder()
_PLACED = re.compile(r"(.*?)(?: - at `(\$[A-Za-z0-9.\[\]]*)`)?", re.DOTALL)
_LOOKED_INTO = (b"{", b"[", b"n")  # what may hold a name twice, or is null
_NAME = re.compile(r"[A-Za-z]{1,32}")


class MalformedEvent(ValueError):
    """A message that is no event. No attempt can succeed. Its text begins with the code."""

    code = CATALOGUE["MALFORMED_EVENT"].code

    def __init__(self, place: str, fault: str) -> None:
        super().__init__(f"{self.code}: {place}: {fault}")


def read(body: bytes) -> SwitchboardEvent:
    """The event that a message's body is. Raises MalformedEvent, which names the first fault."""
    if len(body) > BYTES_MAX:
        raise MalformedEvent("$", f"{len(body)} bytes, at most {BYTES_MAX} are an event")
    event = _plain(body) or _looked_into(body)
    _check_times(event)
    _check_source(event)
    return event


def _plain(body: bytes) -> SwitchboardEvent | None:
    """The event, where that is cheap to be sure of; None: it takes a closer look.

    The structs know every member, so msgspec skips nothing that `jsontext` would have to judge. What is given twice,
    null, or written though it is the default, is not in the event any more. Each has a name of two quotes, so the
    event written anew has fewer of them; without escapes like `\u0022`, a quote can be written in one way only.
    """
    try:
        event = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeError):
        return None
    if b"\\u" in body or body.count(b'"') != _ENCODER.encode(event).count(b'"'):
        return None
    return event


def _looked_into(body: bytes) -> SwitchboardEvent:
    """The event, with the first fault told. Raises MalformedEvent."""
    try:
        jsontext.check(body)
    except InvalidJson as error:
        raise MalformedEvent("$", error.detail) from None
    try:
        event = _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise _told(str(error)) from None
    except (msgspec.DecodeError, UnicodeError):
        raise MalformedEvent("$", "half a surrogate pair in a text") from None
    _check_members(body, "$")
    return event


def _told(said: str) -> MalformedEvent:
    """What msgspec says, without what was sent: it quotes names of members, and values where few are allowed."""
    found = _PLACED.fullmatch(said)
    assert found is not None
    fault, place = found[1], found[2] or "$"
    name = re.fullmatch(r"Object contains unknown field `(.*)`", fault, re.DOTALL)
    if name is not None:
        known = _NAME.fullmatch(name[1])
        fault = f"member {name[1]} is not known" if known else "a member is not known"
    elif fault.startswith("Invalid enum value"):
        fault = "none of the values that are allowed"
    elif fault.startswith("Object missing required field"):
        fault = fault.replace("Object missing required field", "lacks member").replace("`", "")
    return MalformedEvent(place, fault[:1].lower() + fault[1:])


def _check_members(text: bytes, place: str) -> None:
    """Raises MalformedEvent where a member is given twice, or null: what is not there is left out."""
    if text.startswith(b"["):
        for number, element in enumerate(jsontext.elements(text)):
            _check_members(element, f"{place}[{number}]")
    elif text.lstrip().startswith(b"{"):
        seen = set()
        for name, value in jsontext.members(text):
            if name in seen:
                raise MalformedEvent(place, f"member {name} is given twice")
            seen.add(name)
            if value[:1] in _LOOKED_INTO:
                _check_members(value, f"{place}.{name}")
    elif text == b"null":
        raise MalformedEvent(place, "null, where a member that is absent is left out")


def _check_times(event: SwitchboardEvent) -> None:
    """Raises MalformedEvent for days and hours that there are not, and for a link without its end."""
    _check_time(event.received_at, "$.receivedAt")
    for place, ref in _refs(event):
        if (ref.presigned_get_url is None) != (ref.expires_at is None):
            raise MalformedEvent(place, "presignedGetUrl and expiresAt are given together or not at all")
        if ref.expires_at is not None:
            _check_time(ref.expires_at, f"{place}.expiresAt")


def _refs(event: SwitchboardEvent) -> Iterator[tuple[str, BlobRef]]:
    if event.content.html_r2 is not None:
        yield "$.content.htmlR2", event.content.html_r2
    for number, one in enumerate(event.content.attachments):
        yield f"$.content.attachments[{number}].r2", one.r2


def _check_time(text: str, place: str) -> None:
    try:
        times.unix_ms(text)
    except ValueError:
        raise MalformedEvent(place, "no time that there is") from None


def _check_source(event: SwitchboardEvent) -> None:
    """Raises MalformedEvent where something is missing that events of this source need."""
    who, where = event.participants, "$.participants"
    needed: tuple[tuple[str, str, object], ...]
    if event.source == "email":
        needed = ((where, "fromEmail", who.from_email), (where, "toEmail", who.to_email))
    else:
        needed = (
            (where, "fromPhoneE164", who.from_phone_e164),
            (where, "toPhoneE164", who.to_phone_e164),
            ("$.correlation", "twilioMessageSid", event.correlation.twilio_message_sid),
        )
    for place, name, value in needed:
        if value is None:
            raise MalformedEvent(place, f"lacks member {name}, which events of source {event.source} have")
