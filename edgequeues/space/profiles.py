"""Profiles: settings of a queue and of its consumer under one name, where nothing else is said."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from edgequeues import inbound
from edgequeues.core.backoff import Backoff
from edgequeues.core.errors import InvalidRequest
from edgequeues.models import WORK_QUEUE, ConsumerConfig, QueueConfig

DAY_MS = 86_400_000


class Profile(NamedTuple):
    """A work queue, and the rules of its consumer `default`."""

    queue: QueueConfig
    consumer: ConsumerConfig


WORK = Profile(WORK_QUEUE, ConsumerConfig())

# Events that are handed on to a consumer elsewhere: it is patient, and what failed comes again at once.
SWITCHBOARD = Profile(
    WORK_QUEUE,
    ConsumerConfig(
        lease_ms=30_000,
        batch=32,
        attempts_max=10,
        backoff=Backoff(initial_ms=0, max_ms=0),
        dead_letter_body="envelope",
    ),
)

# Calls of others, handled in the order they came in; a sender that is too fast is told so.
WEBHOOK = Profile(
    msgspec.structs.replace(WORK_QUEUE, max_age_ms=DAY_MS, depth_max=10_000),
    ConsumerConfig(ordering="fifo", batch=10),
)

# Messages of people for sessions: each session's in order, tried until its session is over, and kept a while then.
INBOUND = Profile(
    msgspec.structs.replace(WORK_QUEUE, sessions=True, retain_acked_ms=inbound.KEPT_MS),
    ConsumerConfig(
        ordering="per_key",
        lease_ms=inbound.LOCK_MS,
        attempts_max=None,
        backoff=Backoff(list_ms=inbound.RETRIES_MS),
        dead_letters="",
    ),
)

PROFILES = {"work": WORK, "switchboard": SWITCHBOARD, "webhook": WEBHOOK, "inbound": INBOUND}


def named(name: object) -> Profile:
    """The profile of that name. Raises InvalidRequest."""
    found = PROFILES.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidRequest(f"profile must be one of {', '.join(PROFILES)}")
    return found
