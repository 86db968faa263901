"""Mails and text messages on their way into the inbox: once each, however often they are sent.

The order is fixed: parse, look for a repeat, store what is large, queue the event; whatever fails before the last
step leaves nothing in the queue, so that the sender can send again. What no event can be made of is a dead letter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from hashlib import sha256
from typing import NamedTuple

import trio
from msgspec.structs import replace

from edgequeues.blobs.about import BUCKET, About, Blob
from edgequeues.core import forms, jsontext, times
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import (
    BlobConflict,
    BlobTypeRefused,
    EdgeQueuesError,
    EmailParseFailed,
    EntryExists,
    InvalidMessage,
    InvalidRequest,
    MmsFetchFailed,
    MmsMediaTooLarge,
    QueuePublishFailed,
    R2PutFailed,
    TooLarge,
)
from edgequeues.events import keys
from edgequeues.events.event import BlobRef, SwitchboardEvent
from edgequeues.ingest import events
from edgequeues.ingest import mail as mails
from edgequeues.ingest.events import Kept, NewBlob
from edgequeues.ingest.mail import Mail
from edgequeues.ingest.sms import Sms
from edgequeues.metrics import Metrics
from edgequeues.models import NewEntry
from edgequeues.router import Router
from edgequeues.space.profiles import SWITCHBOARD
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.judging import WORDS
from edgequeues.spec.values import Arriving, Taken
from edgequeues.tracing import mark
from edgequeues.workers.blobs import Blobs
from edgequeues.workers.media import Account, Media
from shards.clock import Clock
from shards.disk import Disk
from shards.errors import ShardError

WINDOW_MS = 7 * 86_400_000  # for so long a repeat is known
FETCH_S = 10.0  # all media of a message; Twilio waits 15 s for an answer
OCTETS = "application/octet-stream"

log = logging.getLogger("edgequeues.ingress")


class Bounds(NamedTuple):
    """What of a message is taken. file_bytes: of one of a mail; medium_bytes, media_bytes: of one, of all."""

    file_bytes: int
    media: int
    medium_bytes: int
    media_bytes: int


class Inbox(NamedTuple):
    """Where events go; made as a work queue of the profile `switchboard` by the first."""

    space: str
    queue: str


class Received(NamedTuple):
    """What became of a message. error: why it is a dead letter."""

    event_id: str
    duplicate: bool = False
    thread_key: str | None = None
    error: str | None = None


class Mailroom:
    """Takes mails and text messages in.

    Raises R2PutFailed, MmsFetchFailed, QueuePublishFailed, all of which may pass; and EmailParseFailed where there
    can be no dead letter.
    """

    def __init__(
        self,
        inbox: Inbox,
        router: Router,
        blobs: Blobs,
        media: Media,
        clock: Clock,
        disk: Disk,
        bounds: Bounds,
        metrics: Metrics,
    ) -> None:
        self.inbox = inbox
        self._router = router
        self._blobs = blobs
        self._media = media
        self._clock = clock
        self._disk = disk
        self._bounds = bounds
        self._metrics = metrics

    async def email(self, raw: bytes, sent_by: str | None, sent_to: str | None) -> Received:
        """Take a mail. sent_by, sent_to: addresses of its envelope, where they are known."""
        try:
            mail = await self._disk.run(lambda: mails.parse(raw, sent_by, sent_to))
        except EmailParseFailed as error:
            return await self._unparsed(raw, error)
        event_id, now_ms = events.email_id(mail), self._clock.now_ms()
        key = f"ingress:email:{event_id}"
        before = await self._came(key)
        if before is None:
            try:
                kept, tags = await self._store_mail(mail, event_id, now_ms)
            except BlobConflict:  # of a mail that never got as far as the queue
                event_id = events.other_id(mail)
                kept, tags = await self._store_mail(mail, event_id, now_ms)
        else:
            event_id, kept, tags = before.id, [], []
        event = events.email_event(mail, event_id, now_ms, kept, tags)
        if before is not None:
            return Received(event_id, duplicate=True, thread_key=event.correlation.thread_key)
        return await self._publish(event, key)

    async def sms(self, sms: Sms, account: Account) -> Received:
        """Take a text message. account: as which its media are fetched."""
        event_id, now_ms = events.sms_id(sms.sid), self._clock.now_ms()
        key = f"ingress:sms:{event_id}"
        if await self._came(key) is not None:
            return Received(event_id, duplicate=True)
        before = await self._before(event_id)
        day_ms = events.day_of(before) or now_ms
        fetched, tags = await self._fetch(sms, account, day_ms, before)
        wanted = [events.sms_blob(sms, number, data, day_ms) for number, data in fetched]
        try:
            kept, more = await self._store(event_id, "sms", wanted, self._bounds.medium_bytes, "media")
        except BlobConflict as error:
            raise R2PutFailed("a medium of this message was stored before with other bytes") from error
        return await self._publish(events.sms_event(sms, now_ms, kept, dict.fromkeys([*tags, *more])), key)

    async def unfit_sms(self, body: bytes, error: InvalidRequest) -> Received:
        """Make a dead letter of a form that is signed, and that no event can be made of."""
        event_id = events.raw_id(sha256(body).hexdigest())
        try:
            said: object = dict(forms.pairs(body))
        except InvalidRequest:
            said = body.decode("latin-1")
        return await self._bury(event_id, "sms", {"form": said}, f"MALFORMED_EVENT: {error.detail}")

    # -- mails that are none ----------------------------------------------------------------------------

    async def _unparsed(self, raw: bytes, error: EmailParseFailed) -> Received:
        """Make a dead letter of it, its bytes beside it. Raises the error where they are too many to be kept."""
        event_id, now_ms = events.raw_id(sha256(raw).hexdigest()), self._clock.now_ms()
        key = keys.email_attachment(event_id, await self._day(event_id, now_ms), 1, "message.eml")
        wanted = NewBlob("att-1", key, raw, "message/rfc822", "message.eml")
        kept, _ = await self._store(event_id, "email", [wanted], len(raw), "raw")
        if not kept:
            raise error
        where = {"bucket": kept[0].where.bucket, "key": kept[0].where.key}
        try:
            return await self._bury(event_id, "email", {"raw": where}, f"{error.code}: {error.detail}")
        except InvalidMessage:
            raise error from None  # the queue makes no dead letters

    async def _bury(self, event_id: str, source: str, facts: dict[str, object], fault: str) -> Received:
        received_at = times.utc(self._clock.now_ms())
        data = jsontext.write({"id": event_id, "source": source, "receivedAt": received_at} | facts).decode()
        entry = NewEntry(data, object_id=event_id)
        taken = await self._ingest(Arriving(entry, (f"ingress:{source}:{event_id}",), fault))
        return Received(event_id, duplicate=taken.outcome == "duplicate", error=fault)

    # -- the queue --------------------------------------------------------------------------------------

    async def _came(self, key: str) -> Taken | None:
        """What came under a key before. Raises QueuePublishFailed."""
        with _told_as(QueuePublishFailed):
            space = await self._router.find(Dxn(*self.inbox))
            return None if space is None else await space.call(SpaceShard.came, self.inbox.queue, key)

    async def _publish(self, event: SwitchboardEvent, key: str) -> Received:
        """Queue an event, unless it came before. Raises QueuePublishFailed."""
        entry = NewEntry(events.encoded(event), object_id=event.id, priority=WORDS[event.priority])
        taken = await self._ingest(Arriving(entry, (key,)))
        event_id, duplicate = taken.id or event.id, taken.outcome == "duplicate"
        if taken.outcome == "queued":
            self._metrics.ingress_events[event.source] += 1
        return Received(event_id, duplicate, event.correlation.thread_key, taken.error)

    async def _ingest(self, arriving: Arriving) -> Taken:
        """Raises QueuePublishFailed, and InvalidMessage for a fault where nothing is buried."""
        with _told_as(QueuePublishFailed, *((InvalidMessage,) if arriving.fault else ())):
            space = await self._router.make(Dxn(*self.inbox))
            call = [replace(arriving, entry=mark(arriving.entry))]
            try:
                [taken] = await space.call(
                    SpaceShard.ingest, self.inbox.queue, call, make=SWITCHBOARD, window_ms=WINDOW_MS
                )
            except EntryExists:  # longer ago than repeats are remembered, and nobody has worked it since
                assert arriving.entry.object_id is not None
                return Taken(arriving.entry.object_id, "duplicate", "queued")
            return taken

    # -- blobs ------------------------------------------------------------------------------------------

    async def _before(self, event_id: str) -> dict[str, Blob]:
        """What an earlier try has stored, by key. Raises R2PutFailed."""
        with _told_as(R2PutFailed):
            return {one.key: one for one in await self._blobs.find(self.inbox.space, event_id)}

    async def _day(self, event_id: str, now_ms: int) -> int:
        """A moment of the day that the event's keys name: that of its first try. Raises R2PutFailed."""
        return events.day_of(await self._before(event_id)) or now_ms

    async def _store_mail(self, mail: Mail, event_id: str, now_ms: int) -> tuple[list[Kept], list[str]]:
        wanted = events.email_blobs(mail, event_id, await self._day(event_id, now_ms))
        return await self._store(event_id, "email", wanted, self._bounds.file_bytes, "attachment")

    async def _store(
        self, event_id: str, source: str, wanted: Iterable[NewBlob], bytes_max: int, what: str
    ) -> tuple[list[Kept], list[str]]:
        """Store blobs, and link to them; the texts tag what is left out. Raises R2PutFailed, BlobConflict."""
        kept: list[Kept] = []
        tags: list[str] = []
        for one in wanted:
            try:
                if len(one.data) > bytes_max:
                    raise TooLarge
                with _told_as(R2PutFailed, BlobConflict, BlobTypeRefused, TooLarge):
                    kept.append(Kept(one, await self._put(event_id, source, one)))
            except TooLarge:
                tags.append(f"{what}-too-large")
            except BlobTypeRefused:
                tags.append(f"{what}-refused")
        return kept, list(dict.fromkeys(tags))

    async def _read(self, blob: Blob) -> bytes:
        """All of a blob. Raises R2PutFailed."""
        with _told_as(R2PutFailed):
            async with aclosing(self._blobs.read(self.inbox.space, blob, 0, blob.size)) as pieces:
                return b"".join([piece async for piece in pieces])

    async def _put(self, event_id: str, source: str, one: NewBlob) -> BlobRef:
        """Store a blob; one of a type that is not listed, as mere bytes, where these are taken."""
        space, filename = self.inbox.space, one.filename or None
        try:
            about = About(event_id, source, one.content_type, filename)
            await self._blobs.put(space, BUCKET, one.key, one.data, about)
        except BlobTypeRefused:
            about = About(event_id, source, OCTETS, filename)
            await self._blobs.put(space, BUCKET, one.key, one.data, about)
        self._metrics.ingress_media_bytes[source] += len(one.data)
        signed = await self._blobs.sign(space, BUCKET, one.key)
        ends = times.utc(signed.expires_ms)
        return BlobRef(bucket=BUCKET, key=one.key, presigned_get_url=signed.url, expires_at=ends)

    async def _fetch(
        self, sms: Sms, account: Account, day_ms: int, before: Mapping[str, Blob]
    ) -> tuple[list[tuple[int, bytes]], list[str]]:
        """The media, by number, and tags for those that are left out; what is stored is not fetched again.

        Raises MmsFetchFailed, R2PutFailed.
        """
        found: list[tuple[int, bytes]] = []
        left = self._bounds.media_bytes
        tags = ["media-too-many"] if len(sms.media) > self._bounds.media else []
        with trio.move_on_after(FETCH_S) as scope:
            for one in sms.media[: self._bounds.media]:
                try:
                    stored = before.get(keys.sms_media(sms.sid, day_ms, one.number))
                    bytes_max = min(left, self._bounds.medium_bytes)
                    data = await (
                        self._media.fetch(one.url, account, bytes_max)
                        if stored is None
                        else self._read(stored)
                    )
                except MmsMediaTooLarge as error:
                    log.warning("event %s: %s: %s", events.sms_id(sms.sid), error.code, error.detail)
                    tags.append("media-too-large")
                else:
                    left -= len(data)
                    found.append((one.number, data))
        if scope.cancelled_caught:
            raise MmsFetchFailed(f"the media did not come within {FETCH_S:g} s")
        return found, tags


@contextmanager
def _told_as(kind: Callable[[str], EdgeQueuesError], *others: type[EdgeQueuesError]) -> Iterator[None]:
    """Whatever goes wrong in there is told as `kind`, which the sender may repeat; but these others as they are."""
    passing: Sequence[type[EdgeQueuesError]] = others
    try:
        yield
    except (EdgeQueuesError, ShardError) as error:
        if isinstance(error, tuple(passing)):
            raise
        said = error.detail if isinstance(error, EdgeQueuesError) and error.detail else type(error).__name__
        failed = kind(said)
        log.warning("%s: %s: %s", failed.code, type(error).__name__, said)
        raise failed from error
