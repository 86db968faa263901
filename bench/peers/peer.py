"""What is a peer to the bench? Something that says in its own protocol what every one of them is asked."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from bench.http_requests import DIGITS
from bench.peers.cache import Cache
from bench.peers.load import Request, Wire, numbered

OBJECT_BYTES = 200
TYPE = b"example.org/type/Message"
NUMBER = re.compile(rb"\|(\d{8})\|")  # in every object that was numbered
MANY = 100

Kind = Literal["log", "work"]


class NotMeant(Exception):
    """This peer has no such thing."""


class Peer(ABC):
    """A server at work. Whatever it cannot do raises NotMeant.

    setting: what makes its answers durable. Queues are named by words of letters and digits. Requests that make
    something hold DIGITS: see `load.numbered`.
    """

    lease: ClassVar[re.Pattern[bytes]]  # of one message in the answer to a pull

    logs: ClassVar[bool] = True  # can what was appended be read again and again?

    together: ClassVar[int] = 10  # messages that one who waits may be given at once

    def __init__(self, port: int) -> None:
        self.port = port

    @abstractmethod
    def wire(self) -> Wire:
        """A connection that was greeted."""

    @abstractmethod
    def make(self, queue: str, kind: Kind) -> None:
        """Make an empty queue."""

    @abstractmethod
    def append(self, queue: str, each: int) -> Request:
        """So many objects at once, to a log."""

    def reads(self, queue: str, length: int, each: int) -> list[Request]:
        """`each` objects from anywhere in a log that holds nothing but `length` objects."""
        raise NotMeant

    def push(self, queue: str, *, wake: bool = False) -> Request:
        """One message. wake: somebody may wait for it."""
        raise NotMeant

    def pull(self, queue: str, each: int, *, wait: bool = False) -> Request:
        """Up to so many messages. wait: until there is one."""
        raise NotMeant

    def ack(self, queue: str, leases: Sequence[bytes]) -> Request:
        """These are done."""
        raise NotMeant

    def waiting(self, queue: str) -> Wire:
        """A connection on which pulls will wait."""
        return self.wire()

    def fill(self, queue: str, kind: Kind, count: int) -> None:
        """Put in so many, quickly."""
        wire = self.wire()
        requests = numbered(self.append(queue, MANY) if kind == "log" else self.push_many(queue, MANY))
        for _ in range(0, count, MANY):
            wire.ask(next(requests))
        wire.close()

    def push_many(self, queue: str, each: int) -> Request:
        """So many messages at once, to fill a queue: not measured."""
        one = self.push(queue)
        return Request(one.data * each, one.answers * each)

    def leases(self, held: bytes) -> list[bytes]:
        """Of the messages in the answer to a pull."""
        return self.lease.findall(held)


class Contender(NamedTuple):
    """A peer that may take part: how it is called, what makes it durable, and how it starts in a fresh folder."""

    name: str
    setting: str
    start: Callable[[Path, Cache], AbstractContextManager[Peer]]


def object_id(index: int) -> bytes:
    """Of one object of a request: a ULID once the digits are replaced."""
    return b"01%b%016d" % (DIGITS, index)


def text(index: int) -> bytes:
    """One object, OBJECT_BYTES of JSON."""
    start = b'{"id":"%b","@type":"%b","number":%d,"text":"|%b|' % (object_id(index), TYPE, index, DIGITS)
    return start + b"x" * (OBJECT_BYTES - len(start) - 2) + b'"}'
