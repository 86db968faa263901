from __future__ import annotations

import json
from typing import Any

import pytest

from edgequeues.spec import ir
from edgequeues.spec.parse import parse

from .texts import DATA, SAMPLE, advice, app, expression, only, queue, read, said, webhook

P = {"var": {"input": {"field": "payload"}}}
X, Y, Z = ({"var": {"input": {"field": name}}} for name in "xyz")


def lit(value: Any) -> Any:
    names = {bool: "bool", int: "int", float: "float", str: "string"}
    return {"lit": {"null": True} if value is None else {names[type(value)]: value}}


def test_the_sample_is_what_the_golden_file_says() -> None:
    golden = json.loads((DATA / "incident.json").read_text())
    assert json.loads(ir.encode(read(SAMPLE))) == golden


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("payload.a.b", {"get": {"expr": P, "path": ["a", "b"]}}),
        ('payload.a["b c"][0].d', {"get": {"expr": P, "path": ["a", "b c", 0, "d"]}}),
        ("(payload.a).b", {"get": {"expr": P, "path": ["a", "b"]}}),
        ("payload.queue.type.in.true.now", {"get": {"expr": P, "path": ["queue", "type", "in", "true", "now"]}}),
        ("now", {"var": {"now": True}}),
        ("`now`", {"var": {"input": {"field": "now"}}}),
        ("`true`", {"var": {"input": {"field": "true"}}}),
        ("queue", {"var": {"input": {"field": "queue"}}}),
        ("true", lit(True)),
        ("null", lit(None)),
        ("-3", lit(-3)),
        ("1.5e3", lit(1500.0)),
        ("-9223372036854775808", lit(-(2**63))),
        ("-(3)", {"neg": lit(3)}),
        ("-x", {"neg": X}),
        ("!x", {"not": X}),
        (r'"a\"\u00e9\n\/"', lit('a"é\n/')),
        (r"""'a"\'\\'""", lit("a\"'\\")),
        ('"\\ud83d\\ude00"', lit("😀")),
        ("[1, x,]", {"arr": [lit(1), X]}),
        ('{"a": x}', {"obj": {"a": X}}),
        ("x + y * z", {"add": [X, {"mul": [Y, Z]}]}),
        ("x - y - z", {"sub": [{"sub": [X, Y]}, Z]}),
        ("(x + y) * z", {"mul": [{"add": [X, Y]}, Z]}),
        ("x / y == z", {"eq": [{"div": [X, Y]}, Z]}),
        ("x && y && z", {"and": [X, Y, Z]}),
        ("(x && y) && z", {"and": [{"and": [X, Y]}, Z]}),
        ("x || y && z", {"or": [X, {"and": [Y, Z]}]}),
        ("x ? y : z ? x : y", {"if": {"cond": X, "then": Y, "else": {"if": {"cond": Z, "then": X, "else": Y}}}}),
        ("x in [1]", {"in": [X, {"arr": [lit(1)]}]}),
        ("x != y", {"ne": [X, Y]}),
        ("x <= y", {"le": [X, Y]}),
        ("has(payload.a)", {"has": {"expr": P, "path": ["a"]}}),
        ("coalesce(x, y)", {"coalesce": [X, Y]}),
        ("size(x)", {"call": {"fn": "len", "args": [X]}}),
        ("string(x)", {"call": {"fn": "str", "args": [X]}}),
        ("double(x)", {"call": {"fn": "float", "args": [X]}}),
        ("bool(x)", {"bool": X}),
        ("is_null(x)", {"is_null": X}),
        ("time_between(x, y, z)", {"time_between": {"expr": X, "from": Y, "to": Z}}),
        ('map_enum(x, {"a": 1}, y)', {"map_enum": {"expr": X, "mapping": {"a": 1}, "default": Y}}),
        ('map_enum(x, {"a": null})', {"map_enum": {"expr": X, "mapping": {"a": None}}}),
        ("payload.__class__", {"get": {"expr": P, "path": ["__class__"]}}),
    ],
)  # fmt: skip
def test_an_expression_is_this_tree(text: str, wanted: ir.Expr) -> None:
    assert expression(text) == wanted


@pytest.mark.parametrize(
    "word", ["in", "true", "queue", "message", "message_type", "map_to", "input", "command"]
)
def test_words_of_the_language_may_be_names_of_fields(word: str) -> None:
    fields = f"{{ a: payload.x  {word}: payload.y  z: 1 }}"
    found = read(
        app(f"queue Jobs {{ message_type {{ a: json  {word}: json }} map_to: queue Other {fields} }}")
    )
    mapping = found.queues["Jobs"].map_to
    assert isinstance(mapping, ir.QueueMapping)
    assert list(mapping.message) == ["a", word, "z"]
    assert list(found.queues["Jobs"].message_type or {}) == ["a", word]


