"""What a queue store is: its five calls, the messages it hands out, and what its calls can raise."""

from __future__ import annotations

import json
from typing import Protocol

from msgspec import Struct

from edgequeues.core.backoff import DELAY_MS_MAX
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidId
from edgequeues.core.ids import check_idempotency_key, check_queue, check_space

LEASE_MS = 30_000
LEASE_MS_MAX = 12 * 3_600_000
WAIT_MS_MAX = 60_000
HELD_MAX = 10_000
ERROR_CHARS_MAX = 4_096
LETTERS_MAX = 1_000  # dead letters one call gives


class StoredMessage(Struct, frozen=True):
    """A message handed out.

    id: what `ack`, `retry` and `dead_letter` take; the same each time this message is handed out.
    message: the decoded JSON. attempts: hand-outs so far, this one included. enqueued: unix ms, by the store's clock.
    """

    id: str
    queue: str
    message: object
    attempts: int
    enqueued: int


class DeadMessage(Struct, frozen=True):
    """A message that was put away. error: what was said to be wrong. failed: unix ms.

    id: of the dead letter, which is not the message's. attempts: as far as they had come.
    """

    id: str
    message: object
    error: str
    attempts: int
    failed: int


class QueueStore(Protocol):
    """A place for messages, by queue. When a call returns, what it did outlives a power cut.

    A message handed out is leased: hidden from everybody until it is answered or the lease lapses. The store object
    that handed it out keeps the lease, so it alone can answer, and within it the id stands for the newest hand-out.
    Workers that should not answer for one another have a store object each.

    A caller that is cancelled has stopped listening: the call was done as a whole, or not at all. A message that was
    handed out to nobody that way comes again when its lease has lapsed.

    Besides what is said below, every call may raise Unavailable, Refused and StoreFailed.
    """

    async def enqueue(self, queue: str, message: object, idempotency_key: str | None = None) -> str:
        """Add a message; return its id. Under a key that was used in the last 24 h, return the id of the first.

        message: what JSON has: dict by str, list, str, int, float, bool, None. It comes out as it went in.
        Raises TypeError or ValueError for another, and for a queue or key that cannot be.
        """
        ...

    async def dequeue(self, queue: str) -> StoredMessage | None:
        """Lease the message whose turn it is; None: there is none now. Raises QueueNotFound, TooManyHeld."""
        ...

    async def ack(self, message_id: str) -> None:
        """Finish a message. Raises NotHeld, LeaseLost."""
        ...

    async def retry(self, message_id: str, delay_ms: int) -> None:
        """Give the attempt up; the message is handed out again when so many ms are over.

        A queue may have a last attempt, after which this makes a dead letter instead. Raises NotHeld, LeaseLost,
        ValueError for a delay below 0 or above 365 days.
        """
        ...

    async def dead_letter(self, message_id: str, error: str) -> None:
        """Put a message away with what was wrong, so that it is not handed out again. Raises NotHeld, LeaseLost.

        error: 4,096 characters of it are kept.
        """
        ...


class Options(Struct, frozen=True):
    """What a store object does that its calls do not say.

    lease_ms: how long a message is hidden once it was handed out, 1 to 43,200,000 (12 h).
    wait_ms: how long `dequeue` waits for a message, up to 60,000; 0: not at all.
    held_max: messages handed out and not answered that the object keeps leases of. When there are so many, those that
        have lapsed are let go; while none has, `dequeue` raises TooManyHeld.
    worker: how the caller calls itself, shown by `explain`.
    """

    lease_ms: int = LEASE_MS
    wait_ms: int = 0
    held_max: int = HELD_MAX
    worker: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for what is out of bounds."""
        for name, value, low, high in (
            ("lease_ms", self.lease_ms, 1, LEASE_MS_MAX),
            ("wait_ms", self.wait_ms, 0, WAIT_MS_MAX),
            ("held_max", self.held_max, 1, 1_000_000),
        ):
            if not low <= value <= high:
                raise ValueError(f"{name} is {value}; it may be {low:,} to {high:,}")
        if self.worker is not None and not 1 <= len(self.worker) <= 256:
            raise ValueError(f"worker has {len(self.worker)} characters; it may have 1 to 256")


class StoreError(Exception):
    """Root of what a store raises. One class per remedy; a leaf's docstring is its message."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        remedy = " ".join((type(self).__doc__ or "").split())
        super().__init__(f"{detail}. {remedy}")


