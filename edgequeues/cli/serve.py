"""`edgequeues serve`: settings in, a server that says when it is ready, and an orderly end."""

from __future__ import annotations

import errno
import gc
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import trio

from edgequeues.cli.session import Failure
from edgequeues.core.errors import reason
from edgequeues.logs import Lines, Records
from edgequeues.settings import Settings, SettingsError
from edgequeues.settings_sources import load, settings
from shards.clock import SystemClock
from shards.errors import ShardError
from shards.limits import Limits, fit_files

if TYPE_CHECKING:
    from edgequeues.http.server import Server
    from edgequeues.http.spans import ServerSpans

C = TypeVar("C", bound=Callable[..., object])

COLLECTOR = (20_000, 10, 5)  # the interpreter's own are 700, 10, 10; higher: closed connections pile up
OTHER_FILES = 128  # descriptors beside those of spaces and connections

HINTS = """\
Try, in another terminal:

  curl {url}/v1/dxn:queue:demo:log --json '{{"entries": [{{"data": {{"hello": "world"}}}}]}}'
  curl {url}/v1/dxn:queue:demo:log
  curl -N {url}/v1/dxn:queue:demo:log/subscribe
  curl -X DELETE {url}/v1/dxn:queue:demo:log:ID                    (the id of an entry)
  curl -X DELETE '{url}/v1/dxn:queue:demo:log?through=CURSOR'     (a cursor that an answer gave)

or the same with edgequeues append, read, tail and delete. Ctrl-C stops the server.
"""


class BadSettings(click.ClickException):
    """Shown in one line; wrong usage."""

    exit_code = 2


def every_setting(command: C) -> C:
    """Give a command a flag for each setting, described by the setting itself."""
    for setting in reversed(settings()):
        if setting.is_switch:
            command = click.option(setting.flag, setting.name, is_flag=True, default=None, help=setting.help)(
                command
            )
            continue
        if setting.is_list:
            text = f"{setting.help} May be given several times, or with commas."
            command = click.option(
                setting.flag, setting.name, metavar="TEXT", multiple=True, callback=_none_of_none, help=text
            )(command)
            continue
        shown = f" Default: {setting.default}." if setting.default else ""
        text = setting.help + shown
        command = click.option(setting.flag, setting.name, metavar=setting.metavar, help=text)(command)
    return command


def _none_of_none(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...] | None:
    """A flag that was not given says nothing, rather than that the list is empty."""
    return given or None


@click.command()
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar="EDGEQUEUES_CONFIG",
    help="TOML file with settings; the environment and flags win over it.",
)
@click.option("--hints", is_flag=True, help="Also print, to stderr, what to try with curl.")
@every_setting
def serve(file: Path | None, hints: bool, **flags: object) -> None:
    """Run the server. Prints `ready URL` on stdout once it accepts requests, everything else on stderr.

    SIGTERM or SIGINT stop it: requests under way are finished, then the files are closed. A second one does not wait
    for the requests. Each setting is also a key of the TOML file and an environment variable, EDGEQUEUES_<NAME>.
    """
    try:
        chosen = load(flags=flags, environment=os.environ, file=file)
    except SettingsError as error:
        raise BadSettings(str(error)) from error
    failures: list[BaseException] = []
    try:
        trio.run(_until_stopped, chosen, _log(chosen), hints)
    except* Failure as group:
        failures += _leaves(group)
    if failures:
        raise failures[0]


async def _until_stopped(chosen: Settings, lines: Lines, hints: bool) -> None:
    shutdown = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(_heed_signals, shutdown, nursery.cancel_scope)
        await _serve(chosen, lines, hints, shutdown)
        nursery.cancel_scope.cancel()


