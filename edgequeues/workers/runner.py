"""The runner: takes commands from spaces that they cannot carry out themselves, and brings back what came of them.

Which spaces have some it is told by the hub; that is lost with the process, so their alarms say it again. Spaces take
turns, a few commands each, so that a long queue holds nobody else up; no lease begins before there is room to run it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import NamedTuple

import trio

from edgequeues.core.dxn import from_shard
from edgequeues.core.errors import CommandFailed, CommandRejected, EdgeQueuesError, InvalidMessage
from edgequeues.models import Retry
from edgequeues.router import Router
from edgequeues.space.calling_verbs import Task
from edgequeues.space.entities import Entity
from edgequeues.space.shard import SpaceShard
from edgequeues.spec.working import Runner
from edgequeues.workers.beside import beside
from edgequeues.workers.executors import Executors
from edgequeues.workers.functions import LookUp
from edgequeues.workers.pipe import Job
from shards.errors import ShardError
from shards.hub import Names
from shards.namespace import Ref

SHARE = 8  # commands that one space is given before it is another one's turn
PAUSE_S = 1.0  # after a space could not be asked
LEAVE_S = 2.0  # for giving messages back when the server stops

log = logging.getLogger("edgequeues.commands")


class CommandRunner:
    """Carries out the commands of all spaces, until it is cancelled: what runs then is given back untouched."""

    def __init__(self, router: Router, executors: Executors) -> None:
        self._router = router
        self._executors = executors

    async def serve(self, kind: Runner, at_once: int) -> None:
        """Carry out commands of one kind."""
        room = trio.CapacityLimiter(at_once)
        with self._router.watch_calls(kind) as names:
            async with trio.open_nursery() as nursery:
                while True:
                    async with room:  # there is room for one: no message is leased before
                        name = await names.next()
                    try:
                        await self._take(kind, names, name, room, nursery)
                    except (ShardError, EdgeQueuesError) as error:
                        log.warning("space %s could not be asked for commands, it will be: %s", name, error)
                        nursery.start_soon(_later, names, name)
                    except Exception:  # of one space: the others' commands go on
                        log.exception("space %s could not be asked for commands, it will be", name)
                        nursery.start_soon(_later, names, name)

    async def _take(
        self, kind: Runner, names: Names, name: str, room: trio.CapacityLimiter, nursery: trio.Nursery
    ) -> None:
        """Take a share of a space's commands, and have them run."""
        ref = await self._router.find_shard(name)
        if ref is None:
            return
        with trio.CancelScope(shield=True):  # what was leased for nobody to know of would have to lapse
            handed = await ref.call(SpaceShard.take_calls, kind, min(SHARE, int(room.available_tokens)))
        if handed.more:
            names.add(name)
        for task in handed.tasks:
            token = object()
            room.acquire_on_behalf_of_nowait(token)
            nursery.start_soon(self._run, _Running(ref, name, task), room, token)

    async def _run(self, running: _Running, room: trio.CapacityLimiter, token: object) -> None:
        """Carry out one command, and tell its space."""
        try:
            await self._carry_out(running)
        except (ShardError, EdgeQueuesError) as error:
            log.warning("%s: %s; its lease will lapse, and it runs again", running, error)
        except Exception:  # of one command: the others go on
            log.exception("%s: its lease will lapse, and it runs again", running)
        except BaseException:
            with trio.move_on_after(LEAVE_S, shield=True), suppress(ShardError, EdgeQueuesError):
                await running.ref.call(SpaceShard.release, running.task.queue_id, [running.task.lease])
            raise
        finally:
            room.release_on_behalf_of(token)

    async def _carry_out(self, running: _Running) -> None:
        ref, task = running.ref, running.task
        try:
            effects = await self._executors.run(task.command, _job(running), looking(ref))
        except (CommandFailed, CommandRejected) as error:
            await running.fail(error, permanent=isinstance(error, CommandRejected))
            return
        try:
            finish = await ref.call(SpaceShard.finish_call, task, effects)
        except (
            CommandRejected,
            InvalidMessage,
        ) as error:  # a queue that is not there yet; one that will never take it
            await running.fail(error, permanent=isinstance(error, InvalidMessage))
            return
        if finish == "conflict":
            await ref.call(SpaceShard.release, task.queue_id, [task.lease])
        elif finish != "done":
            log.warning("%s came too late (%s), so nothing of it counts", running, finish)


class _Running(NamedTuple):
    """A command that is being carried out, and where its message is."""

    ref: Ref[SpaceShard]
    shard: str
    task: Task

    async def fail(self, error: EdgeQueuesError, *, permanent: bool) -> None:
        """Give up the attempt."""
        said = f"command failed: {error.detail}"
        retry = Retry(self.task.lease, getattr(error, "delay_ms", None), said, permanent)
        await self.ref.call(SpaceShard.retry, self.task.queue_id, [retry])

    def __str__(self) -> str:
        return f"command {self.task.call.name} for message {self.task.message_id} of space {self.shard}"


def looking(ref: Ref[SpaceShard]) -> LookUp:
    """How functions are told of the entities of a space."""

    async def look(entity_type: str, entity_id: str) -> Entity | None:
        return await ref.call(SpaceShard.looked_up, entity_type, entity_id)

    return look


@asynccontextmanager
async def open_runner(
    router: Router, executors: Executors, *, processes: int, requests: int
) -> AsyncIterator[None]:
    """Have commands carried out for as long as the block lasts. processes, requests: at once, at most.

    What the block raises leaves it as it is, not in a group.
    """
    runner = CommandRunner(router, executors)
    tasks = partial(runner.serve, "python", processes), partial(runner.serve, "http", requests)
    async with beside(*tasks):
        yield


async def _later(names: Names, name: str) -> None:
    await trio.sleep(PAUSE_S)
    names.add(name)


def _job(running: _Running) -> Job:
    task = running.task
    space, _ = from_shard(running.shard)
    job_id = f"{task.queue_id}_{task.message_id}"
    return Job(task.command.python or "", task.call, job_id, task.attempt, space, task.at, task.created)
