"""The protocol of Cloudflare Queues, `/client/v4`: its SDKs and wrangler work unchanged. An account is a space.

docs/protocol/cloudflare.md is its contract. Bodies are read as JSON whatever their media type: wrangler sends them as
text/plain.
"""

from __future__ import annotations

from typing import Literal

from edgequeues.core import ids
from edgequeues.core.dxn import Dxn
from edgequeues.core.grants import Verb
from edgequeues.http import cloudflare_codec as read
from edgequeues.http import cloudflare_errors as errors
from edgequeues.http import cloudflare_turns as turns
from edgequeues.http import cloudflare_views as show
from edgequeues.http import params
from edgequeues.http.cloudflare_answers import Answers, answers
from edgequeues.http.cloudflare_codec import Fields, Wire
from edgequeues.http.cloudflare_errors import Refused
from edgequeues.http.cloudflare_turns import View
from edgequeues.http.deleting import purge
from edgequeues.http.reading import to_its_end
from edgequeues.http.routes import Dialect, Handler, Request, Response, Route
from edgequeues.http.waits import Waits
from edgequeues.models import PULL_MAX
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.tracing import marked
from shards.namespace import Ref

ACCOUNT = "/client/v4/accounts/{space}"
QUEUES = ACCOUNT + "/queues"
QUEUE = QUEUES + "/{queue_hex}"
CONSUMER = QUEUE + "/consumers/{consumer}"
MESSAGES = QUEUE + "/messages"

BODY_BYTES_MAX = 4 * 1024 * 1024  # of JSON, which may write one byte as six
QUEUES_MAX = 10_000  # of an account that are listed
PAGE = 100  # queues in one, where the request does not say
PAGE_MAX = 1_000
LISTED = 500  # queues looked up in one turn
PEEKED = 10


def dialect(router: Router, waits: Waits, *, wire: Wire | None = None) -> Dialect:
    """The protocol. `waits` ends long deletions when the server stops."""
    account = _Account(router, waits, wire or Wire())
    table = [
        *_queues(account),
        *_consumers(account),
        *_messages(account),
        *_looking(account),
        *_purging(account),
    ]
    return Dialect("cloudflare", ("/client/v4/",), table, errors.refuse)


class _Account:
    """What the handlers share: where to find a queue, and how to show it."""

    def __init__(self, router: Router, waits: Waits, wire: Wire) -> None:
        self.router = router
        self.waits = waits
        self.wire = wire

    async def space(self, request: Request) -> tuple[Ref[SpaceShard], str]:
        """The space of a request, and the id of its queue. Raises QueueNotFound where there is no such space."""
        dxn = address(request)
        return await self.router.require(dxn), dxn.queue

    def queue(self, view: View) -> Response:
        """A queue as an answer."""
        return show.ok(show.queue(view, self.wire))


def address(request: Request) -> Dxn:
    """Account and queue of a path. Raises InvalidId."""
    space = ids.check_space(request.params["space"])
    return Dxn(space, ids.hex_to_ulid(request.params["queue_hex"]))


def place(request: Request) -> tuple[str, str]:
    """Space and queue. Raises InvalidId."""
    dxn = address(request)
    return dxn.space, dxn.queue


def _route(method: str, template: str, handler: Handler, verb: Verb) -> Route:
    """A route about one queue."""
    return Route(method, template, handler, verb, place=place)


async def body(request: Request) -> bytes:
    """The whole body."""
    return await request.body(BODY_BYTES_MAX)


