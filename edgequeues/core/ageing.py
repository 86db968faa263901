"""Which of several priorities is next when what has waited too long goes first."""

from __future__ import annotations

from collections.abc import Sequence


def order(ranks: Sequence[Sequence[tuple[int, int]]], starved_ts: int, limit: int) -> list[int]:
    """Positions of the first `limit` messages, in the order in which they are handed out.

    ranks: for each priority, the highest first, its messages in their order: position, and since when it has been
        ready (unix ms).
    starved_ts: of the first of each priority, one that has been ready since then or earlier goes before all others,
        the one that has waited longest; if there is none, the one of the highest priority goes.
    """
    gone = [0] * len(ranks)
    positions: list[int] = []
    while len(positions) < limit:
        first = [
            (messages[n], rank)
            for rank, (messages, n) in enumerate(zip(ranks, gone, strict=True))
            if n < len(messages)
        ]
        if not first:
            break
        starved = min(((since, rank) for (_, since), rank in first if since <= starved_ts), default=None)
        rank = first[0][1] if starved is None else starved[1]
        positions.append(ranks[rank][gone[rank]][0])
        gone[rank] += 1
    return positions
