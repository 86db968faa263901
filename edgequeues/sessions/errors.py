"""What a delivery function raises where no other attempt could do better."""

from __future__ import annotations


class Rejected(Exception):
    """The message cannot be delivered, now or later: it ends as expired, with this as its error.

    Whatever else a delivery function raises is a failure, after which it is called again.
    """


class SessionNotFound(Rejected):
    """There is no such session. Start it, and have its user send the message again."""


class SessionClosed(Rejected):
    """The session is over. Start another one."""


class SessionUnavailable(Rejected):
    """The session is there and will never take messages, as one of a kind that has no input."""
