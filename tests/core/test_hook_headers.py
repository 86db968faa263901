from __future__ import annotations

import pytest

from edgequeues.core.signatures import KEPT_HEADERS, NEVER_KEPT, kept, never_kept
from tests.core.captures import NAMES, capture


def test_headers_are_kept_by_the_list_and_the_hooks_own() -> None:
    sent = [
        (b"content-type", b"application/json"),
        (b"x-custom", b"1"),
        (b"x-other", b"2"),
        (b"x-github-event", b"push"),
    ]
    assert kept(sent) == {"content-type": "application/json", "x-github-event": "push"}
    assert kept(sent, ["X-Custom"])["x-custom"] == "1"


@pytest.mark.parametrize("name", NAMES)
def test_no_signature_and_no_secret_of_a_provider_is_kept(name: str) -> None:
    found = capture(name)
    assert found.header.lower() not in kept(found.request.headers, [found.header])
    assert "content-type" in kept(found.request.headers)


@pytest.mark.parametrize(
    "name",
    [
        *NEVER_KEPT,
        "Authorization",
        "X-Acme-Signature",
        "x-acme-signature-256",
        "x-shared-secret",
        "x-api-key",
        "x-auth-token",
        "x-goog-channel-token",
        "cookie",
        "cookies",
    ],
)
def test_what_sounds_secret_is_not_kept_even_when_asked_for(name: str) -> None:
    assert never_kept(name)
    assert kept([(name.lower().encode(), b"s")], [name]) == {}


def test_the_lists_do_not_contradict_each_other() -> None:
    assert not any(never_kept(name) for name in KEPT_HEADERS)
    assert {name.lower() for name in KEPT_HEADERS | NEVER_KEPT} == KEPT_HEADERS | NEVER_KEPT
    assert not never_kept("x-tokenizer-version")


def test_the_header_a_hook_is_told_its_secret_in_is_not_kept() -> None:
    sent = [(b"x-password-hint", b"1"), (b"x-hush", b"s")]
    assert kept(sent, ["X-Hush"]) == {"x-hush": "s"}
    assert kept(sent, ["X-Hush"], never={"x-hush"}) == {}


def test_a_header_sent_twice_is_one_list_and_bytes_are_latin_1() -> None:
    assert kept([(b"x-request-id", b"a"), (b"x-request-id", b"\xff")]) == {"x-request-id": "a, \u00ff"}


def test_what_is_too_long_is_left_out_whole_and_named() -> None:
    assert kept([(b"user-agent", b"x" * 1024)]) == {"user-agent": "x" * 1024}
    assert kept([(b"user-agent", b"x" * 1025), (b"x-request-id", b"r")]) == {
        "x-request-id": "r",
        "x-edgequeues-left-out": "user-agent",
    }
    assert kept([(b"user-agent", b"x" * 600)] * 2) == {"x-edgequeues-left-out": "user-agent"}


def test_of_too_many_the_first_are_kept_and_the_others_named() -> None:
    names = [f"x-{number}" for number in range(70)]
    found = kept([(name.encode(), b"1") for name in names], names)
    assert list(found) == [*names[:64], "x-edgequeues-left-out"]
    assert found["x-edgequeues-left-out"] == ", ".join(names[64:])
