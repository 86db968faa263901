"""How long to wait before a failed message is tried again, and when not to try any more."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

DELAY_MS_MAX = 365 * 86_400_000
DelayMs = Annotated[int, Meta(ge=0, le=DELAY_MS_MAX)]


class Backoff(Struct, frozen=True, forbid_unknown_fields=True):
    """Waits between attempts.

    initial_ms, max_ms: after failure n it waits min(initial_ms * 2^(n-1), max_ms).
    list_ms: if not empty, after failure n it waits the n-th of these, the last one for ever, and the two above do not
        count.
    jitter: each wait is shortened by a random part of it, up to this share. 0: exact.
    """

    initial_ms: DelayMs = 1_000
    max_ms: DelayMs = 60_000
    list_ms: Annotated[tuple[DelayMs, ...], Meta(max_length=64)] = ()
    jitter: Annotated[float, Meta(ge=0, le=1)] = 0.0


def delay_ms(policy: Backoff, failures: int, chance: float = 0.0) -> int:
    """Milliseconds to wait after the `failures`-th failure (1: the first). chance: from 0 to 1, for the jitter."""
    nth = max(failures, 1) - 1
    if policy.list_ms:
        wait = policy.list_ms[min(nth, len(policy.list_ms) - 1)]
    else:
        # The exponent is bounded first: 2**1_000_000 is no number to compute on the way to a minute.
        wait = min(policy.initial_ms << min(nth, 40), policy.max_ms)
    return wait - int(wait * policy.jitter * chance)


def exhausted(attempts: int, attempts_max: int | None) -> bool:
    """Was that the last attempt? attempts: deliveries started. attempts_max: deliveries in all; None: no end.

    Cloudflare's max_retries = N is attempts_max = N + 1.
    """
    return attempts_max is not None and attempts >= attempts_max