class QueueNotFound(StoreError):
    """Nothing was ever enqueued there. Compare the name, or declare the queue before its first message comes."""


class LeaseLost(StoreError):
    """The message is not yours any more: leave it alone. Unless somebody finishes it, it is handed out again."""


class NotHeld(StoreError):
    """Only the store object that was handed a message can answer, once. Dequeue it before, and answer it there."""


class TooManyHeld(StoreError):
    """This store object keeps no more leases. Answer some messages first, or raise `held_max`."""


class Refused(StoreError):
    """The store will not do this, and would not do it later. Correct what is said.

    code: what was wrong, for programs; docs/protocol/native.md lists the codes.
    """

    def __init__(self, code: str, detail: str) -> None:
        self.code = code
        self.detail = detail
        Exception.__init__(self, f"{detail} [{code}]")


class Unavailable(StoreError):
    """Not now. Try again after a pause.

    code: why, for programs. maybe_done: it is not known whether the call was done. Enqueue again with the same
    idempotency key; answer a message again, and take LeaseLost as a sign that it was done.
    """

    def __init__(self, code: str, detail: str, *, maybe_done: bool = False) -> None:
        self.code = code
        self.detail = detail
        self.maybe_done = maybe_done
        Exception.__init__(self, f"{detail} [{code}]")


class StoreFailed(StoreError):
    """The store met a fault of its own, or is not one. Look into its log; what it did is unknown."""


def address(space: str, queue: str) -> Dxn:
    """A queue's address. Raises ValueError."""
    try:
        return Dxn(check_space(space), check_queue(queue))
    except InvalidId as error:
        raise ValueError(str(error)) from None


def check_key(key: str | None) -> None:
    """Raises ValueError unless this can be an idempotency key, or is none."""
    if key is not None:
        try:
            check_idempotency_key(key)
        except InvalidId as error:
            raise ValueError(str(error)) from None


def check_delay(delay_ms: int) -> None:
    """Raises ValueError for a delay that cannot be."""
    if not 0 <= delay_ms <= DELAY_MS_MAX:
        raise ValueError(f"delay_ms is {delay_ms}; it may be 0 to {DELAY_MS_MAX:,}")


def check_limit(limit: int) -> None:
    """Raises ValueError for a number of dead letters that no call gives."""
    if not 1 <= limit <= LETTERS_MAX:
        raise ValueError(f"limit is {limit}; it may be 1 to {LETTERS_MAX:,}")


def grave(queue: str) -> str:
    """The name of the queue in which the dead letters of a queue lie that was made by its first message."""
    return f"{queue}-dlq"


def encode(message: object) -> bytes:
    """A message as JSON text. Raises TypeError or ValueError for what JSON could not give back as it was."""
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            encoded = text.encode()
        except UnicodeEncodeError:  # half a surrogate pair has no UTF-8 form, only an escape
            encoded = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
        same = bool(json.loads(encoded) == message)
    except RecursionError:
        raise ValueError("the message is nested too deeply") from None
    if not same:
        raise TypeError(
            "the message would come out as something else: dict by str, list, str, int, float, bool and None stay as "
            "they are, tuples and other keys do not"
        )
    return encoded


def error_text(error: str) -> str:
    """What is kept of an error: its beginning, as valid Unicode."""
    whole = error.encode(errors="backslashreplace").decode()
    return whole if len(whole) <= ERROR_CHARS_MAX else whole[: ERROR_CHARS_MAX - 1] + "…"
