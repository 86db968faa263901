from __future__ import annotations

import pytest
from hypothesis import given, settings

from edgequeues.spec import ir
from edgequeues.spec.diff import diff

from . import specs
from .texts import SAMPLE, app, queue, read


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("delay_ms: 5", "delay_ms: 6", ["~ queues.Jobs.delay_ms: 5 -> 6"]),
        ("", "filter: payload.a == 1", ["+ queues.Jobs.filter: payload.a == 1"]),
        ("filter: payload.a", "", ["- queues.Jobs.filter: payload.a"]),
        ("filter: payload.a", "filter: payload.b", ["~ queues.Jobs.filter: payload.a -> payload.b"]),
        ("message_type { a: int b: int }", "message_type { a: string c: int? }",
         ["~ queues.Jobs.message_type.a: int -> string", "+ queues.Jobs.message_type.c: int?",
          "- queues.Jobs.message_type.b: int"]),
        ("delivery { max_attempts: 5 }", "delivery { max_attempts: unlimited backoff_ms: [5] }",
         ["- queues.Jobs.delivery.max_attempts: 5", "~ queues.Jobs.delivery.backoff_ms: [] -> [5]"]),
        ("", "rate_limit { per_second: 5 key: payload.a }",
         ["+ queues.Jobs.rate_limit: { per_second: 5.0, key: payload.a }"]),
        ("map_to: command A.B { x: 1 }", "map_to: command A.B { x: 2 }",
         ["~ queues.Jobs.map_to.input_map.x: 1 -> 2"]),
        ("map_to: command A.B", "map_to: queue Other", ["~ queues.Jobs.map_to: command A.B -> queue Other"]),
    ],
)  # fmt: skip
def test_a_change_is_told_with_its_path(old: str, new: str, shown: list[str]) -> None:
    assert [str(change) for change in diff(read(queue(old)), read(queue(new)))] == shown


def test_whole_parts_come_and_go() -> None:
    old, new = read(app("queue A {} queue B {}")), read(app("queue B {} command X.Y {}"))
    assert [str(change) for change in diff(old, new)] == ["- queues.A", "+ commands.X.Y"]
    assert [change.path for change in diff(None, read(SAMPLE))] == [
        ("queues", "WebhookIngress"),
        ("queues", "WebhookDLQ"),
        ("webhooks", "PagerDutyAlert"),
    ]


@settings(max_examples=25)
@given(specs.specs, specs.specs)
def test_there_is_a_change_where_two_specs_differ_and_none_where_not(old: ir.Spec, new: ir.Spec) -> None:
    assert diff(old, old) == []
    assert bool(diff(old, new)) == (old != new)
    assert all(str(change) for change in diff(old, new))