@pytest.mark.parametrize(("word", "number"), [("low", 1), ("normal", 4), ("high", 7)])
def test_words_for_priorities_are_numbers(word: str, number: int) -> None:
    assert only(queue(f"priority: {word}")).priority == lit(number)
    assert only(queue(f"priority: ({word})")).priority == {"var": {"input": {"field": word}}}


def test_names_may_have_dashes_and_begin_with_digits() -> None:
    text = app(
        'queue order-events { delivery { dead_letter_queue: a-b } } queue a-b {} queue 2nd {} queue "3rd" {}'
    )
    assert read(text).queues["order-events"].delivery.dead_letter_queue == "a-b"
    assert list(read(text).queues) == ["order-events", "a-b", "2nd", "3rd"]


def test_unlimited_is_no_end() -> None:
    found = only(queue("retention { max_age_seconds: unlimited } delivery { max_attempts: unlimited }"))
    assert (found.retention.max_age_seconds, found.delivery.max_attempts) == (None, None)
    assert only(queue("")).retention == ir.Retention(max_age_seconds=345_600)


def test_a_secret_may_have_a_follower() -> None:
    hook = 'verify_hmac { header: "X" secret_env: %s }'
    for text, wanted in [('"NEW"', ("NEW",)), ('["NEW", "OLD"]', ("NEW", "OLD"))]:
        verify = read(webhook("", hook % text)).webhooks["Hook"].verify
        assert verify.hmac is not None
        assert verify.hmac.secret_envs == wanted


def test_each_part_is_marked_with_its_place() -> None:
    text = queue("delivery {\n  batch: 5\n}\nfilter: payload.a == (1 + 2)")
    marks = parse(text).marks
    at = {".".join(map(str, path)): (place.line, place.column) for path, place in marks.items()}
    assert at["queues.Jobs"] == (2, 7)
    assert at["queues.Jobs.delivery"] == (3, 1)
    assert at["queues.Jobs.delivery.batch"] == (4, 10)
    assert at["queues.Jobs.filter.eq.0"] == (6, 9)
    assert at["queues.Jobs.filter.eq.1.add.1"] == (6, 27)


