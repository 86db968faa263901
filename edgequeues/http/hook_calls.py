"""Commands that webhooks call without a queue: carried out while the sender waits, each once by its keys."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import CommandFailed
from edgequeues.router import Router
from edgequeues.space.hook_verbs import Answered, Asked
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.hook_targets import Called, CommandHook
from edgequeues.spec.ir import CommandSpec
from edgequeues.spec.working import runner_of
from edgequeues.workers.executors import Executors
from edgequeues.workers.pipe import Job
from edgequeues.workers.runner import looking
from shards.namespace import Ref

RUNS_MAX = 5  # of a command whose looks were overtaken each time


async def carry_out(
    router: Router, executors: Executors, hook: CommandHook, calls: Sequence[Called], at_ms: int
) -> list[Answered]:
    """Carry out commands, but for those that were before. at_ms: unix ms of the request.

    Built-in ones happen together or not at all; others one after the other, and those that were done before one fails
    stay done: sent again, the request goes on from there. Raises CommandRejected, CommandFailed, InvalidMessage.
    """
    space = await router.make(Dxn(space=hook.space, queue="default"))
    command = hook.command
    if command is None or runner_of(command) == "space":
        return await space.call(SpaceShard.call_now, [Asked(one.keys, one.call) for one in calls])
    return [await _outside(space, executors, hook, command, one, at_ms) for one in calls]


async def _outside(
    space: Ref[SpaceShard],
    executors: Executors,
    hook: CommandHook,
    command: CommandSpec,
    called: Called,
    at_ms: int,
) -> Answered:
    before = await space.call(SpaceShard.called_before, called.keys)
    if before is not None:
        return before
    job = Job(command.python or "", called.call, _id(hook, called), 1, hook.space, at_ms, at_ms)
    for _ in range(RUNS_MAX):
        effects = await executors.run(command, job, looking(space))
        taken = await space.call(SpaceShard.take_now, called.keys, called.call.command, job.id, effects)
        if taken != "conflict":
            return taken
    raise CommandFailed(f"{called.call.name}: what it looked at changed during each of {RUNS_MAX} runs")


def _id(hook: CommandHook, called: Called) -> str:
    """The same however often the request is sent, so that a receiver knows a repeat."""
    return sha256(f"{hook.space}/{called.keys[0]}".encode()).hexdigest()[:32]
