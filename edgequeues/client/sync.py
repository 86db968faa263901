"""`SyncClient`: every verb of `Client` as a plain method, for programs without an event loop.

    with SyncClient("http://127.0.0.1:8700") as client:
        client.append("dxn:queue:demo:log", [{"n": 1}])
        for entry in client.iterate("dxn:queue:demo:log"):
            print(entry.position, entry.data)

The verbs are those of `Client` themselves, run to their end (see `blocking`): parameters, answers and errors are
the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from edgequeues.client.api import Client
from edgequeues.client.blocking import BlockingTransport, finish, items
from edgequeues.client.events import Subscription
from edgequeues.client.http import Retry
from edgequeues.client.values import Entry

P = ParamSpec("P")
T = TypeVar("T")


def _verb(
    verb: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncClient, P], T]:
    """Make a verb of `Client` one that blocks."""

    @wraps(verb)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return finish(verb(self._client, *args, **kwargs))

    return call


def _iterator(
    verb: Callable[Concatenate[Client, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[SyncClient, P], Generator[T, None, None]]:
    """Make a verb of `Client` that gives things one by one a generator."""

    @wraps(verb)
    def call(self: SyncClient, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return items(verb(self._client, *args, **kwargs))

    return call


class SyncSubscription:
    """The entries of a queue as they are appended: `for entry in subscription`. As `Subscription`, but it blocks.

    A wait lasts until an entry comes; Ctrl-C ends it, and loses nothing: `cursor` is where to go on. Use `with`, or
    call `close` when done. For one thread.
    """

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    @property
    def cursor(self) -> str | None:
        """Of the last entry given; None before the first."""
        return self._subscription.cursor

    def __iter__(self) -> SyncSubscription:
        return self

    def __next__(self) -> Entry:
        """Wait for the next entry. Raises Refused at once, Unreachable and Unavailable when patience ends."""
        return finish(self._subscription.__anext__())

    def close(self) -> None:
        """Close the connection. Iterating again opens a new one after the last entry received."""
        finish(self._subscription.aclose())

    def __enter__(self) -> SyncSubscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class SyncClient:
    """A connection pool to one server, for any number of threads. A context manager; use it once.

    Every call blocks the thread that makes it: on an event loop use `Client`. A call can be ended by `timeout_s` and
    by Ctrl-C alone; what was sent by then may be done all the same. Iterators and subscriptions are for one thread
    each.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        timeout_s: float = 30.0,
        connections_max: int = 100,
        retry: Retry | None = None,
        keyed: bool = False,
        transport: BlockingTransport | None = None,
    ) -> None:
        """As `Client`. Connects to nothing yet. Raises ValueError for an address or token that cannot be one.

        transport: instead of an address, a token, limits and `retry`, a transport made by the caller.
        """
        self._transport = transport or BlockingTransport(
            base_url, token=token, timeout_s=timeout_s, connections_max=connections_max, retry=retry
        )
        self._client = Client(base_url, keyed=keyed, transport=self._transport)

    def close(self) -> None:
        """Close every connection."""
        finish(self._transport.aclose())

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(
        self, dxn: str, *, after: str | None = None, type: str | None = None, retry: Retry | None = None
    ) -> SyncSubscription:
        """Return an endless iterator: the entries after the cursor `after`, then new ones. As `Client.subscribe`."""
        return SyncSubscription(self._client.subscribe(dxn, after=after, type=type, retry=retry))

    def tail(self, dxn: str, *, type: str | None = None, retry: Retry | None = None) -> SyncSubscription:
        """Return `subscribe` from the tail: what is appended from the first wait on."""
        return SyncSubscription(self._client.tail(dxn, type=type, retry=retry))

    # -- the log -------------------------------------------------------------------------------------------

    append = _verb(Client.append)
    read = _verb(Client.read)
    get = _verb(Client.get)
    delete = _verb(Client.delete)
    config = _verb(Client.config)
    configure = _verb(Client.configure)
    reconfigure = _verb(Client.reconfigure)
    stats = _verb(Client.stats)
    health = _verb(Client.health)
    append_stream = _iterator(Client.append_stream)
    iterate = _iterator(Client.iterate)
    queues = _iterator(Client.queues)
    spaces = _iterator(Client.spaces)

    # -- work queues ---------------------------------------------------------------------------------------

    push = _verb(Client.push)
    pull = _verb(Client.pull)
    ack = _verb(Client.ack)
    retry = _verb(Client.retry)
    release = _verb(Client.release)
    extend = _verb(Client.extend)
    skip = _verb(Client.skip)
    hurry = _verb(Client.hurry)
    peek = _verb(Client.peek)
    explain = _verb(Client.explain)
    lines = _verb(Client.lines)
    consumers = _verb(Client.consumers)
    put_consumer = _verb(Client.put_consumer)
    delete_consumer = _verb(Client.delete_consumer)
    dead_letters = _verb(Client.dead_letters)
    replay = _verb(Client.replay)
    replay_where = _verb(Client.replay_where)
    preview_replay = _verb(Client.preview_replay)
    purge = _verb(Client.purge)
    make_queue = _verb(Client.make_queue)
    remove = _verb(Client.remove)
    push_all = _iterator(Client.push_all)
    iterate_dead_letters = _iterator(Client.iterate_dead_letters)

    # -- sessions ------------------------------------------------------------------------------------------

    enqueue_inbound = _verb(Client.enqueue_inbound)
    sessions = _verb(Client.sessions)
    session = _verb(Client.session)
    close_session = _verb(Client.close_session)
    skip_session = _verb(Client.skip_session)
    retry_session = _verb(Client.retry_session)
    reclaim = _verb(Client.reclaim)
    clean_sessions = _verb(Client.clean_sessions)
    iterate_sessions = _iterator(Client.iterate_sessions)

    # -- specs, schedules, entities ------------------------------------------------------------------------

    apply_spec = _verb(Client.apply_spec)
    remove_spec = _verb(Client.remove_spec)
    spec = _verb(Client.spec)
    specs = _verb(Client.specs)
    hooks = _verb(Client.hooks)
    run_schedule = _verb(Client.run_schedule)
    entities = _verb(Client.entities)
    entity = _verb(Client.entity)
    entity_history = _verb(Client.entity_history)
    schedules = _iterator(Client.schedules)
    iterate_entities = _iterator(Client.iterate_entities)

    # -- operators -----------------------------------------------------------------------------------------

    inspect = _verb(Client.inspect)
    try_letter = _verb(Client.try_letter)
    replay_letter = _verb(Client.replay_letter)
    audit = _verb(Client.audit)
    delete_letter = _verb(Client.delete_letter)
    results = _verb(Client.results)
    iterate_results = _iterator(Client.iterate_results)
    iterate_audit = _iterator(Client.iterate_audit)
    queue_state = _verb(Client.queue_state)
    doing = _verb(Client.doing)
    iterate_doing = _iterator(Client.iterate_doing)
    iterate_search = _iterator(Client.iterate_search)
    search = _verb(Client.search)

    # -- blobs ---------------------------------------------------------------------------------------------

    put_blob = _verb(Client.put_blob)
    get_blob = _verb(Client.get_blob)
    link_blob = _verb(Client.link_blob)
    blobs = _verb(Client.blobs)
    iterate_blobs = _iterator(Client.iterate_blobs)
    erase_blob = _verb(Client.erase_blob)
    erase_event = _verb(Client.erase_event)

    # -- backups -------------------------------------------------------------------------------------------

    backup = _iterator(Client.backup)
    backup_control = _iterator(Client.backup_control)
    restore = _verb(Client.restore)
