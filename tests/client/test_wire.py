from __future__ import annotations

import json

import pytest

from edgequeues.client import (
    BadAnswer,
    ConfigChange,
    NewEntry,
    QueueConfig,
    Refused,
    ServerError,
    Unavailable,
    answers,
    wire,
)
from edgequeues.client.answers import Answer

Q = "dxn:queue:demo:log"


def answer(status: int = 200, body: bytes | object = b"", **headers: str) -> Answer:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, raw)


def test_an_append_carries_each_entry_with_what_is_said_of_it_and_raw_json_untouched() -> None:
    call = wire.append(
        Q, [{"a": 1}, NewEntry(b'{ "b": 2 }', id="x", ttl_ms=5, headers={"h": "v"})], actor="me"
    )
    assert (call.method, call.path, call.query) == ("POST", f"/v1/{Q}", (("actor", "me"),))
    assert call.body == (
        b'{"entries":[{"data":{"a":1}},{"data":{ "b": 2 },"id":"x","ttl_ms":5,"headers":{"h":"v"}}]}'
    )


@pytest.mark.parametrize(
    ("entries", "repeatable"),
    [
        ([NewEntry(1, id="a"), {"id": "b"}], True),
        ([NewEntry(1, id="a"), {"x": "b"}], False),
        ([{"id": 7}], False),
        ([b'{"id":"a"}'], False),  # not looked into
    ],
)
def test_an_append_may_be_repeated_only_if_every_entry_names_its_id(
    entries: list[object], repeatable: bool
) -> None:
    assert wire.append(Q, entries).repeatable is repeatable


def test_a_plain_entry_says_that_what_the_data_calls_itself_means_nothing() -> None:
    entry = NewEntry({"id": "a", "@type": "t"}, plain=True)
    call = wire.append(Q, [entry])
    assert call.body == b'{"entries":[{"data":{"id":"a","@type":"t"},"id":null,"type":null}]}'
    assert not call.repeatable
    named = wire.append(Q, [NewEntry({"n": 1}, id="x", type="t", plain=True)])
    assert named.body == b'{"entries":[{"data":{"n":1},"id":"x","type":"t"}]}'
    assert named.repeatable


def test_an_append_of_null_data_still_sends_it() -> None:
    assert wire.append(Q, [None]).body == b'{"entries":[{"data":null}]}'


def test_a_line_of_a_stream_holds_no_line_break() -> None:
    assert wire.line({"id": "a", "t": "x\ny"}) == (b'{"data":{"id":"a","t":"x\\ny"}}\n', True)
    with pytest.raises(ValueError, match="line break"):
        wire.line(b"[1,\n2]")


def test_a_read_sends_only_the_bounds_given() -> None:
    assert wire.read(Q).query == ()
    call = wire.read(Q, after="c", limit=0, reverse=True, type="t", since_ms=0, ids=["a", "b"], wait_s=2.5)
    assert call.query == (
        ("after", "c"),
        ("limit", "0"),
        ("reverse", "true"),
        ("type", "t"),
        ("since", "0"),
        ("wait", "2.5"),
        ("id", "a"),
        ("id", "b"),
    )
    assert (call.repeatable, call.patience_s) == (True, 2.5)


def test_every_form_of_a_dxn_is_sent_in_its_short_form() -> None:
    forms = ["dxn:queue:data:demo:log", "dxn:edge:queue:demo:log", "echo://demo/log", Q]
    assert {wire.get_stats(form).path for form in forms} == {f"/v1/{Q}/stats"}
    assert wire.get("dxn:queue:trace:demo:log:a.b~c").path == "/v1/dxn:queue:trace:demo:log:a.b~c"


@pytest.mark.parametrize(
    "bad", ["", "log", "dxn:queue:demo", "dxn:queue:demo:a b", "dxn:queue:demo:../x", "/v1"]
)
def test_what_is_no_dxn_is_refused_before_anything_is_sent(bad: str) -> None:
    with pytest.raises(ValueError, match="dxn"):
        wire.get(bad)


def test_one_string_is_not_taken_for_a_list_of_ids() -> None:
    with pytest.raises(TypeError):
        wire.delete(Q, ids="abc")


def test_only_reads_may_be_repeated_besides_named_appends() -> None:
    change = wire.patch_config(Q, ConfigChange(name=None))
    assert change.body == b'{"name":null}'
    assert not any(
        call.repeatable for call in (change, wire.put_config(Q, QueueConfig()), wire.delete(Q, ids=["a"]))
    )
    assert all(
        call.repeatable
        for call in (wire.get(Q + ":a"), wire.get_config(Q), wire.list_spaces(), wire.list_queues("demo"))
    )


def test_a_page_gives_entries_with_their_data_as_stored() -> None:
    body = (
        b'{"entries":[{"id":"a","position":3,"version":"v","type":null,"created":1,"updated":2,'
        b'"data":{ "x": "\\ud800" },"headers":{"h":"\\udfff"},"later":true}],"nextCursor":"n","prevCursor":"p"}'
    )
    page = answers.page(answer(body=body))
    [entry] = page.entries
    assert (page.next_cursor, page.prev_cursor) == ("n", "p")
    assert entry.raw == b'{ "x": "\\ud800" }'
    assert entry.data == {"x": "\ud800"}
    assert entry.data is entry.data
    assert entry.headers == {"h": "\udfff"}
    assert (entry.type, entry.expires, entry.key) == (None, None, None)


def test_integers_of_any_length_stay_exact() -> None:
    body = b'{"id":"a","position":3,"version":"v","created":1,"updated":2,"data":1234567890123456789012345}'
    assert answers.entry(body).data == 1234567890123456789012345


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (404, Refused),
        (413, Refused),
        (500, ServerError),
        (507, ServerError),
        (503, Unavailable),
        (429, Unavailable),
    ],
)
def test_a_problem_is_raised_as_the_class_of_its_remedy(status: int, kind: type[ServerError]) -> None:
    problem = {"type": "about:blank", "title": "T", "status": status, "code": "some_code", "detail": "what"}
    with pytest.raises(ServerError, match=r"what \[some_code\]") as caught:
        answers.checked(answer(status, problem))
    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.detail, caught.value.status) == ("some_code", "what", status)


@pytest.mark.parametrize(
    ("text", "seconds"), [("2", 2.0), ("-1", 0.0), ("Wed, 21 Oct 2015 07:28:00 GMT", None)]
)
def test_unavailable_says_how_long_the_server_wants_to_be_left_alone(
    text: str, seconds: float | None
) -> None:
    error = answers.problem(answer(503, {"code": "overloaded"}, retry_after=text))
    assert isinstance(error, Unavailable)
    assert error.retry_after_s == seconds


def test_a_page_of_a_proxy_is_still_an_error_with_a_code() -> None:
    error = answers.problem(answer(502, b"<h1>Bad gateway</h1>\n<p>more"))
    assert (type(error), error.code, error.detail) == (ServerError, "http_502", "<h1>Bad gateway</h1>")


@pytest.mark.parametrize("status", [201, 204, 302, 304])
def test_a_status_outside_the_protocol_is_a_bad_answer(status: int) -> None:
    with pytest.raises(BadAnswer):
        answers.checked(answer(status))


def test_progress_leaves_out_a_line_that_was_cut_off() -> None:
    whole = b'{"through":3,"cursor":"a"}\n{"through":9,"cursor":"b"}\n{"thro'
    assert [one.through for one in answers.progress(whole)] == [3, 9]
    assert (
        answers.progress(b'{"through":1,"cursor":"a","appended":1,"refused":0,"errors":[]}')[0].appended == 1
    )
    assert answers.progress(b"") == []
