"""A real mail server on loopback, and what it was handed."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

import trustme
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "shop@example.com", "pass:word@"


@dataclass
class Mails:
    """What arrived. refusals: what a recipient, or "" for the whole mail, is answered with, in turn."""

    port: int = 0
    raw: list[bytes] = field(default_factory=list)
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list)
    refusals: dict[str, list[str]] = field(default_factory=dict)
    secured: list[bool] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)

    @property
    def parsed(self) -> list[EmailMessage]:
        return [message_from_bytes(raw, policy=policy.SMTP) for raw in self.raw]

    async def handle_RCPT(  # noqa: N802  # as aiosmtpd calls it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refusals.get(address):
            return self.refusals[address].pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802  # as aiosmtpd calls it
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.refusals.get(""):
            return self.refusals[""].pop(0)
        assert isinstance(envelope.content, bytes)
        self.raw.append(envelope.content)
        self.envelopes.append((envelope.mail_from or "", list(envelope.rcpt_tos)))
        self.secured.append(session.ssl is not None)
        return "250 OK"

    def judge(self, server: SMTP, session: Session, envelope: Envelope, how: str, data: object) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        good = (data.login.decode(), data.password.decode()) == (USER, PASSWORD)
        return AuthResult(success=good, handled=False)


class _Anywhere(Controller):
    """Listens at a free port, which it asks for when it wants to see whether it does."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@contextmanager
def mail_server(
    *, authority: trustme.CA | None = None, login: bool = False, from_the_start: bool = False
) -> Iterator[Mails]:
    """A server that wants a login where it is said, and has TLS where there is an authority."""
    mails = Mails()
    tls = None
    if authority is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(tls)
    controller = _Anywhere(
        mails,
        hostname="127.0.0.1",
        port=0,
        tls_context=None if from_the_start else tls,
        ssl_context=tls if from_the_start else None,
        authenticator=mails.judge,
        auth_required=login,
        auth_require_tls=authority is not None,
        enable_SMTPUTF8=True,
    )
    controller.start()
    try:
        mails.port = controller.port
        yield mails
    finally:
        controller.stop()
