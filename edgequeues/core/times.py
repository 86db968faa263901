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


def moment_ms(moment: str | datetime | int) -> int:
    """Unix milliseconds of a moment: ISO 8601 text with Z or an offset, a datetime with a time zone, unix ms.

    What is below a millisecond is cut off, however many digits it has. Raises ValueError for what is no moment, as it
    has no offset: then it says what to give.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise ValueError(f"{moment!r} is no time: give ISO 8601 as in 2026-01-31T23:59:59Z") from None
    if isinstance(moment, datetime):
        if moment.utcoffset() is None:
            raise ValueError(
                f"{moment.isoformat()} may be any of several moments: give the time with Z or an offset, or a "
                "datetime that has a time zone"
            )
        return (moment - _EPOCH) // _MILLISECOND
    if isinstance(moment, bool) or not isinstance(moment, int):
        raise ValueError(f"{moment!r} is no time: give ISO 8601 text, a datetime or unix milliseconds")
    return moment