# -- what is wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "what", "remedy"),
    [
        ("delay_ms: 1\ndelay_ms: 2", "4:1: `delay_ms` for the second time", "The first is in line 3; keep one."),
        ("delay_ms: -1", "3:11: `delay_ms` will not do: expected `int` >= 0",
         "Numbers from 0 to 31536000000 will do."),
        ("delay_ms: x.y", "3:11: `delay_ms` wants a plain value", "Numbers from 0 to 31536000000 will do."),
        ("delay_ms: null", "3:11: `delay_ms` wants a plain value", "Numbers from 0 to 31536000000 will do."),
        ("delay_ms: 1.5", "3:11: `delay_ms` will not do: expected `int`, got `float`",
         "Numbers from 0 to 31536000000 will do."),
        ("ordering: fif", "3:11: `fif` will not do here", "Did you mean `fifo`?"),
        ("ordering: per_key()", "3:11: per_key takes one expression", "Write `per_key(payload.id)`."),
        ("on_invalid: nothing", "3:13: `nothing` will not do here", "Write `reject` or `dead_letter`."),
        ("filter: siz(payload)", "3:9: there is no function `siz`", "Did you mean `size`?"),
        ("filter: payload[-1]", "3:17: positions count from 0, and keys are fixed",
         'Write a text or a position, as in `payload["cf-ray"]` or `payload.items[0]`.'),
        ("filter: has(payload)", "3:9: has() asks whether something is at a path",
         "Write a path, as in `has(payload.incident)`; for a field of its own, `note != null`."),
        ("filter: 9223372036854775808000", "3:9: an integer beyond 64 bits", "Write a smaller one."),
        ("filter: 1e999", "3:9: a number beyond double range", "Write a smaller one."),
        (r'filter: "\q"', r"3:10: there is no escape `\q`",
         r"Write `\\` for a backslash; escapes are those of JSON: \n \t \u00e9 ..."),
        (r'filter: "\ud800"', "3:9: half of a surrogate pair is no character",
         r"Write both halves: \ud83d\ude00."),
        ("filter: A.B { a: 1 }", "3:9: an expression is wanted here", "Write one, as in `payload.event.id`."),
        ("message_type { a: strng }", "3:19: there is no type `strng`", "Did you mean `string`?"),
        ("message_type { a: enum }", "3:19: the type `enum` is written otherwise", 'Write `enum("a", "b")`.'),
        ("message_type { a: map<int, int> }", "3:19: the keys of a map are strings", "Write `map<string, ...>`."),
        ("message_type { a: int = null }", "3:25: null is no default",
         "Write `?` behind the type of a field that may be missing."),
        ("message_type { a: int a: int }", "3:23: `a` for the second time", "The first is in line 3; keep one."),
        ("retention {}", "3:1: `retention` lacks `max_age_seconds`",
         "Write `max_age_seconds: 345600`, or `max_age_seconds: unlimited` to keep messages for ever."),
        ("retention: 5", "3:1: `retention` has another form", "Write `retention { key: ... }`."),
        ("ordering {}", "3:1: `ordering` has another form", "Write `ordering: ...`."),
        ("delivery Fast {}", "3:10: `delivery` has no name", "Write `delivery {`."),
        ("rate_limit { burst: 5 }", "3:1: `rate_limit` lacks `per_second`", "Write `per_second: ...`."),
        ("delivery { dead_letter_queue: a + b }", "3:31: a name is wanted here",
         "Names have letters, digits, `_` and `-`, 128 at most."),
        ("map_to: command Create", "3:9: a command is named `Entity.Command`",
         "Write `command Entity.Command { field: ... }` or `queue Name`."),
        ("map_to: Incident.Create { a: 1 }", "3:9: map_to leads to a command or a queue",
         "Write `command Entity.Command { field: ... }` or `queue Name`."),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_queue_is_told_with_its_place(body: str, what: str, remedy: str) -> None:
    assert (said(queue(body)), advice(queue(body))) == ([what], [remedy])


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("", "1:1: there is no app", "Write `app Name { ... }`."),
        ("queue Jobs {}", "1:1: `queue` cannot stand outside of `app`",
         "It belongs in `app {}`, `webhook {}` or `schedule {}`."),
        ("app A { schedule { queue: Q } }", "1:9: a schedule has a name", "Write `schedule Name { ... }`."),
        ("app A { schedule S { queue: Q } }", "1:9: `schedule` lacks `cron`", 'Write `cron: "0 3 * * *"`.'),
        ("app A { schedule S { cron: '0 3 * * *' } }", "1:9: `schedule` lacks `queue`", "Write `queue: Name`."),
        ("app A { schedule S { crom: '0 3 * * *' queue: Q } }", "1:22: `schedule` has no key `crom`",
         "Did you mean `cron`?"),
        ("app A { schedule S { cron: '0 3 * * *' queue: Q missed: twice } }", "1:57: `twice` will not do here",
         "Write `once`, `skip` or `all`."),
        ("app A {} app B {}", "1:10: `app` for the second time", "The first is in line 1; keep one."),
        ("app {}", "1:1: an app has a name", "Write `app Name { ... }`."),
        ('app "a b" {}', "1:5: this is no name of an app",
         "It has letters, digits, `_` and `-`, 64 at most, and begins with a letter or a digit."),
        ("app A { queue {} }", "1:9: a queue has a name", "Write `queue Name { ... }`."),
        ("app A { queue: 3 }", "1:9: a queue has a name", "Write `queue Name { ... }`."),
        ("app A { queue Q {} queue Q {} }", "1:26: `Q` for the second time", "The first is in line 1; keep one."),
        ('app A { queue "a.b" {} }', "1:15: this is no name of a queue",
         "Names have letters, digits, `_` and `-`, 128 at most, and begin with a letter or a digit."),
        ("app A { webhook W { verify: no } }", "1:29: `verify` can be `none` alone",
         "Write `verify: none`, `verify_hmac { ... }` or `verify_token { ... }`."),
        ("app A { webhook W { verify: none on: x } }", "1:38: `on` wants a command",
         "Write `on: Entity.Command { field: ... }`."),
        ("app A { command X.Y { run: 5 } }", "1:28: `run` is `python` or `http` with a text",
         'Write `python "module:function"` or `http "https://..."`.'),
        ('app A { command X.Y { run: perl "x" } }', "1:28: `run` is `python` or `http` with a text",
         'Write `python "module:function"` or `http "https://..."`.'),
    ],
)  # fmt: skip
def test_what_is_wrong_around_queues_is_told_with_its_place(text: str, what: str, remedy: str) -> None:
    assert (said(text), advice(text)) == ([what], [remedy])


