"""Which hosts a request may name, and which web pages may ask: what keeps a browser from being turned against us."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from edgequeues.core.hostnames import LOCAL_ORIGINS, bare, is_address, is_loopback
from edgequeues.http.problems import ForbiddenOrigin, Misdirected
from edgequeues.http.routes import Headers

WILDCARDS = ("0.0.0.0", "::")
PREFLIGHT_S = 600  # how long a browser may remember what it was allowed

REMEMBERED = 64
AUTHORITY = re.compile(rb"(\[[0-9a-f:.]+\]|[^:@/\s\[\]]+)(?::\d{0,5})?\Z", re.IGNORECASE)
_EXPOSED = b"etag, location, retry-after, www-authenticate"


class Hosts:
    """The names of one server. bound: the address it listens on.

    Any other name may be one that an attacker's DNS resolves to this machine. Where every address of the machine
    is bound, each address literal is taken: it takes no DNS, so it cannot be rebound.
    """

    def __init__(self, bound: str, allowed: Iterable[str] = ()) -> None:
        self._bound = bare(bound).lower()
        self._allowed = frozenset(host.lower().encode() for host in allowed)
        self._good: set[bytes] = set()

    def check(self, host: bytes) -> None:
        """Raises Misdirected unless this Host header's value names the server."""
        if host in self._good:
            return
        if not self._is_ours(host) and host.lower() not in self._allowed:
            raise Misdirected(f"Host is {_shown(host)}")
        _remember(self._good, host)

    def _is_ours(self, authority: bytes) -> bool:
        match = AUTHORITY.match(authority)
        if match is None:
            return False
        host = bare(match[1].decode("latin-1").lower())
        return is_loopback(host) or host == self._bound or (self._bound in WILDCARDS and is_address(host))


class Origins:
    """The web pages that may ask; programs send no Origin. See https://fetch.spec.whatwg.org/#http-cors-protocol."""

    def __init__(self, allowed: Sequence[str] = LOCAL_ORIGINS) -> None:
        self._all = "*" in allowed
        parts = [re.escape(one.lower()).replace(r":\*", r"(?::\d{1,5})?") for one in allowed]
        self._pattern = re.compile("|".join(parts) or r"\Z.")
        self._good: set[bytes] = set()

    def headers(self, origin: bytes, host: bytes) -> Headers:
        """Return what lets a page of `origin` read the answer. Raises ForbiddenOrigin."""
        if origin not in self._good:
            text = origin.decode("latin-1").lower()
            if not (self._all or self._pattern.fullmatch(text) or _authority(text) == host.lower()):
                raise ForbiddenOrigin(f"Origin is {_shown(origin)}")
            if _authority(text) != host.lower():  # which is true of this Host only
                _remember(self._good, origin)
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"origin"),
        ]


def preflight(asked: Mapping[bytes, bytes], methods: str) -> Headers:
    """Return what a browser is told that asks before it sends a request to a path with these methods."""
    found = [
        (b"access-control-allow-methods", methods.encode()),
        (b"access-control-max-age", b"%d" % PREFLIGHT_S),
    ]
    names = asked.get(b"access-control-request-headers")
    if names is not None:
        found.append((b"access-control-allow-headers", names))
    if asked.get(b"access-control-request-private-network") == b"true":
        found.append((b"access-control-allow-private-network", b"true"))
    return found


def _authority(origin: str) -> bytes:
    return origin.partition("://")[2].encode("latin-1")


def _remember(good: set[bytes], value: bytes) -> None:
    if len(good) < REMEMBERED:
        good.add(value)


def _shown(value: bytes) -> str:
    return repr(value[:100].decode("latin-1"))
