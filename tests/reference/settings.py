"""The settings of the server and of the consumer daemon."""

from __future__ import annotations

from edgequeues.daemon import settings as daemon
from edgequeues.settings_sources import settings as server_settings
from edgequeues.settings_sources import settings_table

from .tables import BY, table

INTRO = """# Settings

## The server

Of `edgequeues serve`. [guides/settings.md](../guides/settings.md) says which source wins, and shows a file; there a
setting's name is the key.

"""
DAEMON = """
## The consumer daemon

Of `edgequeues consume`. What is secret has no flag, as others see those.
[guides/consumer-daemon.md](../guides/consumer-daemon.md) says how they go together.

"""


def page() -> str:
    """docs/reference/settings.md."""
    server = [
        (f"`{one.name}`", f"`{one.variable}`", f"`{one.flag}`", one.allowed, default(one.default), one.help)
        for one in server_settings()
    ]
    consume = [
        (
            f"`{one.variable}`",
            f"`{one.flag}`" if one.flag else "",
            one.allowed,
            default(one.default),
            one.help,
        )
        for one in daemon.settings()
    ]
    return (
        BY
        + INTRO
        + table(("setting", "variable", "flag", "allowed", "default", "what it does"), server)
        + DAEMON
        + table(("variable", "flag", "allowed", "default", "what it does"), consume)
    )


def default(value: str) -> str:
    """A default as it is written; "" if there is none."""
    return f"`{value}`" if value else ""


def of_server() -> dict[str, str]:
    """The part of docs/guides/settings.md."""
    return {"settings": settings_table()}


def of_daemon() -> dict[str, str]:
    """The part of docs/guides/consumer-daemon.md."""
    return {"settings": daemon.settings_table()}
