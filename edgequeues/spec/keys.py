"""Which keys each block of a spec may have, in the order in which they are printed: that of the fields in ir.py."""

from __future__ import annotations

from typing import Literal

from edgequeues.spec.faults import listed, suggest

Form = Literal[
    "value", "block", "fields", "named"
]  # `key: ...`, `key { key: ... }`, `key { name: ... }`, `key X {`

KEYS: dict[str, dict[str, Form]] = {
    "app": {"queue": "named", "webhook": "named", "command": "named", "schedule": "named"},
    "queue": {
        "message_type": "fields",
        "ordering": "value",
        "priority": "value",
        "idempotency_key": "value",
        "filter": "value",
        "schedule": "value",
        "delay_ms": "value",
        "on_invalid": "value",
        "rate_limit": "block",
        "retention": "block",
        "delivery": "block",
        "map_to": "value",
    },
    "rate_limit": {"per_second": "value", "burst": "value", "key": "value"},
    "retention": {"max_age_seconds": "value", "max_depth": "value"},
    "delivery": {
        "max_attempts": "value",
        "initial_backoff_ms": "value",
        "max_backoff_ms": "value",
        "backoff_ms": "value",
        "jitter": "value",
        "dead_letter_queue": "value",
        "lease_ms": "value",
        "batch": "value",
        "concurrency": "value",
    },
    "webhook": {
        "verify_hmac": "block",
        "verify_token": "block",
        "verify": "value",
        "queue": "value",
        "on": "value",
        "allow_ips": "value",
        "headers": "value",
        "filter": "value",
        "idempotency_key": "value",
        "for_each": "value",
        "answer": "value",
        "message": "fields",
    },
    "verify_hmac": {
        "header": "value",
        "secret_env": "value",
        "scheme": "value",
        "algo": "value",
        "encoding": "value",
        "prefix": "value",
        "timestamp_header": "value",
        "tolerance_seconds": "value",
    },
    "verify_token": {"header": "value", "secret_env": "value"},
    "command": {"input": "fields", "run": "value", "secret_env": "value", "timeout_ms": "value"},
    "schedule": {
        "cron": "value",
        "queue": "value",
        "timezone": "value",
        "message": "fields",
        "missed": "value",
    },
}
BLOCKS = frozenset({"app"} | {key for keys in KEYS.values() for key, form in keys.items() if form != "value"})
VALUES = frozenset(key for keys in KEYS.values() for key, form in keys.items() if form == "value") - BLOCKS
_SHAPES = {
    "value": "`{0}: ...`",
    "block": "`{0} {{ key: ... }}`",
    "fields": "`{0} {{ name: ... }}`",
    "named": "`{0} Name {{ ... }}`",
}


def shape(key: str, form: Form) -> str:
    """How a key is written."""
    return _SHAPES[form].format(key)


def elsewhere(key: str, kind: str) -> str:
    """The remedy for a key that this kind of block does not have."""
    close = suggest(key, KEYS[kind])
    owners = [owner for owner, keys in KEYS.items() if key in keys]
    if owners:
        return f"It belongs in {listed(f'{owner} {{}}' for owner in owners)}."
    if close:
        return f"Did you mean `{close}`?"
    everywhere = suggest(key, [name for keys in KEYS.values() for name in keys])
    if everywhere:
        owners = [owner for owner, keys in KEYS.items() if everywhere in keys]
        return f"Did you mean `{everywhere}`, which belongs in {listed(f'{owner} {{}}' for owner in owners)}?"
    return f"`{kind}` has {listed(KEYS[kind], 'and')}."
