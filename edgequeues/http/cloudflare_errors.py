"""How the Cloudflare dialect says no: its numbers, and which statuses its clients take for good.

The numbers are those of https://developers.cloudflare.com/queues/reference/error-codes/ and, for settings, those the
service is seen to send. docs/protocol/cloudflare.md lists them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from edgequeues.core import errors as core
from edgequeues.core.errors import InvalidRequest
from edgequeues.http import codec, problems
from edgequeues.http.problems import Refusal
from shards import errors as shard

QUEUE_ID = 10107
BATCH_DELAY = 10202
METADATA = 10203
MESSAGE_SIZE = 10204
BATCH_SIZE = 10205
BATCH_COUNT = 10206
SCHEMA = 10207
MALFORMED = 10208
OVERLOADED = 10250
STORAGE = 10251
PAUSED = 10252
REQUEST = 10026
METHOD = 10405
INTERNAL = 15000
QUEUE_NAME = 11003
CONSUMER_EXISTS = 11004
CONSUMER_SETTINGS = 100127
QUEUE_SETTINGS = 100128

# Status and number of what can be wrong, where they are not the native status, REQUEST or INTERNAL.
_NUMBERS: Final[Mapping[type[BaseException], tuple[int, int]]] = {
    core.QueueNotFound: (404, 11000),
    core.ConsumerNotFound: (404, 11005),
    core.NameTaken: (409, 11009),
    core.NoConsumer: (405, METHOD),
    core.InvalidJson: (400, MALFORMED),
    core.InvalidMessage: (400, SCHEMA),
    core.InvalidId: (400, QUEUE_ID),
    core.TooLarge: (413, BATCH_SIZE),
    core.RouteNotFound: (404, 7003),
    core.MethodNotAllowed: (405, METHOD),
    core.QueueFull: (429, OVERLOADED),
    core.RateLimited: (429, OVERLOADED),
    core.TooManySpaces: (403, STORAGE),
    problems.Unauthenticated: (401, 10000),
    problems.Forbidden: (403, 9109),
    shard.Overloaded: (429, OVERLOADED),
    shard.DiskFull: (429, STORAGE),
    shard.InvalidName: (400, QUEUE_ID),
}
_TRIED_AGAIN = (408, 409, 429)  # by clients, as all from 500 on, unless they are told not to


class Refused(InvalidRequest):
    """Correct what is named; nothing was stored."""

    def __init__(self, number: int, detail: str, status: int = 400) -> None:
        super().__init__(detail)
        self.number = number
        self.status = status


def refuse(error: BaseException) -> Refusal:
    """Refuse in the service's envelope. Clients are told not to repeat what cannot succeed."""
    said = problems.problem(error)
    if isinstance(error, Refused):
        status, number, message = error.status, error.number, error.detail
    else:
        other = INTERNAL if said.status >= 500 else REQUEST
        status, number = _NUMBERS.get(type(error), (said.status, other))
        message = said.detail
    headers = problems.headers(error)
    if not said.retryable and (status in _TRIED_AGAIN or status >= 500):
        headers.append((b"x-should-retry", b"false"))
    body = {
        "success": False,
        "errors": [{"code": number, "message": message}],
        "messages": [],
        "result": None,
    }
    return Refusal(status, b"application/json", headers, codec.encode(body))