async def _serve(chosen: Settings, lines: Lines, hints: bool, shutdown: trio.Event) -> None:
    from edgequeues.app import open_app
    from edgequeues.control import ControlError
    from edgequeues.http.auth import Unprotected
    from edgequeues.http.observing import Watchers
    from edgequeues.http.request_log import RequestLog
    from edgequeues.spec.files import SpecError

    observers = [] if chosen.log_requests == "off" else [RequestLog(lines, chosen.log_requests)]
    tracer = _tracer() if chosen.tracing else None
    watchers = Watchers(observers, tracer)
    app = open_app(Path(chosen.data), chosen, limits=_limits(chosen), watchers=watchers)
    try:
        server = await app.__aenter__()
    except OSError as error:
        raise Failure(f"cannot use the folder {chosen.data}: {reason(error)}") from error
    except (ShardError, ControlError, Unprotected, SpecError, SettingsError) as error:
        raise Failure(str(error)) from error
    async with AsyncExitStack() as stack:
        if tracer is not None:
            stack.push_async_callback(trio.to_thread.run_sync, tracer.close)
        stack.push_async_exit(app)
        await _listen(server, chosen, hints, shutdown)


def _log(chosen: Settings) -> Lines:
    """Where the server's lines go, and those of the libraries under it."""
    is_text = chosen.log_format == "text" or (chosen.log_format == "auto" and sys.stderr.isatty())
    lines = Lines(
        sys.stderr,
        level=chosen.log_level,
        redact=dict,
        now_ms=SystemClock().now_ms,
        component="server",
        text=is_text,
    )
    logging.basicConfig(level=chosen.log_level.upper(), handlers=[Records(lines)])
    logging.getLogger("httpx").setLevel(
        logging.WARNING
    )  # its other lines have whole URLs, with what is secret there
    return lines


def _tracer() -> ServerSpans:
    try:
        from edgequeues.http.spans import ServerSpans
    except ImportError as error:
        raise Failure(f"tracing: {error}; its packages come with `pip install 'edgequeues[otel]'`") from error
    return ServerSpans("edgequeues")


async def _listen(server: Server, chosen: Settings, hints: bool, shutdown: trio.Event) -> None:
    from edgequeues.http.listen import BadTls, TlsFiles
    from edgequeues.http.listen import serve as listen

    tls = TlsFiles(chosen.cert, chosen.key) if chosen.cert else None
    async with trio.open_nursery() as nursery:
        try:
            serving = partial(
                listen,
                server,
                chosen.host,
                chosen.port,
                shutdown=shutdown,
                grace_s=chosen.shutdown_grace_s,
                connections_max=chosen.connections_max,
                lane=chosen.front == "lane",
                tls=tls,
            )
            url = await nursery.start(serving)
        except BadTls as error:
            raise Failure(str(error)) from error
        except OSError as error:
            hint = "; another program has it: stop that, or choose another --port"
            advice = hint if error.errno == errno.EADDRINUSE else ""
            where = f"{chosen.host}:{chosen.port}"
            raise Failure(f"cannot listen on {where}: {reason(error)}{advice}") from error
        _spare_collector()
        print(f"ready {url}", flush=True)
        if hints:
            click.echo(HINTS.format(url=url), err=True)


def _spare_collector() -> None:
    """Have the garbage collector come less often, and leave out all that was made at the start.

    Its passes go over whatever is waiting too: a thousand subscribers made appends a sixth slower.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)


async def _heed_signals(
    shutdown: trio.Event,
    everything: trio.CancelScope,
    *,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """The first signal asks for an orderly end, the second for one without waiting, the third is the system's."""
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        task_status.started()
        await anext(signals)
        _note("stopping: finishing the requests under way; again to stop without them")
        shutdown.set()
        await anext(signals)
    _note("stopping now")
    everything.cancel()


def _limits(chosen: Settings) -> Limits:
    """What of the settings the runtime wants to know, as far as the system allows."""
    wanted = Limits(
        mailbox_max=chosen.mailbox_max,
        open_max=chosen.spaces_open_max,
        idle_s=chosen.idle_close_s,
        wal_checkpoint_bytes=chosen.wal_checkpoint_bytes,
        wal_bytes_max=chosen.wal_bytes_max,
        reserve_bytes=chosen.reserve_bytes,
    )
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    others = chosen.connections_max + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        others = min(others, hard // 2)  # spaces get half of what little there is
    fitting = fit_files(wanted, others)
    if fitting.open_max < wanted.open_max:
        _note(
            f"the system allows {hard} open files, so at most {fitting.open_max} spaces are kept open instead of "
            f"{wanted.open_max}; raise `ulimit -n` for more"
        )
    return fitting


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _note(text: str) -> None:
    click.echo(f"edgequeues: {text}", err=True)
