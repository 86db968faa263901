"""`Client`: every verb of the native protocol as a typed method, on trio or asyncio.

    async with Client("http://127.0.0.1:8700") as client:
        await client.append("dxn:queue:demo:log", [{"n": 1}])
        async for entry in client.iterate("dxn:queue:demo:log"):
            print(entry.position, entry.data)

`dxn` is `dxn:queue:<space>:<queue>` (`<q>` in the protocol page). Every method may raise Unreachable (no whole
answer: is the server there?), Unavailable (not now: wait, then repeat), Refused (`code` and `detail` say what to
change), ServerError (a fault of the server) and BadAnswer (that is not an edgequeues server).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from types import TracebackType

from edgequeues.client import answers, upload, wire
from edgequeues.client.admin import AdminVerbs
from edgequeues.client.backups import BackupVerbs
from edgequeues.client.blobs import BlobVerbs
from edgequeues.client.entities import EntityVerbs
from edgequeues.client.errors import Unavailable
from edgequeues.client.events import TAIL, Subscription
from edgequeues.client.http import Retry, Transport
from edgequeues.client.overview import OverviewVerbs
from edgequeues.client.schedules import ScheduleVerbs
from edgequeues.client.searching import SearchVerbs
from edgequeues.client.sessions import SessionVerbs
from edgequeues.client.specs import SpecVerbs
from edgequeues.client.upload import Chunk
from edgequeues.client.values import (
    AppendAnswer,
    ConfigChange,
    Confirmation,
    Entry,
    Health,
    Page,
    QueueConfig,
    QueueStats,
    Space,
    require_many,
)
from edgequeues.client.work import WorkVerbs

PAGE_ENTRIES = 1_000
DELETE_IDS_MAX = 50  # ids in one request: 50 of 128 characters stay below the 8 KiB a request line may have
SUBSCRIPTION_RETRY = Retry(attempts_max=12)  # about half a minute: a server has time to restart


class Client(
    WorkVerbs,
    SearchVerbs,
    SessionVerbs,
    SpecVerbs,
    ScheduleVerbs,
    EntityVerbs,
    AdminVerbs,
    OverviewVerbs,
    BlobVerbs,
    BackupVerbs,
):
    """A connection pool to one server. An async context manager; use it once, from one event loop."""

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        connections_max: int = 100,
        retry: Retry | None = None,
        keyed: bool = False,
        transport: Transport | None = None,
    ) -> None:
        """Connects to nothing yet.

        Raises ValueError if `base_url` is not an http or https address, or `token` not one that can be sent.

        token: sent with each request as a bearer token; in the clear where `base_url` begins with http.
        timeout_s: to connect, to write, and to wait for the next part of an answer.
        connections_max: requests under way at once; more wait for their turn, `timeout_s` at most.
        retry: how often a request is repeated where that is safe: reads, and appends whose entries all have ids.
        keyed: have what is appended and pushed carry idempotency keys, made where the caller gives none, so that
            these calls can be repeated, too. The server keeps each for 24 h. Not where the spec of a queue
            computes keys: a key that is given counts instead.
        transport: instead of an address, a token, limits and `retry`, a transport made by the caller.
        """
        self._transport = transport or Transport(
            base_url, token=token, timeout_s=timeout_s, connections_max=connections_max, retry=retry
        )
        self._keyed = keyed

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.aclose()

    # -- append ------------------------------------------------------------------------------------------

    async def append(
        self, dxn: str, entries: Iterable[object], *, actor: str | None = None, keyed: bool | None = None
    ) -> AppendAnswer:
        """Append up to 1,000 entries, all or nothing; when this returns they are on disk.

        entries: data as it is (anything `json` can write; `bytes` are JSON text, kept byte for byte), or a
            NewEntry to say more. The queue is made by its first append.
        actor: 1 to 32 of `a-z0-9-`, names the writer in versions.
        keyed: give entries with neither an id nor an idempotency key a random key. None: as the client was told.

        Repeated by itself only if every entry names its id or has an idempotency key. Raises ValueError or
        TypeError for data without a JSON form, before anything is sent.
        """
        require_many(entries)
        call = wire.append(dxn, entries, actor=actor, new_key=self._new_key(keyed))
        return answers.appended(await self._transport.send(call))

    def append_stream(
        self,
        dxn: str,
        entries: AsyncIterable[object] | Iterable[object],
        *,
        actor: str | None = None,
        chunk: Chunk | None = None,
        keyed: bool | None = None,
    ) -> AsyncGenerator[Confirmation, None]:
        """Append any number of entries; return an async iterator that does it, a Confirmation for each part on disk.

        A bad entry is refused alone and listed in `errors`. Entries leave as they come (those of a Batch
        together), in requests that end with the first entry that makes them 10,000 entries, 8 MiB or 1 s old
        (`chunk`); the confirmation comes when a request ends, so an idle source holds the last one back. A
        request is repeated by itself only if every entry of it names its id or has an idempotency key (`keyed`, as
        for `append`). After an exception nothing is known of the entries not yet confirmed.
        What the source raises comes out here, once the entries before it are confirmed.
        """
        require_many(entries)
        new_key = self._new_key(keyed)
        source = upload.Source(entries, chunk or Chunk(), self._transport.now, new_key)
        return upload.confirmations(self._transport, wire.append_lines(dxn, actor=actor), source)

    # -- read --------------------------------------------------------------------------------------------

    async def read(
        self,
        dxn: str,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = PAGE_ENTRIES,
        reverse: bool = False,
        type: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        ids: Iterable[str] = (),
        wait_s: float | None = None,
    ) -> Page:
        """Return part of a queue in position order. An unknown queue reads as empty.

        after, before: cursors of this queue, both exclusive.
        limit: 1 to 1,000,000; None: the whole range, all in memory (`iterate` goes through it in pages).
        reverse: start at the tail, newest first.
        type: only entries of this type.
        since_ms, until_ms: bounds on the first append of an object, unix ms, both inclusive.
        ids: only these objects.
        wait_s: seconds, up to 60, to wait for the first entry while nothing matches.
        """
        call = wire.read(
            dxn,
            after=after,
            before=before,
            limit=limit,
            reverse=reverse,
            type=type,
            since_ms=since_ms,
            until_ms=until_ms,
            ids=ids,
            wait_s=wait_s,
        )
        return answers.page(await self._transport.send(call))

    async def iterate(
        self,
        dxn: str,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        reverse: bool = False,
        type: str | None = None,
        since_ms: int | None = None,
        until_ms: int | None = None,
        page_size: int = PAGE_ENTRIES,
    ) -> AsyncGenerator[Entry, None]:
        """Yield entries page by page up to the end of the range, or `limit` of them. Parameters as for `read`.

        page_size: entries in memory at once. Entries appended while iterating forward are yielded too.
        """
        left = limit
        while left is None or left > 0:
            size = page_size if left is None else min(page_size, left)
            page = await self.read(
                dxn,
                after=after,
                before=before,
                limit=size,
                reverse=reverse,
                type=type,
                since_ms=since_ms,
                until_ms=until_ms,
            )
            for entry in page.entries:
                yield entry
            if len(page.entries) < size:
                return
            left = None if left is None else left - size
            after, before = (after, page.prev_cursor) if reverse else (page.next_cursor, before)

    def subscribe(
        self, dxn: str, *, after: str | None = None, type: str | None = None, retry: Retry | None = None
    ) -> Subscription:
        """Return an endless async iterator: the entries after the cursor `after`, then new ones as they come.

        after: None: from the front; "tail": only what comes from now on.
        retry: how often a dropped stream is opened again before its error is raised; by default about half a
            minute long. See Subscription.
        """
        return Subscription(self._transport, dxn, after=after, type=type, retry=retry or SUBSCRIPTION_RETRY)

    def tail(self, dxn: str, *, type: str | None = None, retry: Retry | None = None) -> Subscription:
        """Return `subscribe` from the tail: what is appended from the first wait on."""
        return self.subscribe(dxn, after=TAIL, type=type, retry=retry)

    async def get(self, dxn: str, object_id: str | None = None) -> Entry:
        """Return one object: `get("dxn:queue:<space>:<queue>:<id>")`, or its queue and its id.

        Raises Refused with code `entry_not_found` or `queue_not_found` if it is not there.
        """
        whole = dxn if object_id is None else f"{dxn}:{object_id}"
        return answers.entry(answers.checked(await self._transport.send(wire.get(whole))))

    # -- delete ------------------------------------------------------------------------------------------

    async def delete(
        self,
        dxn: str,
        *,
        ids: Sequence[str] = (),
        after: str | None = None,
        before: str | None = None,
        through: str | None = None,
    ) -> int:
        """Delete entries for good; return how many are gone. Never repeated by itself.

        Either `dxn` names one object, or it names a queue and there is a selector: `ids` (any number, unknown
        ones count 0; 50 a request, so a failure may leave some deleted), or cursors: `after` and `before` are
        exclusive, `through` is inclusive.
        """
        if not ids:
            call = wire.delete(dxn, after=after, before=before, through=through)
            return answers.decoded(await self._transport.send(call), answers.Deleted).deleted
        deleted = 0
        for start in range(0, len(ids), DELETE_IDS_MAX):
            part = ids[start : start + DELETE_IDS_MAX]
            call = wire.delete(dxn, ids=part, after=after, before=before, through=through)
            deleted += answers.decoded(await self._transport.send(call), answers.Deleted).deleted
        return deleted

    # -- queues, spaces, server --------------------------------------------------------------------------

    async def config(self, dxn: str) -> QueueConfig:
        """Return the settings of a queue. Raises Refused with code `queue_not_found`."""
        return answers.decoded(await self._transport.send(wire.get_config(dxn)), QueueConfig)

    async def configure(self, dxn: str, config: QueueConfig) -> QueueConfig:
        """Replace all settings of a queue, making it where it is not there; return them.

        Raises Refused: `name_taken`, or `config_conflict` for a setting that is fixed (make a new queue).
        """
        return answers.decoded(await self._transport.send(wire.put_config(dxn, config)), QueueConfig)

    async def reconfigure(self, dxn: str, change: ConfigChange) -> QueueConfig:
        """Change some settings of a queue; return all. Raises Refused as `config` and `configure`."""
        return answers.decoded(await self._transport.send(wire.patch_config(dxn, change)), QueueConfig)

    async def stats(self, dxn: str) -> QueueStats:
        """Return the counters of a queue and of its consumers. Raises Refused with code `queue_not_found`."""
        return answers.decoded(await self._transport.send(wire.get_stats(dxn)), QueueStats)

    async def queues(self, space: str, *, tag: str | None = None) -> AsyncGenerator[QueueStats, None]:
        """Yield the queues of a space in id order, page by page. tag: `trace` for those beside the space's own."""
        after: str | None = None
        while True:
            call = wire.list_queues(space, tag=tag, after=after, limit=PAGE_ENTRIES)
            page = answers.decoded(await self._transport.send(call), answers.Queues)
            for queue in page.queues:
                yield queue
            after = page.resume
            if after is None:
                return

    async def spaces(self) -> AsyncGenerator[Space, None]:
        """Yield the spaces of the server, page by page."""
        after: str | None = None
        while True:
            call = wire.list_spaces(after=after, limit=PAGE_ENTRIES)
            page = answers.decoded(await self._transport.send(call), answers.Spaces)
            for space in page.spaces:
                yield space
            after = page.resume
            if after is None:
                return

    async def health(self) -> Health:
        """Ask whether the server accepts work. Raises Unreachable if nobody answers."""
        try:
            answers.checked(await self._transport.send(wire.health()))
        except Unavailable as error:
            return Health(ready=False, detail=error.detail)
        return Health(ready=True)
