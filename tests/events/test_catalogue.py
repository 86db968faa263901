"""The catalogue of faults: the codes that are agreed on, and the page that lists them."""

from __future__ import annotations

from pathlib import Path

from edgequeues.daemon import contract
from edgequeues.events.catalogue import CATALOGUE, table

PAGE = Path(__file__).parents[2] / "docs/protocol/events.md"


def test_every_code_of_the_catalogue_says_whether_it_is_tried_again() -> None:
    assert {code: one.retryable for code, one in CATALOGUE.items()} == {
        "EMAIL_PARSE_FAILED": False,
        "R2_PUT_FAILED": True,
        "QUEUE_PUBLISH_FAILED": True,
        "TWILIO_SIGNATURE_INVALID": False,
        "MMS_MEDIA_TOO_LARGE": False,
        "MMS_FETCH_FAILED": True,
        "CONSUMER_HANDLER_ERROR": True,
        "REPLY_EMAIL_SEND_FAILED": True,
        "REPLY_SMS_SEND_FAILED": True,
        "OUTBOUND_UNAUTHORIZED": False,
        "POLICY_VIOLATION": False,
        "MALFORMED_EVENT": False,
    }


def test_the_page_has_the_catalogue_as_it_is() -> None:
    assert table() in PAGE.read_text()


def test_what_handlers_raise_has_codes_of_the_catalogue() -> None:
    assert CATALOGUE[contract.TryAgain.code].retryable
    assert not CATALOGUE[contract.GiveUp.code].retryable
