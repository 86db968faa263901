"""Headers of a mail, RFC 5322: bounded before they are looked at, and what is wrong in one costs that one only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.headerregistry import Address, HeaderRegistry
from typing import Literal, NamedTuple

from edgequeues.core.errors import InvalidRequest
from edgequeues.ingest.mail_text import clean

HEADER_CHARS_MAX = 4 * 1024  # of one header that is taken apart
REPEATS_MAX = 5  # of one header that are looked at
REFERENCES_MAX = 50  # ids of a thread that are kept, the newest of them and the first
REFERENCES_CHARS_MAX = 2 * 1024
ADDRESS_CHARS_MAX = 320
REPLY_MAX = 10  # addresses that an answer goes to
LINE_CHARS_MAX = 998  # RFC 5322, 2.1.1
NAME_CHARS_MAX = 256

_REGISTRY = HeaderRegistry()
_ID = re.compile(r"<[^<>\s]{1,512}>")
_ADDRESS = re.compile(r"[^\s<>()\[\]\\,;:\"@]{1,64}@[^\s<>()\[\]\\,;:\"@]{1,255}")

Priority = Literal["low", "normal", "high"]
Headers = Mapping[str, Sequence[str]]  # values as they came, by name in lower case


class Mailbox(NamedTuple):
    """An address, and how its owner is called; "": not said."""

    address: str
    name: str = ""


def gathered(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Headers by name. Bytes that are no ASCII are UTF-8, RFC 6532."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        values = found.setdefault(name.lower(), [])
        if len(values) < REPEATS_MAX:
            text = str(value)[:HEADER_CHARS_MAX].replace("\r", "").replace("\n", "")
            values.append(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return found


def first(headers: Headers, name: str) -> str:
    """The first value of a header, "" where there is none."""
    return headers[name][0].strip() if name in headers else ""


def text(headers: Headers, name: str, chars_max: int) -> str:
    """A header's text in one line, with its encoded words, RFC 2047, decoded."""
    value = first(headers, name)
    with suppress(
        Exception
    ):  # of a text from anywhere, Python's reader of headers raises whatever it trips over
        value = str(_REGISTRY("subject", value))
    return " ".join(clean(value).split())[:chars_max]


def mailboxes(headers: Headers, *names: str) -> list[Mailbox]:
    """The addresses of the first of these headers that holds any, groups taken apart."""
    for name in names:
        for value in headers.get(name, ()):
            if found := _mailboxes(value):
                return found
    return []


def _mailboxes(value: str) -> list[Mailbox]:
    addresses: Sequence[Address] = ()
    with suppress(Exception):  # as above
        addresses = getattr(_REGISTRY("to", value), "addresses", ())
    read = [Mailbox(one.addr_spec, one.display_name) for one in addresses if one.username and one.domain]
    found = [
        Mailbox(address, " ".join(clean(one.name).split())[:NAME_CHARS_MAX])
        for one in read
        if (address := _sound(one.address)) is not None
    ]
    return found or [Mailbox(one) for one in _ADDRESS.findall(value)[:REPLY_MAX]]


def _sound(address: str) -> str | None:
    """An address that can be written to; None: it cannot."""
    fits = len(address) <= ADDRESS_CHARS_MAX and clean(address) == address
    return address if fits and not re.search(r"[\s<>,;]", address) and "@" in address else None


def envelope(given: str, name: str) -> str | None:
    """An address of the envelope, as whoever hands a mail over states it; None for "". Raises InvalidRequest."""
    address = given.strip().removeprefix("<").removesuffix(">")
    if not address:
        return None
    if _ADDRESS.fullmatch(address) is None:
        raise InvalidRequest(f"{name}: not one address")
    return address


def ids(headers: Headers, name: str) -> list[str]:
    """The message ids of a header, in angle brackets, each once."""
    return list(dict.fromkeys(_ID.findall(" ".join(headers.get(name, ())))))


def message_id(headers: Headers) -> str | None:
    """The mail's own id; None: it has none, or not one alone."""
    found = ids(headers, "message-id")
    if not found and (bare := first(headers, "message-id")) and re.fullmatch(r"[^<>\s]{3,512}", bare):
        return f"<{bare}>"
    return found[0] if len(found) == 1 else None


def in_reply_to(headers: Headers) -> str | None:
    """The ids of the mails that this one answers, as many as fit into a line."""
    found = ids(headers, "in-reply-to")
    while len(" ".join(found)) > LINE_CHARS_MAX:
        found = found[:-1]
    return " ".join(found) or None


def references(headers: Headers) -> str | None:
    """The ids of the thread before the mail: the first, which is its root, and the newest."""
    found = ids(headers, "references")
    kept = found if len(found) <= REFERENCES_MAX else [found[0], *found[1 - REFERENCES_MAX :]]
    while len(" ".join(kept)) > REFERENCES_CHARS_MAX:
        kept = [kept[0], *kept[2:]]
    return " ".join(kept) or None


def priority(headers: Headers) -> Priority:
    """How urgent its sender calls it, by whichever header says so first."""
    importance = first(headers, "importance").lower() or first(headers, "priority").lower()
    if importance in ("high", "urgent"):
        return "high"
    if importance in ("low", "non-urgent"):
        return "low"
    number = first(headers, "x-priority")[:1]
    return "high" if number in ("1", "2") else "low" if number in ("4", "5") else "normal"


def is_automatic(headers: Headers) -> bool:
    """Did no person send it? To such a mail nothing answers by itself, RFC 3834, or two machines never end."""
    submitted = first(headers, "auto-submitted").partition(";")[0].strip().lower()
    sent_to_many = first(headers, "precedence").lower() in ("bulk", "junk", "list")
    return submitted not in ("", "no") or sent_to_many or first(headers, "return-path") == "<>"
