"""The process that runs functions for commands, one after the other: `python -m edgequeues.workers.child`.

It speaks with the server over its standard input and output. What functions print goes to standard error.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from edgequeues.commands import CannotStore, Context, Entity, Rejected
from edgequeues.core import jsontext
from edgequeues.workers import pipe
from edgequeues.workers.pipe import Did, Failed, Found, FromChild, Job, Look, Ready, ToChild

ERROR_CHARACTERS_MAX = 1_000

Function = Callable[[dict[str, Any], Context], object]


class _Unusable(Exception):
    """There is no such function."""


class Child:
    """Runs functions for the server at the other end."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._arrived: SimpleQueue[ToChild] = SimpleQueue()

    def serve(self) -> None:
        """Run what is asked for until the server is gone."""
        # In a thread of its own, so that a function which never returns ends with the server.
        threading.Thread(target=self._listen, daemon=True).start()
        self._say(Ready())
        while True:
            job = self._arrived.get()
            assert isinstance(job, Job)
            self._say(self._run(job))

    def _listen(self) -> None:
        while header := self._incoming.read(pipe.LENGTH_BYTES):
            self._arrived.put(pipe.asked(self._incoming.read(pipe.length(header))))
        os._exit(0)

    def _say(self, message: FromChild) -> None:
        self._outgoing.write(pipe.frame(message))
        self._outgoing.flush()

    def _look(self, entity_type: str, entity_id: str) -> Entity | None:
        self._say(Look(entity_type, entity_id))
        answer = self._arrived.get()
        assert isinstance(answer, Found)
        if answer.entity is None:
            return None
        kind, name, state, attributes, version = answer.entity
        return Entity(kind, name, state, jsontext.value(attributes), version)

    def _run(self, job: Job) -> FromChild:
        context = Context(self._look, id=job.id, attempt=job.attempt, now=job.at / 1_000, space=job.space)
        try:
            return Did(context.effects(_function(job.function)(dict(job.call.input), context)))
        except Rejected as error:
            return Failed(f"rejected: {error}"[:ERROR_CHARACTERS_MAX], permanent=True)
        except (CannotStore, _Unusable) as error:
            return Failed(f"{job.function}: {error}"[:ERROR_CHARACTERS_MAX])
        except BaseException as error:  # whatever it is, the next function may do better
            return Failed(f"{job.function} raised {_told(error)}"[:ERROR_CHARACTERS_MAX])


def _function(name: str) -> Function:
    """Raises _Unusable."""
    module, _, attribute = name.partition(":")
    try:
        function: Function | None = getattr(importlib.import_module(module), attribute, None)
    except BaseException as error:
        remedy = "it must be in the folder the server was started in, or be installed"
        raise _Unusable(f"the module cannot be imported: {_told(error)}; {remedy}") from error
    if not callable(function):
        raise _Unusable(f"the module has no function `{attribute}`")
    if inspect.iscoroutinefunction(function):
        raise _Unusable("it is async: a command is run by a plain function")
    return function


def _told(error: BaseException) -> str:
    """What happened, and where, as `ValueError: no such total (shop.py, line 12)`."""
    text = "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    ours = Path(__file__).name
    there = next((one for one in reversed(frames) if Path(one.filename).name != ours), None)
    return text if there is None else f"{text} ({Path(there.filename).name}, line {there.lineno})"


def main() -> None:
    """Serve, with what functions print out of the way."""
    outgoing = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    Child(sys.stdin.buffer, outgoing).serve()


if __name__ == "__main__":
    main()
