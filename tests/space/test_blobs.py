"""The rows of blobs: how long they are kept, and what is told of them."""

from __future__ import annotations

import pytest

from edgequeues.blobs.about import Blob
from edgequeues.core.errors import BlobConflict, BlobNotFound, LinkExpired, LinkInvalid
from edgequeues.space.shard import SpaceShard
from shards.testing import Direct, FakeClock

BUCKET, RETENTION_MS = "some-files", 86_400_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def space(clock: FakeClock) -> Direct[SpaceShard]:
    return Direct(SpaceShard, clock=clock)


def keep(space: Direct[SpaceShard], key: str = "a") -> Blob:
    blob = Blob("event", "email", "text/plain", bucket=BUCKET, key=key, size=5, sha256="00" * 32)
    return space.call(SpaceShard.keep_blob, blob, RETENTION_MS)


def test_a_blob_is_kept_as_long_as_the_last_of_its_links_lives(
    space: Direct[SpaceShard], clock: FakeClock
) -> None:
    made = keep(space)
    assert made.kept_until == made.created + RETENTION_MS
    for lifetime_ms, margin_ms, longer in (
        (1_000, 0, False),
        (2 * RETENTION_MS, 7, True),
        (RETENTION_MS, 0, True),
    ):
        before = space.call(SpaceShard.blob, BUCKET, "a").kept_until
        signed = space.call(SpaceShard.sign_blob, BUCKET, "a", lifetime_ms, margin_ms)
        assert signed.expires == clock.now_ms() + lifetime_ms
        after = space.call(SpaceShard.blob, BUCKET, "a").kept_until
        assert after == max(before, signed.expires + margin_ms)
        assert (after > made.kept_until) == longer


def test_a_space_takes_no_blob_twice(space: Direct[SpaceShard]) -> None:
    keep(space)
    with pytest.raises(BlobConflict):
        keep(space)


def test_the_alarm_rings_when_the_first_is_to_go_and_again_until_its_bytes_are_gone(
    space: Direct[SpaceShard], clock: FakeClock
) -> None:
    keep(space)
    clock.advance(RETENTION_MS // 2)
    keep(space, "b")
    clock.advance(RETENTION_MS // 2)
    for _ in range(3):
        assert space.alarm_due()
        space.run_alarm()
        assert space.call(SpaceShard.doomed_blobs, 10) == [(BUCKET, "a")]
        assert not space.alarm_due()
        clock.advance(11_000)
    space.call(SpaceShard.forget_blob, BUCKET, "a")
    space.call(SpaceShard.forget_blob, BUCKET, "b")  # which is still there
    assert space.call(SpaceShard.blob, BUCKET, "b").key == "b"
    assert space.call(SpaceShard.find_blob, BUCKET, "a") is None


def test_links_of_one_space_are_none_of_another(clock: FakeClock) -> None:
    """Even where both have the same key, as copies of a file do."""
    one, other = (Direct(SpaceShard, clock=clock, name=name) for name in ("one", "other"))
    keep(one)
    keep(other)
    signed = one.call(SpaceShard.sign_blob, BUCKET, "a", 1_000)
    assert one.call(SpaceShard.linked_blob, BUCKET, "a", signed.expires, signed.text).key == "a"
    with pytest.raises(LinkInvalid):
        other.call(SpaceShard.linked_blob, BUCKET, "a", signed.expires, signed.text)
    clock.advance(1_000)
    with pytest.raises(LinkExpired):
        one.call(SpaceShard.linked_blob, BUCKET, "a", signed.expires, signed.text)


def test_what_is_doomed_is_there_for_nobody(space: Direct[SpaceShard]) -> None:
    keep(space)
    signed = space.call(SpaceShard.sign_blob, BUCKET, "a", 1_000)
    space.call(SpaceShard.doom_blob, BUCKET, "a")
    for ask in (
        lambda: space.call(SpaceShard.blob, BUCKET, "a"),
        lambda: space.call(SpaceShard.sign_blob, BUCKET, "a", 1_000),
        lambda: space.call(SpaceShard.linked_blob, BUCKET, "a", signed.expires, signed.text),
        lambda: space.call(SpaceShard.doom_blob, BUCKET, "a"),
    ):
        with pytest.raises(BlobNotFound):
            ask()
    assert space.call(SpaceShard.blobs_of, "event", ("", ""), 10) == []
