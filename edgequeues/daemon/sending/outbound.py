"""Replies over an outbound worker: a small service of the operator's that holds the providers' credentials.

`POST {url}/email {to, subject?, text?, html?, headers}` and `POST {url}/sms {to, body, mediaUrls?}`, with a bearer
token and an Idempotency-Key; any 2xx means taken.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgequeues.daemon.contract import EmailReply
from edgequeues.daemon.outbox import Outgoing
from edgequeues.daemon.sending import message
from edgequeues.daemon.sending.api import Api


class OutboundPost:
    """Hands mails and text messages to one worker. domain: of the Message-IDs."""

    def __init__(self, api: Api, token: str, domain: str) -> None:
        self._api = api
        self._token = token
        self._domain = domain

    async def send(self, outgoing: Outgoing) -> None:
        """Raises TryAgain, GiveUp with the codes of the channel."""
        body: dict[str, Any] = msgspec.to_builtins(outgoing.reply)
        del body["channel"]
        if isinstance(outgoing.reply, EmailReply):
            body["headers"] = message.thread_headers(outgoing, self._domain)
        await self._api.post(
            outgoing.channel,
            f"/{outgoing.channel}",
            json=body,
            headers={"authorization": f"Bearer {self._token}", "idempotency-key": outgoing.key()},
        )
