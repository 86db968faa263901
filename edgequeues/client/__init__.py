"""The Python client: speaks the native protocol over HTTP and imports nothing of the server."""

from edgequeues.client.api import Client
from edgequeues.client.errors import BadAnswer, ClientError, Refused, ServerError, Unavailable, Unreachable
from edgequeues.client.events import Subscription
from edgequeues.client.http import Retry, Transport
from edgequeues.client.upload import Batch, Chunk
from edgequeues.client.values import (
    AppendAnswer,
    Appended,
    ConfigChange,
    Confirmation,
    Entry,
    Health,
    LineError,
    NewEntry,
    Page,
    QueueConfig,
    QueueStats,
    Space,
)

__all__ = [
    "AppendAnswer",
    "Appended",
    "BadAnswer",
    "Batch",
    "Chunk",
    "Client",
    "ClientError",
    "ConfigChange",
    "Confirmation",
    "Entry",
    "Health",
    "LineError",
    "NewEntry",
    "Page",
    "QueueConfig",
    "QueueStats",
    "Refused",
    "Retry",
    "ServerError",
    "Space",
    "Subscription",
    "Transport",
    "Unavailable",
    "Unreachable",
]
