"""A reply as the text of a mail, RFC 5322."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from email.header import Header
from email.headerregistry import BaseHeader, HeaderRegistry
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime, parseaddr
from typing import Any, Final, NamedTuple

from edgequeues.daemon.contract import EmailReply, GiveUp
from edgequeues.daemon.outbox import Outgoing, message_ids
from edgequeues.daemon.sending.policy import CONTROLS, is_address

LOCAL_CHARS_MAX = 150  # of our message ids
PLAIN_CHARS_MAX = 66  # of a subject on one line

_LOCAL: Final = re.compile(r"[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*")


class _Verbatim(BaseHeader):
    """A header's text as it is given.

    The library's own classes decode what looks like an encoded word, and write out the line breaks that were in it.
    """

    @classmethod
    def parse(cls, value: str, kwds: dict[str, Any]) -> None:
        kwds["parse_tree"] = None
        kwds["decoded"] = value


class _Words(_Verbatim):
    """Text for people: as it is, or as encoded words, RFC 2047."""

    max_count = 1

    def fold(self, *, policy: Policy) -> str:
        text = str(self)
        plain = text.isascii() and "=?" not in text and len(text) <= PLAIN_CHARS_MAX
        folded = (
            text if plain else Header(text, "utf-8", header_name=self.name).encode(linesep=policy.linesep)
        )
        return f"{self.name}: {folded}{policy.linesep}"


class _MessageIds(_Verbatim):
    """Message ids, one a line: the library would break a long one up into encoded words."""

    max_count = 1

    def fold(self, *, policy: Policy) -> str:
        return f"{self.name}: {(policy.linesep + ' ').join(str(self).split())}{policy.linesep}"


_HEADERS: Final = HeaderRegistry()
_HEADERS.map_to_type("subject", _Words)
for _name in ("message-id", "in-reply-to", "references"):
    _HEADERS.map_to_type(_name, _MessageIds)
_POLICY: Final = SMTP.clone(header_factory=_HEADERS, cte_type="7bit")


class Mailbox(NamedTuple):
    """Who a mail is from. name: "" if there is none. address: its domain is as DNS has it."""

    name: str
    address: str

    @property
    def domain(self) -> str:
        """What is after the @."""
        return self.address.rpartition("@")[2]


def mailbox(text: str, setting: str) -> Mailbox:
    """`name@example.com` or `Name <name@example.com>`. Raises ValueError that names the setting."""
    name, address = parseaddr(text)
    try:
        if is_address(address) and not CONTROLS.search(text):
            return Mailbox(name, ascii_domain(address))
    except ValueError:
        pass
    raise ValueError(f"{setting} is not a mail address; expected something like Shop <shop@example.com>")


def ascii_domain(address: str) -> str:
    """The address with its domain as DNS has it. Raises ValueError where it can have none."""
    local, _, domain = address.rpartition("@")
    try:
        return f"{local}@{domain.encode('idna').decode()}"
    except UnicodeError:
        raise ValueError("a mail address has a domain that DNS cannot have") from None


def recipients(reply: EmailReply, sender: Mailbox) -> list[str]:
    """Whom a mail goes to, as SMTP is told. Raises GiveUp, also where one of them is us, who might answer again."""
    try:
        to = [ascii_domain(one) for one in reply.to]
    except ValueError as error:
        raise GiveUp(f"the reply cannot be sent: {error}") from None
    if sender.address.lower() in map(str.lower, to):
        raise GiveUp("the reply would go to EMAIL_FROM itself, where it may come in as the next event")
    return to


def message_id(outgoing: Outgoing, domain: str) -> str:
    """The same for every attempt to send it, so that a repeat can be known. In angle brackets."""
    local = outgoing.id.replace(":", "~")  # a colon may not stand there
    if len(local) > LOCAL_CHARS_MAX or not _LOCAL.fullmatch(local):
        local = hashlib.sha256(outgoing.id.encode()).hexdigest()
    return f"<{local}@{domain}>"


def thread_headers(outgoing: Outgoing, domain: str) -> dict[str, str]:
    """What keeps a thread together, and keeps two programs from answering each other for ever (RFC 3834)."""
    found = {
        "Message-ID": message_id(outgoing, domain),
        "In-Reply-To": " ".join(message_ids(outgoing.in_reply_to)),
        "References": " ".join(message_ids(outgoing.references)),
        "Auto-Submitted": "auto-replied",
    }
    return {name: value for name, value in found.items() if value}


def build(outgoing: Outgoing, sender: Mailbox, reply_to: Mailbox | None, date: datetime) -> EmailMessage:
    """The mail. Raises GiveUp where a header cannot hold what it should."""
    reply = outgoing.reply
    assert isinstance(reply, EmailReply)
    to = recipients(reply, sender)
    international = not "".join([sender.address, *to]).isascii()
    mail = EmailMessage(_POLICY.clone(utf8=True) if international else _POLICY)
    try:
        mail["From"] = shown(sender)
        mail["To"] = ", ".join(to)
        if reply_to is not None:
            mail["Reply-To"] = shown(reply_to)
        mail["Subject"] = reply.subject or ""
        mail["Date"] = format_datetime(date)
        for name, value in thread_headers(outgoing, sender.domain).items():
            mail[name] = value
    except ValueError:
        raise GiveUp("the reply cannot be sent: a header of it would hold a line break") from None
    if reply.text is not None or reply.html is None:
        mail.set_content(reply.text or "")
        if reply.html is not None:
            mail.add_alternative(reply.html, subtype="html")
    else:
        mail.set_content(reply.html, subtype="html")
    return mail


def shown(one: Mailbox) -> str:
    """As a header has it."""
    if not one.name:
        return one.address
    name = one.name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}" <{one.address}>'
