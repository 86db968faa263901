"""The specs that hold on this server, and the webhooks they declare. Rows of control.db, compiled."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

import trio
from msgspec import Struct

from edgequeues.control import Control, ControlError, SpecRow
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import (
    EdgeQueuesError,
    HookBlocked,
    HookNotFound,
    HookTaken,
    InvalidRequest,
    InvalidSpec,
    SpecNotFound,
)
from edgequeues.core.who import SERVER, Who
from edgequeues.router import Router
from edgequeues.space.shard import SpaceShard
from edgequeues.space.watched import by
from edgequeues.spec import ir
from edgequeues.spec.check import Allowed, check
from edgequeues.spec.faults import Fault, words
from edgequeues.spec.hook_targets import CommandHook, QueueHook
from edgequeues.spec.hooks import verifier_of
from edgequeues.spec.ir import Spec
from edgequeues.spec.values import Applied
from shards.clock import Clock
from shards.errors import ShardError
from shards.namespace import Ref

log = logging.getLogger("edgequeues.specs")


class PastCall(Struct, frozen=True):
    """What became of a call. at: unix ms. status: that it was answered with; 0: its sender did not wait for one."""

    at: int
    status: int
    outcome: str


class HookInfo(Struct, frozen=True):
    """A webhook as listed. counts: what became of its calls since the start, by outcome. recent: of the last ones.

    state: `blocked`: what it needs is not there, so its calls are answered 503; `why` says more.
    """

    name: str
    space: str
    app: str
    queue: str | None
    state: Literal["open", "blocked"]
    why: str | None
    counts: dict[str, int]
    recent: list[PastCall]


class Renewed(Struct, frozen=True):
    """A spec that was to hold in what is a space by now. why: for what reason it does not; None: it does."""

    app: str
    why: str | None


class Held(Struct):
    """A spec that holds. why: for what reason its webhooks are not served."""

    row: SpecRow
    spec: Spec
    hooks: dict[str, QueueHook | CommandHook]
    why: str | None = None


class Specs:
    """All specs of a server. allowed: what of the server's surroundings they may use."""

    def __init__(self, control: Control, router: Router, clock: Clock, allowed: Allowed) -> None:
        self._control = control
        self._router = router
        self._clock = clock
        self._allowed = allowed
        self._held: dict[tuple[str, str], Held] = {}  # by space and app
        self._by_name: dict[str, Held] = {}  # which spec declares a webhook
        self._one_at_a_time = trio.Lock()
        for row in control.specs():
            self._restore(row)

    def _restore(self, row: SpecRow) -> None:
        """Have a spec hold as it did before the server stopped; without its webhooks, where they cannot be served."""
        try:
            spec = ir.decode(row.ir.encode())
        except InvalidRequest as error:  # another version of us wrote it
            log.error(
                "the spec of app %s in space %s is left out: %s; apply it again", row.app, row.space, error
            )
            return
        faults = check(spec, self._allowed)
        if faults:
            why = "; ".join(map(_said, faults))
            log.error("the webhooks of app %s in space %s are blocked: %s", row.app, row.space, why)
            self._hold(Held(row, spec, {}, why))
        else:
            self._hold(Held(row, spec, self._compiled(row.space, spec)))

    # -- changing ---------------------------------------------------------------------------------------

    async def apply(
        self, space: str, spec: Spec, origin: str, *, dry_run: bool = False, who: Who = SERVER
    ) -> Applied:
        """Have a spec hold in a space; its queues are made, its webhooks served once this returns.

        origin: where it comes from, in words. dry_run: only say what that would do.
        Raises InvalidSpec, HookTaken, SpecConflict, ControlError, and as `Router.make` does.
        """
        faults = check(spec, self._allowed)
        if faults:
            raise InvalidSpec("; ".join(map(_said, faults)))
        async with self._one_at_a_time:
            return await self._apply(space, spec, origin, dry_run=dry_run, who=who)

    async def _apply(self, space: str, spec: Spec, origin: str, *, dry_run: bool, who: Who) -> Applied:
        for name in spec.webhooks:
            other = self._by_name.get(name)
            if other is not None and (other.row.space, other.row.app) != (space, spec.app):
                raise HookTaken(f"webhook {name} of {origin}: {other.row.origin} declares it, too")
        ref = await self._router.make(_home(space, spec))
        applied = await ref.call(by(who, SpaceShard.apply), spec, dry_run=dry_run)
        if not dry_run:
            row = SpecRow(space, spec.app, origin, ir.encode(spec).decode(), self._clock.now_ms())
            self._control.put_spec(row)
            before = self._forget(space, spec.app)
            self._hold(Held(row, spec, self._compiled(space, spec)))
            self._count_on(before)
            await _take_away(ref, applied.gone, who)
        return applied

    async def remove(self, space: str, app: str, *, dry_run: bool = False, who: Who = SERVER) -> Applied:
        """Have the spec of an app hold no more: its queues, which must be empty, go.

        Raises SpecNotFound, SpecConflict, ControlError.
        """
        async with self._one_at_a_time:
            held = self.require(space, app)
            nothing = Spec(version=0, app=app)
            ref = await self._router.make(_home(space, held.spec))
            applied = await ref.call(by(who, SpaceShard.apply), nothing, dry_run=dry_run)
            if not dry_run:
                self._control.remove_spec(space, app)
                self._forget(space, app)
                await _take_away(ref, applied.gone, who)
        return applied

    async def renew(self, space: str, who: Who = SERVER) -> list[Renewed]:
        """Have the specs of a space hold in the file that it has now."""
        renewed = []
        async with self._one_at_a_time:  # or one that is removed meanwhile would come back
            for held in self.of_space(space):
                why = held.why
                try:
                    if why is None:
                        await self._apply(space, held.spec, held.row.origin, dry_run=False, who=who)
                except (EdgeQueuesError, ShardError, ControlError) as error:
                    why = str(error)
                    log.warning("the spec of app %s does not hold in space %s: %s", held.row.app, space, why)
                renewed.append(Renewed(held.row.app, why))
        return renewed

    def _compiled(self, space: str, spec: Spec) -> dict[str, QueueHook | CommandHook]:
        return {name: self._hook(name, space, spec) for name in spec.webhooks}

    def _hook(self, name: str, space: str, spec: Spec) -> QueueHook | CommandHook:
        hook = spec.webhooks[name]
        verifier = verifier_of(hook, self._allowed.environment)
        if hook.queue is not None:
            return QueueHook(name, space, spec.app, hook, spec.queues[hook.queue], verifier)
        command = spec.commands.get(f"{hook.on_type}.{hook.command}")
        return CommandHook(name, space, spec.app, hook, command, verifier)

    def _hold(self, held: Held) -> None:
        self._held[held.row.space, held.row.app] = held
        self._by_name |= dict.fromkeys(held.spec.webhooks, held)

    def _forget(self, space: str, app: str) -> Held | None:
        held = self._held.pop((space, app), None)
        for name in () if held is None else held.spec.webhooks:
            del self._by_name[name]
        return held

    def _count_on(self, before: Held | None) -> None:
        """Have webhooks that are declared anew go on counting their calls."""
        for name, hook in () if before is None else before.hooks.items():
            now = self._by_name.get(name)
            if now is not None:
                now.hooks[name].counts.update(hook.counts)
                now.hooks[name].recent.extend(hook.recent)

    # -- looking ----------------------------------------------------------------------------------------

    def hook(self, name: str, space: str | None = None) -> QueueHook | CommandHook:
        """The webhook of this name. Raises HookNotFound, HookBlocked."""
        held = self._by_name.get(name)
        if held is None or space not in (None, held.row.space):
            raise HookNotFound(f"webhook {name[:128]}")
        if held.why is not None:
            raise HookBlocked(f"webhook {name}")
        return held.hooks[name]

    def require(self, space: str, app: str) -> Held:
        """The spec of an app. Raises SpecNotFound."""
        held = self._held.get((space, app))
        if held is None:
            raise SpecNotFound(f"app {app} in space {space}")
        return held

    def of_space(self, space: str) -> list[Held]:
        """The specs that hold in a space, by app."""
        return [held for (name, _), held in sorted(self._held.items()) if name == space]

    def spaces(self) -> list[str]:
        """The spaces in which specs hold, in order."""
        return sorted({space for space, _ in self._held})

    def hooks(self) -> list[HookInfo]:
        """All webhooks, by name."""
        return [_info(name, held) for name, held in sorted(self._by_name.items())]


async def _take_away(ref: Ref[SpaceShard], gone: Sequence[str], who: Who) -> None:
    """Remove queues that a spec has no more: they are empty and have no names, so what fails does no harm."""
    for queue_id in gone:
        try:
            while await ref.call(by(who, SpaceShard.remove), queue_id):
                pass
        except (EdgeQueuesError, ShardError) as error:
            log.warning("queue %s is not removed, though no spec declares it any more: %s", queue_id, error)


def _said(fault: Fault) -> str:
    return f"{words(fault.path) or 'spec'}: {fault.what}"


def _home(space: str, spec: Spec) -> Dxn:
    """An address in the space: of any queue, since all of them are in one shard."""
    return Dxn(space=space, queue=next(iter(spec.queues), "default"))


def _info(name: str, held: Held) -> HookInfo:
    hook = held.hooks.get(name)
    queue = held.spec.webhooks[name].queue
    state: Literal["open", "blocked"] = "blocked" if hook is None else "open"
    counts = {} if hook is None else dict(hook.counts)
    recent = [] if hook is None else [PastCall(*one) for one in hook.recent]
    return HookInfo(name, held.row.space, held.row.app, queue, state, held.why, counts, recent)
