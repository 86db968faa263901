"""What is said of the admin API. Its times are unix seconds."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from edgequeues.core import errors
from edgequeues.http.admin_codec import EditLetter, LetterRow, PurgeLetters, ReplayLetters, TryLetter
from edgequeues.http.watching import PART_LENGTH_MAX
from edgequeues.models import UNIX_MS_MAX, Kind
from edgequeues.models_letters import LetterReason, ReplayOutcome
from edgequeues.openapi import backups
from edgequeues.openapi.op import EVENTS, Answer, Chapter, Op, Page, Param, Text, Whole, json, ok
from edgequeues.openapi.spaces import SPACE
from edgequeues.space.letters import Envelope
from edgequeues.space.overview import QUEUES_MAX
from edgequeues.spec.trying import Misfit

UnixS = Annotated[int, Meta(ge=0, le=UNIX_MS_MAX // 1_000)]


class QueueStates(Struct, frozen=True):
    """Messages by state, of all consumers."""

    scheduled: int
    waiting: int
    ready: int
    leased: int
    backoff: int


class QueueRates(Struct, frozen=True, rename={"came": "in", "done": "out"}):
    """Messages that came, and that were acked, in each of the last 60 seconds, the oldest first."""

    came: list[int]
    done: list[int]


class QueueDoing(Struct, frozen=True):
    """How a queue is doing. depth: messages that wait. in_flight: those that are handed out."""

    id: str
    name: str
    kind: Kind
    paused: bool
    entries: int
    depth: int
    in_flight: int
    states: QueueStates
    oldest_message_age_seconds: int | None
    oldest_ready_age_seconds: int | None
    messages_per_minute: int
    rates: QueueRates


class QueuesDoing(Struct, frozen=True):
    """Queues by id. next: pass it as `after`; left out at the end."""

    queues: list[QueueDoing]
    next: str | UnsetType = UNSET


class QueueCloseUp(QueueDoing, frozen=True, kw_only=True):
    """A queue by itself, and how many dead letters come from it, and where they lie."""

    dead_letters: int
    dead_letter_queues: list[str]


class ResultOut(Struct, frozen=True):
    """What came of a message, as who worked it said."""

    id: str
    position: int
    processed_at: int
    result: Any


class ResultsOut(Struct, frozen=True):
    """Results by position. next: pass it as `after`; left out at the end."""

    results: list[ResultOut]
    next: int | UnsetType = UNSET


class WhoOut(Struct, frozen=True):
    """Whose token it was."""

    id: str
    name: str


class RecordOut(Struct, frozen=True):
    """Something that was done. queue: by name or id; null: to the space."""

    id: int
    at: int
    who: WhoOut
    action: str
    queue: str | None
    detail: Any


class AuditOut(Struct, frozen=True):
    """What was done, the oldest first. next: pass it as `after`; left out at the end."""

    audit: list[RecordOut]
    next: int | UnsetType = UNSET


class LetterRows(Struct, frozen=True):
    """Dead letters. next: pass it as `after`; left out at the end."""

    dead_letters: list[LetterRow]
    next: str | UnsetType = UNSET


class KinOut(Struct, frozen=True):
    """A dead letter that this one came from, or that came from it by replay. id: null where it is none any more."""

    id: str | None
    dead_letter_queue: str
    reason: str
    error: str
    attempts: int
    failed_at: int
    replayed_at: int | None
    new_message_id: str | None


class InspectedOut(Struct, frozen=True):
    """A dead letter with all that is known of it."""

    id: str
    failed_at: int
    error: str
    attempts: int
    dead_letter_queue: str
    position: int
    key: str | None
    type: str | None
    priority: int
    headers: dict[str, str] | None
    letter: Envelope
    forerunners: list[KinOut]
    descendants: list[KinOut]


class ReplayedLetter(Struct, frozen=True):
    """The message that was made. already: it was made before."""

    ok: Literal[True]
    new_message_id: str | None
    already: bool | UnsetType = UNSET


class OkOut(Struct, frozen=True):
    """It is done."""

    ok: Literal[True]


class TriedOut(Struct, frozen=True):
    """What a mapping would make of it, and where that would go; or why it does not fit."""

    ok: bool
    command: str | UnsetType = UNSET
    queue: str | UnsetType | None = UNSET
    input: Any = UNSET
    error: Misfit | UnsetType = UNSET
    errors: list[Misfit] | UnsetType = UNSET


class OutcomeOut(Struct, frozen=True):
    """What became of one of them."""

    id: str
    outcome: ReplayOutcome
    new_message_id: str | None


class ManyReplayed(Struct, frozen=True):
    """How many came to what, and the first of them. more: some are left for later."""

    ok: Literal[True]
    totals: dict[str, int]
    more: bool
    results: list[OutcomeOut]


class ManyPreviewed(Struct, frozen=True):
    """How many would be replayed, and the first of them."""

    ok: Literal[True]
    count: int
    dead_letters: list[LetterRow]


class ManyPurged(Struct, frozen=True):
    """How many are gone."""

    ok: Literal[True]
    deleted: int


TENANT = Param(
    "tenant_id",
    SPACE.kind,
    "Which space; may be left out where specs hold in one space only.",
    example="demo",
)
LIMIT = Param("limit", Page, "At most so many; 100 where it is not said.")
NEXT = Param("after", Text, "The `next` of the page before.")
BEHIND = Param("after", Whole, "The `next` of the page before.")
FILTERS = (
    Param("reason", Literal[get_args(LetterReason)], "Why they are dead; one of these.", many=True),
    Param("key", Text, "The ordering key of the message."),
    Param("type", Text, "The type of the message."),
    Param("since", UnixS, "Failed at this unix second, or later."),
    Param("until", UnixS, "Failed at this unix second, or before."),
    Param("error", Text, "A part of the last error."),
    Param("where", Text, "An expression that holds for them."),
    Param("replayed", bool, "Was a message made of them?"),
)
LISTING = (
    TENANT,
    NEXT,
    Param("limit", Annotated[int, Meta(ge=1, le=QUEUES_MAX)], "At most so many."),
    Param("name", Annotated[str, Meta(min_length=1, max_length=PART_LENGTH_MAX)], "A part of their names."),
)
OF_QUEUE = (errors.QueueNotFound,)
OF_LETTER = (errors.QueueNotFound, errors.EntryNotFound)
BODY = (errors.UnsupportedMedia,)

OPERATIONS = {
    "GET /admin/queues": Op(ok(QueuesDoing), query=LISTING, errors=OF_QUEUE),
    "GET /admin/live": Op(
        {200: Answer("Events `queues`, whose data are as of the list.", {EVENTS: {"type": "string"}})},
        query=LISTING,
        errors=OF_QUEUE,
        streams=True,
    ),
    "GET /admin/queues/{name}/live": Op(
        {
            200: Answer(
                "Events `queue`, whose data are as of the queue, with `consumers`; `gone`, once it is.",
                {EVENTS: {"type": "string"}},
            )
        },
        query=(TENANT,),
        errors=OF_QUEUE,
        streams=True,
    ),
    "GET /admin/queues/{name}": Op(ok(QueueCloseUp), query=(TENANT,), errors=OF_QUEUE),
    "GET /admin/queues/{name}/results": Op(ok(ResultsOut), query=(TENANT, BEHIND, LIMIT), errors=OF_QUEUE),
    "GET /admin/audit": Op(
        ok(AuditOut),
        query=(
            TENANT,
            Param("queue", Text, "Only what was done to this one, by name or id."),
            BEHIND,
            LIMIT,
            Param("reverse", bool, "The newest first."),
        ),
        errors=OF_QUEUE,
    ),
    "GET /admin/queues/{name}/dlq": Op(
        ok(LetterRows), query=(TENANT, NEXT, LIMIT, *FILTERS), errors=OF_QUEUE
    ),
    "GET /admin/queues/{name}/dlq/{id}": Op(ok(InspectedOut), query=(TENANT,), errors=OF_LETTER),
    "POST /admin/queues/{name}/dlq/{id}/replay": Op(
        ok(ReplayedLetter),
        query=(TENANT,),
        body=json(EditLetter, {}, required=False),
        errors=(*BODY, *OF_LETTER, errors.QueueGone, errors.InvalidMessage),
        id="replay_one",
    ),
    "DELETE /admin/queues/{name}/dlq/{id}": Op(ok(OkOut), query=(TENANT,), errors=OF_LETTER),
    "POST /admin/queues/{name}/dlq/{id}/dry-run": Op(
        ok(TriedOut),
        query=(TENANT,),
        body=json(TryLetter, {"map_to": {"to": "queue", "queue": "orders"}}, required=False),
        errors=(*BODY, *OF_LETTER, errors.QueueGone),
    ),
    "POST /admin/queues/{name}/dlq/replay": Op(
        ok((ManyReplayed, ManyPreviewed), "What became of them, or a preview."),
        query=(TENANT,),
        body=json(ReplayLetters, {"reason": ["exhausted"], "preview": True}),
        errors=(*BODY, *OF_QUEUE),
    ),
    "POST /admin/queues/{name}/dlq/purge": Op(
        ok(ManyPurged),
        query=(TENANT,),
        body=json(PurgeLetters, {"reason": ["malformed"]}),
        errors=(*BODY, *OF_QUEUE),
    ),
}

CHAPTER = Chapter(
    "The admin API: how the queues of a space are doing, what failed in them, and mending it. In words: "
    "`docs/protocol/admin.md`.",
    OPERATIONS | backups.OPERATIONS,
    {
        "space": SPACE,
        "name": Param(
            "name",
            Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")],
            "A queue, by name or id.",
            example="jobs",
        ),
        "id": Param("id", Annotated[str, Meta(pattern=r"^[A-Za-z0-9._~-]{1,128}$")], "A dead letter's id."),
    },
)
