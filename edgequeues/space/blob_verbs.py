"""The verbs about blobs: what is known of them, links to them, and how they go. Their bytes are not touched here.

A blob goes in three steps, so that a crash leaves nothing that nobody knows of: a turn dooms its row, from when
on it is there for nobody; somebody outside deletes its bytes; a turn removes the row. Who deletes is told by the hub,
and by the alarm until it is done.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from edgequeues.blobs.about import Blob
from edgequeues.blobs.links import Links
from edgequeues.core.errors import BlobConflict, BlobNotFound, LinkExpired, LinkInvalid
from edgequeues.space import blobs, log
from edgequeues.space.base import SpaceBase
from edgequeues.space.blobs import Found
from edgequeues.space.log import Victim
from edgequeues.space.timed import SWEEP_PAUSE_MS
from shards.shard import grows, reads

BLOBS = "blobs"  # the event that there are bytes to be deleted
DOOMED_TOGETHER = 500  # blobs, in one turn
REMIND_MS = 10_000  # after which those who delete bytes are told once more
SEARCHED = 500  # messages that one turn looks through, or of SEARCHED_BYTES
SEARCHED_BYTES = 8 * 1024 * 1024


class Signature(Struct, frozen=True):
    """What makes a link. expires: unix ms."""

    expires: int
    text: str


class ErasedMessages(Struct, frozen=True):
    """How many messages were erased, and after which position to go on; None: that was all."""

    count: int
    resume: int | None


class BlobVerbs(SpaceBase):
    """bucket, key, event_id: checked by the caller."""

    @reads
    def find_blob(self, bucket: str, key: str) -> Found | None:
        """The blob, even one that is on its way out."""
        return blobs.get(self.db, bucket, key, self._time())

    @reads
    def blob(self, bucket: str, key: str) -> Blob:
        """The blob. Raises BlobNotFound."""
        return self._blob(bucket, key)

    @reads
    def blobs_of(self, event_id: str, after: tuple[str, str], limit: int) -> list[Blob]:
        """Up to `limit` blobs of an event, by bucket and key from above `after`."""
        return blobs.of_event(self.db, event_id, after, limit, self._time())

    @grows
    def keep_blob(self, blob: Blob, retention_ms: int) -> Blob:
        """Take in a blob whose bytes are on disk; its times are set here. Raises BlobConflict."""
        found = blobs.get(self.db, blob.bucket, blob.key, self._time())
        if found is not None:
            raise BlobConflict(f"{blob.bucket}/{blob.key}")
        self._pass()
        at = self._time()
        made = msgspec.structs.replace(blob, created=at, kept_until=at + retention_ms)
        blobs.put(self.db, made)
        self._alarm_in(retention_ms)
        return made

    @grows
    def sign_blob(self, bucket: str, key: str, lifetime_ms: int, margin_ms: int = 0) -> Signature:
        """Make a link that lives so long; the blob does, too, and for the margin. Raises BlobNotFound."""
        self._blob(bucket, key)
        self._pass()
        expires = self._time() + lifetime_ms
        blobs.keep(self.db, bucket, key, expires + margin_ms)
        return Signature(expires, self._links().signature(bucket, key, expires))

    @reads
    def linked_blob(self, bucket: str, key: str, expires: int, signature: str) -> Blob:
        """The blob that a link leads to. Raises LinkInvalid, LinkExpired, BlobNotFound; the first that applies."""
        if not self._links().holds(bucket, key, expires, signature):
            raise LinkInvalid
        if expires <= self._time():
            raise LinkExpired
        return self._blob(bucket, key)

    # -- how they go ------------------------------------------------------------------------------------

    def doom_blob(self, bucket: str, key: str) -> None:
        """Have a blob be gone. Raises BlobNotFound."""
        found = self._blob(bucket, key)
        blobs.doom(self.db, bucket, key)
        self._record("erase", event=found.event_id, blobs=1)
        self._call_to_delete()

    def doom_event(self, event_id: str) -> int:
        """Have blobs of an event be gone, up to DOOMED_TOGETHER of them; return how many there were."""
        count = blobs.doom_event(self.db, event_id, DOOMED_TOGETHER)
        self._record("erase", event=event_id, blobs=count)
        self._call_to_delete()
        return count

    @reads
    def doomed_blobs(self, limit: int, event_id: str | None = None) -> list[tuple[str, str]]:
        """Bucket and key of blobs whose bytes are to be deleted, perhaps only those of an event."""
        return blobs.doomed(self.db, limit, event_id)

    def forget_blob(self, bucket: str, key: str) -> None:
        """Forget a blob whose time is over and whose bytes are gone."""
        found = blobs.get(self.db, bucket, key, self._time())
        if found is not None and found.gone:
            blobs.doom(self.db, bucket, key)
            blobs.remove(self.db, bucket, key)

    def erase_messages(self, event_id: str, after: int) -> ErasedMessages:
        """Delete the messages above position `after` whose data is of an event, dead letters too.

        That is an object whose `id` is the event's, or which holds such a one as `event` or `originalMessage`; or a
        text that is such an object. A bounded number is looked through in a turn.
        """
        found, resume = log.naming(self.db, event_id, after, rows_max=SEARCHED, bytes_max=SEARCHED_BYTES)
        by_queue: dict[str, list[Victim]] = {}
        for queue_id, victim in found:
            by_queue.setdefault(queue_id, []).append(victim)
        for queue_id, victims in by_queue.items():
            row = self._require(queue_id)
            self._drop(row, victims)
            self._record("erase", row, event=event_id, messages=len(victims))
        return ErasedMessages(len(found), resume)

    def _sweep_blobs(self, at: int) -> None:
        """Have blobs be gone whose time is over, and remind whoever deletes their bytes."""
        blobs.doom_due(self.db, at, DOOMED_TOGETHER)
        if blobs.doomed(self.db, 1):
            self._call_to_delete()
        soonest = blobs.soonest(self.db)
        if soonest is not None:
            self._alarm_in(max(soonest - at, SWEEP_PAUSE_MS))

    def _call_to_delete(self) -> None:
        self.emit(BLOBS)
        self._alarm_in(REMIND_MS)

    def _blob(self, bucket: str, key: str) -> Blob:
        found = blobs.get(self.db, bucket, key, self._time())
        if found is None or found.gone:
            raise BlobNotFound(f"{bucket}/{key}")
        return found.blob

    def _links(self) -> Links:
        secret = self._home().lease_key
        assert secret is not None
        return Links(secret, self.name)
