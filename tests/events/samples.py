"""Events that are sound, as their producers write them."""

from __future__ import annotations

import json
from typing import Any

KEY = "email/2026/01/31/0b9e0000-0000-4000-8000-00000000e001/att/1-resume.pdf"
LINK = {"presignedGetUrl": "https://blobs.example.com/x?y=1", "expiresAt": "2026-02-07T00:00:00Z"}


def email() -> dict[str, Any]:
    """A mail with all that one can have."""
    return {
        "id": "0b9e0000-0000-4000-8000-00000000e001",
        "source": "email",
        "receivedAt": "2026-01-31T23:59:59.999Z",
        "priority": "high",
        "tags": ["vip"],
        "participants": {"fromEmail": "jane@example.org", "fromName": "Jane", "toEmail": "inbox@example.com"},
        "content": {
            "subject": "Re: Request",
            "text": "Hello.\n",
            "htmlR2": {"bucket": "switchboard-ingress", "key": KEY.replace("att/1-resume.pdf", "body.html")},
            "attachments": [
                {
                    "id": "att-1",
                    "filename": "Résumé.pdf",
                    "contentType": "application/pdf",
                    "size": 12345,
                    "r2": {"bucket": "switchboard-ingress", "key": KEY, **LINK},
                }
            ],
        },
        "correlation": {
            "threadKey": "0123456789abcdef0123456789abcdef",
            "messageId": "<2@example.org>",
            "inReplyTo": "<1@example.com>",
            "references": "<1@example.com>",
        },
        "reply": {"channel": "email", "toEmail": ["jane@example.org"]},
    }


def sms() -> dict[str, Any]:
    """A text message."""
    return {
        "id": "SM0123456789abcdef0123456789abcdef",
        "source": "sms",
        "receivedAt": "2026-01-31T00:00:00Z",
        "participants": {"fromPhoneE164": "+15557654321", "toPhoneE164": "+15551234567"},
        "content": {"text": "Hello"},
        "correlation": {
            "threadKey": "0123456789abcdef",
            "twilioMessageSid": "SM0123456789abcdefghij0123456789XY",
        },
        "reply": {"channel": "sms", "toPhoneE164": "+15557654321"},
    }


def body(event: object) -> bytes:
    """An event as the body of a message."""
    return json.dumps(event).encode()
