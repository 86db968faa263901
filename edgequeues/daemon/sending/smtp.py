"""Mail over SMTP, RFC 5321: one connection a mail, in a thread of its own."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import trio

from edgequeues.core.errors import reason
from edgequeues.core.hostnames import is_loopback
from edgequeues.daemon.contract import EmailReply
from edgequeues.daemon.outbox import Outgoing
from edgequeues.daemon.sending import message
from edgequeues.daemon.sending.faults import EmailNotSent, EmailRefused, Unauthorized
from edgequeues.daemon.sending.message import Mailbox

CONNECTIONS_MAX = 16

_PORTS: Final = {"smtp": 587, "smtp+insecure": 25, "smtps": 465}
_LOGIN: Final = frozenset({530, 534, 535, 538})  # RFC 4954: what a server says to a login, or for want of one


class Server(NamedTuple):
    """A mail server. user: "" to send without a login."""

    scheme: str
    host: str
    port: int
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Server({self.scheme}://{self.host}:{self.port})"


def server(url: str) -> Server:
    """`smtp://user:password@host:587`, `smtps://` or `smtp+insecure://`. Raises ValueError that shows no password."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise ValueError(
            "SMTP_URL is not the address of a mail server; expected something like "
            "smtp://user:password@mail.example.com:587, with %40 for an @ in the user's name"
        )
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if not (user + password).isascii():
        raise ValueError(
            "SMTP_URL has a user name or a password beyond ASCII, which no login of SMTP can say"
        )
    return Server(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], user, password)


class SmtpPost:
    """Hands mails to one server. timeout_s: for each step of the talk."""

    def __init__(
        self,
        at: Server,
        sender: Mailbox,
        reply_to: Mailbox | None,
        *,
        now: Callable[[], datetime],
        timeout_s: float,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._at = at
        self._sender = sender
        self._reply_to = reply_to
        self._now = now
        self._timeout_s = timeout_s
        self._tls = tls or ssl.create_default_context()
        self._limiter = trio.CapacityLimiter(CONNECTIONS_MAX)

    async def send(self, outgoing: Outgoing) -> None:
        """Have the server take a mail. Raises EmailNotSent, EmailRefused, Unauthorized, GiveUp."""
        assert isinstance(outgoing.reply, EmailReply)
        mail = message.build(outgoing, self._sender, self._reply_to, self._now())
        talk = _Talk(self._at, self._tls, self._timeout_s)
        to, text = message.recipients(outgoing.reply, self._sender), mail.as_bytes()
        try:
            await trio.to_thread.run_sync(
                talk.send, self._sender.address, to, text, abandon_on_cancel=True, limiter=self._limiter
            )
        finally:
            talk.cut()  # so that the thread of one given up ends too


class _Connection(smtplib.SMTP):
    """A connection that its talk knows before it is made, as the constructor waits for the server's first words."""

    def __init__(self, talk: _Talk, at: Server, timeout_s: float, **tls: Any) -> None:
        self._talk = talk
        talk.connection = self
        super().__init__(at.host, at.port, timeout=timeout_s, **tls)

    def getreply(self) -> tuple[int, bytes]:
        if self._talk.is_cut:  # before there was a socket
            self.close()
            raise smtplib.SMTPServerDisconnected
        return super().getreply()


class _SecuredConnection(_Connection, smtplib.SMTP_SSL):
    """The same over TLS."""


class _Talk:
    """All that is said for one mail, by a thread. `cut` ends it from another."""

    def __init__(self, at: Server, tls: ssl.SSLContext, timeout_s: float) -> None:
        self.connection: smtplib.SMTP | None = None
        self.is_cut = False
        self._at = at
        self._tls = tls
        self._timeout_s = timeout_s

    def cut(self) -> None:
        """Have the thread end at once; while it connects, as soon as it has or may not any longer."""
        self.is_cut = True
        sock = self.connection and self.connection.sock
        if sock:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def send(self, sender: str, to: list[str], text: bytes) -> None:
        """Raises as `SmtpPost.send`. What the server says in words is not told: it may hold an address."""
        try:
            smtp = self._connect()
            try:
                self._greet(smtp)
                self._hand_over(smtp, sender, to, text)
                with suppress(smtplib.SMTPException, OSError):  # the mail was taken
                    smtp.quit()
            finally:
                smtp.close()
        except smtplib.SMTPResponseException as error:
            raise _fault(error) from None
        except smtplib.SMTPNotSupportedError:
            raise EmailRefused("the mail server takes no addresses beyond ASCII (SMTPUTF8)") from None
        except smtplib.SMTPException as error:
            raise EmailNotSent(f"the mail server broke off ({type(error).__name__})") from None
        except OSError as error:
            raise EmailNotSent(f"the mail server at SMTP_URL cannot be reached: {reason(error)}") from None

    def _connect(self) -> smtplib.SMTP:
        if self._at.scheme == "smtps":
            return _SecuredConnection(self, self._at, self._timeout_s, context=self._tls)
        return _Connection(self, self._at, self._timeout_s)

    def _greet(self, smtp: smtplib.SMTP) -> None:
        smtp.ehlo_or_helo_if_needed()
        if self._at.scheme == "smtp":
            if smtp.has_extn("starttls"):
                smtp.starttls(context=self._tls)
                smtp.ehlo_or_helo_if_needed()
            elif not is_loopback(self._at.host):
                raise EmailNotSent(
                    "the mail server offers no STARTTLS, so the mail would go in the clear; have SMTP_URL begin with "
                    "smtps://, or with smtp+insecure:// where the network is trusted"
                )
        if self._at.user:
            try:
                smtp.login(self._at.user, self._at.password)
            except smtplib.SMTPNotSupportedError:
                raise Unauthorized("the mail server takes no login, yet SMTP_URL has one") from None

    def _hand_over(self, smtp: smtplib.SMTP, sender: str, to: list[str], text: bytes) -> None:
        """All who can have it, in one go: where one is refused for now, nobody gets it yet, and so nobody twice."""
        options = []
        if not "".join([sender, *to]).isascii():
            if not smtp.has_extn("smtputf8"):
                raise smtplib.SMTPNotSupportedError
            smtp.command_encoding = "utf-8"
            options = ["SMTPUTF8", "BODY=8BITMIME"]
        _expect(smtp.mail(sender, options), 250)
        refused: list[tuple[int, bytes]] = []
        for one in to:
            answer = smtp.rcpt(one)
            if answer[0] not in (250, 251):
                refused.append(answer)
        later = [answer for answer in refused if answer[0] < 500]
        if later or len(refused) == len(to):
            raise smtplib.SMTPResponseException(*(later or refused)[0])
        _expect(smtp.data(text), 250)


def _expect(answer: tuple[int, bytes], code: int) -> None:
    if answer[0] != code:
        raise smtplib.SMTPResponseException(*answer)


def _fault(error: smtplib.SMTPResponseException) -> Exception:
    code = error.smtp_code
    if code in _LOGIN:
        return Unauthorized(f"the mail server does not take the login of SMTP_URL: it answered {code}")
    if isinstance(error, smtplib.SMTPConnectError | smtplib.SMTPHeloError) or code < 500:
        return EmailNotSent(f"the mail server answered {code}")
    return EmailRefused(f"the mail server refused the mail: it answered {code}")
