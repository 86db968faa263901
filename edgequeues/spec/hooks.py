"""A webhook of a spec, compiled: who may call it, and which messages a call becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple

from edgequeues.core import jsontext, signatures
from edgequeues.core.errors import EdgeQueuesError, InvalidMessage, TooLarge
from edgequeues.core.expression_reading import Closure
from edgequeues.core.expression_values import truthy
from edgequeues.core.expressions import Env, ExprError, bare_path, compile_expr
from edgequeues.core.ids import check_idempotency_key
from edgequeues.core.jsonwords import kind
from edgequeues.core.signatures import Verifier
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, NewEntry
from edgequeues.spec.ir import Expr, QueueSpec, WebhookSpec
from edgequeues.spec.judging import text_of
from edgequeues.spec.mapping import Field
from edgequeues.spec.values import Arriving

OFFERED = (
    "payload",
    "headers",
    "source_ip",
    "received_at",
)  # the fields of a message, where nothing is said of them
DIGEST = "sha256:"

Network = IPv4Network | IPv6Network


class Call(NamedTuple):
    """A request to a webhook that has proved who sent it.

    text: its JSON, UTF-8 and checked; payload: the same as a value. sent_id: what the sender calls the event.
    digest: of the body as it was sent, in hex. received_at: unix seconds.
    """

    text: bytes
    payload: Any
    headers: Mapping[str, str]
    source_ip: str
    received_at: float
    sent_id: str | None
    digest: str

    def env(self, **more: Any) -> Env:
        """What the expressions of a webhook may use."""
        fields = {
            "payload": self.payload,
            "headers": self.headers,
            "source_ip": self.source_ip,
            "received_at": self.received_at,
        }
        return Env(fields | more, self.received_at)


class Delivered(NamedTuple):
    """A message of a call, and the key under which its sender is told of it."""

    key: str
    arriving: Arriving


class Hook:
    """One webhook. verifier: None: anybody may call it. counts: what became of its calls since the server started."""

    def __init__(
        self, name: str, space: str, app: str, spec: WebhookSpec, queue: QueueSpec, verifier: Verifier | None
    ) -> None:
        assert spec.queue is not None
        self.name = name
        self.space = space
        self.app = app
        self.queue = spec.queue
        self.spec = spec
        self.verifier = verifier
        self.scheme = scheme_of(spec)
        self.buries = queue.on_invalid == "dead_letter"
        self.counts: Counter[str] = Counter()
        self._networks: list[Network] = [ip_network(one) for one in spec.allow_ips]
        self._filter = _compiled(spec.filter)
        self._key = _compiled(spec.idempotency_key)
        self._for_each = _compiled(spec.for_each)
        self._fields = [one for one in OFFERED if queue.message_type is None or one in queue.message_type]
        declared = queue.message_type or {}
        message = {} if spec.message is None else spec.message
        self._message = [Field(name, expr, declared.get(name)) for name, expr in message.items()]

    def admits(self, source_ip: str) -> bool:
        """May calls come from this address?"""
        if not self._networks:
            return True
        try:
            address = ip_address(source_ip)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def messages(self, call: Call) -> list[Delivered] | None:
        """The messages of a call; None: it is not wanted.

        Raises TooLarge, and InvalidMessage where the queue makes no dead letters of what will not do.
        """
        env = call.env()
        try:
            if self._filter is not None and not truthy(self._filter(env)):
                return None
            if self._for_each is None:
                return [self._one(call, env, call.text, "")]
            return list(self._each(call, self._for_each(env)))
        except (ExprError, InvalidMessage) as error:
            return [self.unfit(call.text, call.digest, _why(error))]

    def unfit(self, data: bytes, digest: str, fault: str, content_type: str | None = None) -> Delivered:
        """A message that will be a dead letter at once. Raises InvalidMessage where the queue makes none.

        data: JSON. digest: of the body as it was sent, in hex.
        """
        if not self.buries:
            raise InvalidMessage(fault)
        key = DIGEST + digest
        entry = NewEntry(_bounded(data).decode(), content_type=content_type)
        return Delivered(key, Arriving(entry, (f"{self.name}/{key}",), fault))

    def _each(self, call: Call, items: object) -> Iterator[Delivered]:
        if not isinstance(items, list):
            raise InvalidMessage(f"for_each: {kind(items)} where a list is needed")
        if len(items) > ENTRIES_MAX:
            raise TooLarge(f"for_each: {len(items)} elements, at most {ENTRIES_MAX} are taken at once")
        texts = self._texts(call, items)
        for index, (item, text) in enumerate(zip(items, texts, strict=True)):
            yield self._one(call, call.env(item=item), text, f"#{index}")

    def _texts(self, call: Call, items: Sequence[Any]) -> list[bytes]:
        """The elements as they came, where they are at a place in the body; else written anew."""
        assert self.spec.for_each is not None
        place = bare_path(self.spec.for_each)
        if place is not None and place[0] == "payload":
            return jsontext.elements(jsontext.at(call.text, place[1]))
        return [jsontext.write(item) for item in items]

    def _one(self, call: Call, env: Env, text: bytes, suffix: str) -> Delivered:
        """A message. text: what stands for `payload` where its fields are not named. suffix: of its keys."""
        try:
            key = self._own_key(env)
            data = self._data(call, env, text)
        except (ExprError, EdgeQueuesError) as error:
            if isinstance(error, TooLarge):
                raise
            return self.unfit(text, call.digest + suffix, _why(error))
        if key is None:
            key = (call.sent_id or DIGEST + call.digest) + suffix
        keys = [f"{self.name}/{key}"]
        if self.verifier is not None and not self.verifier.is_timed:
            # A signature that holds for ever must not let the same body in again under another header.
            keys.append(f"{self.name}/{DIGEST}{call.digest}{suffix}")
        return Delivered(key, Arriving(NewEntry(_bounded(data).decode()), tuple(dict.fromkeys(keys))))

    def _own_key(self, env: Env) -> str | None:
        value = None if self._key is None else self._key(env)
        if value is None:
            return None
        try:
            return check_idempotency_key(text_of(value))
        except EdgeQueuesError as error:
            raise InvalidMessage(f"idempotency_key: {error.detail}") from None

    def _data(self, call: Call, env: Env, text: bytes) -> bytes:
        """The JSON of a message."""
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


def scheme_of(spec: WebhookSpec) -> str | None:
    """By which scheme it is known who calls a webhook; None: it is not."""
    if spec.verify.hmac is not None:
        return spec.verify.hmac.scheme or signatures.scheme_of(spec.verify.hmac.header)
    return None if spec.verify.token is None else "token"


def verifier_of(spec: WebhookSpec, environment: Mapping[str, str]) -> Verifier | None:
    """Who checks the calls of a webhook; None: nobody. The spec has been checked against the environment."""
    verify, scheme = spec.verify, scheme_of(spec)
    if verify.hmac is not None and scheme is not None:
        said = verify.hmac
        return signatures.verifier(
            scheme,
            header=said.header,
            secrets=[environment[name] for name in said.secret_envs],
            algo=said.algo,
            encoding=said.encoding,
            prefix=said.prefix,
            timestamp_header=said.timestamp_header,
            tolerance_s=said.tolerance_seconds,
        )
    if verify.token is not None and scheme is not None:
        token = verify.token
        return signatures.verifier(
            scheme, header=token.header, secrets=[environment[name] for name in token.secret_envs]
        )
    return None


def digest_of(body: bytes) -> str:
    """The digest of a body as it was sent, in hex."""
    return sha256(body).hexdigest()


def _why(error: Exception) -> str:
    return error.detail if isinstance(error, EdgeQueuesError) else str(error)


def _compiled(expr: Expr | None) -> Closure | None:
    return None if expr is None else compile_expr(expr)


def _bounded(data: bytes) -> bytes:
    if len(data) > ENTRY_BYTES_MAX:
        raise TooLarge(f"the message has {len(data)} bytes, at most {ENTRY_BYTES_MAX} are taken")
    return data
