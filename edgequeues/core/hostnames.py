"""Names of hosts and origins of web pages: which of them stay inside this machine, and how settings write them."""

from __future__ import annotations

import re
from ipaddress import ip_address

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
LOCAL_ORIGINS = tuple(f"{scheme}://{host}:*" for scheme in ("http", "https") for host in _LOCAL_HOSTS)

_HOST = re.compile(r"(?:https?://)?(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?:\d{1,5}|\*))?", re.IGNORECASE)


def bare(host: str) -> str:
    """The host without the brackets of an IPv6 address."""
    return host.removeprefix("[").removesuffix("]")


def is_address(host: str) -> bool:
    """Is this an IP address, without brackets?"""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Does `host`, a name or an address without brackets, stay inside this machine?"""
    host = host.lower().removesuffix(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return is_address(host) and ip_address(host).is_loopback


def is_origin(text: str) -> bool:
    """Is this `*`, or scheme, host and port of a page, where the port may be `*`?"""
    return text == "*" or _ORIGIN.fullmatch(text) is not None


def is_host(text: str) -> bool:
    """Is this a host, perhaps with a scheme before it and a port behind?"""
    return _HOST.fullmatch(text) is not None
