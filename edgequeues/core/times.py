"""Times as text, ISO 8601 in UTC, and as unix milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def utc(unix_ms: int, digits: Literal["milliseconds", "microseconds"] = "milliseconds") -> str:
    """Unix milliseconds as text that ends in Z."""
    moment = _EPOCH + unix_ms * _MILLISECOND
    return moment.isoformat(timespec=digits).replace("+00:00", "Z")


def unix_ms(text: str) -> int:
    """Unix milliseconds of a text of the form 2026-01-31T23:59:59[.999]Z; what is below them is cut off.

    Raises ValueError for a day or an hour that there is not, and for any other offset than Z.
    """
    if not text.endswith("Z"):
        raise ValueError("no time that ends in Z")
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND
