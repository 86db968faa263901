"""What is wrong between the parts of a spec: each fault once, as it is shown."""

from __future__ import annotations

import pytest

from edgequeues.spec import ir
from edgequeues.spec.check import REQUEST, Allowed, check
from edgequeues.spec.load import load

from .texts import SAMPLE, app, queue, read, webhook

Q = "queue Jobs {}"
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TYPED = "message_type { n: int  s: string  t: time  e: enum('a', 'b')  o: string?  d: int = 1  j: json }"


def told(text: str, allowed: Allowed | None = None) -> list[str]:
    """Each fault in one line: place, what, remedy."""
    found = load(text.encode(), "x", allowed)
    assert (found.spec is None) == bool(found.faults)
    shown = [one.split("\n") for one in found.render()]
    return [f"{lines[0].removeprefix('x:')}. {lines[-1].strip()}" for lines in shown]


def test_the_sample_is_right() -> None:
    assert told(SAMPLE) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (app("queue Jobs { delivery { dead_letter_queue: Jbs2 } } queue Jobs2 {}"),
         "2:44: there is no queue `Jbs2` in this spec. Did you mean `Jobs2`?"),
        (queue("delivery { dead_letter_queue: Other }"),
         "3:31: there is no queue `Other` in this spec. Declare it: `queue Other { ... }`."),
        (queue("delivery { dead_letter_queue: Jobs }"),
         "3:31: a queue cannot take its own dead letters. Name another, or leave it out."),
        (queue("map_to: queue Othr"),
         "3:15: there is no queue `Othr` in this spec. Declare it: `queue Othr { ... }`."),
        (app("queue Jobs {} webhook H { verify: none queue: Job }"),
         "2:47: there is no queue `Job` in this spec. Did you mean `Jobs`?"),
        (app("queue A { delivery { dead_letter_queue: B } } queue B { delivery { dead_letter_queue: A } }"),
         "2:41: dead letters go round in a ring: A -> B -> A. Let one of them end it."),
        (app("queue A { map_to: queue B } queue B { map_to: queue C } queue C { map_to: queue B }"),
         "2:53: messages go round in a ring: B -> C -> B. Let one of them end it."),
        (app("queue A { map_to: queue A }"),
         "2:25: messages go round in a ring: A -> A. Let one of them end it."),
        (app("queue OrderEvents {} queue order-events {}"),
         "2:28: `order-events` and `OrderEvents` count as the same name: both are `order_events` in snake_case. "
         "Rename one of them."),
        (app("queue Jobs {} queue JobsDlq {}"),
         "2:7: dead letters of `Jobs` go to `Jobs-dlq`, which counts as the same name as `JobsDlq`. "
         "Name it in `delivery { dead_letter_queue: ... }`, or rename one of the two."),
        (app(f"queue {ULID} {{}}"),
         f"2:7: queue name '{ULID}': a ULID is an id, never a name. Give the queue another name."),
        (queue("ordering: per_key"), "3:11: per_key lacks the key. Write `ordering: per_key(payload.id)`."),
        (queue("ordering: fifo priority: high"),
         "3:26: messages in the order of their arrival have no priority. Leave it out, or write another `ordering`."),
        (queue("priority: 10"), "3:11: there is no priority 10. Write a number from 0 to 9."),
        (queue("delivery { initial_backoff_ms: 70000 }"),
         "3:32: the first wait, 70000 ms, is over the longest, 60000 ms. Write it no larger than `max_backoff_ms`."),
        (queue("message_type { e: enum('a', 'a') }"), '3:16: the enum has "a" twice. Correct the type.'),
        (queue("message_type { n: int = 'x' }"),
         "3:16: the default: a text where an integer is wanted. Correct the type."),
        (queue(f"{TYPED} filter: 1 + missing"),
         "3:109: there is no field `missing`. "
         "There are `n`, `s`, `t`, `e`, `o`, `d`, `j`, `now`."),
        (queue(f"{TYPED} filter: s < n"),
         "3:105: a text and an integer have no order. There are `n`, `s`, `t`, `e`, `o`, `d`, `j`, `now`."),
        (queue(f"{TYPED} priority: s"),
         "3:107: a text where an integer is wanted. An expression of type int is wanted here."),
        (queue(f"{TYPED} ordering: per_key(j == 1)"),
         "3:115: a boolean where a text is wanted. An expression of type string or int is wanted here."),
        (queue(f"{TYPED} idempotency_key: n == 1"),
         "3:114: a boolean where a text is wanted. An expression of type string or int is wanted here."),
        (queue(f"{TYPED} schedule: s"),
         "3:107: a text where a time in unix seconds is wanted. An expression of type time is wanted here."),
        (queue(f"{TYPED} rate_limit {{ per_second: 1 key: n == 1 }}"),
         "3:129: a boolean where a text is wanted. An expression of type string or int is wanted here."),
        (queue("filter: coalesce()"), "3:9: 0 operands where 1 or more are wanted. Correct the expression."),
        (app("queue A { message_type { n: int } map_to: queue B { m: n } } queue B { message_type { n: int } }"),
         "2:43: nothing fills the field `n` of queue `B`. Give it here, or declare it `n: int?`."),
        (app("queue A { message_type { n: int } map_to: queue B } queue B { message_type { n: string } }"),
         "2:43: the field `n` of queue `B`: an integer where a text is wanted. Declare it `n: int` there."),
        (app("queue A { message_type { n: int } map_to: queue B } queue B { message_type { m: int? } }"),
         "2:43: queue `B` has no field `n`. Declare it there, or map the fields one by one."),
        (app("queue A { map_to: command X.Y { b: 1 entity_id: 'e' } } command X.Y { input { a: int? } }"),
         "2:36: command `X.Y` has no field `b`. Declare it there, or leave it out here."),
        (app("queue A { map_to: command X.Y { a: 'x' } } command X.Y { input { a: int } }"),
         "2:36: a text where an integer is wanted. An expression of type int is wanted here."),
        (app("queue A { delivery { dead_letter_queue: D } } queue D { message_type { attempts: string } }"),
         "2:41: the field `attempts` of queue `D` for dead letters: an integer where a text is wanted. "
         "Declare it `attempts: int` there."),
        (app("queue A { delivery { dead_letter_queue: D } } queue D { message_type { tries: int } }"),
         "2:41: nothing fills the field `tries` of queue `D` for dead letters. "
         "Give it here, or declare it `tries: int?`."),
    ],
)  # fmt: skip
def test_queues_that_do_not_fit_are_told(text: str, fault: str) -> None:
    assert fault in told(text)


