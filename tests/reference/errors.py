"""Every error: its code, its status in each protocol, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable

from edgequeues.http import cloudflare_errors, dxos, problems
from edgequeues.http.problems import Refusal

from .tables import BY, table

INTRO = """# Errors

`code` is public and never renamed; clients switch on it. `retryable` means that the same request may succeed later,
unchanged; where a time is given it comes as `Retry-After`. Natively an error is a problem in the words of
[RFC 9457](https://www.rfc-editor.org/rfc/rfc9457), see [protocol/native.md](../protocol/native.md). What DXOS and
Cloudflare clients are told is in [protocol/dxos.md](../protocol/dxos.md) and
[protocol/cloudflare.md](../protocol/cloudflare.md): each has its own statuses where its clients need that, and
Cloudflare its own numbers.

"""


def page() -> str:
    """docs/reference/errors.md."""
    rows = sorted({_row(kind) for kind in problems.TABLE} | {_row(Exception)})
    heads = ("code", "status", "DXOS", "Cloudflare", "retryable", "after", "what to do")
    return BY + INTRO + table(heads, rows)


def _row(kind: type[BaseException]) -> tuple[str, ...]:
    # What a constructor wants does not matter here: status, code and remedy belong to the class.
    error = kind.__new__(kind)
    Exception.__init__(error)
    fault = problems.fault(error)
    retryable = fault is not problems.INTERNAL and bool(getattr(error, "retryable", False))
    remedy = problems.INTERNAL_DETAIL if fault is problems.INTERNAL else kind.__doc__ or ""
    return (
        f"`{fault.code}`",
        str(fault.status),
        str(_status(dxos.refuse, error)),
        _cloudflare(error),
        "yes" if retryable else "",
        "" if fault.retry_after_s is None else f"{fault.retry_after_s} s",
        remedy,
    )


def _status(refuse: Callable[[BaseException], Refusal], error: BaseException) -> int:
    return refuse(error).status


def _cloudflare(error: BaseException) -> str:
    refusal = cloudflare_errors.refuse(error)
    [told] = json.loads(refusal.body)["errors"]
    return f"{refusal.status}, {told['code']}"
