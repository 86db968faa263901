"""The catalogue of faults: what can go wrong between a sender and a handler, and what becomes of the message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct


class Fault(Struct, frozen=True):
    """One code. retryable: may another attempt succeed? outcome: what becomes of it. remedy: what to do."""

    code: str
    retryable: bool
    outcome: str
    remedy: str


_FAULTS = (
    Fault(
        "EMAIL_PARSE_FAILED",
        False,
        "The mail is kept as a dead letter.",
        "Look at the dead letter; where the mail is sound, report it.",
    ),
    Fault(
        "R2_PUT_FAILED",
        True,
        "The sender gets a 5xx and sends again.",
        "See whether the object store is reachable and has room.",
    ),
    Fault(
        "QUEUE_PUBLISH_FAILED",
        True,
        "The sender gets a 5xx and sends again.",
        "See whether the inbox is there and takes messages.",
    ),
    Fault(
        "TWILIO_SIGNATURE_INVALID",
        False,
        "The request is answered 401; nothing is stored.",
        "Compare the auth token and the public URL with those at Twilio.",
    ),
    Fault(
        "MMS_MEDIA_TOO_LARGE",
        False,
        "The medium is left out, and a tag of the event says so.",
        "Raise the limits on media, or ask the sender for less.",
    ),
    Fault(
        "MMS_FETCH_FAILED",
        True,
        "The sender gets a 5xx and sends again.",
        "See whether Twilio's media can be reached with these credentials.",
    ),
    Fault(
        "CONSUMER_HANDLER_ERROR",
        True,
        "The attempt counts; after the last one the message is a dead letter.",
        "Read the error in the log, mend the handler, replay the dead letters.",
    ),
    Fault(
        "REPLY_EMAIL_SEND_FAILED",
        True,
        "Sending is tried again.",
        "See whether the mail provider is reachable, and what it says.",
    ),
    Fault(
        "REPLY_SMS_SEND_FAILED",
        True,
        "Sending is tried again.",
        "See whether Twilio is reachable, and what it says.",
    ),
    Fault(
        "OUTBOUND_UNAUTHORIZED",
        False,
        "The message is a dead letter at once.",
        "Correct the credentials of the provider, then replay.",
    ),
    Fault(
        "POLICY_VIOLATION",
        False,
        "The message is a dead letter at once.",
        "See what was refused: nothing was sent.",
    ),
    Fault(
        "MALFORMED_EVENT",
        False,
        "The message is a dead letter at once, and no handler sees it.",
        "Correct the producer: the error names the first fault and its place.",
    ),
)
CATALOGUE: Final[Mapping[str, Fault]] = {one.code: one for one in _FAULTS}


def table() -> str:
    """The catalogue as a table for the documents."""
    rows = [
        f"| `{one.code}` | {'yes' if one.retryable else 'no'} | {one.outcome} | {one.remedy} |"
        for one in _FAULTS
    ]
    return (
        "\n".join(["| code | tried again | what happens | what to do |", "|---|---|---|---|", *rows]) + "\n"
    )
