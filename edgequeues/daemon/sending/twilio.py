"""Text messages over Twilio, https://www.twilio.com/docs/messaging/api/message-resource.

Twilio has no idempotency key for messages: one whose answer was lost is sent again.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from edgequeues.daemon.contract import SmsReply
from edgequeues.daemon.outbox import Outgoing
from edgequeues.daemon.sending.api import Api

URL: Final = "https://api.twilio.com"
ACCOUNT: Final = re.compile(r"AC[0-9a-fA-F]{32}")


class TwilioPost:
    """Hands text messages to Twilio. number: whom they are from, E.164."""

    def __init__(self, api: Api, account: str, token: str, number: str) -> None:
        self._api = api
        self._path = f"/2010-04-01/Accounts/{account}/Messages.json"
        login = base64.b64encode(f"{account}:{token}".encode()).decode()
        self._headers = {"authorization": f"Basic {login}"}
        self._number = number

    async def send(self, outgoing: Outgoing) -> None:
        """Raises SmsNotSent, SmsRefused, Unauthorized."""
        reply = outgoing.reply
        assert isinstance(reply, SmsReply)
        form: dict[str, Any] = {"To": reply.to, "From": self._number, "Body": reply.body}
        if reply.media_urls:
            form["MediaUrl"] = reply.media_urls
        await self._api.post("sms", self._path, code="code", data=form, headers=self._headers)
