"""The queue store: five calls that any store of messages can have, two stores that have them, and their proof.

The stores and the checks are loaded when they are first named: over HTTP nothing of the server is.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edgequeues.store.base import (
    DeadMessage,
    LeaseLost,
    NotHeld,
    Options,
    QueueNotFound,
    QueueStore,
    Refused,
    StoredMessage,
    StoreError,
    StoreFailed,
    TooManyHeld,
    Unavailable,
)

if TYPE_CHECKING:
    from edgequeues.store.local import LocalStore, open_local
    from edgequeues.store.remote import RemoteStore, open_remote

__all__ = [
    "DeadMessage",
    "LeaseLost",
    "LocalStore",
    "NotHeld",
    "Options",
    "QueueNotFound",
    "QueueStore",
    "Refused",
    "RemoteStore",
    "StoreError",
    "StoreFailed",
    "StoredMessage",
    "TooManyHeld",
    "Unavailable",
    "open_local",
    "open_remote",
]

_LATER = {
    "LocalStore": "edgequeues.store.local",
    "open_local": "edgequeues.store.local",
    "RemoteStore": "edgequeues.store.remote",
    "open_remote": "edgequeues.store.remote",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
