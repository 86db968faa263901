"""Why a reply did not leave, with the catalogue's codes. No text of these holds an address, a number or a body."""

from __future__ import annotations

from typing import Final

from edgequeues.daemon.contract import GiveUp, TryAgain
from edgequeues.events.event import Source


class EmailNotSent(TryAgain):
    """A mail did not leave, and may when it is tried again."""

    code = "REPLY_EMAIL_SEND_FAILED"


class EmailRefused(GiveUp):
    """A mail was refused for good."""

    code = "REPLY_EMAIL_SEND_FAILED"


class SmsNotSent(TryAgain):
    """A text message did not leave, and may when it is tried again."""

    code = "REPLY_SMS_SEND_FAILED"


class SmsRefused(GiveUp):
    """A text message was refused for good."""

    code = "REPLY_SMS_SEND_FAILED"


class Unauthorized(GiveUp):
    """The provider does not take our credentials; a person must mend the settings."""

    code = "OUTBOUND_UNAUTHORIZED"


NOT_SENT: Final[dict[Source, type[TryAgain]]] = {"email": EmailNotSent, "sms": SmsNotSent}
REFUSED: Final[dict[Source, type[GiveUp]]] = {"email": EmailRefused, "sms": SmsRefused}