def _queues(account: _Account) -> list[Route]:
    router, wire = account.router, account.wire

    async def queues(request: Request) -> Response:
        """List queues: those of the given names, or all."""
        space_id = ids.check_space(request.params["space"])
        number = params.integer(request.query, "page", low=1)
        size = params.integer(request.query, "per_page", low=1, high=PAGE_MAX) or PAGE
        space = await router.find(Dxn(space_id, ids.hex_to_ulid("0" * 32)))
        names = request.query.get("name", ())
        found: list[View] = []
        if space is not None and names:
            found = await space.call(turns.named, names)
        after: str | None = ""
        while space is not None and not names and after is not None and len(found) < QUEUES_MAX:
            part, after = await space.call(turns.views, after, LISTED)
            found += part
        return show.page([show.queue(one, wire) for one in found if show.has_id(one)], number, size)

    async def create(request: Request) -> Response:
        """Make a queue; the first one makes the space."""
        space_id = ids.check_space(request.params["space"])
        config = read.new_queue(await body(request))
        space = await router.make(Dxn(space_id, str(config.name)), stranger=request.caller.stranger)
        return account.queue(await space.call(by(request.caller.who, turns.create), config))

    async def get(request: Request) -> Response:
        """Return a queue."""
        space, queue = await account.space(request)
        return account.queue(await space.call(turns.view, queue))

    async def change(request: Request) -> Response:
        """Change settings: PATCH those that are named, PUT all."""
        changes = read.queue_changes(await body(request), replacing=request.method == "PUT")
        space, queue = await account.space(request)
        return account.queue(await space.call(by(request.caller.who, turns.change), queue, changes))

    async def delete(request: Request) -> Response:
        """Remove a queue with all it holds."""
        space, queue = await account.space(request)
        await to_its_end(lambda: space.call(by(request.caller.who, SpaceShard.remove), queue), account.waits)
        return show.ok(None)

    return [
        Route("GET", QUEUES, queues, "list"),
        Route("POST", QUEUES, create, "configure"),
        _route("GET", QUEUE, get, "read"),
        _route("PUT", QUEUE, change, "configure"),
        _route("PATCH", QUEUE, change, "configure"),
        _route("DELETE", QUEUE, delete, "configure"),
    ]


def _consumers(account: _Account) -> list[Route]:
    wire = account.wire

    async def consumers(request: Request) -> Response:
        """List consumers; there is one at most, unless others were made natively."""
        space, queue = await account.space(request)
        found = show.consumers(await space.call(turns.view, queue), wire)
        return show.page(found, None, PAGE)

    async def create(request: Request) -> Response:
        """Make the consumer, and the queue for its dead letters where that is missing."""
        new = read.consumer(await body(request), wire)
        space, queue = await account.space(request)
        view = await space.call(by(request.caller.who, turns.add_consumer), queue, new)
        return show.ok(show.consumer(view, view.consumers[0], wire))

    async def get(request: Request) -> Response:
        """Return a consumer."""
        space, queue = await account.space(request)
        view = await space.call(turns.view, queue)
        return show.ok(show.consumer(view, show.find_consumer(view, request.params["consumer"]), wire))

    async def change(request: Request) -> Response:
        """Replace the rules of a consumer."""
        new = read.consumer(await body(request), wire)
        space, queue = await account.space(request)
        found = show.find_consumer(await space.call(turns.view, queue), request.params["consumer"])
        view = await space.call(by(request.caller.who, turns.change_consumer), queue, found.name, new)
        return show.ok(show.consumer(view, show.find_consumer(view, request.params["consumer"]), wire))

    async def delete(request: Request) -> Response:
        """Remove a consumer; the messages stay."""
        space, queue = await account.space(request)
        found = show.find_consumer(await space.call(turns.view, queue), request.params["consumer"])
        await to_its_end(
            lambda: space.call(by(request.caller.who, SpaceShard.dismiss), queue, found.name), account.waits
        )
        return show.ok(None)

    return [
        _route("GET", QUEUE + "/consumers", consumers, "read"),
        _route("POST", QUEUE + "/consumers", create, "configure"),
        _route("GET", CONSUMER, get, "read"),
        _route("PUT", CONSUMER, change, "configure"),
        _route("DELETE", CONSUMER, delete, "configure"),
    ]


def _messages(account: _Account) -> list[Route]:
    wire = account.wire

    async def push(request: Request) -> Response:
        """Append a message."""
        entry = read.message(await body(request), wire)
        space, queue = await account.space(request)
        return show.ok(show.pushed(await space.call(turns.push, queue, marked([entry])), wire))

    async def bulk_push(request: Request) -> Response:
        """Append up to a hundred messages, all or none."""
        entries = read.messages(await body(request), wire)
        space, queue = await account.space(request)
        return show.ok(show.pushed(await space.call(turns.push, queue, marked(entries)), wire))

    async def pull(request: Request) -> Response:
        """Lease messages; an empty queue answers at once."""
        ask = read.pull(await body(request))
        space, queue = await account.space(request)
        return show.ok(show.pulled(await space.call(turns.pull, queue, ask), wire))

    async def ack(request: Request) -> Response:
        """Finish messages, give others back, append what goes with it: all in one turn."""
        said = answers(await body(request))
        make = _may_emit(request, said)
        space, queue = await account.space(request)
        if said.emits:
            done = await space.call(turns.settle_emitting, queue, said, make)
        else:
            done = await space.call(turns.settle, queue, said)
        return show.ok(show.settled(said, done))

    async def extend(request: Request) -> Response:
        """Move the ends of leases."""
        leases, lease_ms = read.extension(await body(request))
        space, queue = await account.space(request)
        return show.ok(show.extended(leases, await space.call(turns.extend, queue, leases, lease_ms)))

    return [
        _route("POST", MESSAGES, push, "push"),
        _route("POST", MESSAGES + "/batch", bulk_push, "push"),
        _route("POST", MESSAGES + "/pull", pull, "pull"),
        _route("POST", MESSAGES + "/ack", ack, "pull"),
        _route("POST", MESSAGES + "/extend", extend, "pull"),
    ]


