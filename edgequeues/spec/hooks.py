"""A webhook of a spec, compiled: who may call it, what a call is about, and how a repeat is known."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple

from edgequeues.core import jsontext, signatures
from edgequeues.core.errors import EdgeQueuesError, InvalidMessage, TooLarge
from edgequeues.core.expression_reading import Closure
from edgequeues.core.expression_values import truthy
from edgequeues.core.expressions import Env, bare_path, compile_expr
from edgequeues.core.ids import check_idempotency_key
from edgequeues.core.jsonwords import kind
from edgequeues.core.signatures import Verifier
from edgequeues.models import ENTRIES_MAX
from edgequeues.spec.ir import Expr, WebhookSpec
from edgequeues.spec.judging import text_of

DIGEST = "sha256:"
RECENT_MAX = 50  # calls of one webhook that are remembered one by one

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


class Event(NamedTuple):
    """What a call is about, or one of several such things.

    text: JSON that stands for `payload` where no field is named. suffix: of its keys.
    """

    env: Env
    text: bytes
    suffix: str


class Keys(NamedTuple):
    """By what it is known that something came before. told: to who sent it. all: unique where it goes to."""

    told: str
    all: tuple[str, ...]


class Past(NamedTuple):
    """What became of a call at unix ms `at`. status: 0 where the sender did not wait for one."""

    at: int
    status: int
    outcome: str


class Hook:
    """One webhook. verifier: None: anybody may call it.

    counts, recent: what became of its calls since the server started, of all and of the last ones.
    """

    def __init__(self, name: str, space: str, app: str, spec: WebhookSpec, verifier: Verifier | None) -> None:
        self.name = name
        self.space = space
        self.app = app
        self.spec = spec
        self.verifier = verifier
        self.scheme = scheme_of(spec)
        self.counts: Counter[str] = Counter()
        self.recent: deque[Past] = deque(maxlen=RECENT_MAX)
        self._networks: list[Network] = [ip_network(one) for one in spec.allow_ips]
        self._filter = _compiled(spec.filter)
        self._key = _compiled(spec.idempotency_key)
        self._for_each = _compiled(spec.for_each)

    def happened(self, at: int, status: int, outcomes: Sequence[str], *, failed: bool) -> None:
        """Note what became of a call at unix ms `at`: of each of its messages, or why it failed, in detail first."""
        self.counts.update(outcomes)
        outcome = outcomes[0] if failed else ",".join(sorted(set(outcomes)))
        self.recent.append(Past(at, status, outcome or "nothing"))

    def admits(self, source_ip: str) -> bool:
        """May calls come from this address?"""
        if not self._networks:
            return True
        try:
            address = ip_address(source_ip)
        except ValueError:
            return False
        return any(address in network for network in self._networks)

    def events(self, call: Call) -> list[Event] | None:
        """What a call is about; None: it is not wanted. Raises TooLarge, ExprError, InvalidMessage."""
        env = call.env()
        if self._filter is not None and not truthy(self._filter(env)):
            return None
        if self._for_each is None:
            return [Event(env, call.text, "")]
        items = self._for_each(env)
        if not isinstance(items, list):
            raise InvalidMessage(f"for_each: {kind(items)} where a list is needed")
        if len(items) > ENTRIES_MAX:
            raise TooLarge(f"for_each: {len(items)} elements, at most {ENTRIES_MAX} are taken at once")
        texts = self._texts(call, items)
        return [
            Event(call.env(item=item), text, f"#{index}")
            for index, (item, text) in enumerate(zip(items, texts, strict=True))
        ]

    def keys(self, call: Call, event: Event) -> Keys:
        """The keys of what a call is about. Raises ExprError, InvalidMessage."""
        told = self._own_key(event.env)
        if told is None:
            told = (call.sent_id or DIGEST + call.digest) + event.suffix
        names = [f"{self.name}/{told}"]
        if self.verifier is not None and not self.verifier.is_timed:
            # A signature that holds for ever must not let the same body in again under another header.
            names.append(f"{self.name}/{DIGEST}{call.digest}{event.suffix}")
        return Keys(told, tuple(dict.fromkeys(names)))

    def _texts(self, call: Call, items: Sequence[Any]) -> list[bytes]:
        """The elements as they came, where they are at a place in the body; else written anew."""
        assert self.spec.for_each is not None
        place = bare_path(self.spec.for_each)
        if place is not None and place[0] == "payload":
            return jsontext.elements(jsontext.at(call.text, place[1]))
        return [jsontext.write(item) for item in items]

    def _own_key(self, env: Env) -> str | None:
        value = None if self._key is None else self._key(env)
        if value is None:
            return None
        try:
            return check_idempotency_key(text_of(value))
        except EdgeQueuesError as error:
            raise InvalidMessage(f"idempotency_key: {error.detail}") from None


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


def _compiled(expr: Expr | None) -> Closure | None:
    return None if expr is None else compile_expr(expr)
