"""Cloudflare's queue API without a network: bodies of requests, and what answers mean. Only documented calls.

Where an answer says that the server is ours, an ack may say more: see `Answers`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec import Struct

from edgequeues.core import jsontext
from edgequeues.core.errors import InvalidJson

LEASES_MAX = 100  # in one call
CLOUDFLARE = "api.cloudflare.com"
_ENDPOINT = re.compile(r"(?P<account>.*/accounts/[^/]+)/queues/(?P<queue>[^/]+)(?:/messages(?:/[a-z]+)?)?/?")
_ID = re.compile(r"[0-9a-f]{32}")
_JSON_OF_BASE64 = (b"t", b"n", *(b"%d" % digit for digit in range(10)))  # how JSON of base64's letters begins
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]+)?")
_MESSAGE_CHARS_MAX = 500


class QueueError(Exception):
    """A call that did not do what it should. retry_after_s: the pause that the service asks for."""

    retry_after_s: float = 0.0


class Away(QueueError):
    """No answer, or one that says to come again. The call may have been done."""


class Paused(Away):
    """The queue hands out nothing at present."""


class Refused(QueueError):
    """The service does not do this. status: of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Denied(Refused):
    """The token, the queue or its consumer is not what the call needs: for a human to mend."""


class Endpoint(Struct, frozen=True):
    """Where a queue is. account: address up to the account. queue: 32 hex digits, or a name."""

    account: str
    queue: str

    @property
    def is_name(self) -> bool:
        """Is it a name, whose id is to be asked for?"""
        return _ID.fullmatch(self.queue) is None

    @property
    def blobs(self) -> str:
        """Where edgequeues has the objects of the account; "" at Cloudflare, which has them elsewhere."""
        url = urlsplit(self.account)
        account = url.path.rpartition("/")[2]
        return "" if url.hostname == CLOUDFLARE else f"{url.scheme}://{url.netloc}/blobs/{account}"

    def url(self, path: str = "") -> str:
        """The address of the queue, or of something of it."""
        return f"{self.account}/queues/{quote(self.queue, safe='')}{path}"


def endpoint(text: str) -> Endpoint:
    """Take the address of a queue apart. Raises ValueError, which says what one looks like."""
    url = urlsplit(text)
    found = _ENDPOINT.fullmatch(url.path)
    if url.scheme not in ("http", "https") or not url.hostname or found is None or url.query or url.fragment:
        raise ValueError("expected https://HOST/client/v4/accounts/ACCOUNT/queues/QUEUE")
    if url.username is not None or url.password is not None:
        raise ValueError("a token does not belong into the address; write it into QUEUE_HTTP_TOKEN")
    return Endpoint(f"{url.scheme}://{url.netloc}{found['account']}", unquote(found["queue"]))


class Message(Struct, frozen=True):
    """A message that was pulled. attempts: from 1. timestamp_ms: when it was pushed. body: the bytes pushed."""

    id: str
    attempts: int
    timestamp_ms: int
    lease: str
    body: bytes
    content_type: str
    metadata: dict[str, str]


class Pulled(Struct, frozen=True):
    """The answer to a pull. ours: an ack may say more than Cloudflare documents."""

    messages: list[Message]
    ours: bool = False


class Retry(Struct, frozen=True):
    """An attempt that is given up. delay_s: until the next one; None: as the consumer has it."""

    lease: str
    delay_s: int | None = None


class Emit(Struct, frozen=True):
    """A message pushed in the turn of the ack of `lease`. queue: a name. key: pushed once, however often said."""

    lease: str
    queue: str
    body: Any
    key: str


class Answers(Struct, kw_only=True):
    """What becomes of messages, by their leases. All but `acks` and `retries` is for servers of ours only.

    permanent: dead letters at once. releases: given back, the attempt does not count. errors: why, of retries and
    permanent ones. results: any JSON, kept with an acked message.
    """

    acks: list[str] = []
    retries: list[Retry] = []
    permanent: list[str] = []
    releases: list[str] = []
    errors: dict[str, str] = {}
    results: dict[str, Any] = {}
    emit: list[Emit] = []


