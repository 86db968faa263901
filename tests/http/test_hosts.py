"""Only this machine: what may be bound, asked for, and linked from."""

from __future__ import annotations

import pytest

from edgequeues.http.hosts import is_own_origin, names_this_machine, require_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_loopback_may_be_bound(host: str) -> None:
    assert require_loopback(host) == host.strip("[]")


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "", "localhost.example.org", "[::]"]
)
def test_anything_else_may_not_be_bound_and_the_error_says_why(host: str) -> None:
    with pytest.raises(ValueError, match=r"is not a loopback address.*no access tokens"):
        require_loopback(host)


@pytest.mark.parametrize(
    "authority",
    [b"localhost", b"LocalHost:80", b"127.0.0.1:8700", b"[::1]:1", b"[::1]", b"a.localhost", b"127.0.0.1:"],
)
def test_a_host_header_may_name_this_machine(authority: bytes) -> None:
    assert names_this_machine(authority)


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
    assert not names_this_machine(authority)


@pytest.mark.parametrize(
    "origin", [b"http://localhost", b"https://localhost:3000", b"http://127.0.0.1:8700", b"http://[::1]:5"]
)
def test_pages_of_this_machine_are_own(origin: bytes) -> None:
    assert is_own_origin(origin)


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
    assert not is_own_origin(origin)
