"""Who asks, and what they may do: tokens and anonymous grants, judged before anything is done for a request."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal

import trio

from edgequeues.control import Control, ControlError, Token
from edgequeues.core.grants import Grant, Verb
from edgequeues.core.hostnames import bare, is_loopback
from edgequeues.core.who import ANYBODY, LOOPBACK, Who
from edgequeues.http import codec
from edgequeues.http.problems import Forbidden, Unauthenticated
from edgequeues.http.signins import SignIns
from shards.clock import Clock

Mode = Literal["auto", "required", "off"]

# Where a server listens: for this machine only; for others too; for others too and deliberately without tokens.
Exposure = Literal["local", "exposed", "insecure"]

LOOK_S = 0.5  # between looks at the file: what was made or revoked counts within a second

log = logging.getLogger("edgequeues.http")

_BEARER = b"bearer "
_NO_TOKEN = "the token is unknown, revoked or expired"


class Caller:
    """Who sent a request, as the audit names them. stranger: somebody the operator does not know by a token."""

    __slots__ = ("_grants", "_known", "stranger", "who")

    def __init__(self, grants: tuple[Grant, ...] | None, who: Who, *, known: bool, stranger: bool) -> None:
        self._grants = grants  # None: may do everything
        self._known = known
        self.stranger = stranger
        self.who = who

    def may(self, verb: Verb, space: str | None, queue: str | None) -> bool:
        """Is this granted? None: all spaces, all queues of a space."""
        return self._grants is None or any(grant.allows(verb, space, queue) for grant in self._grants)

    def require(self, verb: Verb, space: str | None, queue: str | None) -> None:
        """Raises Unauthenticated or Forbidden unless this is granted. None: all spaces, all queues of a space."""
        if self.may(verb, space, queue):
            return
        queues = "all queues" if queue is None else f"queue {queue}"
        where = "all spaces" if space is None else f"{queues} of space {space}"
        if not self._known:
            raise Unauthenticated(f"without a token nobody may {verb} {where}")
        raise Forbidden(f"the token does not let you {verb} {where}")


OWNER = Caller(None, LOOPBACK, known=True, stranger=False)
NOBODY = Caller((), Who("", ""), known=False, stranger=True)  # until a request was judged
_ANYBODY = Caller(None, ANYBODY, known=False, stranger=True)


class Unprotected(Exception):
    """Everybody who reaches the server could do everything."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"other machines reach {host}, and nobody would need a token to read, write and delete here. Make one "
            "with `edgequeues token create NAME` first (and leave auth at auto or required), or say --insecure"
        )


class Auth:
    """Judges requests by what `control` says, which may change at any time.

    host: where the server listens. signins: of browsers; None: nobody can sign in. Raises Unprotected, ControlError.
    """

    def __init__(
        self,
        mode: Mode,
        host: str,
        control: Control,
        clock: Clock,
        *,
        insecure: bool = False,
        signins: SignIns | None = None,
    ) -> None:
        self._signins = signins
        self._mode = mode
        self._control = control
        self._clock = clock
        self._access = control.access()
        self._look_at = 0.0  # trio's time
        self._exposure: Exposure = (
            "local" if is_loopback(bare(host)) else "insecure" if insecure else "exposed"
        )
        if self._exposure == "exposed" and (mode == "off" or (mode == "auto" and not self._access.exists)):
            raise Unprotected(host)

    def caller(self, headers: Mapping[bytes, bytes], method: str = "GET") -> Caller:
        """Return who sent these headers, with a token or signed in; where there are both, the token counts.

        Raises Unauthenticated for a token that is none, and where one is needed; ForbiddenOrigin for a web page that
        has a browser use the sign-in of another.
        """
        if not self.needs_token(headers):
            return _ANYBODY if self._exposure == "insecure" else OWNER
        now_ms = self._clock.now_ms()
        anonymous = self._access.anonymous(now_ms)
        given = headers.get(b"authorization")
        token, why = None, "the request carries no token"
        if given is None:
            token, why = self._signed_in(headers, method, now_ms)
        elif given[: len(_BEARER)].lower() == _BEARER:
            token = self._access.find(given[len(_BEARER) :].strip().decode("latin-1"), now_ms)
            if token is None:
                raise Unauthenticated(_NO_TOKEN)
        if token is not None:
            who = Who(token.id, token.name)
            return Caller((token.grant, *anonymous), who, known=True, stranger=False)
        if not anonymous:
            raise Unauthenticated(why)
        return Caller(anonymous, ANYBODY, known=False, stranger=True)

    def needs_token(self, headers: Mapping[bytes, bytes]) -> bool:
        """Does whoever sent these headers need a token?"""
        if trio.current_time() >= self._look_at:
            self._look()
        if self._mode != "auto":
            return self._mode == "required"
        if self._access.exists or self._exposure == "exposed":
            return True
        # A proxy on this machine makes everybody look local.
        return self._exposure == "local" and (b"x-forwarded-for" in headers or b"forwarded" in headers)

    # -- signing in --------------------------------------------------------------------------------------

    def sign_in(self, headers: Mapping[bytes, bytes], text: str, peer: str) -> str:
        """Trade a token for a cookie, given as Set-Cookie has it. peer: from where.

        Raises Unauthenticated, ForbiddenOrigin, RateLimited after some that failed.
        """
        signins = self._open_to_browsers()
        signins.check_page(headers, "POST")
        signins.admit(peer)
        self.needs_token(headers)  # looks at the file
        token = self._access.find(text, self._clock.now_ms())
        if token is None:
            signins.failed(peer)
            log.warning("a sign-in failed: %s", _NO_TOKEN)
            raise Unauthenticated(_NO_TOKEN)
        log.info("signed in with the token %s (%s)", token.id, token.name)
        return signins.begin(token.id, headers)

    def sign_out(self, headers: Mapping[bytes, bytes]) -> str:
        """End the sign-in of a browser, if there is one; return the cookie to set. Raises ForbiddenOrigin."""
        signins = self._open_to_browsers()
        signins.check_page(headers, "POST")
        return signins.end(headers)

    def signed_in(self, headers: Mapping[bytes, bytes]) -> Who | None:
        """Who is signed in at the browser that sent these; None: nobody. Raises ForbiddenOrigin."""
        self.needs_token(headers)  # looks at the file
        token, _ = self._signed_in(headers, "GET", self._clock.now_ms())
        return None if token is None else Who(token.id, token.name)

    def _open_to_browsers(self) -> SignIns:
        if self._signins is None:
            raise Forbidden("nobody can sign in here")
        return self._signins

    def _signed_in(
        self, headers: Mapping[bytes, bytes], method: str, now_ms: int
    ) -> tuple[Token | None, str]:
        """The token that a cookie stands for; None: for none, and why."""
        given = None if self._signins is None else self._signins.given(headers)
        if self._signins is None or given is None:
            return None, "the request carries no token"
        self._signins.check_page(headers, method)
        token_id = self._signins.token_id(given)
        token = None if token_id is None else self._access.holding(token_id, now_ms)
        return token, "the sign-in is over"

    def _look(self) -> None:
        """Heed what the command line has written."""
        self._look_at = trio.current_time() + LOOK_S
        try:
            if self._control.changed():
                self._access = self._control.access()
        except ControlError as error:
            log.error("tokens stay as they were: %s", error)


def place(params: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the space and the queue that a path names. Raises InvalidDxn."""
    dxn = params.get("dxn")
    if dxn is None:
        return params.get("space"), params.get("queue")
    address = codec.address(dxn)
    return address.space, address.queue