class Acked(Struct, frozen=True):
    """The answer to an ack. warnings: by lease, what was odd. emitted: ids of queues that were pushed to, by name."""

    warnings: dict[str, str]
    emitted: dict[str, str]


class Extended(Struct, frozen=True):
    """The answer to an extension. leases: what they are called now. warnings: by lease, why it was not extended."""

    leases: dict[str, str]
    warnings: dict[str, str]


class Consumer(Struct, frozen=True):
    """The consumer of a queue. attempts_max: None where it is not told."""

    queue_name: str
    attempts_max: int | None
    dead_letter_queue: str


# -- requests ------------------------------------------------------------------------------------------------


def pull_body(batch: int, visibility_ms: int) -> bytes:
    """The body of a pull."""
    return msgspec.json.encode({"batch_size": batch, "visibility_timeout_ms": visibility_ms})


def extend_body(leases: list[str], visibility_ms: int) -> bytes:
    """The body of an extension."""
    named = [{"lease_id": lease} for lease in leases]
    return msgspec.json.encode({"extend": named, "visibility_timeout_ms": visibility_ms})


def ack_body(answers: Answers) -> bytes:
    """The body of an ack."""
    said: dict[str, Any] = {
        "acks": [{"lease_id": lease} for lease in answers.acks],
        "retries": [
            {"lease_id": one.lease}
            if one.delay_s is None
            else {"lease_id": one.lease, "delay_seconds": one.delay_s}
            for one in answers.retries
        ],
    }
    if answers.permanent:
        said["permanent"] = [{"lease_id": lease} for lease in answers.permanent]
    if answers.releases:
        said["releases"] = [{"lease_id": lease} for lease in answers.releases]
    if answers.errors:
        said["errors"] = answers.errors
    if answers.results:
        said["results"] = answers.results
    if answers.emit:
        said["emit"] = [
            {"lease_id": one.lease, "queue": one.queue, "body": one.body, "key": one.key}
            for one in answers.emit
        ]
    return jsontext.write(said)


def push_body(body: object) -> bytes:
    """The body of a push of JSON. A msgspec.Raw goes out as it is."""
    return msgspec.json.encode({"body": body, "content_type": "json"})


# -- answers -------------------------------------------------------------------------------------------------


def result(status: int, headers: Mapping[str, str], content: bytes) -> Any:
    """What an answer gives. Raises Away, Paused, Denied, Refused."""
    try:
        answer = jsontext.value(content)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        answer = {}
    if 200 <= status < 300 and answer.get("success") is not False and "result" in answer:
        return answer["result"]
    raise _refusal(status, headers, _complaint(answer))


def _complaint(answer: dict[str, Any]) -> str:
    for error in _dicts(answer.get("errors")):
        text = str(error.get("message") or "")[:_MESSAGE_CHARS_MAX]
        return f"{text} [code: {error.get('code')}]"
    return "the answer is none of the queue API"


def _refusal(status: int, headers: Mapping[str, str], said: str) -> QueueError:
    error: QueueError
    if status == 409:
        error = Paused(f"the queue is paused: {said}")
    elif status in (408, 425, 429) or status >= 500:
        error = Away(f"the service answers {status}: {said}")
    elif status in _REMEDIES:
        return Denied(f"the service answers {status}: {said}; {_REMEDIES[status]}", status)
    elif status >= 400:
        return Refused(f"the service answers {status}: {said}", status)
    else:  # of a proxy in front, perhaps
        error = Away(f"the service answers {status}, but {said}")
    asked = headers.get("retry-after", "")
    error.retry_after_s = float(asked) if _SECONDS.fullmatch(asked) else 0.0
    return error


_REMEDIES = {
    401: "check QUEUE_HTTP_TOKEN",
    403: "the token in QUEUE_HTTP_TOKEN may not do this here: it has to read and ack the queue",
    404: "check account and queue in QUEUE_HTTP_ENDPOINT",
    405: "give the queue a consumer of type http_pull",
}