def _may_emit(request: Request, said: Answers) -> bool:
    """Whether queues may be made for what goes with an ack. Raises Unauthenticated, Forbidden where none may go."""
    named, caller = address(request).space, request.caller
    for one in said.emits:
        caller.require("push", named, one.queue)
    return all(caller.may("create", named, one.queue) for one in said.emits)


def _looking(account: _Account) -> list[Route]:
    wire = account.wire

    async def seen(request: Request, name: Literal["ref", "lease_id"]) -> Response:
        limit = Fields.of_body(await body(request)).whole("batch_size", 1, PULL_MAX) or PEEKED
        space, queue = await account.space(request)
        return show.ok(show.seen(await space.call(turns.peek, queue, limit), wire, name))

    async def peek(request: Request) -> Response:
        """Look at messages that could be pulled now; nothing changes."""
        return await seen(request, "ref")

    async def preview(request: Request) -> Response:
        """The same as it was called before."""
        return await seen(request, "lease_id")

    async def metrics(request: Request) -> Response:
        """Count what is still to be done."""
        space, queue = await account.space(request)
        return show.ok(show.backlog(await space.call(SpaceShard.backlog, queue), wire))

    async def subscriptions(_: Request) -> Response:
        """List event subscriptions, of which there are none here."""
        return show.page([], 1, PAGE)

    return [
        _route("POST", MESSAGES + "/peek", peek, "read"),
        _route("POST", MESSAGES + "/preview", preview, "read"),
        _route("GET", QUEUE + "/metrics", metrics, "read"),
        Route("GET", ACCOUNT + "/event_subscriptions/subscriptions", subscriptions, "list"),
    ]


def _purging(account: _Account) -> list[Route]:
    router, wire = account.router, account.wire

    async def dropped(request: Request, list_name: str, name: str) -> dict[str, str]:
        refs = read.references(await body(request), list_name, name)
        space, queue = await account.space(request)
        there = await space.call(by(request.caller.who, turns.drop), queue, refs)
        return {ref: "no such message" for ref, was in zip(refs, there, strict=True) if not was}

    async def drop(request: Request) -> Response:
        """Delete messages that were looked at."""
        return show.ok({"errors": [], "warnings": await dropped(request, "refs", "ref")})

    async def drop_previewed(request: Request) -> Response:
        """The same as it was called before."""
        return show.ok({"warnings": await dropped(request, "acks", "lease_id")})

    async def purge_all(request: Request) -> Response:
        """Delete all that is in a queue now; what is pushed from now on stays."""
        if (
            Fields.of_body(await body(request), errors.REQUEST).flag("delete_messages_permanently")
            is not True
        ):
            raise Refused(errors.REQUEST, "delete_messages_permanently must be true: what is purged is gone")
        space, queue = await account.space(request)
        await purge(router, account.waits, address(request), request.caller.who)
        view, state = await space.call(turns.purged, queue)
        return show.ok(show.purge(view, state, wire))

    async def purge_state(request: Request) -> Response:
        """Say how far the last purge has come."""
        space, queue = await account.space(request)
        return show.ok(show.purge_state(await space.call(SpaceShard.purge_state, queue)))

    return [
        _route("POST", MESSAGES + "/purge", drop, "delete"),
        _route("POST", MESSAGES + "/preview/ack", drop_previewed, "delete"),
        _route("POST", QUEUE + "/purge", purge_all, "delete"),
        _route("GET", QUEUE + "/purge", purge_state, "read"),
    ]
