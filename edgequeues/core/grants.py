"""What a token lets its holder do: verbs, and the spaces and queues they reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from msgspec import Struct

from edgequeues.core.errors import InvalidRequest
from edgequeues.core.ids import shown

Verb = Literal[
    "read",
    "append",
    "delete",
    "configure",
    "list",
    "push",
    "pull",
    "create",
    "spec",
    "ingest",
    "backup",
    "restore",
]
VERBS: tuple[Verb, ...] = get_args(Verb)
MEANINGS: dict[Verb, str] = {
    "read": "read objects and blobs, wait, subscribe, see settings and counts",
    "append": "append objects, the first one makes the queue; store blobs",
    "delete": "delete objects, ranges and blobs",
    "configure": "change queues and consumers, skip or hurry messages, remove queues",
    "list": "see which spaces and queues there are",
    "push": "push messages to work queues, and replay dead letters",
    "pull": "pull messages, and ack, retry, release, extend what was pulled",
    "create": "make a work queue by pushing to it",
    "spec": "see, apply and remove specs, which make queues and webhooks",
    "ingest": "hand mails over, which become events in the inbox",
    "backup": "take the whole file of a space along",
    "restore": "put such a file in the place of a space",
}

EVERYTHING = "*"
PATTERNS_MAX = 64
PATTERN_LENGTH_MAX = 129  # a name of a queue, and the star


class Grant(Struct, frozen=True):
    """Verbs allowed in some spaces, on some of their queues.

    spaces, queues: patterns; each is a name, or the beginning of names and `*`. A queue is compared as an address
    gives it, by name or by id, byte for byte.
    """

    verbs: frozenset[Verb]
    spaces: tuple[str, ...] = (EVERYTHING,)
    queues: tuple[str, ...] = (EVERYTHING,)

    def allows(self, verb: Verb, space: str | None, queue: str | None) -> bool:
        """May this be done there? None: in all spaces; to all queues of a space. Only `*` reaches that far."""
        return verb in self.verbs and _matches(self.spaces, space) and _matches(self.queues, queue)

    def __str__(self) -> str:
        verbs = ",".join(verb for verb in VERBS if verb in self.verbs)
        return f"{verbs} in spaces {','.join(self.spaces)}, queues {','.join(self.queues)}"


def grant(verbs: Iterable[str], spaces: Iterable[str] = (), queues: Iterable[str] = ()) -> Grant:
    """A grant as an operator words it: no verb means all of them, no pattern all names. Raises InvalidRequest."""
    wanted = frozenset(_verb(verb) for verb in verbs)
    return Grant(wanted or frozenset(VERBS), _patterns("space", spaces), _patterns("queue", queues))


def _verb(text: str) -> Verb:
    for verb in VERBS:
        if verb == text:
            return verb
    raise InvalidRequest(f"verb {shown(text)}: none of {', '.join(VERBS)}")


def _patterns(label: str, given: Iterable[str]) -> tuple[str, ...]:
    patterns = tuple(dict.fromkeys(given))
    if len(patterns) > PATTERNS_MAX:
        raise InvalidRequest(f"{label}: {len(patterns)} patterns, at most {PATTERNS_MAX}")
    for pattern in patterns:
        name = pattern.removesuffix(EVERYTHING)
        if len(pattern) > PATTERN_LENGTH_MAX or not (name or pattern) or not _is_name(name):
            raise InvalidRequest(f"{label} {shown(pattern)}: write a name, or the beginning of names and *")
    return patterns or (EVERYTHING,)


def _is_name(text: str) -> bool:
    return text.isascii() and all(char.isalnum() or char in "_-" for char in text)


def _matches(patterns: tuple[str, ...], name: str | None) -> bool:
    if name in patterns or EVERYTHING in patterns:
        return True
    return name is not None and any(
        name.startswith(pattern[:-1]) for pattern in patterns if pattern.endswith(EVERYTHING)
    )