def pulled(answer: Any) -> Pulled:
    """The answer to a pull. Messages without a lease that can be said again are left out."""
    answer = answer if isinstance(answer, dict) else {}
    metadata = _dict(answer.get("metadata"))
    messages = [
        _message(one) for one in _dicts(answer.get("messages")) if isinstance(one.get("lease_id"), str)
    ]
    ours = _dict(metadata.get("metrics")).get("edgequeues") == 1
    return Pulled(messages, ours=ours)


def _is_lease(lease: Any) -> bool:
    return isinstance(lease, str) and lease.isascii()


def _message(one: dict[str, Any]) -> Message:
    metadata = {str(name): str(value) for name, value in _dict(one.get("metadata")).items()}
    kind = metadata.get("CF-Content-Type")
    if kind is None:
        kind = next((value for name, value in metadata.items() if name.lower() == "cf-content-type"), "")
    return Message(
        id=str(one.get("id") or ""),
        attempts=max(_whole(one.get("attempts")) or 1, 1),
        timestamp_ms=_whole(one.get("timestamp_ms")) or 0,
        lease=one["lease_id"],
        body=_body(one.get("body"), kind),
        content_type=kind,
        metadata=metadata,
    )


def _body(body: Any, kind: str) -> bytes:
    """The bytes that were pushed. JSON and bytes come as base64; of JSON, some services write the text itself."""
    if not isinstance(body, str):
        return jsontext.write(body)
    plain = body.encode("utf-8", "surrogatepass")
    if kind == "text":
        return plain
    try:
        decoded = base64.b64decode(plain, validate=True)
    except binascii.Error:
        return plain
    is_plain = plain[:1] in _JSON_OF_BASE64 and kind not in ("bytes", "v8") and _is_json(plain)
    return plain if is_plain and not _is_json(decoded) else decoded


def _is_json(text: bytes) -> bool:
    try:
        jsontext.check(text)
    except InvalidJson:
        return False
    return True


def acked(answer: Any) -> Acked:
    """The answer to an ack. Warnings may be a map or a list; counts may be missing."""
    answer = _dict(answer)
    emitted = {str(one.get("queue_name")): str(one.get("queue_id")) for one in _dicts(answer.get("emitted"))}
    return Acked(_warnings(answer), emitted)


def extended(answer: Any, ids: Mapping[str, str]) -> Extended:
    """The answer to an extension. ids: of the messages, by the leases that were named."""
    answer = _dict(answer)
    by_id = {message: lease for lease, message in ids.items()}
    leases = {}
    for one in _dicts(answer.get("messages")):
        new = one.get("lease_id")
        old = one.get("previous_lease_id") or by_id.get(str(one.get("id")))
        if isinstance(new, str) and old in ids:
            leases[str(old)] = new
    return Extended(leases, _warnings(answer))


def queue_id(answer: Any, name: str) -> str | None:
    """The id of a queue in a list of queues. A service that heeds no name gives them all."""
    for one in _dicts(answer):
        if one.get("queue_name") == name and isinstance(one.get("queue_id"), str):
            return str(one["queue_id"])
    return None


def consumer(answer: Any) -> Consumer | None:
    """The pull consumer in a list of consumers."""
    for one in _dicts(answer):
        if one.get("type") == "http_pull":
            retries = _whole(_dict(one.get("settings")).get("max_retries"))
            return Consumer(
                str(one.get("queue_name") or ""),
                None if retries is None else retries + 1,
                str(one.get("dead_letter_queue") or ""),
            )
    return None


def _warnings(answer: dict[str, Any]) -> dict[str, str]:
    warnings = answer.get("warnings")
    if isinstance(warnings, dict):
        return {str(lease): str(text) for lease, text in warnings.items()}
    return dict(_listed(warnings))


def _listed(warnings: Any) -> Iterator[tuple[str, str]]:
    """Warnings in a list: texts, or objects that may name the lease."""
    for number, one in enumerate(warnings if isinstance(warnings, list) else []):
        if isinstance(one, dict):
            yield str(one.get("lease_id") or number), str(one.get("message") or one)
        else:
            yield str(number), str(one)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
