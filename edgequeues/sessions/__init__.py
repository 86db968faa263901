"""Inbound queues of sessions: each message of a user is delivered once, in order, however long it takes.

What opens an inbox is loaded when it is first named: over HTTP nothing of the server is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgequeues.sessions.remote import open_inbox as open_remote_inbox

__all__ = ["open_remote_inbox"]

_LATER = {"open_remote_inbox": ("edgequeues.sessions.remote", "open_inbox")}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
