"""Names of hosts and origins, as they are written in settings."""

from __future__ import annotations

import pytest

from edgequeues.core.hostnames import LOCAL_ORIGINS, bare, is_address, is_loopback, is_origin


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "127.0.0.1",
        "127.9.8.7",
        "::1",
        "0:0:0:0:0:0:0:1",
    ],
)
def test_these_stay_inside_the_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",
        "::",
        "10.0.0.1",
        "example.org",
        "localhost.example.org",
        "mylocalhost",
        "127.0.0.1.example.org",
    ],
)
def test_these_may_lead_out_of_it(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["1.2.3.4", "::", "fe80::1"])
def test_an_address_is_one(host: str) -> None:
    assert is_address(host)


@pytest.mark.parametrize("host", ["", "localhost", "1.2.3", "1.2.3.4:80", "[::1]", "0x7f.1", "1.2.3.4 "])
def test_anything_else_is_none(host: str) -> None:
    assert not is_address(host)


def test_brackets_are_taken_off_an_ipv6_address() -> None:
    assert [bare(host) for host in ("[::1]", "::1", "localhost")] == ["::1", "::1", "localhost"]


@pytest.mark.parametrize(
    "text",
    [
        *LOCAL_ORIGINS,
        "*",
        "https://app.example",
        "http://a-b.example:80",
        "http://[fe80::1]:*",
        "HTTPS://App.example",
    ],
)
def test_these_are_origins(text: str) -> None:
    assert is_origin(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "app.example",
        "https://",
        "https://app.example/",
        "https://*.example",
        "https://app.example:x",
        "https://app.example:123456",
        "https://user@app.example",
        "ftp://app.example",
        "https://app.example\n",
        "**",
    ],
)
def test_these_are_not(text: str) -> None:
    assert not is_origin(text)
