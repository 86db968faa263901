"""Sign-ins of browsers: a random id in a cookie that stands for a token while the token holds, for 12 hours at most.

They are kept in memory, by the digest of their id and with nothing of the token but its id: a restart ends them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

import trio

from edgequeues.core.errors import RateLimited
from edgequeues.core.hostnames import is_loopback
from edgequeues.http.problems import ForeignPage

LASTS_S = 12 * 3600
SIGNINS_MAX = 1_000  # one more ends the oldest
FAILURES_MAX = 10  # of one peer in FAILURES_S
FAILURES_S = 60.0
PEERS_MAX = 1_024  # whose failures are remembered
ID_LENGTH_MAX = 128  # a longer one is none of ours, and is not hashed

SAFE = ("GET", "HEAD")
_OWN = (b"same-origin", b"none")  # none: typed by the user

Headers = Mapping[bytes, bytes]


class _SignIn(NamedTuple):
    token_id: str
    until: float  # trio's time


class SignIns:
    """Who is signed in.

    new_id: gives an id that nobody can guess. secure: are browsers to send it over TLS alone?
    """

    def __init__(self, new_id: Callable[[], str], *, secure: bool) -> None:
        self._new_id = new_id
        self._secure = secure
        self._by_digest: dict[bytes, _SignIn] = {}
        self._failures: dict[str, tuple[float, int]] = {}

    def begin(self, token_id: str, headers: Headers) -> str:
        """Sign in for a token; return the cookie as Set-Cookie has it."""
        self._drop_ended()
        if len(self._by_digest) >= SIGNINS_MAX:
            del self._by_digest[next(iter(self._by_digest))]
        new = self._new_id()
        self._by_digest[_digest(new.encode())] = _SignIn(token_id, trio.current_time() + LASTS_S)
        return self._cookie(headers, new, LASTS_S)

    def end(self, headers: Headers) -> str:
        """Sign out; return the cookie that replaces the one there is."""
        given = self.given(headers)
        if given is not None:
            self._by_digest.pop(_digest(given), None)
        return self._cookie(headers, "", 0)

    def given(self, headers: Headers) -> bytes | None:
        """The id that a request carries, which may be none of ours; None: it carries none."""
        cookies = headers.get(b"cookie")
        if cookies is None:
            return None
        wanted = self._name(headers).encode()
        for pair in cookies.split(b";"):
            name, _, value = pair.strip().partition(b"=")
            if name == wanted:
                return value
        return None

    def token_id(self, given: bytes) -> str | None:
        """The token that an id stands for; None: nobody signed in with it, or it is over."""
        found = self._by_digest.get(_digest(given)) if len(given) <= ID_LENGTH_MAX else None
        return None if found is None or trio.current_time() >= found.until else found.token_id

    def check_page(self, headers: Headers, method: str) -> None:
        """Raises ForeignPage unless a request that a browser adds the cookie to comes from a page of this server.

        Cookies know no ports: those of other servers on this machine get a browser to send it, too.
        """
        site, origin = headers.get(b"sec-fetch-site"), headers.get(b"origin")
        foreign = site is not None and site.lower() not in _OWN
        if not foreign and (self._is_own(origin, headers) if origin is not None else method in SAFE):
            return
        said = "none" if origin is None else ascii(origin[:100].decode("latin-1"))
        raise ForeignPage(f"the request would use the sign-in of a browser, and its Origin is {said}")

    def admit(self, peer: str) -> None:
        """Raises RateLimited where a peer has failed too often of late."""
        since, count = self._failures.get(peer, (0.0, 0))
        if count >= FAILURES_MAX and trio.current_time() < since + FAILURES_S:
            raise RateLimited(f"{FAILURES_MAX} sign-ins have failed within a minute: wait a minute")

    def failed(self, peer: str) -> None:
        """Remember that a peer gave a token that is none."""
        now = trio.current_time()
        since, count = self._failures.pop(peer, (now, 0))
        if now >= since + FAILURES_S:
            since, count = now, 0
        if len(self._failures) >= PEERS_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[peer] = (since, count + 1)

    def _drop_ended(self) -> None:
        """They end in the order in which they began."""
        now = trio.current_time()
        while self._by_digest:
            oldest = next(iter(self._by_digest))
            if now < self._by_digest[oldest].until:
                break
            del self._by_digest[oldest]

    def _is_own(self, origin: bytes, headers: Headers) -> bool:
        """Is it the origin of this server, as the browser knows it by the Host header?"""
        scheme, _, authority = origin.lower().partition(b"://")
        host = headers.get(b"host", b"").lower()
        if not host or authority != host:
            return False
        # Who can change what comes over plain HTTP must not act for who came over TLS.
        local = is_loopback(urlsplit("//" + host.decode("latin-1")).hostname or "")
        return scheme == b"https" or (scheme == b"http" and (local or not self._secure))

    def _name(self, headers: Headers) -> str:
        """By port, or two servers on one machine would end each other's sign-ins."""
        port = headers.get(b"host", b"").rpartition(b":")[2]
        name = f"edgequeues-{port.decode()}" if port.isdigit() else "edgequeues"
        return f"__Host-{name}" if self._secure else name

    def _cookie(self, headers: Headers, value: str, lasts_s: int) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{self._name(headers)}={value}; Max-Age={lasts_s}; Path=/; HttpOnly; SameSite=Strict{secure}"


def _digest(given: bytes) -> bytes:
    return sha256(given).digest()
