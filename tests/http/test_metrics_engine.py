"""What `GET /metrics` tells of queues, requests and the engine, and what it costs those it looks at."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families as parsed

from edgequeues.app import open_app
from edgequeues.http.server import Server
from edgequeues.measures import Histogram
from edgequeues.settings import Settings
from shards.limits import Limits
from shards.testing import InlineDisk, TrioClock

from .asgi import Client

EXAMPLES = Path(__file__).parents[2] / "examples/monitoring"
GUIDE = Path(__file__).parents[2] / "docs/guides/monitoring.md"
JOBS = "/v1/dxn:queue:demo:jobs"
ORDER = (
    *("dialect", "route", "method", "status"),
    *("space", "queue", "consumer", "state", "how", "reason"),
    *("cause", "source", "le"),
)


@pytest.fixture
async def client(server: Server) -> Client:
    """A client of the app itself: no front is in the way of numbers."""
    return Client(server)


async def scraped(client: Client) -> dict[tuple[str, str], float]:
    """Every sample by its name and its labels' values, joined."""
    reply = await client.get("/metrics")
    assert reply.status == 200, reply.body
    families = parsed(reply.body.decode())
    return {
        (
            one.name.removeprefix("edgequeues_"),
            " ".join(one.labels[label] for label in ORDER if label in one.labels),
        ): one.value
        for family in families
        for one in family.samples
    }


async def work(client: Client) -> None:
    """Six messages: acked, retried, lapsed, given up, delayed, waiting."""
    entries = [{"data": n} for n in range(5)] + [{"data": 5, "delay_ms": 3_600_000}]
    await client.post(f"{JOBS}/push", {"entries": entries})
    await trio.sleep(7)
    pulled = (await client.post(f"{JOBS}/pull", {"batch": 4, "lease_ms": 10_000})).json()["messages"]
    leases = [one["lease"] for one in pulled]
    await trio.sleep(2)
    await client.post(f"{JOBS}/ack", {"leases": leases[:1]})
    await client.post(
        f"{JOBS}/retry",
        {
            "retries": [
                {"lease": leases[1], "delay_ms": 600_000},
                {"lease": leases[2], "permanent": True, "error": "no"},
            ]
        },
    )
    await trio.sleep(20)


async def test_a_queue_is_told_of_by_state_and_by_what_became_of_its_messages(client: Client) -> None:
    await work(client)
    now = await scraped(client)
    jobs = "demo jobs default"
    states = {state: now["queue_messages", f"{jobs} {state}"] for state in ("scheduled", "ready", "backoff")}
    assert states == {"scheduled": 1, "ready": 2, "backoff": 1}
    assert now["queue_messages", f"{jobs} leased"] == 0
    assert now["queue_oldest_ready_seconds", jobs] == 12  # the one that lapsed is next
    assert now["queue_in_total", jobs] == 6
    assert now["queue_attempts_total", jobs] == 4
    assert now["queue_lapsed_total", jobs] == 1
    assert now["queue_retried_total", jobs] >= 1
    assert now["queue_finished_total", f"{jobs} acked"] == 1
    assert now["queue_dead_letters_total", f"{jobs} permanent"] == 1
    assert now["queue_dead_letters_total", f"{jobs} exhausted"] == 0
    assert now["queue_entries", "demo jobs"] == 4
    assert now["queues_measured", ""] == 2  # that of its dead letters too
    assert now["queues_cut", ""] == 0


async def test_how_long_messages_waited_and_attempts_took(client: Client) -> None:
    await work(client)
    now = await scraped(client)
    assert now["queue_wait_seconds_count", "demo jobs"] == 4
    assert now["queue_wait_seconds_sum", "demo jobs"] == 4 * 7
    assert now["queue_wait_seconds_bucket", "demo jobs 5.0"] == 0
    assert now["queue_wait_seconds_bucket", "demo jobs 10.0"] == 4
    assert now["queue_handling_seconds_count", "demo jobs"] == 2
    assert now["queue_handling_seconds_sum", "demo jobs"] == 2 * 2


async def test_requests_count_by_route_and_status(client: Client) -> None:
    await client.append("dxn:queue:demo:log", {"n": 1})
    await client.get("/v1/dxn:queue:demo:log:anna@example.com")
    await client.get("/v1/dxn:queue:demo:log:a")
    now = await scraped(client)
    assert now["http_requests_total", "native /v1/{dxn} POST 200"] == 1
    assert now["http_requests_total", "native /v1/{dxn} GET 404"] == 1
    assert now["http_requests_total", "native /v1/{dxn} GET 400"] == 1
    assert now["http_request_seconds_count", "native"] == 3
    assert not [name for name, labels in now if "anna" in labels]


