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
         ["~ queues.Jobs.delivery.max_attempts: 5 -> unlimited", "+ queues.Jobs.delivery.backoff_ms: [5]"]),
        ("retention { max_age_seconds: unlimited max_depth: 5 }", "",
         ["~ queues.Jobs.retention.max_age_seconds: unlimited -> 345600", "- queues.Jobs.retention.max_depth: 5"]),
        ("ordering: fifo", "on_invalid: dead_letter", ["~ queues.Jobs.ordering: fifo -> unordered",
         "~ queues.Jobs.on_invalid: reject -> dead_letter"]),
        ("delivery { dead_letter_queue: A jitter: 0.5 }", 'delivery { dead_letter_queue: "2nd" jitter: 1 }',
         ["~ queues.Jobs.delivery.jitter: 0.5 -> 1", '~ queues.Jobs.delivery.dead_letter_queue: A -> "2nd"']),
        ("", "rate_limit { per_second: 5 key: payload.a }",
         ["+ queues.Jobs.rate_limit: { per_second: 5, key: payload.a }"]),
        ("map_to: command A.B { x: 1 }", "map_to: command A.B { x: 2 }",
         ["~ queues.Jobs.map_to.input_map.x: 1 -> 2"]),
        ("map_to: command A.B", "map_to: queue Other", ["~ queues.Jobs.map_to: command A.B -> queue Other"]),
    ],
)  # fmt: skip
def test_a_change_is_told_with_its_path(old: str, new: str, shown: list[str]) -> None:
    assert [str(change) for change in diff(read(queue(old)), read(queue(new)))] == shown


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("queue: A verify: none", "queue: B verify: none", ["~ webhooks.Hook.queue: A -> B"]),
        ('queue: A verify_token { header: "X" secret_env: "S" }',
         'queue: A verify_token { header: "Y" secret_env: ["N", "S"] }',
         ['~ webhooks.Hook.verify.token.header: "X" -> "Y"',
          '~ webhooks.Hook.verify.token.secret_envs: "S" -> ["N", "S"]']),
        ("queue: A verify: none", 'queue: A verify_hmac { header: "X" secret_env: "S" scheme: github }',
         ['+ webhooks.Hook.verify.hmac: { header: "X", secret_envs: "S", scheme: github }',
          "~ webhooks.Hook.verify.none: true -> false"]),
        ('queue: A verify: none allow_ips: ["::1"]', "queue: A verify: none message { a: payload.b }",
         ['- webhooks.Hook.allow_ips: ["::1"]', "+ webhooks.Hook.message: { a }"]),
        ("queue: A verify: none for_each: payload.a filter: 1", "queue: A verify: none filter: item.b",
         ["~ webhooks.Hook.filter: 1 -> item.b", "- webhooks.Hook.for_each: payload.a"]),
    ],
)  # fmt: skip
def test_a_change_of_a_webhook_is_told(old: str, new: str, shown: list[str]) -> None:
    before, after = (read(app(f"webhook Hook {{ {one} }}")) for one in (old, new))
    assert [str(change) for change in diff(before, after)] == shown


def test_a_change_of_a_command_is_told() -> None:
    old = read(app('command X.Y { input { a: int } run: python "a:b" }'))
    new = read(app('command X.Y { input { a: float } run: http "https://a.example" timeout_ms: 5 }'))
    assert [str(change) for change in diff(old, new)] == [
        "~ commands.X.Y.input.a: int -> float",
        '- commands.X.Y.python: "a:b"',
        '+ commands.X.Y.http: "https://a.example"',
        "~ commands.X.Y.timeout_ms: 10000 -> 5",
    ]


def test_a_change_of_a_schedule_is_told() -> None:
    old = read(app('schedule S { cron: "0 3 * * *" queue: A message { a: 1 b: now } missed: all }'))
    new = read(
        app('schedule S { cron: "0 4 * * *" queue: B timezone: "Asia/Tokyo" message { a: 2 c: now } }')
    )
    assert [str(change) for change in diff(old, new)] == [
        '~ schedules.S.cron: "0 3 * * *" -> "0 4 * * *"',
        "~ schedules.S.queue: A -> B",
        '~ schedules.S.timezone: "UTC" -> "Asia/Tokyo"',
        "~ schedules.S.message.a: 1 -> 2",
        "+ schedules.S.message.c: now",
        "- schedules.S.message.b: now",
        "~ schedules.S.missed: all -> once",
    ]


def test_another_app_is_told() -> None:
    [change] = diff(read("app A {}"), read("app B {}"))
    assert str(change) == "~ app: A -> B"


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
