"""A fault of consumer daemons whose answer is the space's: an attempt that is given up and finished at once."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from edgequeues.models import ConsumerConfig, Message

from .jobs import Jobs
from .world import Space

ROUNDS = 1_000
LEASE_MS = 1_000


@pytest.mark.parametrize("even_stale", [False, True])
def test_cd_s06_sweep_and_ack_of_one_moment_leave_each_message_in_one_place(
    space: Space, even_stale: bool
) -> None:
    """The ack, the sweep and the pull of another worker come in each order, just before, at or after the lease's end.

    Half of the attempts are the last ones, so that a lapse makes a dead letter.
    """
    chance = random.Random(6)
    jobs = Jobs(space, ConsumerConfig(attempts_max=2, lease_ms=LEASE_MS))
    ends: Counter[str] = Counter()
    for round in range(ROUNDS):
        [id] = jobs.push(str(round))
        start_ms = jobs.passed
        if chance.random() < 0.5:
            jobs.fail(jobs.one(), delay_ms=0)
        held = jobs.one()
        buried = len(jobs.dlq.letters()) if held.attempts == 2 else 0
        jobs.at(start_ms + LEASE_MS + chance.choice((-1, 0, 1)))
        acked, again = False, list[Message]()
        for step in chance.sample(("ack", "sweep", "pull"), 3):
            if step == "ack":
                acked = jobs.ack(held, even_stale=even_stale) == ["done"]
            elif step == "sweep":
                jobs.ring()
            else:
                again = jobs.pull()
        dead = held.attempts == 2 and len(jobs.dlq.letters()) > buried
        back = not dead and not acked
        assert [acked, dead, back].count(True) == 1, id
        left = sum(jobs.states.values())
        assert left == (1 if back else 0)
        assert jobs.ack(held) != ["done"] or back
        for message in again if back else []:
            jobs.ack(message)
        ends["acked" if acked else "dead" if dead else "back"] += 1
        jobs.at(start_ms + 3 * LEASE_MS)
        for message in jobs.pull():
            jobs.ack(message)
        assert jobs.states == {}
    # Where late acks count, one that comes after the lapse still takes the message from whoever has it now.
    assert set(ends) == ({"acked", "dead"} if even_stale else {"acked", "dead", "back"})
    assert min(ends.values()) > ROUNDS / 20
