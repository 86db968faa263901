"""What comes in on one connection: llhttp takes the bytes apart, and calls here with what it finds."""

from __future__ import annotations

from collections import deque

import httptools

from edgequeues.core.errors import EdgeQueuesError, InvalidRequest
from edgequeues.http.http1 import HEAD_BYTES_MAX, HEADERS_MAX
from edgequeues.http.problems import HeadersTooLarge

BLANK_MAX = 4  # bytes of line ends before a request, which some clients send after a body

_NOT_HTTP = "these bytes are no HTTP/1.1 request"
_TOO_LARGE = f"at most {HEAD_BYTES_MAX} bytes and {HEADERS_MAX} headers are taken"
_OWS = b" \t"  # RFC 9110, 5.6.3


class Message:
    """A request as it comes in. size: bytes of target and headers. pieces: of the body, those that nobody took."""

    __slots__ = (
        "complete",
        "headers",
        "keep_alive",
        "method",
        "pieces",
        "size",
        "target",
        "upgrade",
        "version",
    )

    def __init__(self) -> None:
        self.method = ""
        self.target = b""
        self.version = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.size = 0
        self.pieces: list[bytes] = []
        self.complete = False
        self.keep_alive = True
        self.upgrade = False


class Incoming:
    """What llhttp calls: makes messages of the bytes of one connection.

    heads: messages whose head is whole and that nobody has taken. fault: why there will be no more. left: what came
    behind a message that asks for an upgrade; None: there was none.
    """

    def __init__(self) -> None:
        self.heads: deque[Message] = deque()
        self.fault: EdgeQueuesError | None = None
        self.left: bytes | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._now: Message | None = None
        self._in_body = False
        self._got_on = False  # did what was fed last begin a message, end a head, bring some body?
        self._unfinished = 0  # bytes since then: of a head, of the lines between chunks, of a trailer
        self._blank = 0  # bytes of line ends before a message

    @property
    def is_full(self) -> bool:
        """Is there something behind the message that is being answered? Then no more is read."""
        return bool(self.heads) or self.fault is not None or self.left is not None

    @property
    def has_part_of_a_head(self) -> bool:
        """Is there input that no request has come of yet?"""
        return self._now is not None and not self._in_body

    def feed(self, data: bytes) -> None:
        """Take bytes; after a fault, none any more."""
        if self.fault is not None or self.left is not None:
            return
        now, self._got_on = self._now, False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.left = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            cause = error.__context__
            self.fault = cause if isinstance(cause, EdgeQueuesError) else InvalidRequest(_NOT_HTTP)
        except httptools.HttpParserError:
            self.fault = InvalidRequest(_NOT_HTTP)
        else:
            if self._got_on:
                self._unfinished = self._blank = 0
            else:
                self._bound(len(data), idle=now is None)

    def end(self) -> None:
        """The client sends no more."""
        if self._now is not None and self.fault is None:
            self.fault = InvalidRequest("the request ends in its middle")

    def _bound(self, size: int, *, idle: bool) -> None:
        """What llhttp itself would take without end: lines that go on, and line ends before a message."""
        self._unfinished = self._unfinished + size if self._now is not None else 0
        self._blank = self._blank + size if idle else 0
        if self._unfinished > HEAD_BYTES_MAX:
            self.fault = HeadersTooLarge(_TOO_LARGE)
        elif self._blank > BLANK_MAX:
            self.fault = InvalidRequest(_NOT_HTTP)

    # -- called by llhttp ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A message begins."""
        self._now = Message()
        self._in_body = False
        self._got_on = True

    def on_url(self, part: bytes) -> None:
        """A part of its target."""
        message = self._now
        assert message is not None
        message.target += part
        self._grown(message, len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer."""
        message = self._now
        assert message is not None
        if not self._in_body:  # what comes behind a body says nothing
            message.headers.append((name.lower(), value.strip(_OWS)))  # llhttp leaves what is behind a value
        self._grown(message, len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        """The head is whole."""
        message, parser = self._now, self._parser
        assert message is not None
        message.method = parser.get_method().decode()
        message.version = parser.get_http_version()
        message.keep_alive = parser.should_keep_alive() and message.version == "1.1"
        message.upgrade = parser.should_upgrade()
        if message.version not in ("1.1", "1.0"):
            raise InvalidRequest("HTTP/1.1 is spoken here")
        if message.method == "CONNECT":
            raise InvalidRequest("this is no proxy")
        for name, value in message.headers:
            if name == b"transfer-encoding" and (value.lower() != b"chunked" or message.version == "1.0"):
                raise InvalidRequest("of all transfer codings chunked is taken, in HTTP/1.1")
        self._in_body = self._got_on = True
        self.heads.append(message)

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        assert self._now is not None
        self._now.pieces.append(part)
        self._got_on = True

    def on_message_complete(self) -> None:
        """All of it is there."""
        assert self._now is not None
        self._now.complete = True
        self._now = None

    def _grown(self, message: Message, size: int) -> None:
        message.size += size
        if message.size > HEAD_BYTES_MAX or len(message.headers) > HEADERS_MAX:
            raise HeadersTooLarge(_TOO_LARGE)
