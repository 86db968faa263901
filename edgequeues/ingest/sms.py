"""A text message as Twilio posts it: a form, https://www.twilio.com/docs/messaging/guides/webhook-request."""

from __future__ import annotations

import re

from msgspec import Struct

from edgequeues.core import forms
from edgequeues.core.errors import InvalidRequest
from edgequeues.ingest.mail_text import clean

FILES_LISTED_MAX = 100  # Twilio has 10 in a message

_SID = re.compile(r"(?:SM|MM)[0-9A-Za-z]{32}")
_ACCOUNT = re.compile(r"AC[0-9A-Za-z]{32}")
_PHONE = re.compile(r"\+[1-9][0-9]{1,14}")
_COUNT = re.compile(r"[0-9]{1,3}")
_MEDIA = re.compile(r"[a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127}")


class Medium(Struct, frozen=True):
    """A picture or the like. number: from 0. content_type: as Twilio has it, before anything was fetched."""

    number: int
    url: str
    content_type: str


class Sms(Struct, frozen=True):
    """What a text message says. sid: its id, account: whose number it came to."""

    sid: str
    account: str
    sender: str
    recipient: str
    text: str
    media: list[Medium]


def parse(body: bytes) -> Sms:
    """Take the form apart. Raises InvalidRequest, which repeats no number and no text."""
    fields = dict(forms.pairs(body))
    sid = fields.get("MessageSid") or fields.get("SmsMessageSid", "")
    return Sms(
        sid=_matching(_SID, "MessageSid", sid),
        account=_matching(_ACCOUNT, "AccountSid", fields.get("AccountSid", "")),
        sender=_matching(_PHONE, "From", fields.get("From", "")),
        recipient=_matching(_PHONE, "To", fields.get("To", "")),
        text=clean(fields.get("Body", "")),
        media=[_medium(fields, number) for number in range(_count(fields))],
    )


def _matching(pattern: re.Pattern[str], name: str, value: str) -> str:
    if pattern.fullmatch(value) is None:
        what = "missing" if not value else "not what Twilio sends there"
        raise InvalidRequest(f"form: the field {name} is {what}")
    return value


def _count(fields: dict[str, str]) -> int:
    count = int(_matching(_COUNT, "NumMedia", fields.get("NumMedia", "") or "0"))
    if count > FILES_LISTED_MAX:
        raise InvalidRequest(f"form: NumMedia is {count}, at most {FILES_LISTED_MAX} are looked at")
    return count


def _medium(fields: dict[str, str], number: int) -> Medium:
    url = fields.get(f"MediaUrl{number}", "")
    if not url or len(url) > 2_048:
        raise InvalidRequest(f"form: the field MediaUrl{number} is missing or longer than 2048 characters")
    media = fields.get(f"MediaContentType{number}", "").partition(";")[0].strip().lower()
    return Medium(number, url, media if _MEDIA.fullmatch(media) else "application/octet-stream")
