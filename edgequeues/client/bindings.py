"""Queues by logical names, as code names them; which queue each one is, the environment of a deployment says.

env = Bindings(client, os.environ)  # QUEUE_INBOX=dxn:queue:switchboard:switchboard-inbox
await env.QUEUE_INBOX.send(event, key=event["id"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgequeues.client.api import Client
from edgequeues.client.values import AppendAnswer, NewEntry
from edgequeues.core import dxn
from edgequeues.core.errors import InvalidDxn


class Binding:
    """One queue that messages are sent to. dxn: which one it is."""

    def __init__(self, client: Client, dxn: str) -> None:
        self.dxn = dxn
        self._client = client

    async def send(
        self, body: object, *, key: str | None = None, delay_ms: int | None = None
    ) -> AppendAnswer:
        """Push one message; when this returns it is on disk. Raises as `Client.push` does.

        key: an idempotency key: with it the call is repeated by itself where it fails on the way.
        """
        return await self.send_batch([NewEntry(body, idempotency_key=key, delay_ms=delay_ms, plain=True)])

    async def send_batch(self, bodies: Iterable[object]) -> AppendAnswer:
        """Push up to 1,000 messages, all or none. Each is a body, or a NewEntry where more is to be said."""
        entries = [one if isinstance(one, NewEntry) else NewEntry(one, plain=True) for one in bodies]
        return await self._client.push(self.dxn, entries)


class Bindings:
    """`env.NAME` is the queue that the variable NAME holds the address of."""

    def __init__(self, client: Client, environ: Mapping[str, str]) -> None:
        self._client = client
        self._environ = environ

    def __getattr__(self, name: str) -> Binding:
        """Raises AttributeError where the variable is missing, ValueError where it is no address of a queue."""
        form = f"{name}=dxn:queue:<space>:<queue>"
        value = self._environ.get(name)
        if not value:
            raise AttributeError(f"the variable {name} is not set: write {form} into the environment")
        try:
            address = dxn.parse(value)
        except InvalidDxn as error:
            raise ValueError(f"the variable {name}: {error.detail}; write {form}") from None
        if address.object is not None:
            raise ValueError(f"the variable {name} is the address of an object; write {form}")
        return Binding(self._client, str(address))