@pytest.mark.parametrize(
    ("body", "what", "remedy"),
    [
        ("delay_ms 5", "4:1: `}` cannot stand here; `{` can", "Write `delay_ms: ...`."),
        ("delay_ms = 5", "3:10: `=` cannot stand here; a \"text\", a name, `:` or `{` can", "Write `key: value`."),
        ("delay_ms: 5s", "3:11: `5s` cannot stand here; a value can",
         "Numbers have neither units nor leading zeros; the key says the unit, as in `delay_ms: 5000`."),
        ("filter: a & b", "3:11: `&` cannot stand here; an operator, `{` or `}` can", "Write `&&`."),
        ("filter: (a", "4:1: `}` cannot stand here; `)` can", "The `(` before it is not closed."),
        ("filter: a +", "4:1: `}` cannot stand here; a value can", ""),
        ("message_type { a: list<int> }", "3:27: `>` cannot stand here; `,` can",
         "Maps alone have types in `<>`, as in `map<string, int>`; for a list, write `json`."),
        ("mesage_type { a: map<string, int> }", "3:33: `>` cannot stand here; a \"text\", a name, `:` or `{` can",
         "Did you mean `message_type`?"),
    ],
)  # fmt: skip
def test_a_syntax_error_is_told_with_what_could_stand_there(body: str, what: str, remedy: str) -> None:
    assert (said(queue(body)), advice(queue(body))) == ([what], [remedy])


@pytest.mark.parametrize(
    ("body", "remedy"),
    [
        ("delivery: { max_attempts: 5 }", "Write `delivery {`, without a colon."),
        ("message_type: json", "Write `message_type {`, without a colon."),
        ("delivery { max_attempts: 5; batch: 3 }", "Leave it out; a comma or a new line is enough."),
        ("filter: payload.a = 1", "Write `==` to compare."),
        ("filter: ${payload.a}", "Write the path as it is, as in `payload.id`."),
        ("filter: payload.a and payload.b", "Write `&&` for `and`."),
        ("filter: payload.a or payload.b", "Write `||` for `or`."),
        ("filter: not payload.a", "Write `!` for `not`."),
        ("message_type { a: string[] }",
         "Maps alone have types in `<>`, as in `map<string, int>`; for a list, write `json`."),
    ],
)  # fmt: skip
def test_what_is_written_so_in_other_languages_is_told_how_it_is_here(body: str, remedy: str) -> None:
    assert advice(queue(body)) == [remedy]


def test_a_text_without_quotes_and_a_list_without_brackets_are_told_how_they_are_written() -> None:
    text = app('webhook W { verify_token { header: X-Tok secret_env: GH } headers: "x-a" }')
    assert said(text) == [
        "2:36: `header` wants a plain value",
        "2:54: `secret_env` wants a plain value",
        "2:68: `headers` will not do: expected `array`, got `str`",
    ]
    assert advice(text) == [
        'Write it in quotes: `"X-Tok"`.',
        'Write it in quotes: `"GH"`.',
        'Write a list, as in `["one", "two"]`.',
    ]


def test_what_is_no_function_is_told_which_there_are() -> None:
    [remedy] = advice(queue('filter: payload.a.startsWith("x")'))
    assert remedy.startswith("The functions are `")
    assert "`size`" in remedy


def test_a_spec_over_the_bound_is_refused_before_it_is_read() -> None:
    text = app("// " + "x" * ir.SPEC_BYTES_MAX)
    [fault] = parse(text, "big.spec").faults
    assert fault.what == f"big.spec has {len(text)} bytes, at most {ir.SPEC_BYTES_MAX} are taken"


def test_a_long_expression_is_refused() -> None:
    long = " && ".join(["payload.a"] * 400)
    assert said(queue(f"filter: {long}")) == [
        f"3:9: the expression has {len(long)} bytes, at most 4096 are taken"
    ]


def test_fields_beyond_the_bound_are_refused() -> None:
    fields = " ".join(f"f{number}: int" for number in range(201))
    assert "201 fields, at most 200 are taken" in said(queue(f"message_type {{ {fields} }}"))[0]


def test_a_schedule_of_an_app_and_the_schedule_of_a_queue_are_two_things() -> None:
    found = read(
        app(
            'queue Jobs { schedule: received_at } schedule Tick { missed: skip queue: "Jobs" cron: "0 3 * * *" }'
        )
    )
    assert found.schedules == {"Tick": ir.ScheduleSpec("0 3 * * *", "Jobs", missed="skip")}
    assert found.queues["Jobs"].schedule == {"var": {"input": {"field": "received_at"}}}