HMAC = 'verify_hmac { header: "%s" secret_env: "S" %s }'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (app(f"{Q} webhook H {{ queue: Jobs }}"),
         "2:23: it is not said how senders are known. Write one of `verify_hmac { ... }`, `verify_token { ... }` or "
         "`verify: none`."),
        (webhook("", 'verify: none verify_token { header: "X" secret_env: "S" }'),
         "5:9: senders are known in one way only. Write one of `verify_hmac { ... }`, `verify_token { ... }` or "
         "`verify: none`."),
        (webhook("", HMAC % ("X-Other", "")),
         "5:23: the header `X-Other` does not tell the scheme of the signature. Write `scheme: hmac`, or another; "
         "known are `x-pagerduty-signature`, `x-hub-signature-256`, `stripe-signature`, `x-slack-signature`, "
         "`x-twilio-signature`, `webhook-signature` and `svix-signature`."),
        (webhook("", HMAC % ("Stripe-Signature", "algo: sha1")),
         "5:64: `algo` has no meaning: the scheme stripe says it itself. Leave it out, or write `scheme: hmac`."),
        (webhook("", HMAC % ("X-Hub-Signature-256", "tolerance_seconds: 5")),
         "5:80: `tolerance_seconds` has no meaning: the scheme github signs no time. Leave it out."),
        (webhook("", HMAC % ("X", "scheme: hmac tolerance_seconds: 5")),
         "5:75: `tolerance_seconds` has no meaning: the scheme hmac signs no time. "
         "Leave it out, or say the `timestamp_header`."),
        (webhook('allow_ips: ["10.0.0.1/8"]'), "4:12: `10.0.0.1/8` is no network. Write `10.0.0.0/8`."),
        (webhook('allow_ips: ["here"]'),
         "4:12: `here` is no network. Write an address or a network, as in `10.0.0.0/8` or `2001:db8::1`."),
        (app("webhook H { verify: none }"), "2:9: it is not said where requests go. Write `queue: Name`."),
        (app("webhook H { verify: none on: X.Y }"),
         "2:30: a command that is called at once is not run by this version: name a queue. "
         "Write `queue: Name` beside `on`."),
        (app("queue Q { map_to: command X.Y } webhook H { verify: none queue: Q on: X.Y }"),
         "2:71: the messages of queue `Q` lead somewhere already. Leave out `on` here, or `map_to` there."),
        (webhook("filter: item.a"),
         "4:9: there is no field `item`. There are `payload`, `headers`, `source_ip`, `received_at`, `now`."),
        (webhook("for_each: source_ip.a"),
         '4:11: a text has nothing at "a". There are `payload`, `headers`, `source_ip`, `received_at`, `now`.'),
        (app("queue Q { message_type { a: int } } webhook H { verify: none queue: Q message { a: source_ip } }"),
         "2:84: a text where an integer is wanted. An expression of type int is wanted here."),
        (app("queue Q { message_type { a: int } } webhook H { verify: none queue: Q message { b: 1 a: 1 } }"),
         "2:84: queue `Q` has no field `b`. Declare it there, or leave it out here."),
        (app("queue Q { message_type { a: int } } webhook H { verify: none queue: Q }"),
         "2:69: nothing fills the field `a` of queue `Q`. Give it here, or declare it `a: int?`."),
        (app("queue Q { message_type { received_at: string } } webhook H { verify: none queue: Q }"),
         "2:82: the field `received_at` of queue `Q`: a time in unix seconds where a text is wanted. "
         "Declare it `received_at: time` there."),
        (app("command X {}"), "2:9: `X` is no name of a command. Write `Entity.Command`."),
        (app('command X.Y { run: python "a:b" secret_env: "S" }'),
         "2:45: a secret signs what is sent over HTTP, and nothing is. Leave it out."),
        (app('command X.Y { run: http "ftp://example.com/x" }'),
         "2:20: `ftp://example.com/x` is no URL to post to. Write one like `https://hooks.example.com/x`."),
        (app('command X.Y { run: http "http://example.com/x" }'),
         "2:20: what is sent without TLS can be read and changed on its way. "
         "Write `https`; `http` will do for this machine alone."),
    ],
)  # fmt: skip
def test_webhooks_and_commands_that_do_not_fit_are_told(text: str, fault: str) -> None:
    assert fault in told(text)


