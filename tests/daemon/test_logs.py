"""Log lines and metrics: their fields, and that neither can hurt."""

from __future__ import annotations

import io
import json
import re
import urllib.request
from typing import Any

import pytest

from edgequeues import logs
from edgequeues.daemon.memory import Memory
from edgequeues.daemon.metrics import DaemonMetrics
from edgequeues.logs import Log, Logger, logger

from .working import Lines


def made(file: io.StringIO, level: str = "info", redact: Any = dict) -> Logger:
    return logger(to(file, level, redact))


def to(file: io.StringIO, level: str = "info", redact: Any = dict) -> logs.Lines:
    return logs.Lines(file, level=level, redact=redact, now_ms=lambda: 1_700_000_000_123)


def test_a_line_is_one_json_object_with_the_fields_that_it_should_have() -> None:
    file = io.StringIO()
    made(file).bind(eventId="event-1", source="email", attempt=2).warning(
        "it broke", err="why", outcome="retried"
    )
    [line] = file.getvalue().splitlines()
    assert json.loads(line) == {
        "ts": "2023-11-14T22:13:20.123Z",
        "level": "warning",
        "component": "daemon",
        "eventId": "event-1",
        "source": "email",
        "attempt": 2,
        "msg": "it broke",
        "err": "why",
        "outcome": "retried",
    }
    assert list(json.loads(line))[:3] == ["ts", "level", "component"]


@pytest.mark.parametrize(("level", "said"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_says_what_is_left_out(level: str, said: int) -> None:
    file = io.StringIO()
    log = Log(made(file, level))
    for one in ("debug", "info", "warning", "error"):
        log.tell(one, "something")
    assert len(file.getvalue().splitlines()) == said


def test_what_the_daemon_says_itself_is_the_same_line() -> None:
    files = io.StringIO(), io.StringIO()
    fields = {"eventId": "event-1", "attempt": 2, "err": None, "took": 1}
    for lines in (None, to(files[1])):
        log = Log(made(files[0]), lines)
        for level in ("debug", "info", "warning", "error"):
            log.tell(level, "it broke", **fields)
        log.tell("info", "odd", value=object())
    assert files[1].getvalue().count("\n") == 4
    assert [re.sub("0x[0-9a-f]+", "", file.getvalue()) for file in files] == [
        re.sub("0x[0-9a-f]+", "", files[0].getvalue())
    ] * 2


def test_every_line_goes_through_the_redaction() -> None:
    file = io.StringIO()
    made(file, redact=lambda fields: dict.fromkeys(fields, "***")).info(
        "ann@example.com", to="ann@example.com"
    )
    assert "ann" not in file.getvalue()


def test_a_line_that_cannot_be_redacted_is_not_shown() -> None:
    def broken(fields: dict[str, Any]) -> dict[str, Any]:
        raise KeyError("ann@example.com")

    file = io.StringIO()
    made(file, redact=broken).info("ann@example.com")
    assert "ann" not in file.getvalue()
    assert json.loads(file.getvalue())["err"] == "KeyError"


@pytest.mark.parametrize(
    "value", [object(), float("nan"), b"\xff", {1: {2}}, "\ud800", 1 << 100, RuntimeError("x")]
)
def test_whatever_a_handler_logs_becomes_a_line(value: Any) -> None:
    file = io.StringIO()
    made(file).info("odd", value=value)
    assert len(file.getvalue().splitlines()) == 1


def test_a_logger_that_raises_hurts_nobody() -> None:
    log = Log(Lines(broken=True))
    log.tell("info", "hello")
    assert log.lost == 1


def test_a_file_that_is_closed_hurts_nobody() -> None:
    file = io.StringIO()
    log = made(file)
    file.close()
    log.info("hello")


def test_metrics_of_handlers_are_beside_those_of_the_daemon() -> None:
    metrics = DaemonMetrics()
    metrics.count("orders", 2, kind="new")
    metrics.observe("seconds", 0.3)
    metrics.sent.labels("email", "sent").inc()
    value = metrics.registry.get_sample_value
    assert value("handler_orders_total", {"kind": "new"}) == 2
    assert value("handler_seconds_count") == 1
    assert value("reply_send_total", {"channel": "email", "outcome": "sent"}) == 1


@pytest.mark.parametrize("name", ["", "1st", "a-b", "x" * 101, "ann@example.com"])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name of a metric"):
        DaemonMetrics().count(name)


def test_metrics_of_handlers_are_bounded() -> None:
    metrics = DaemonMetrics()
    for n in range(200):
        metrics.count(f"m{n}")
    with pytest.raises(ValueError, match="at most 200"):
        metrics.count("one_more")
    other = DaemonMetrics()
    for n in range(1_000):
        other.count("by", who=str(n))
    with pytest.raises(ValueError, match="1000 values"):
        other.count("by", who="another")
    with pytest.raises(ValueError, match="is a counter already"):
        other.observe("by", 1.0, who="1")
    with pytest.raises(ValueError, match="label"):
        other.count("by", whom="1")


def test_metrics_are_served_on_loopback() -> None:
    metrics = DaemonMetrics()
    metrics.acked.inc()
    with metrics.serve(0) as port, urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        page = answer.read().decode()
    assert "queue_ack_total 1.0" in page
    for name in ("queue_messages_inflight", "queue_nack_total", "queue_dlq_total", "queue_lag_seconds"):
        assert name in page
    assert "handle_duration_seconds_bucket" in page


def test_a_memory_forgets_what_was_met_longest_ago() -> None:
    memory: Memory[str] = Memory(2)
    memory.remember("a", "say it")
    memory.remember("b", None)
    assert memory.unsaid("a") == "say it"
    memory.remember("c", None)
    assert ["a" in memory, "b" in memory, "c" in memory, len(memory)] == [True, False, True, 2]
    memory.heard("a")
    memory.heard("gone")
    assert memory.unsaid("a") is None
