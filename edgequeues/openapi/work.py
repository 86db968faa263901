"""What is said of the native protocol of work queues, dead letters and sessions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from edgequeues.core import errors
from edgequeues.core.lifecycle import STANDS, UNFINISHED, State
from edgequeues.http.bulk import Outcome
from edgequeues.http.codec import EntryOut
from edgequeues.http.envelope import EntriesIn
from edgequeues.http.native import WAIT_S_MAX
from edgequeues.http.sessions import CleanIn, WorkerIn
from edgequeues.http.work_codec import (
    AcksIn,
    ExtensionIn,
    LeasesIn,
    OneIn,
    PurgeIn,
    ReplayOrder,
    RetriesIn,
)
from edgequeues.inbound import NAME_CHARS_MAX, Inbound
from edgequeues.models import (
    AppendAnswer,
    ConsumerConfig,
    ConsumerInfo,
    Explanation,
    Pull,
    Start,
    Verdict,
)
from edgequeues.models_letters import Replayed
from edgequeues.models_sessions import SessionName, SessionPage
from edgequeues.openapi.op import JSON, Answer, Op, Page, Param, Text, Whole, json, ok
from edgequeues.space.explaining import Lines
from edgequeues.space.letters import Envelope
from edgequeues.space.searching import Stance

NAME = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
_PART = "[A-Za-z0-9][A-Za-z0-9_-]"
_QUEUE = (  # with what may follow, and a bracket at the end
    f"(dxn:(edge:)?queue:((data|trace):)?{_PART}{{0,63}}:{_PART}{{0,127}}"
    f"|echo://{_PART}{{0,63}}/{_PART}{{0,127}}"
)
_OBJECT = "[A-Za-z0-9._~-]{1,128}"
DXN = Param(
    "dxn",
    Annotated[str, Meta(pattern=f"^{_QUEUE})$")],
    "The address of a queue: `dxn:queue:SPACE:QUEUE`, by id or by name.",
    example="dxn:queue:demo:jobs",
)
ANY_DXN = DXN._replace(
    kind=Annotated[str, Meta(pattern=f"^{_QUEUE})([:/]{_OBJECT})?$")],
    says="The address of a queue, or of an object in it: `dxn:queue:SPACE:QUEUE:OBJECT`, which goes without a query.",
)
CONSUMER = Param("consumer", NAME, "A consumer's name.", example="default")

OBJECT_ID = Annotated[str, Meta(pattern=f"^{_OBJECT}$")]

NO_QUEUE = (errors.InvalidDxn, errors.QueueNotFound)
NO_BODY = (errors.UnsupportedMedia,)
SPACES_FULL = (errors.TooManySpaces, errors.RateLimited)
OF_CONSUMER = (*NO_QUEUE, errors.ConsumerNotFound, errors.NoConsumer)


class Nothing(Struct, frozen=True, forbid_unknown_fields=True):
    """An empty object: it is done."""


class PulledMessage(Struct, frozen=True):
    """A message handed out. until: unix ms at which the lease lapses. attempts: this one included."""

    lease: str
    attempts: int
    until: int
    id: str
    position: int
    version: str
    type: str | None
    created: int
    updated: int
    priority: int
    data: Any
    key: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    content_type: str | UnsetType = UNSET


class PulledOut(Struct, frozen=True):
    """What a pull gave. backlog: unfinished messages of the consumer."""

    messages: list[PulledMessage]
    paused: bool
    backlog: int


class VerdictOut(Struct, frozen=True):
    """What became of a lease."""

    lease: str
    outcome: Verdict


class Verdicts(Struct, frozen=True):
    """What became of each lease, in the order sent."""

    results: list[VerdictOut]


class ConsumersOut(Struct, frozen=True):
    """The consumers of a queue."""

    consumers: list[ConsumerInfo]


class ConsumerIn(ConsumerConfig, frozen=True, forbid_unknown_fields=True):
    """The rules of a consumer; what is not named is as the profile has it. start: at what is there, or what comes."""

    profile: Literal["work", "switchboard", "webhook", "inbound"] = "work"
    start: Start = "new"


class PeekedMessage(Struct, frozen=True):
    """A message as it stands. due: unix ms; see the states."""

    id: str
    position: int
    state: State
    attempts: int
    due: int | None
    worker: str | None
    last_error: str | None
    key: str | None
    priority: int
    data: Any


class PeekedOut(Struct, frozen=True):
    """Messages by position. resume: pass it as `after`; null at the end."""

    messages: list[PeekedMessage]
    resume: int | None


class FoundEntry(EntryOut, frozen=True, kw_only=True):
    """An entry, and where it stands with each consumer."""

    standings: list[Stance]


class FoundOut(Struct, frozen=True):
    """Entries by position. resume: pass it as `after`; null at the end."""

    found: list[FoundEntry]
    resume: int | None


class Explained(Struct, frozen=True):
    """Why a message is not delivered now, for each consumer."""

    id: str
    consumers: list[Explanation]


class LetterOut(Struct, frozen=True):
    """A dead letter."""

    id: str
    position: int
    letter: Envelope


class LettersOut(Struct, frozen=True):
    """Dead letters by position. resume: pass it as `after`; null at the end."""

    letters: list[LetterOut]
    resume: int | None


class ReplayedOut(Struct, frozen=True):
    """What became of letters that were named."""

    results: list[Replayed]


class PreviewOut(Struct, frozen=True):
    """How many letters a filter names, and the first of them."""

    count: int
    letters: list[LetterOut]


class PurgedOut(Struct, frozen=True):
    """How many entries are gone."""

    deleted: int


class ReceivedOut(Struct, frozen=True):
    """What became of a message. duplicate: it came before, so there is no new one."""

    id: str | None
    position: int | None
    duplicate: bool


class ExpiredOut(Struct, frozen=True):
    """How many messages ended."""

    expired: int


class HeadOut(Struct, frozen=True):
    """The id of the message that a session waits for; null: nothing was to be done."""

    id: str | None


class ReclaimedOut(Struct, frozen=True):
    """How many leases ended."""

    reclaimed: int


class RemovedOut(Struct, frozen=True):
    """How many finished messages are gone."""

    removed: int


OF = Param("consumer", NAME, "Whose messages; `default` where it is not said.")
LIMIT = Param("limit", Page, "At most so many; 100 where it is not said.")
BEHIND = Param("after", Whole, "A position to go on behind: the `resume` of the page before.")
LEASE = "a lease as a pull gave it"

_SEARCH = Op(
    ok(FoundOut),
    query=(
        Param("state", Literal[STANDS], "Only those that stand there with some consumer.", many=True),
        OF._replace(says="Only with this consumer."),
        Param("id", OBJECT_ID, "Only this object."),
        Param("key", Text, "Only those of this ordering key."),
        Param("type", Text, "Only those of this type."),
        Param("where", Text, "An expression that holds for them."),
        BEHIND,
        LIMIT,
        Param("reverse", bool, "The newest first."),
    ),
    errors=OF_CONSUMER,
)

OF_ONE = Op(
    ok(Nothing), body=json(OneIn, {"id": "one"}), errors=(*NO_BODY, *OF_CONSUMER, errors.EntryNotFound)
)

_WORK = {
    "GET /v1/{dxn}/search": _SEARCH,
    "POST /v1/{dxn}/push": Op(
        ok(AppendAnswer, "What became of each message."),
        body=json(EntriesIn, {"entries": [{"data": {"job": 1}}]}),
        errors=(
            *NO_BODY,
            *OF_CONSUMER,
            *SPACES_FULL,
            errors.QueueFull,
            errors.InvalidMessage,
            errors.DuplicateId,
            errors.EntryExists,
            errors.VersionAhead,
            errors.IdempotencyMismatch,
        ),
    ),
    "POST /v1/{dxn}/pull": Op(
        ok(PulledOut, "Messages, of which there may be none."),
        query=(
            OF,
            Param("wait", Annotated[float, Meta(ge=0, le=WAIT_S_MAX)], "Seconds to wait for the first one."),
        ),
        body=json(Pull, {"batch": 1, "lease_ms": 30_000}, required=False),
        errors=(*NO_BODY, *OF_CONSUMER),
    ),
    "POST /v1/{dxn}/ack": Op(
        ok(Verdicts), body=json(AcksIn, {"leases": [LEASE]}), errors=(*NO_BODY, *NO_QUEUE)
    ),
    "POST /v1/{dxn}/retry": Op(
        ok(Verdicts), body=json(RetriesIn, {"retries": [{"lease": LEASE}]}), errors=(*NO_BODY, *NO_QUEUE)
    ),
    "POST /v1/{dxn}/release": Op(
        ok(Verdicts), body=json(LeasesIn, {"leases": [LEASE]}), errors=(*NO_BODY, *NO_QUEUE)
    ),
    "POST /v1/{dxn}/extend": Op(
        ok(Verdicts),
        body=json(ExtensionIn, {"leases": [LEASE], "lease_ms": 60_000}),
        errors=(*NO_BODY, *NO_QUEUE),
    ),
    "GET /v1/{dxn}/consumers": Op(ok(ConsumersOut), errors=NO_QUEUE),
    "PUT /v1/{dxn}/consumers/{consumer}": Op(
        ok(ConsumerInfo, "The consumer as it is now."),
        body=json(ConsumerIn, {"attempts_max": 3}),
        errors=(*NO_BODY, *NO_QUEUE, errors.ConfigConflict),
    ),
    "DELETE /v1/{dxn}/consumers/{consumer}": Op(ok(Nothing), errors=(*NO_QUEUE, errors.ConsumerNotFound)),
    "GET /v1/{dxn}/peek": Op(
        ok(PeekedOut),
        query=(
            OF,
            Param("state", Literal[UNFINISHED], "Only those in one of these states.", many=True),
            BEHIND,
            LIMIT,
        ),
        errors=OF_CONSUMER,
    ),
    "GET /v1/{dxn}/explain": Op(
        ok(Explained),
        query=(
            Param(
                "id",
                Annotated[str, Meta(pattern=r"^[A-Za-z0-9._~-]{1,128}$")],
                "Which message.",
                required=True,
            ),
        ),
        errors=(*OF_CONSUMER, errors.EntryNotFound),
    ),
    "GET /v1/{dxn}/lines": Op(
        ok(Lines),
        query=(OF, Param("after", Text, "The `resume` of the page before."), LIMIT),
        errors=OF_CONSUMER,
    ),
    "POST /v1/{dxn}/skip": OF_ONE,
    "POST /v1/{dxn}/hurry": OF_ONE,
}

_DEAD = {
    "GET /v1/{dxn}/dead": Op(
        ok(LettersOut),
        query=(BEHIND, LIMIT, Param("where", Text, "An expression that holds for them.")),
        errors=NO_QUEUE,
    ),
    "POST /v1/{dxn}/replay": Op(
        ok((ReplayedOut, Outcome, PreviewOut), "By ids, by a filter, or a preview of that."),
        body=json(ReplayOrder, {"filter": {"reason": ["exhausted"]}, "preview": True}),
        errors=(*NO_BODY, *NO_QUEUE),
    ),
    "POST /v1/{dxn}/purge": Op(
        ok(PurgedOut),
        body=json(PurgeIn, {"filter": {"reason": ["exhausted"]}}, required=False),
        errors=(*NO_BODY, *NO_QUEUE),
    ),
}

_NAMED = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
_OF_SESSION = (*NO_BODY, *OF_CONSUMER, errors.ConfigConflict)

_SESSIONS = {
    "POST /v1/{dxn}/inbound": Op(
        {
            200: Answer("It came before.", {JSON: ReceivedOut}),
            202: Answer("It is on disk.", {JSON: ReceivedOut}),
        },
        body=json(Inbound, {"session_id": "chat-1", "origin": "web", "content": "hello"}),
        errors=(*NO_BODY, *OF_CONSUMER, *SPACES_FULL, errors.QueueFull, errors.ConfigConflict),
    ),
    "GET /v1/{dxn}/sessions": Op(
        ok(SessionPage),
        query=(
            Param("session", _NAMED, "Only this one."),
            Param("after", _NAMED, "The `resume` of the page before."),
            LIMIT,
        ),
        errors=(*OF_CONSUMER, errors.ConfigConflict),
    ),
    "POST /v1/{dxn}/sessions/close": Op(
        ok(ExpiredOut),
        body=json(SessionName, {"session_id": "chat-1"}),
        errors=_OF_SESSION,
        id="close_session",
    ),
    "POST /v1/{dxn}/sessions/skip": Op(
        ok(HeadOut), body=json(SessionName, {"session_id": "chat-1"}), errors=_OF_SESSION, id="skip_head"
    ),
    "POST /v1/{dxn}/sessions/retry": Op(
        ok(HeadOut), body=json(SessionName, {"session_id": "chat-1"}), errors=_OF_SESSION, id="retry_head"
    ),
    "POST /v1/{dxn}/sessions/reclaim": Op(
        ok(ReclaimedOut), body=json(WorkerIn, {"worker": "w-1"}), errors=_OF_SESSION
    ),
    "POST /v1/{dxn}/sessions/clean": Op(
        ok(RemovedOut), body=json(CleanIn, {"before": 1}), errors=_OF_SESSION
    ),
}

OPERATIONS = _WORK | _DEAD | _SESSIONS
