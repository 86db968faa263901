"""What a webhook was sent is unpacked within bounds, and where it came from is said by those who may say so."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from edgequeues.core.errors import InvalidJson, TooLarge, UnsupportedMedia
from edgequeues.http.hook_body import FORM, Sources, json_of, unpacked

LIMIT = 100_000
GZIP = {b"content-encoding": b"gzip"}


def test_a_bomb_takes_no_more_room_than_its_bound() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    tracemalloc.start()
    with pytest.raises(TooLarge):
        unpacked(GZIP, bomb, LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * LIMIT


def test_what_just_fits_is_taken() -> None:
    body = b"x" * LIMIT
    assert unpacked(GZIP, gzip.compress(body), LIMIT) == body
    with pytest.raises(TooLarge):
        unpacked(GZIP, gzip.compress(body + b"x"), LIMIT)


def test_no_coding_and_its_name_mean_the_body_itself() -> None:
    assert unpacked({}, b"{}", LIMIT) == b"{}"
    assert unpacked({b"content-encoding": b"Identity"}, b"{}", LIMIT) == b"{}"
    assert unpacked({b"content-encoding": b"X-Gzip"}, gzip.compress(b"{}"), LIMIT) == b"{}"
    with pytest.raises(UnsupportedMedia):
        unpacked({b"content-encoding": b"gzip, gzip"}, b"", LIMIT)


def test_a_form_becomes_what_its_rule_says() -> None:
    assert json_of(FORM, b"payload=%7B%22a%22%3A1.50%7D", "payload") == b'{"a":1.50}'
    assert json_of(FORM, b"a=1&a=2&b=", "fields") == b'{"a":["1","2"],"b":""}'
    with pytest.raises(InvalidJson):
        json_of(FORM, b"payload=%7B", "payload")


@pytest.mark.parametrize(
    ("peer", "forwarded", "source"),
    [
        ("10.0.0.1", ["1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", ["6.6.6.6, 1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", ["6.6.6.6", "1.2.3.4, 10.0.0.2"], "1.2.3.4"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["junk, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("9.9.9.9", ["1.2.3.4"], "9.9.9.9"),
        ("", ["1.2.3.4"], ""),
    ],
)
def test_the_source_is_the_last_address_that_is_no_trusted_proxy(
    peer: str, forwarded: list[str], source: str
) -> None:
    headers = [(b"x-forwarded-for", text.encode()) for text in forwarded]
    assert Sources(["10.0.0.0/8"]).of(peer, headers) == source
