"""Who traces a namespace is told of each call, in the task that made it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shards.clock import SystemClock
from shards.namespace import open_namespace
from shards.shard import Shard
from shards.testing import InlineDisk
from shards.tracing import Called


class Teller(Shard):
    """Does little, or raises."""

    def add(self, text: str) -> str:
        return text

    def fail(self) -> None:
        raise ValueError("no")


async def test_a_call_is_told_of_once_with_its_times_in_order(tmp_path: Path) -> None:
    seen: list[Called] = []
    opened = open_namespace(Teller, tmp_path, clock=SystemClock(), disk=InlineDisk(), tracer=seen.append)
    async with opened as namespace:
        assert await namespace.ref("one").call(Teller.add, "x") == "x"
        with pytest.raises(ValueError, match="no"):
            await namespace.ref("one").call(Teller.fail)
    added, failed = seen
    assert (added.shard, added.verb, added.error) == ("one", "add", None)
    assert added.ran_s is not None
    assert added.asked_s <= added.ran_s <= added.done_s <= added.answered_s
    assert failed.verb == "fail"
    assert isinstance(failed.error, ValueError)
