"""What may be sent at all, judged here before any provider is asked."""

from __future__ import annotations

import re
from typing import Final

import httpx
import msgspec

from edgequeues.daemon.contract import EmailReply, GiveUp, Reply, SmsReply

RECIPIENTS_MAX = 50  # of one mail; what Postmark and SES take
EMAIL_BYTES_MAX = 5 * 1024 * 1024  # of text and HTML together
MEDIA_MAX = 10  # of one text message; what Twilio takes
URL_CHARS_MAX = 2_048

CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")
# An address without a name, quotes, comments or an IP address: nothing in it means anything to a header.
_ADDRESS: Final = re.compile(
    r"[^\s@<>(),:;\"\\\[\]\x00-\x20\x7f-\x9f]+@[^\s@<>(),:;\"\\\[\]\x00-\x20\x7f-\x9f]+"
)


def is_address(text: str) -> bool:
    """Is this one bare mail address that can stand in a header?"""
    if "=?" in text:  # the beginning of an encoded word, in which anything may hide
        return False
    return len(text) <= 320 and _ADDRESS.fullmatch(text) is not None and CONTROLS.search(text) is None


def check(reply: Reply) -> None:
    """Raises GiveUp unless `reply`, which says where to go, may be sent.

    A handler makes a reply without any check, so this looks at its types and limits too.
    """
    try:
        msgspec.json.decode(msgspec.json.encode(reply), type=type(reply))
    except (msgspec.ValidationError, UnicodeEncodeError, TypeError, RecursionError) as error:
        told = (
            str(error)
            if isinstance(error, msgspec.ValidationError)
            else "a text that is not Unicode, or no text"
        )
        raise GiveUp(f"the reply cannot be sent: {told}") from None
    if isinstance(reply, EmailReply):
        _check_email(reply)
    else:
        _check_sms(reply)


def _check_email(reply: EmailReply) -> None:
    if not reply.to:
        raise GiveUp("the reply has nowhere to go: neither its `to` nor the event's `reply` names an address")
    if len(reply.to) > RECIPIENTS_MAX:
        raise GiveUp(
            f"the reply goes to {len(reply.to)} addresses; {RECIPIENTS_MAX} are the most for one mail"
        )
    if not all(map(is_address, reply.to)):
        raise GiveUp("`to` of the reply holds something else than bare addresses such as `name@example.com`")
    if CONTROLS.search(reply.subject or ""):
        raise GiveUp("the subject of the reply holds a line break or another control character; take it out")
    if not reply.text and not reply.html:
        raise GiveUp("the reply says nothing: give it `text`, `html` or both")
    size = len((reply.text or "").encode()) + len((reply.html or "").encode())
    if size > EMAIL_BYTES_MAX:
        raise GiveUp(f"the reply has {size} bytes; {EMAIL_BYTES_MAX} are the most. Send a link instead")


def _check_sms(reply: SmsReply) -> None:
    if reply.to is None:
        raise GiveUp("the reply has nowhere to go: neither its `to` nor the event's `reply` names a number")
    if len(reply.media_urls) > MEDIA_MAX:
        raise GiveUp(f"the reply has {len(reply.media_urls)} media; {MEDIA_MAX} are the most for one message")
    if not all(map(_is_https, reply.media_urls)):
        raise GiveUp("`mediaUrls` of the reply must be https:// links without a user name; one is not")


def _is_https(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return len(text) <= URL_CHARS_MAX and url.scheme == "https" and bool(url.host) and not url.userinfo
