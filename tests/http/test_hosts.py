"""Only this machine: what may be bound, asked for, and linked from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from edgequeues.core.hostnames import LOCAL_ORIGINS
from edgequeues.http.hosts import Hosts, Origins
from edgequeues.http.problems import ForbiddenOrigin, Misdirected


def names(authority: bytes, *, bound: str = "127.0.0.1", allowed: Sequence[str] = ()) -> bool:
    hosts = Hosts(bound, allowed)
    try:
        hosts.check(authority)
        hosts.check(authority)  # remembered
    except Misdirected:
        return False
    return True


def may_ask(origin: bytes, *allowed: str, host: bytes = b"localhost:8700") -> bool:
    try:
        headers = dict(Origins(allowed or LOCAL_ORIGINS).headers(origin, host))
    except ForbiddenOrigin:
        return False
    return headers[b"access-control-allow-origin"] == origin


@pytest.mark.parametrize(
    "authority",
    [b"localhost", b"LocalHost:80", b"127.0.0.1:8700", b"[::1]:1", b"[::1]", b"a.localhost", b"127.0.0.1:"],
)
def test_a_host_header_may_name_this_machine(authority: bytes) -> None:
    assert names(authority)


@pytest.mark.parametrize(
    "authority",
    [
        b"",
        b"example.org",
        b"192.168.0.1:8700",
        b"localhost.example.org",
        b"127.0.0.1.example.org",
        b"localhost@example.org",
        b"localhost:8700/x",
        b"localhost:x",
        b"::1",
        b"[::1",
        b"[localhost]",
        b"0.0.0.0",
        b"\xff",
    ],
)
def test_any_other_host_header_does_not(authority: bytes) -> None:
    assert not names(authority)


@pytest.mark.parametrize(
    "origin", [b"http://localhost", b"https://localhost:3000", b"http://127.0.0.1:8700", b"http://[::1]:5"]
)
def test_pages_of_this_machine_are_own(origin: bytes) -> None:
    assert may_ask(origin)


@pytest.mark.parametrize(
    "origin",
    [
        b"null",
        b"",
        b"http://example.org",
        b"http://localhost.example.org",
        b"file://",
        b"http://localhost:3000/x",
        b"http://localhost\n",
    ],
)
def test_pages_of_other_origins_are_not(origin: bytes) -> None:
    assert not may_ask(origin)
