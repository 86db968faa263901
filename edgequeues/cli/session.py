"""What every command that talks to a server shares: its options, a connected client, errors in one line."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click

from edgequeues.cli.render import Output, clean

if TYPE_CHECKING:  # importing the client costs a tenth of a second, which --help need not pay
    from edgequeues.client import Client, ClientError

P = ParamSpec("P")
DEFAULT_SERVER = "http://127.0.0.1:8700"
ABOUT_OPTIONS = {"server address": "--server", "access token": "--token"}  # what the client says of them


class Failure(Exception):
    """An expected end: the message, one line, is all there is to say. Exit code 1."""


@dataclass(frozen=True)
class Surroundings:
    """What a command finds around it. connect: to a server's URL, with a token or without. terminal: does anybody
    look at stdout?
    """

    connect: Callable[[str, str | None], AbstractAsyncContextManager[Client]]
    terminal: bool

    @classmethod
    def real(cls) -> Surroundings:
        """The process's own."""

        def connect(url: str, token: str | None) -> AbstractAsyncContextManager[Client]:
            from edgequeues.client import Client

            return Client(url, token=token)

        return cls(connect, sys.stdout.isatty())


@dataclass(frozen=True)
class Session:
    """One command's server and output."""

    server: str
    token: str | None = field(repr=False)
    out: Output
    terminal: bool
    connect: Callable[[str, str | None], AbstractAsyncContextManager[Client]]

    def run(self, work: Callable[[Client], Awaitable[None]]) -> None:
        """Do `work` with a connected client. Raises Failure for whatever the server or the network says no to."""
        import trio

        from edgequeues.client import ClientError

        async def connected() -> None:
            async with self.connect(self.server, self.token) as client:
                await work(client)

        try:
            # An interrupt within a step of the HTTP client could leave one of its locks taken, and closing would wait
            # for that for ever. Where a task waits, it is prepared to be interrupted.
            trio.run(connected, restrict_keyboard_interrupt_to_checkpoints=True)
        except ClientError as error:
            raise Failure(clean(explain(error))) from error
        except ValueError as error:
            for words, option in ABOUT_OPTIONS.items():
                if words in str(error):
                    raise click.BadParameter(str(error), param_hint=option) from error
            raise


def explain(error: ClientError) -> str:
    """What happened, where, and what to do, in one line."""
    from edgequeues.client import BadAnswer, Refused, Unavailable, Unreachable

    if isinstance(error, Unreachable):
        unsure = "; it may have been done all the same" if error.maybe_done else ""
        return f"{error}{unsure}. Is the server running (edgequeues serve), and is --server its address?"
    if isinstance(error, Unavailable):
        wait = "later" if error.retry_after_s is None else f"in {error.retry_after_s:g} s"
        return f"the server cannot do it now: {error}. Try again {wait}"
    if isinstance(error, Refused):
        advice = (
            ". Give a token that may, by --token or EDGEQUEUES_TOKEN" if error.status in (401, 403) else ""
        )
        return f"refused: {error}{advice}"
    if isinstance(error, BadAnswer):
        return f"{error}. Is --server the address of an edgequeues server?"
    return f"the server failed: {error}. Its log says more"


def remote(command: Callable[Concatenate[Session, P], None]) -> Callable[P, None]:
    """Give a command --server, --token and --json, and a Session as its first argument."""

    @click.option(
        "--server",
        envvar="EDGEQUEUES_SERVER",
        default=DEFAULT_SERVER,
        show_default=True,
        metavar="URL",
        show_envvar=True,
        help="The server to talk to.",
    )
    @click.option(
        "--token",
        envvar="EDGEQUEUES_TOKEN",
        metavar="TOKEN",
        show_envvar=True,
        help="What `edgequeues token create` printed, where the server wants one. Better in the environment: command "
        "lines can be seen by others.",
    )
    @click.option(
        "--json", "as_json", is_flag=True, help="Print JSON, one object a line, also on a terminal."
    )
    @wraps(command)
    def with_session(*args: P.args, **kwargs: P.kwargs) -> None:
        server, as_json = str(kwargs.pop("server")), bool(kwargs.pop("as_json"))
        token = kwargs.pop("token")
        assert token is None or isinstance(token, str)
        surroundings = click.get_current_context().find_object(Surroundings)
        assert surroundings is not None
        out = Output(json=as_json or not surroundings.terminal)
        command(Session(server, token, out, surroundings.terminal, surroundings.connect), *args, **kwargs)

    return with_session
