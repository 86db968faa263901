"""Which address of a host may be connected to: a public one, or one of a network that the settings list.

Whoever connects does so to the address that was looked at, so a name that means something else a moment later
(DNS rebinding) gains nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx
import trio

from edgequeues.core.hostnames import bare, is_address

Network = IPv4Network | IPv6Network


class Unreachable(Exception):
    """There is no address of the host that may be connected to; the message says why, without what may be secret."""


def networks(allowed: Sequence[str]) -> list[Network]:
    """Those of the entries that are networks."""
    return [ip_network(one) for one in allowed if "/" in one]


async def address(url: httpx.URL, private: Sequence[Network], remedy: str) -> str:
    """An address of a URL's host, which was allowed by the name it has there. Raises Unreachable.

    private: networks whose addresses it may have although they are not public. remedy: what to do about one that
    may not be had.
    """
    if is_address(bare(url.host)) or url.host == "localhost":
        return url.host
    try:
        found = await trio.socket.getaddrinfo(url.host, url.port or 443, type=trio.socket.SOCK_STREAM)
    except OSError as error:
        raise Unreachable(f"{shown(str(url))} cannot be reached: {error.strerror}") from error
    addresses = [str(one[4][0]) for one in found]
    for one in addresses:
        if _may(one, private):
            return one
    raise Unreachable(f"{shown(str(url))}: {url.host} is {addresses[0]}, which is not public; {remedy}")


def shown(url: str) -> str:
    """A URL without what may be secret in it."""
    return url.partition("?")[0]


def _may(text: str, private: Sequence[Network]) -> bool:
    found = ip_address(text.partition("%")[0])
    if isinstance(found, IPv6Address):  # which may only stand for one of the other kind
        found = found.ipv4_mapped or found.sixtofour or found
    is_public = found.is_global and not found.is_multicast
    return is_public or any(found in one for one in private)
