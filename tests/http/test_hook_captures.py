"""Requests as providers send them, replayed with their clock, secrets and addresses: each comes to what it states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from shards.testing import TrioClock
from tests.core.captures import NAMES, Capture, capture

from .asgi import Pairs
from .hooking import hooked, one_hook, pagerduty, written

AT_S = 1_767_225_600
BASE = "https://hooks.example.com"
ENV = {
    "pagerduty": ("PD",),
    "github": ("GH",),
    "slack": ("SLACK",),
    "stripe": ("STRIPE",),
    "telegram": ("TG",),
    "twilio": ("TWILIO",),
}
KEYS = {
    "pagerduty": "01EXAMPLEEVENT0000000000001",
    "github": "5a0c0000-0000-11f0-8000-00000000aaaa",
    "slack": "Ev0DUMMY01",
    "stripe": "evt_dummy_0001",
    "telegram": None,
    "twilio": "MMdummy0000000000000000000000000001",
}


def spec_of(name: str, one: Capture) -> str:
    verify = "token" if one.scheme == "token" else "hmac"
    return one_hook(path_of(one), verify, one.header, ENV[name][0])


def path_of(one: Capture) -> str:
    """The name of the webhook, as the sender's address has it."""
    return one.request.url.rpartition("/")[2]


def headers_of(one: Capture) -> Pairs:
    return list(one.request.headers)


@pytest.fixture
async def clock() -> TrioClock:
    return TrioClock(AT_S * 1_000)


@pytest.mark.parametrize("name", NAMES)
async def test_a_request_as_a_provider_sends_it_is_one_message(
    tmp_path: Path, clock: TrioClock, name: str
) -> None:
    one = capture(name)
    async with hooked(tmp_path, spec_of(name, one), clock=clock, public_base_url=BASE) as hooks:
        reply = await hooks.send(one.request.body, *headers_of(one), hook=path_of(one))
        assert reply.status == 202, reply.body
        key = reply.json()["idempotency_key"]
        assert key == KEYS[name] or (KEYS[name] is None and key)
        again = await hooks.send(one.request.body, *headers_of(one), hook=path_of(one))
        assert (again.status, again.json()["duplicate"]) == (202, True)
        [message] = await hooks.messages()
        assert_values(name, message["payload"], one)
        raw = (await hooks.client.get("/v1/dxn:queue:ops:Incoming")).body
        if name != "twilio":  # a form: its fields
            assert one.request.body in raw


def assert_values(name: str, payload: Any, one: Capture) -> None:
    """What must have come through whole."""
    if name == "github":
        assert payload["repository"]["id"] == 731094455820113921
    elif name == "telegram":
        assert payload["message"]["from"]["id"] == 9007199254740993
        assert payload["message"]["text"].endswith("\x07")
    elif name == "twilio":
        assert (payload["From"], payload["ToState"]) == ("+15550100001", "")
        assert payload["Body"] == "Hi \U0001f600 100% + sure & caf\u00e9"
    else:
        assert payload == json.loads(one.request.body)


async def test_pagerdutys_old_secret_holds_while_it_is_named(tmp_path: Path, clock: TrioClock) -> None:
    one = capture("pagerduty")
    old = spec_of("pagerduty", one).replace('"PD"', '["PD_OLD"]')
    async with hooked(tmp_path, old, clock=clock) as hooks:
        reply = await hooks.send(one.request.body, *headers_of(one), hook=path_of(one))
        assert reply.status == 202


async def test_stripes_request_is_stale_after_five_minutes_and_not_to_be_rewritten(
    tmp_path: Path, clock: TrioClock
) -> None:
    one = capture("stripe")
    async with hooked(tmp_path, spec_of("stripe", one), clock=clock) as hooks:
        small = json.dumps(json.loads(one.request.body), separators=(",", ":")).encode()
        assert (await hooks.send(small, *headers_of(one), hook="stripe")).status == 401
        await trio.sleep(301)
        assert (await hooks.send(one.request.body, *headers_of(one), hook="stripe")).status == 401
        assert await hooks.entries() == []


async def test_slacks_retry_is_new_where_the_first_attempt_never_came(
    tmp_path: Path, clock: TrioClock
) -> None:
    one = capture("slack")
    async with hooked(tmp_path, spec_of("slack", one), clock=clock) as hooks:
        unsigned = [(name, value) for name, value in headers_of(one) if name != b"x-slack-signature"]
        assert (await hooks.send(one.request.body, *unsigned, hook="slack")).status == 401
        assert (await hooks.send(one.request.body, *headers_of(one), hook="slack")).status == 202


async def test_a_storm_of_a_thousand_alerts_with_repeats_is_a_thousand_messages(
    tmp_path: Path, clock: TrioClock
) -> None:
    """One in ten is sent up to four times more; twenty senders; positions in the order of commits."""
    one = capture("pagerduty")
    template = json.loads(one.request.body)
    bodies: list[bytes] = []
    for number in range(1_000):
        template["event"]["id"] = f"E{number}"
        template["event"]["data"]["number"] = number
        bodies += [written(template)] * (1 + (number % 4 + 1 if number % 10 == 0 else 0))
    left = iter(bodies)
    statuses: list[int] = []
    async with hooked(tmp_path, spec_of("pagerduty", one), clock=clock) as hooks:

        async def sender() -> None:
            for body in left:
                reply = await hooks.send(body, pagerduty(body), hook=path_of(one))
                statuses.append(reply.status)

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(sender)
        assert statuses == [202] * len(bodies)
        page = (await hooks.client.get("/v1/dxn:queue:ops:Incoming?limit=1000")).json()
        ids = [entry["data"]["payload"]["event"]["id"] for entry in page["entries"]]
        assert (len(ids), len(set(ids))) == (1_000, 1_000)
        assert [entry["position"] for entry in page["entries"]] == sorted(
            entry["position"] for entry in page["entries"]
        )
