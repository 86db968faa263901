"""Which hosts may be bound, named in a request, and named as the origin of a web page: loopback only."""

from __future__ import annotations

import re
from ipaddress import ip_address

ORIGIN = re.compile(rb"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?\Z")
AUTHORITY = re.compile(rb"(\[[0-9a-f:.]+\]|[^:@/\s\[\]]+)(?::\d{0,5})?\Z", re.IGNORECASE)


def is_loopback(host: str) -> bool:
    """Does `host`, a name or an address without brackets, stay inside this machine?"""
    host = host.lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def require_loopback(host: str) -> str:
    """Return `host` without brackets. Raises ValueError if other machines could reach what is bound there."""
    bare = host.removeprefix("[").removesuffix("]")
    if not is_loopback(bare):
        raise ValueError(
            f"{host} is not a loopback address, and anybody who reaches this server may read and write: "
            "there are no access tokens yet. Bind 127.0.0.1, ::1 or localhost, and let a proxy that checks "
            "who is asking face the network."
        )
    return bare


def names_this_machine(authority: bytes) -> bool:
    """Is a Host header's value loopback? Any other name may be one that an attacker resolves to 127.0.0.1."""
    match = AUTHORITY.match(authority)
    return match is not None and is_loopback(match[1].decode("latin-1").removeprefix("[").removesuffix("]"))


def is_own_origin(origin: bytes) -> bool:
    """May a page of this origin call the server? Web pages send Origin; programs do not."""
    return ORIGIN.match(origin) is not None
