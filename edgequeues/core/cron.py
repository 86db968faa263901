"""Recurring times: when a cron expression comes round in a time zone, by the rules of Debian's cron.

An expression has five fields: minute, hour, day of month, month, day of week. Where both kinds of day are given,
either will do; where one of them begins with `*`, both must match. Where minute and hour are fixed, each time comes
once, also when clocks are set: what falls into the hour that is left out comes at its end, what falls into the
hour that there is twice comes the first time. Where one of the two begins with `*`, it goes by the clock as it runs:
nothing in the hour that is left out, and twice in the one that there is twice.
"""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

CRON_MAX: Final = 200  # characters of an expression
MINUTE_MS: Final = 60_000  # times are whole minutes
UTC: Final = "UTC"
EXAMPLE: Final = "Write five fields: minute, hour, day of month, month, day of week, as in `0 3 * * *`."
DAY: Final = "Write a day that there is; `L` is the last one of each month, as in `0 3 L * *`."

_FIRST = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIELDS = {  # by cronsim's words for them: what may stand in each
    "minute": "A minute is 0 to 59",
    "hour": "An hour is 0 to 23",
    "day-of-month": "A day of a month is 1 to 31, `L` is the last",
    "month": "A month is 1 to 12, or `JAN` to `DEC`",
    "day-of-week": "A day of a week is 0 to 7, from Sunday to Sunday, or `SUN` to `SAT`",
}
_LOCAL = {"localtime", "Factory"}  # whatever this machine has been told
_FORMS = "; also lists as `1,15`, ranges as `1-5`, and steps as `*/15`."


class CronFault(Exception):
    """An expression or a time zone that will not do. what, remedy: in words."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what, self.remedy = what, remedy
        super().__init__(f"{what}. {remedy}")


def check(text: str) -> None:
    """Raises CronFault for what is no expression, and for one whose time never comes."""
    fields = text.split()
    if len(text) > CRON_MAX or len(fields) != 5:
        what = f"a cron expression has five fields, and `{text[:CRON_MAX]}` has {len(fields)}"
        raise CronFault(what, EXAMPLE)
    if _is_read(text) and next_after(text, UTC, 0) is not None:
        return
    for index, (word, remedy) in enumerate(_FIELDS.items()):
        alone = " ".join("*" if at != index else one for at, one in enumerate(fields))
        if not _is_read(alone):
            what = f"`{fields[index]}` is no {word.replace('-', ' ')} of a cron expression"
            raise CronFault(what, remedy + _FORMS)
    raise CronFault(f"`{text}` never comes: no year has such a day", DAY)


def zones() -> frozenset[str]:
    """The time zones there are, by their names in the tz database."""
    return _zones()


def next_after(text: str, zone: str, at_ms: int) -> int | None:
    """Unix ms of the first time after unix ms `at_ms`; None: there is none in fifty years. Raises CronFault."""
    from cronsim import CronSim

    try:
        start = (_FIRST + dt.timedelta(seconds=at_ms // 1_000)).astimezone(_zone(zone))
        for found in CronSim(text, start):
            found_ms = round(found.timestamp()) * 1_000
            if found_ms > at_ms:  # of an hour that there is twice, the library may give what was before
                return found_ms
    except OverflowError:  # after the year 9999
        return None
    return None


def latest(text: str, zone: str, first_ms: int, at_ms: int) -> int:
    """The last time that is not after unix ms `at_ms`; `first_ms` is such a time. Raises CronFault.

    It asks for some twenty times, however long ago the first one is.
    """
    best, none_after = first_ms, at_ms
    found = next_after(text, zone, best)
    while found is not None and found <= at_ms:
        best = found
        while none_after - best > MINUTE_MS:
            middle = (best + none_after) // 2
            found = next_after(text, zone, middle)
            if found is not None and found <= at_ms:
                best = found
            else:
                none_after = middle
        found = next_after(text, zone, best)
    return best


def _is_read(text: str) -> bool:
    from cronsim import CronSim, CronSimError

    try:
        CronSim(text, _FIRST)
    except CronSimError:
        return False
    return True


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise CronFault(f"this machine knows no time zone `{name}`", "Install the package tzdata.") from None


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones() - _LOCAL)