async def test_the_engine_tells_of_its_turns_commits_and_flushes(client: Client) -> None:
    before = await scraped(client)
    for n in range(5):
        await client.append("dxn:queue:demo:log", {"n": n})
    now = await scraped(client)
    for name in ("turn_seconds", "commit_seconds", "flush_seconds", "gate_wait_seconds", "batch_turns"):
        assert now[f"{name}_count", ""] >= before[f"{name}_count", ""] + 5, name
        assert now[f"{name}_bucket", "+Inf"] == now[f"{name}_count", ""], name
    assert now["shards_open", ""] == 1
    assert now["shard_openings_total", ""] == 1
    assert now["wal_bytes", ""] == now["wal_bytes_max", ""] > 0
    assert now["mailbox_depth", ""] == 0
    assert now["disk_full", ""] == 0


async def test_looking_opens_nothing_and_keeps_nothing_open(tmp_path: Path) -> None:
    opened = open_app(tmp_path, clock=TrioClock(), disk=InlineDisk(), limits=Limits(idle_s=60))
    async with opened as app:
        client = Client(app)
        await client.append("dxn:queue:demo:log", {"n": 1})
        for _ in range(10):
            await trio.sleep(15)
            now = await scraped(client)
        assert (now["shards_open", ""], now["shard_evictions_total", "idle"]) == (0, 1)
        assert now["queues_measured", ""] == 0
        assert ("queue_entries", "demo log") not in now


async def test_no_more_queues_are_told_of_than_is_set_and_it_says_so(tmp_path: Path) -> None:
    chosen = Settings(metrics_queues_max=25)
    async with open_app(tmp_path, chosen, clock=TrioClock(), disk=InlineDisk()) as app:
        client = Client(app)
        for space in ("one", "two"):
            for n in range(22):
                await client.append(f"dxn:queue:{space}:q{n}", {"n": 1})
        now = await scraped(client)
    assert now["queues_measured", ""] == 25
    assert now["queues_cut", ""] == 1
    assert len([1 for name, _ in now if name == "queue_entries"]) == 25


async def test_none_are_told_of_where_none_are_wanted(tmp_path: Path) -> None:
    chosen = Settings(metrics_queues_max=0)
    async with open_app(tmp_path, chosen, clock=TrioClock(), disk=InlineDisk()) as app:
        client = Client(app)
        await client.append("dxn:queue:demo:log", {"n": 1})
        now = await scraped(client)
    assert (now["queues_measured", ""], now["queues_cut", ""]) == (0, 0)


def test_a_histogram_has_each_value_in_one_bucket_the_bound_included() -> None:
    one, other = Histogram((1, 10)), Histogram((1, 10))
    for value in (0.5, 1, 1.5, 10, 11):
        one.add(value)
    other.add(2, 3)
    one.merge(other)
    assert (one.counts, one.total) == ([2, 5, 1], 30)


def promtool(*args: str | Path, given: bytes = b"") -> None:
    try:
        done = subprocess.run(["promtool", *map(str, args)], input=given, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.fail("promtool is missing: install Debian's package prometheus (apt-get install prometheus)")
    assert done.returncode == 0, (done.stdout + done.stderr).decode()


async def test_promtool_accepts_what_is_told(client: Client) -> None:
    await work(client)
    reply = await client.get("/metrics")
    promtool("check", "metrics", given=reply.body)


def test_promtool_accepts_the_rules_of_the_example_and_they_alert_when_they_should() -> None:
    promtool("check", "config", EXAMPLES / "prometheus.yml")
    promtool("test", "rules", EXAMPLES / "alerts_test.yml")


async def test_examples_and_guide_name_what_there_is_and_the_guide_all_of_it(client: Client) -> None:
    await work(client)
    text = (await client.get("/metrics")).body.decode()
    families = {one.name: one.type for one in parsed(text)}
    there_is = set()
    for name, kind in families.items():
        there_is |= {
            "counter": {f"{name}_total"},
            "histogram": {f"{name}_bucket", f"{name}_count", f"{name}_sum"},
        }.get(kind, {name})
    pattern = r"\b(?:edgequeues|ingress)_[a-z_]+"
    board = json.loads((EXAMPLES / "grafana.json").read_text())
    shown = " ".join(target["expr"] for panel in board["panels"] for target in panel.get("targets", []))
    assert set(re.findall(pattern, shown)) <= there_is
    assert set(re.findall(pattern, (EXAMPLES / "alerts.yml").read_text())) <= there_is
    unseen = {name for name in families if not re.search(rf"\b{name}(_total|_bucket)?\b", shown)}
    assert not unseen, "the board does not show " + ", ".join(sorted(unseen))
    rows = set(re.findall(r"^\| `([a-z_]+)`", GUIDE.read_text(), re.MULTILINE))
    assert rows == {name + ("_total" if kind == "counter" else "") for name, kind in families.items()}
