"""Dead letters replayed, previewed and purged by filter, as the tests ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from edgequeues.models_letters import LetterFilter, Replayed
from edgequeues.space.dead_verbs import Matched, ReplayAsk, Replays
from edgequeues.space.shard import SpaceShard

from .world import Space

ALL = LetterFilter()


def turns(space: Space, ask: ReplayAsk, queue: str = "jobs-dlq") -> Iterator[Replays]:
    """Replay turn by turn to the end."""
    part = space.call(SpaceShard.replay_some, queue, ask)
    yield part
    while part.resume is not None:
        part = space.call(SpaceShard.replay_some, queue, ask, part.resume, part.through)
        yield part


def replay(space: Space, wanted: LetterFilter = ALL, per_second: float | None = None) -> list[Replayed]:
    return [one for part in turns(space, ReplayAsk(wanted, per_second=per_second)) for one in part.results]


def purge(space: Space, wanted: LetterFilter = ALL, queue: str = "jobs-dlq") -> int:
    part = space.call(SpaceShard.purge_letters, queue, wanted)
    count = part.count
    while part.resume is not None:
        part = space.call(SpaceShard.purge_letters, queue, wanted, part.resume, part.through)
        count += part.count
    return count


def preview(space: Space, wanted: LetterFilter = ALL, show: int = 3) -> Matched:
    return space.call(SpaceShard.preview, "jobs-dlq", wanted, show=show)


def outcomes(results: list[Replayed]) -> set[str]:
    return {one.outcome for one in results}
