"""The object store: bytes in a backend, and what is known of them in the space that they belong to.

Bytes are on disk before their row is: a crash between the two leaves bytes that nobody can see, and that the same
blob adopts when it is stored again. They are deleted the other way round, see `space.blob_verbs`. All that is done
to the bytes of one blob is done by one task at a time.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from hashlib import sha256
from typing import NamedTuple

import msgspec
import trio
from msgspec import Struct

from edgequeues.blobs.about import About, Blob, allows, check_bucket, check_event, check_key, checked
from edgequeues.blobs.links import target
from edgequeues.blobs.store import BlobStore, path_of
from edgequeues.core.dxn import Dxn, from_shard
from edgequeues.core.errors import (
    BlobConflict,
    BlobNotFound,
    BlobTypeRefused,
    EdgeQueuesError,
    InvalidRequest,
    TooLarge,
)
from edgequeues.core.ids import check_space, shown
from edgequeues.core.who import SERVER, Who
from edgequeues.router import Router
from edgequeues.space.blob_verbs import DOOMED_TOGETHER
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.workers.beside import beside
from shards.disk import Disk
from shards.errors import ShardError
from shards.namespace import Ref

LIFETIME_S_MAX = 366 * 86_400  # that can be asked for; more is a mistake, such as milliseconds
SHARE = 100  # blobs that one space has deleted before it is another one's turn

log = logging.getLogger("edgequeues.blobs")


class Rules(Struct, frozen=True):
    """What the settings say. types: `type/subtype`, or `type/*`."""

    types: list[str]
    bytes_max: int
    retention_ms: int
    link_s: int


class Signed(NamedTuple):
    """A link to a blob. expires_ms: unix ms at which it ends."""

    url: str
    expires_ms: int


class Erased(NamedTuple):
    """What there was of an event."""

    blobs: int
    messages: int


class Blobs:
    """Blobs by space, bucket and key. base_url: of links, without a path.

    Every call checks what it is given, and raises InvalidId, InvalidRequest; also BlobStoreDown, and what shards
    raise.
    """

    def __init__(
        self,
        router: Router,
        open_store: Callable[[], Awaitable[BlobStore]],
        disk: Disk,
        rules: Rules,
        base_url: str,
    ) -> None:
        self.rules = rules
        self._router = router
        self._open_store = open_store
        self._store: BlobStore | None = None
        self._opening = trio.Lock()
        self._disk = disk
        self._base_url = base_url
        self._locks: dict[tuple[str, str, str], trio.Lock] = {}

    async def put(self, space: str, bucket: str, key: str, data: bytes, about: About) -> Blob:
        """Store a blob, durably. The same content again is no-op, what was said of it first counts.

        Raises BlobConflict for other content, BlobTypeRefused, TooLarge.
        """
        return (await self.place(space, bucket, key, data, about))[0]

    async def place(
        self, space: str, bucket: str, key: str, data: bytes, about: About, *, stranger: bool = False
    ) -> tuple[Blob, bool]:
        """As `put`; the second value: is it new? stranger: see `Router.make`."""
        about = self.checked(bucket, key, about)
        if len(data) > self.rules.bytes_max:
            raise TooLarge(f"the blob has {len(data)} bytes, at most {self.rules.bytes_max} are taken")
        ref = await self._router.make(_dxn(space), stranger=stranger)
        digest = await self._disk.run(lambda: sha256(data).hexdigest())
        fields = msgspec.structs.asdict(about)
        blob = Blob(**fields, bucket=bucket, key=key, size=len(data), sha256=digest)
        async with self._alone(space, bucket, key):
            there = await ref.call(SpaceShard.find_blob, bucket, key)
            if there is not None and not there.gone:
                if there.blob.sha256 != digest:
                    raise BlobConflict(f"{bucket}/{key}")
                return there.blob, False
            store = await self._opened()
            if there is not None:
                await self._take_away(ref, space, bucket, key)
            await store.put(path_of(space, bucket, key), data, about.content_type)
            return await ref.call(SpaceShard.keep_blob, blob, self.rules.retention_ms), True

    def checked(self, bucket: str, key: str, about: About) -> About:
        """Check all that can be, before the bytes are there. Raises InvalidRequest, BlobTypeRefused."""
        check_bucket(bucket)
        check_key(key)
        about = checked(about)
        if not allows(self.rules.types, about.content_type):
            raise BlobTypeRefused(about.content_type)
        return about

    async def get(self, space: str, bucket: str, key: str) -> Blob:
        """What is known of a blob. Raises BlobNotFound."""
        ref = await self._require(space, bucket, key)
        return await ref.call(SpaceShard.blob, bucket, key)

    async def linked(self, space: str, bucket: str, key: str, expires: int, signature: str) -> Blob | None:
        """The blob that a link leads to; None: there is no such space. Raises as `SpaceShard.linked_blob`."""
        check_key(key)
        ref = await self._router.find(_dxn(space))
        if ref is None:
            return None
        return await ref.call(SpaceShard.linked_blob, bucket, key, expires, signature)

    async def read(self, space: str, blob: Blob, start: int, stop: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a blob from `start` up to `stop`, in pieces. Raises BlobNotFound."""
        store = await self._opened()
        async with aclosing(store.read(path_of(space, blob.bucket, blob.key), start, stop)) as pieces:
            async for piece in pieces:
                yield piece

    async def find(self, space: str, event_id: str) -> list[Blob]:
        """The blobs of an event, by bucket and key, 1,000 at most."""
        return await self.page(space, event_id, ("", ""), 1_000)

    async def page(self, space: str, event_id: str, after: tuple[str, str], limit: int) -> list[Blob]:
        """Up to `limit` blobs of an event, by bucket and key from above `after`."""
        ref = await self._router.find(_dxn(space))
        check_event(event_id)
        return [] if ref is None else await ref.call(SpaceShard.blobs_of, event_id, after, limit)

    async def sign(
        self, space: str, bucket: str, key: str, lifetime_s: int | None = None, *, base_url: str | None = None
    ) -> Signed:
        """A link to a blob, for as long as the settings say or `lifetime_s`, but no longer than links can live.

        base_url: instead of that of the settings. Raises BlobNotFound, InvalidRequest for a lifetime below 1 s or
        above LIFETIME_S_MAX.
        """
        wanted_s = self.rules.link_s if lifetime_s is None else lifetime_s
        if not 1 <= wanted_s <= LIFETIME_S_MAX:
            raise InvalidRequest(
                f"lifetimeS: {shown(str(wanted_s))} is not within 1 to {LIFETIME_S_MAX} seconds"
            )
        ref = await self._require(space, bucket, key)
        store = await self._opened()
        lifetime_s = min(wanted_s, store.link_s_max)
        spans = lifetime_s * 1_000, store.link_margin_s * 1_000
        signed = await ref.call(SpaceShard.sign_blob, bucket, key, *spans)
        url = await store.sign(path_of(space, bucket, key), lifetime_s)
        if url is None:
            link = f"{target(space, bucket, key)}?expires={signed.expires}&signature={signed.text}"
            url = (base_url or self._base_url) + link
        return Signed(url, signed.expires)

    # -- how they go ------------------------------------------------------------------------------------

    async def erase(self, space: str, bucket: str, key: str, who: Who = SERVER) -> None:
        """Delete a blob; its links are dead at once. Raises BlobNotFound."""
        ref = await self._require(space, bucket, key)
        await ref.call(by(who, SpaceShard.doom_blob), bucket, key)
        async with self._alone(space, bucket, key):
            await self._take_away(ref, space, bucket, key)

    async def erase_event(self, space: str, event_id: str, who: Who = SERVER) -> Erased:
        """Delete all blobs of an event, and the messages of the space that are the event, dead letters too."""
        check_event(event_id)
        ref = await self._router.find(_dxn(space))
        if ref is None:
            return Erased(0, 0)
        blobs = messages = 0
        while True:
            count = await ref.call(by(who, SpaceShard.doom_event), event_id)
            blobs += count
            if count < DOOMED_TOGETHER:
                break
        after: int | None = 0
        while after is not None:
            part = await ref.call(by(who, SpaceShard.erase_messages), event_id, after)
            messages, after = messages + part.count, part.resume
        while doomed := await ref.call(SpaceShard.doomed_blobs, SHARE, event_id):
            await self._take_all(ref, space, doomed)
        return Erased(blobs, messages)

    async def sweep(self) -> None:
        """Delete the bytes of blobs that are doomed, in all spaces, until cancelled."""
        with self._router.watch_blobs() as names:
            while True:
                name = await names.next()
                try:
                    if await self._swept(name):
                        names.add(name)
                except (ShardError, EdgeQueuesError) as error:
                    log.warning("space %s: blobs are not deleted yet, they will be: %s", name, error)
                except Exception:  # of one space: the others' blobs go
                    log.exception("space %s: blobs are not deleted yet, they will be", name)

    async def _swept(self, name: str) -> bool:
        """Delete a share of the bytes of a space; return whether there may be more."""
        space, tag = from_shard(name)
        ref = await self._router.find_shard(name)
        if ref is None or tag != "data":
            return False
        doomed = await ref.call(SpaceShard.doomed_blobs, SHARE)
        await self._take_all(ref, space, doomed)
        return len(doomed) == SHARE

    async def _take_all(self, ref: Ref[SpaceShard], space: str, doomed: list[tuple[str, str]]) -> None:
        for bucket, key in doomed:
            async with self._alone(space, bucket, key):
                await self._take_away(ref, space, bucket, key)

    async def _take_away(self, ref: Ref[SpaceShard], space: str, bucket: str, key: str) -> None:
        """Delete the bytes of a blob that is gone, then its row. To be called by whoever has it alone."""
        found = await ref.call(SpaceShard.find_blob, bucket, key)
        if found is not None and found.gone:
            await (await self._opened()).delete(path_of(space, bucket, key))
            await ref.call(SpaceShard.forget_blob, bucket, key)

    # -- details ----------------------------------------------------------------------------------------

    async def _require(self, space: str, bucket: str, key: str) -> Ref[SpaceShard]:
        check_bucket(bucket)
        check_key(key)
        ref = await self._router.find(_dxn(space))
        if ref is None:
            raise BlobNotFound(f"space {space}")
        return ref

    async def _opened(self) -> BlobStore:
        """The backend, opened by whoever needs it first."""
        async with self._opening:
            if self._store is None:
                self._store = await self._open_store()
            return self._store

    @asynccontextmanager
    async def _alone(self, space: str, bucket: str, key: str) -> AsyncIterator[None]:
        """Nobody else stores or deletes the blob meanwhile. What has begun is not cancelled in its middle."""
        place = (space, bucket, key)
        lock = self._locks.setdefault(place, trio.Lock())
        with trio.CancelScope(shield=True):
            async with lock:
                try:
                    yield
                finally:
                    if not lock.statistics().tasks_waiting:
                        del self._locks[place]


def open_sweeper(blobs: Blobs) -> AbstractAsyncContextManager[None]:
    """Have doomed blobs deleted for as long as the block lasts. What the block raises leaves it as it is."""
    return beside(blobs.sweep)


def _dxn(space: str) -> Dxn:
    return Dxn(check_space(space), "")
