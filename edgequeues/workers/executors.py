"""How a command is carried out that its space cannot: as a Python function in another process, or an HTTP request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import trio

from edgequeues.core.errors import CommandFailed
from edgequeues.spec.calling import Effects
from edgequeues.spec.checking import Allowed
from edgequeues.spec.ir import CommandSpec
from edgequeues.workers.functions import Functions, LookUp, open_functions
from edgequeues.workers.pipe import Job

if TYPE_CHECKING:
    from edgequeues.workers.posting import Poster, Target


class Executors:
    """All ways there are. What the server allows is looked at each time: it may be less than when a spec came."""

    def __init__(self, functions: Functions, allowed: Allowed, stack: AsyncExitStack) -> None:
        self._functions = functions
        self._allowed = allowed
        self._stack = stack  # of what is opened when it is needed
        self._poster: Poster | None = None
        self._opening = trio.Lock()

    async def run(self, command: CommandSpec, job: Job, look: LookUp) -> Effects:
        """Carry out a command; return what it did. look: tells of entities.

        Raises CommandRejected: it is of no use to try it again; CommandFailed.
        """
        timeout_s = command.timeout_ms / 1_000
        if command.python is not None:
            if not self._allowed.lets_run(command.python):
                raise CommandFailed(
                    f"{command.python}: the setting commands_modules does not list its module"
                )
            return await self._functions.run(job, look, timeout_s)
        assert command.http is not None
        target = self._target(command.http, command.secret_env)
        return Effects(result=await (await self._open()).run(job, target, timeout_s))

    def _target(self, url: str, variable: str | None) -> Target:
        """Raises CommandFailed."""
        from edgequeues.workers.posting import Target

        parts = urlsplit(url)
        if not self._allowed.lets_call(parts.hostname or "", parts.port):
            raise CommandFailed(f"{parts.hostname}: the setting commands_http_allow does not list it")
        secret = None if variable is None else self._allowed.secret(variable)
        if secret is None:
            raise CommandFailed(
                f"{variable}: the secret that signs is not set, or secrets_env does not list it"
            )
        return Target(url, secret)

    async def _open(self) -> Poster:
        """The client for HTTP. It takes a while to load, and most servers never need it."""
        async with self._opening:
            if self._poster is None:
                from edgequeues.workers.posting import open_poster

                self._poster = await self._stack.enter_async_context(open_poster(self._allowed.http_hosts))
            return self._poster


@asynccontextmanager
async def open_executors(allowed: Allowed, *, processes: int) -> AsyncIterator[Executors]:
    """Executors that end with the block. processes: for Python functions, at most."""
    async with open_functions(processes) as functions, AsyncExitStack() as stack:
        yield Executors(functions, allowed, stack)
