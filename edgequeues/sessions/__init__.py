"""Inbound queues of sessions: each message of a user is delivered once, in order, however long it takes.

What opens an inbox or works one is loaded when it is first named: over HTTP nothing of the server is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgequeues.sessions.delivery import deliver_inbound
    from edgequeues.sessions.facade import (
        InboundQueueManager,
        get_inbound_queue_manager,
        init_inbound_queue_manager,
        reset_inbound_queue_manager,
    )
    from edgequeues.sessions.local import open_inbox as open_local_inbox
    from edgequeues.sessions.manager import Options, SessionManager, open_manager
    from edgequeues.sessions.on_asyncio import AsyncioManager, ManagerClosed
    from edgequeues.sessions.on_asyncio import open_manager as open_asyncio_manager
    from edgequeues.sessions.remote import open_inbox as open_remote_inbox
    from edgequeues.sessions.tmux import Tmux, TmuxTerminal

__all__ = [
    "AsyncioManager",
    "InboundQueueManager",
    "ManagerClosed",
    "Options",
    "SessionManager",
    "Tmux",
    "TmuxTerminal",
    "deliver_inbound",
    "get_inbound_queue_manager",
    "init_inbound_queue_manager",
    "open_asyncio_manager",
    "open_local_inbox",
    "open_manager",
    "open_remote_inbox",
    "reset_inbound_queue_manager",
]

_LATER = {
    "AsyncioManager": ("edgequeues.sessions.on_asyncio", "AsyncioManager"),
    "InboundQueueManager": ("edgequeues.sessions.facade", "InboundQueueManager"),
    "ManagerClosed": ("edgequeues.sessions.on_asyncio", "ManagerClosed"),
    "Options": ("edgequeues.sessions.options", "Options"),
    "SessionManager": ("edgequeues.sessions.manager", "SessionManager"),
    "Tmux": ("edgequeues.sessions.tmux", "Tmux"),
    "TmuxTerminal": ("edgequeues.sessions.tmux", "TmuxTerminal"),
    "deliver_inbound": ("edgequeues.sessions.delivery", "deliver_inbound"),
    "get_inbound_queue_manager": ("edgequeues.sessions.facade", "get_inbound_queue_manager"),
    "init_inbound_queue_manager": ("edgequeues.sessions.facade", "init_inbound_queue_manager"),
    "open_asyncio_manager": ("edgequeues.sessions.on_asyncio", "open_manager"),
    "open_local_inbox": ("edgequeues.sessions.local", "open_inbox"),
    "open_manager": ("edgequeues.sessions.manager", "open_manager"),
    "open_remote_inbox": ("edgequeues.sessions.remote", "open_inbox"),
    "reset_inbound_queue_manager": ("edgequeues.sessions.facade", "reset_inbound_queue_manager"),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
