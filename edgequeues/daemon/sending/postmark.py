"""Mail over Postmark, https://postmarkapp.com/developer/api/email-api."""

from __future__ import annotations

from typing import Any, Final

from edgequeues.daemon.contract import EmailReply
from edgequeues.daemon.outbox import Outgoing
from edgequeues.daemon.sending import message
from edgequeues.daemon.sending.api import Api
from edgequeues.daemon.sending.message import Mailbox

NO_CREDITS = 405  # for now
URL: Final = "https://api.postmarkapp.com"


class PostmarkPost:
    """Hands mails to Postmark, which takes 429 and 5xx again, and refuses for good by a code of its own."""

    def __init__(self, api: Api, token: str, sender: Mailbox, reply_to: Mailbox | None) -> None:
        self._api = api
        self._token = token
        self._sender = sender
        self._reply_to = reply_to

    async def send(self, outgoing: Outgoing) -> None:
        """Raises EmailNotSent, EmailRefused, Unauthorized, GiveUp."""
        reply = outgoing.reply
        assert isinstance(reply, EmailReply)
        # X-PM-KeepID has them send our Message-ID instead of making one.
        headers = {"X-PM-KeepID": "true", **message.thread_headers(outgoing, self._sender.domain)}
        body: dict[str, Any] = {
            "From": message.shown(self._sender),
            "To": ", ".join(message.recipients(reply, self._sender)),
            "Subject": reply.subject or "",
            "Headers": [{"Name": name, "Value": value} for name, value in headers.items()],
        }
        if reply.text:
            body["TextBody"] = reply.text
        if reply.html:
            body["HtmlBody"] = reply.html
        if self._reply_to is not None:
            body["ReplyTo"] = message.shown(self._reply_to)
        await self._api.post(
            "email",
            "/email",
            code="ErrorCode",
            again=(NO_CREDITS,),
            json=body,
            headers={"X-Postmark-Server-Token": self._token, "accept": "application/json"},
        )
