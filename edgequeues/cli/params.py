"""What arguments look like on a command line: addresses, durations, points in time. All raise click.BadParameter."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Sequence
from datetime import datetime

import click
from click.shell_completion import CompletionItem

from edgequeues.core import dxn, ids
from edgequeues.core.errors import InvalidDxn, InvalidId

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
DURATION_MS_MAX = 2**53  # more than a server counts, and nothing overflows on the way there
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|[smhdw])", re.ASCII)


class Address(click.ParamType[dxn.Dxn]):
    """The address of a queue or, where that is allowed, of an object in it. A shell may complete it."""

    name = "dxn"

    def __init__(self, *, with_object: bool) -> None:
        self._with_object = with_object

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> dxn.Dxn:
        """Parse it."""
        try:
            found = value if isinstance(value, dxn.Dxn) else dxn.parse(str(value))
        except InvalidDxn as error:
            self.fail(str(error), param, ctx)
        if found.object is not None and not self._with_object:
            self.fail(f"{value} names an object; name its queue: {queue_of(found)}", param, ctx)
        return found

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Addresses that begin so, of the server there is."""
        from edgequeues.cli.completing import addresses

        return [CompletionItem(one) for one in addresses(ctx.params, incomplete)]


address, queue = Address(with_object=True), Address(with_object=False)


def space_or_queue(value: str, hint: str | None = None) -> str | dxn.Dxn:
    """A space's id, or the address of a queue. hint: what the value was given as."""
    if value.startswith("dxn:"):
        return queue(value)
    try:
        return ids.check_space(value)
    except InvalidId as error:
        raise click.BadParameter(
            f"{error}; or name a queue, as dxn:queue:demo:jobs", param_hint=hint
        ) from error


def space(value: str) -> str:
    """A space's id."""
    try:
        return ids.check_space(value)
    except InvalidId as error:
        raise click.BadParameter(str(error), param_hint="SPACE") from error


def duration(value: str) -> int:
    """A length of time like `10s`, `1.5h` or `7d`, in ms."""
    match = DURATION.fullmatch(value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is no length of time; write it like 500ms, 10s, 5m, 2h, 7d")
    ms = float(match[1]) * UNITS_MS[match[2]]
    if ms > DURATION_MS_MAX:
        raise click.BadParameter(f"{value!r} is too long a time; write a shorter one")
    return round(ms)


def time(value: str) -> int:
    """A point in time, in unix ms: given so, as ISO 8601 (local unless it says otherwise), or as `10m` (ago)."""
    if value.isascii() and value.isdigit():
        return int(value)
    if DURATION.fullmatch(value.strip()):
        return clock.time_ns() // 1_000_000 - duration(value)
    try:
        return round(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(
            f"{value!r} is no time; write unix milliseconds, 2024-01-31T12:00, or 10m for ten minutes ago"
        ) from None


def moment(value: str) -> int:
    """A point in time to come, in unix ms: given so, or as ISO 8601 (local unless it says otherwise)."""
    if DURATION.fullmatch(value.strip()):
        raise click.BadParameter(f"{value!r} is a length of time; say --delay {value} for so long from now")
    return time(value)


def queue_of(found: dxn.Dxn) -> str:
    """The queue's own address."""
    return str(dxn.Dxn(found.space, found.queue, None, found.tag))


def pairs(headers: Sequence[str]) -> dict[str, str] | None:
    """Headers that were given as NAME=VALUE; None: there are none. Raises BadParameter."""
    found = {}
    for header in headers:
        name, equals, value = header.partition("=")
        if not equals:
            raise click.BadParameter(f"{header!r} is not NAME=VALUE", param_hint="--header")
        found[name] = value
    return found or None
