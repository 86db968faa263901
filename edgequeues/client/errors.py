"""What a call can raise. One class per remedy; mistakes in the arguments are plain ValueError and TypeError."""

from __future__ import annotations


class ClientError(Exception):
    """Root of everything that goes wrong between the caller and the queue."""


class Unreachable(ClientError):
    """No whole answer came: nobody listens, the connection broke, or the time was up.

    maybe_done: the request may have reached the server, so its effect is unknown. Read before you repeat
    an append or a push whose entries have neither ids nor idempotency keys; with one of them, repeating is harmless.
    """

    def __init__(self, detail: str, *, maybe_done: bool) -> None:
        super().__init__(detail)
        self.maybe_done = maybe_done


class BadAnswer(ClientError):
    """The answer is not of this protocol: something else listens there, or a proxy stands between."""


class ServerError(ClientError):
    """The server answered with a problem. `code` is stable and meant for programs, `detail` for people.

    Raised as is for a fault inside the server (5xx); its log knows more.
    """

    def __init__(self, code: str, detail: str, status: int) -> None:
        super().__init__(f"{detail or 'no detail given'} [{code}]")
        self.code = code
        self.detail = detail
        self.status = status


class Refused(ServerError):
    """The request was understood and declined (4xx). Unchanged, it will be declined again; `detail` says why."""


class Unavailable(ServerError):
    """Not now (429 or 503): overloaded, stopping, or out of disk.

    retry_after_s: seconds the server asks to be left alone; None where it did not say. The call was already
    repeated where that is safe.
    """

    def __init__(self, code: str, detail: str, status: int, *, retry_after_s: float | None = None) -> None:
        super().__init__(code, detail, status)
        self.retry_after_s = retry_after_s
