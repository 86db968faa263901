"""Thread keys: the same for all messages of one conversation, and nothing can be read from them.

Of a mail it is made of the id of the mail that began the thread: the first one of its References, else its
In-Reply-To, else its own Message-ID, where that is given here and the mail is no answer. So the first mail of a
thread has the key of its answers, if their senders' programs set one of the two headers, as nearly all do. Any other
mail is known by subject, sender and recipient, in that direction: an answer without headers is found with others like
it, but not with the thread that it belongs to. A new subject with no reference is a new thread.

Of a text message it is made of the two numbers, whichever of them wrote.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

_ID = re.compile(r"<[^<>\s]+>")
_ANSWER = re.compile(r"(?:(?:re|fwd?|aw|wg) ?(?:\[[0-9]{1,3}\]|\([0-9]{1,3}\))? ?: ?)+")


def email_thread(
    subject: str | None,
    sender: str,
    recipient: str,
    in_reply_to: str | None,
    references: str | None,
    message_id: str | None = None,
) -> str:
    """The key of a mail's thread: 32 hex digits. message_id: its own, for a mail that may have begun a thread."""
    topic, answers = _topic(subject or "")
    root = _first(references) or _first(in_reply_to) or (None if answers else _first(message_id))
    if root is not None:
        return _digest("mail", root)
    return _digest("subject", topic, sender.strip().lower(), recipient.strip().lower())


def sms_thread(one: str, other: str) -> str:
    """The key of the thread between two numbers: 32 hex digits."""
    return _digest("sms", *sorted((one, other)))


def normalised(subject: str) -> str:
    """A subject without what answering and forwarding put before it; blanks and case do not count."""
    return _topic(subject)[0]


def _topic(subject: str) -> tuple[str, bool]:
    """The subject as `normalised` has it, and whether something was put before it."""
    plain = " ".join(unicodedata.normalize("NFC", subject).casefold().split())
    before = _ANSWER.match(plain)
    return (plain, False) if before is None else (plain[before.end() :], True)


def _first(ids: str | None) -> str | None:
    """The first message id of a header, without brackets; where nothing is in brackets, its first word."""
    found = _ID.search(ids or "")
    if found is not None:
        return found[0][1:-1]
    words = (ids or "").split(maxsplit=1)
    return words[0] if words else None


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]
