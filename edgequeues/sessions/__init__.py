"""Inbound queues of sessions: each message of a user is delivered once, in order, however long it takes.

What opens an inbox or works one is loaded when it is first named: over HTTP nothing of the server is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgequeues.sessions.local import open_inbox as open_local_inbox
    from edgequeues.sessions.manager import Options, SessionManager, open_manager
    from edgequeues.sessions.remote import open_inbox as open_remote_inbox

__all__ = ["Options", "SessionManager", "open_local_inbox", "open_manager", "open_remote_inbox"]

_LATER = {
    "Options": ("edgequeues.sessions.options", "Options"),
    "SessionManager": ("edgequeues.sessions.manager", "SessionManager"),
    "open_local_inbox": ("edgequeues.sessions.local", "open_inbox"),
    "open_manager": ("edgequeues.sessions.manager", "open_manager"),
    "open_remote_inbox": ("edgequeues.sessions.remote", "open_inbox"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
