"""What is said of webhooks, mails and text messages."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from edgequeues.core import errors
from edgequeues.http import problems
from edgequeues.http.ingest import MAIL, TakenOut
from edgequeues.openapi.op import ANYTHING, JSON, Answer, Body, Chapter, Op, Param
from edgequeues.openapi.spaces import SPACE
from edgequeues.spec.values import MessageState

FORM = "application/x-www-form-urlencoded"
TWIML = "text/xml"


class HookMessage(Struct, frozen=True):
    """What became of a message. filtered: it is not wanted. duplicate: it came before; state: what became of it."""

    filtered: bool | UnsetType = UNSET
    queued: bool | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET
    message_id: str | UnsetType = UNSET
    duplicate: bool | UnsetType = UNSET
    state: MessageState | UnsetType = UNSET
    error: str | UnsetType = UNSET
    result: Any = UNSET


class HookTaken(HookMessage, frozen=True, kw_only=True):
    """What became of the one message of a call."""

    ok: Literal[True]


class HookMany(Struct, frozen=True):
    """What became of each message of a call. queued: is any of them still to be worked?"""

    ok: Literal[True]
    queued: bool
    messages: list[HookMessage]


class HookCommand(Struct, frozen=True):
    """What came of a command."""

    idempotency_key: str
    result: Any
    duplicate: bool | UnsetType = UNSET


class HookCommandTaken(HookCommand, frozen=True, kw_only=True):
    """What came of the one command of a call."""

    ok: Literal[True]


class HookCommands(Struct, frozen=True):
    """What came of each command of a call."""

    ok: Literal[True]
    commands: list[HookCommand]


class HookChallenge(Struct, frozen=True):
    """The answer to Slack's challenge."""

    challenge: str


_FAULTS = (
    errors.HookNotFound,
    errors.HookBlocked,
    errors.BadSignature,
    problems.Forbidden,
    problems.NotReady,
    errors.UnsupportedMedia,
    errors.InvalidMessage,
    errors.QueueFull,
    errors.CommandRejected,
    errors.CommandFailed,
    errors.TooManySpaces,
    errors.RateLimited,
)
_TAKEN = {JSON: (HookTaken, HookMany), TWIML: {"type": "string"}}
_BODY = Body({JSON: ANYTHING, FORM: {"type": "object"}}, {"id": "evt_1", "type": "ping"})


def _hook(name: str) -> Op:
    return Op(
        {
            200: Answer(
                "All of it is over: done, not wanted, or it came before.",
                {
                    JSON: (HookTaken, HookMany, HookCommandTaken, HookCommands, HookChallenge),
                    TWIML: {"type": "string"},
                },
            ),
            202: Answer("It is on disk, and still to be worked.", _TAKEN),
        },
        body=_BODY,
        errors=_FAULTS,
        id=name,
    )


NAME = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")]

HOOKS = Chapter(
    "Webhooks: a signed POST becomes a durable message or a command, once. In words: `docs/protocol/hooks.md`.",
    {"POST /hook/{hook}": _hook("hook"), "POST /hook/{hook}/{in_space}": _hook("hook_of_space")},
    {
        "hook": Param("hook", NAME, "A webhook's name; with a second part: the space's id."),
        "in_space": Param("in_space", NAME, "The webhook's name."),
    },
    strict=False,
)

INGEST = Chapter(
    "Mails and text messages become events. In words: `docs/protocol/ingest.md`.",
    {
        "POST /ingest/email": Op(
            {
                200: Answer("It came before.", {JSON: TakenOut}),
                202: Answer("It is on disk.", {JSON: TakenOut}),
            },
            headers=(
                Param("edgequeues-envelope-from", str, "The sender of the envelope."),
                Param("edgequeues-envelope-to", str, "The recipient of the envelope."),
            ),
            body=Body(dict.fromkeys(MAIL, ANYTHING), "From: a@example.com\n\nHello\n"),
            errors=(
                errors.UnsupportedMedia,
                errors.EmailParseFailed,
                errors.R2PutFailed,
                errors.QueuePublishFailed,
                errors.InvalidMessage,
                errors.BlobConflict,
            ),
        ),
        "POST /ingest/sms": Op(
            {
                200: Answer("It came before.", {TWIML: {"type": "string"}}),
                202: Answer("It is on disk.", {TWIML: {"type": "string"}}),
            },
            headers=(Param("x-twilio-signature", str, "As Twilio signs."),),
            body=Body({FORM: {"type": "object", "additionalProperties": {"type": "string"}}}),
            errors=(
                problems.NotReady,
                errors.UnsupportedMedia,
                errors.TwilioSignatureInvalid,
                errors.MmsMediaTooLarge,
                errors.MmsFetchFailed,
                errors.R2PutFailed,
                errors.QueuePublishFailed,
                errors.InvalidMessage,
            ),
        ),
    },
    {"space": SPACE},
)