def test_two_ways_to_run_a_command_are_one_too_many() -> None:
    command = ir.CommandSpec(python="a:b", http="http://127.0.0.1/x")
    [fault] = check(ir.Spec(0, "a", commands={"X.Y": command}))
    assert (fault.path, fault.what) == (("commands", "X.Y", "http"), "a command is run in one way only")


ALLOWED = Allowed(
    ("incidents",), ("hooks.example.com", "127.0.0.1:9000"), ("S",), {"S": "s3cret", "OTHER": "x"}
)


def secured(variable: str = "S") -> str:
    return webhook("", f'verify_token {{ header: "X-Token" secret_env: "{variable}" }}')


@pytest.mark.parametrize(
    ("environment", "what"),
    [
        ({}, "the variable `S` is not set in the server's environment"),
        ({"S": ""}, "the variable `S` is empty in the server's environment"),
        ({"S": " \n"}, "the variable `S` is empty in the server's environment"),
        ({"S": "s3cret\n"}, "the variable `S` has blanks or a line break around its value"),
        ({"S": " s3cret"}, "the variable `S` has blanks or a line break around its value"),
    ],
)
def test_a_secret_that_is_not_set_right_is_named_but_never_shown(
    environment: dict[str, str], what: str
) -> None:
    [fault] = told(secured(), Allowed(secrets=("S",), environment=environment))
    assert what in fault
    assert "s3cret" not in fault


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (secured("OTHER"), "the server does not let specs use the variable `OTHER`"),
        (app('command X.Y { run: python "incident:create" }'),
         "the server does not let specs run functions of `incident`. Did you mean `incidents`?"),
        (app('command X.Y { run: python "os:system" }'),
         "the server does not let specs run functions of `os`. Its setting `commands_modules` lists"),
        (app('command X.Y { run: http "https://example.com/x" }'),
         "the server does not let specs call `example.com`"),
        (app('command X.Y { run: http "https://10.0.0.1/x" }'),
         "the server does not let specs call an address of a private network, `10.0.0.1`"),
        (app('command X.Y { run: http "http://127.0.0.1:9001/x" }'),
         "the server does not let specs call an address of a private network, `127.0.0.1`"),
    ],
)  # fmt: skip
def test_what_a_server_does_not_allow_is_told_where_settings_are_known(text: str, what: str) -> None:
    assert told(text) == []
    [fault] = told(text, ALLOWED)
    assert what in fault


def test_what_a_server_allows_is_right() -> None:
    commands = (
        'command X.Y { run: python "incidents:create" } '
        'command X.Z { run: http "https://hooks.example.com/x" secret_env: "S" } '
        'command X.W { run: http "http://127.0.0.1:9000/x" }'
    )
    assert told(app(commands), ALLOWED) == []
    assert told(secured(), ALLOWED) == []


def test_without_text_a_fault_names_the_path() -> None:
    spec = read(queue("priority: 1 + 1"))
    broken = ir.encode(spec).replace(b'"int":1', b'"int":true', 1)
    found = load(broken, "spec.json")
    assert found.render() == [
        "spec.json: queues.Jobs.priority.add[0].lit.int: a boolean where an integer is wanted\n"
        "  Correct the expression."
    ]


def test_json_of_a_wrong_form_names_the_field() -> None:
    [shown] = load(b'{"version":0,"app":"a","queues":{"q":{"delivery":{"batch":0}}}}', "spec.json").render()
    assert "spec.json: spec: Expected `int` >= 1 - at `$.queues[...].delivery.batch`" in shown


def test_faults_of_form_and_of_fit_are_told_together_and_none_twice() -> None:
    faults = told(
        queue("orderng: fifo\npriority: 10\nfilter: siz(missing)\ndelivery { dead_letter_queue: Other }")
    )
    assert [fault.split(": ")[0] for fault in faults] == ["3:1", "4:11", "5:9", "6:31"]


def test_a_request_has_the_fields_that_webhooks_speak_of() -> None:
    assert list(REQUEST) == ["payload", "headers", "source_ip", "received_at"]
    each = webhook("for_each: payload.events filter: item.a == headers['X'] idempotency_key: item.id")
    assert told(each) == []
