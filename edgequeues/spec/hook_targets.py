"""What becomes of calls of a webhook: messages of a queue, or commands that are carried out at once."""

from __future__ import annotations

from typing import NamedTuple

from edgequeues.core import jsontext
from edgequeues.core.errors import EdgeQueuesError, InvalidMessage, TooLarge
from edgequeues.core.expressions import ExprError
from edgequeues.core.signatures import Verifier
from edgequeues.models import ENTRY_BYTES_MAX, NewEntry
from edgequeues.spec import calling
from edgequeues.spec.hooks import DIGEST, Call, Event, Hook
from edgequeues.spec.ir import CommandSpec, QueueSpec, WebhookSpec
from edgequeues.spec.mapping import Field
from edgequeues.spec.values import Arriving

OFFERED = (
    "payload",
    "headers",
    "source_ip",
    "received_at",
)  # the fields of a message, where nothing is said of them


class Delivered(NamedTuple):
    """A message of a call, and the key under which its sender is told of it."""

    key: str
    arriving: Arriving


class Called(NamedTuple):
    """A command that a call is for. key: under which its sender is told of it; keys: by which a repeat is known."""

    key: str
    keys: tuple[str, ...]
    call: calling.Call


class QueueHook(Hook):
    """A webhook whose calls become messages."""

    def __init__(
        self, name: str, space: str, app: str, spec: WebhookSpec, queue: QueueSpec, verifier: Verifier | None
    ) -> None:
        super().__init__(name, space, app, spec, verifier)
        assert spec.queue is not None
        self.queue = spec.queue
        self.buries = queue.on_invalid == "dead_letter"
        self._fields = [one for one in OFFERED if queue.message_type is None or one in queue.message_type]
        declared = queue.message_type or {}
        message = {} if spec.message is None else spec.message
        self._message = [Field(name, expr, declared.get(name)) for name, expr in message.items()]

    def messages(self, call: Call) -> list[Delivered] | None:
        """The messages of a call; None: it is not wanted.

        Raises TooLarge, and InvalidMessage where the queue makes no dead letters of what will not do.
        """
        try:
            events = self.events(call)
        except (ExprError, InvalidMessage) as error:
            return [self.unfit(call.text, call.digest, _why(error))]
        return None if events is None else [self._one(call, event) for event in events]

    def unfit(self, data: bytes, digest: str, fault: str, content_type: str | None = None) -> Delivered:
        """A message that will be a dead letter at once. Raises InvalidMessage where the queue makes none.

        data: JSON. digest: of the body as it was sent, in hex.
        """
        if not self.buries:
            raise InvalidMessage(fault)
        key = DIGEST + digest
        entry = NewEntry(_bounded(data).decode(), content_type=content_type)
        return Delivered(key, Arriving(entry, (f"{self.name}/{key}",), fault))

    def _one(self, call: Call, event: Event) -> Delivered:
        try:
            keys = self.keys(call, event)
            data = self._data(call, event)
        except (ExprError, EdgeQueuesError) as error:
            if isinstance(error, TooLarge):
                raise
            return self.unfit(event.text, call.digest + event.suffix, _why(error))
        return Delivered(keys.told, Arriving(NewEntry(_bounded(data).decode()), keys.all))

    def _data(self, call: Call, event: Event) -> bytes:
        """The JSON of a message."""
        env, text = event.env, event.text
        as_it_came = {"payload": text if self.spec.message is None else call.text, "item": text}
        if self.spec.message is None:
            values = [
                (name, as_it_came.get(name) or jsontext.write(env.input[name])) for name in self._fields
            ]
        else:
            values = [
                (one.name, as_it_came.get(one.part or "") or jsontext.write(one(env)))
                for one in self._message
            ]
        return b"{" + b",".join([b'"%b":%b' % (name.encode(), value) for name, value in values]) + b"}"


class CommandHook(Hook):
    """A webhook whose calls are commands, carried out at once. command: how it is declared, if it is."""

    def __init__(
        self,
        name: str,
        space: str,
        app: str,
        spec: WebhookSpec,
        command: CommandSpec | None,
        verifier: Verifier | None,
    ) -> None:
        super().__init__(name, space, app, spec, verifier)
        self.command = command
        declared = {} if command is None else command.input or {}
        self._input = [
            Field(name, expr, declared.get(name), needed=True) for name, expr in spec.input_map.items()
        ]

    def calls(self, call: Call) -> list[Called] | None:
        """The commands of a call; None: it is not wanted. Raises TooLarge, InvalidMessage."""
        assert self.spec.on_type is not None
        assert self.spec.command is not None
        try:
            events = self.events(call)
            if events is None:
                return None
            found = []
            for event in events:
                told, keys = self.keys(call, event)
                given = {one.name: one(event.env) for one in self._input}
                found.append(Called(told, keys, calling.Call(self.spec.on_type, self.spec.command, given)))
        except ExprError as error:
            raise InvalidMessage(str(error)) from None
        return found


def _why(error: Exception) -> str:
    return error.detail if isinstance(error, EdgeQueuesError) else str(error)


def _bounded(data: bytes) -> bytes:
    if len(data) > ENTRY_BYTES_MAX:
        raise TooLarge(f"the message has {len(data)} bytes, at most {ENTRY_BYTES_MAX} are taken")
    return data
