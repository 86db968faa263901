from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from msgspec import Struct, structs

from edgequeues import models, models_letters
from edgequeues.client import (
    Answered,
    Backoff,
    BadAnswer,
    Consumer,
    ConsumerRules,
    Ended,
    Explanation,
    Failed,
    LetterFilter,
    Line,
    LinePage,
    NewEntry,
    QueueConfig,
    Refused,
    Unreachable,
)
from edgequeues.core import backoff

from .script import problem, scripted

Q = "dxn:queue:demo:jobs"
APPENDED = {"results": [{"id": "a", "position": 1, "version": "v", "outcome": "new"}], "cursor": "c"}
MESSAGE = {
    "lease": "L1",
    "attempts": 2,
    "until": 9,
    "id": "a",
    "position": 3,
    "version": "v",
    "type": None,
    "created": 1,
    "updated": 2,
    "priority": 4,
    "data": {"n": 1},
}
CONSUMER: dict[str, Any] = {
    "name": "default",
    "config": {"ordering": "fifo", "attempts_max": None, "backoff": {"list_ms": [1, 2]}},
    "created": 1,
    "filling": False,
    "bytes": 2,
    "oldest_ready": None,
    **dict.fromkeys(("scheduled", "waiting", "ready", "leased", "backoff"), 1),
    **{
        f"total_{name}": 7
        for name in (
            *("in", "attempts", "acked", "retried", "lapsed", "released", "exhausted", "permanent"),
            *("skipped", "expired", "cancelled"),
        )
    },
}


def ok(body: object) -> httpx.Response:
    return httpx.Response(200, json=body)


def verdicts(*outcomes: str) -> httpx.Response:
    return ok({"results": [{"lease": f"L{n}", "outcome": one} for n, one in enumerate(outcomes, 1)]})


def sent(request: httpx.Request) -> Any:
    return json.loads(request.content)


async def test_a_push_carries_what_is_said_of_each_message() -> None:
    client, script = scripted(ok(APPENDED))
    entry = NewEntry(b'{ "n": 1 }', key="k", priority=7, delay_ms=0, idempotency_key="i")
    answer = await client.push(Q, [entry, {"n": 2}, NewEntry(3, due=5)])
    assert answer.results[0].outcome == "new"
    assert script.requests[0].url.path == f"/v1/{Q}/push"
    assert script.requests[0].content == (
        b'{"entries":[{"data":{ "n": 1 },"key":"k","priority":7,"delay_ms":0,"idempotency_key":"i"},'
        b'{"data":{"n":2}},{"data":3,"due":5}]}'
    )


async def test_a_push_is_repeated_only_if_every_message_has_an_idempotency_key() -> None:
    lost = httpx.ReadError("cut")
    client, script = scripted(lost, ok(APPENDED))
    await client.push(Q, [NewEntry(1, idempotency_key="i")])
    assert len(script.requests) == 2
    for unsafe in (NewEntry(1, id="a"), {"id": "a"}):  # it may be done and gone when it comes again
        client, _ = scripted(lost)
        with pytest.raises(Unreachable):
            await client.push(Q, [NewEntry(1, idempotency_key="i"), unsafe])


async def test_one_message_given_instead_of_a_list_is_refused() -> None:
    client, _ = scripted()
    with pytest.raises(TypeError, match="list"):
        await client.push(Q, {"a": 1})
    with pytest.raises(TypeError, match="list"):
        await anext(client.push_all(Q, "text"))
    with pytest.raises(TypeError, match="list"):
        await client.ack(Q, "L1")
    with pytest.raises(TypeError, match="list"):
        await client.retry(Q, "L1")
    with pytest.raises(TypeError, match="list"):
        await client.peek(Q, states="ready")


async def test_any_number_of_messages_goes_in_calls_of_a_thousand() -> None:
    client, script = scripted(*[ok(APPENDED)] * 3)
    answers = [one async for one in client.push_all(Q, ({"n": n} for n in range(2_001)))]
    assert len(answers) == 3
    assert [len(sent(request)["entries"]) for request in script.requests] == [1_000, 1_000, 1]


async def test_large_messages_go_in_calls_that_a_server_takes() -> None:
    client, script = scripted(*[ok(APPENDED)] * 3)
    assert len([one async for one in client.push_all(Q, ["x" * 3_000_000] * 5)]) == 3
    assert [len(sent(request)["entries"]) for request in script.requests] == [2, 2, 1]


async def test_nothing_to_say_is_no_call() -> None:
    client, script = scripted()
    assert await client.ack(Q, []) == await client.retry(Q, []) == []
    assert await client.replay(Q, []) == []
    assert [one async for one in client.push_all(Q, [])] == []
    assert script.requests == []


async def test_a_pull_gives_messages_with_their_leases_and_their_data_as_it_was() -> None:
    body = json.dumps({"messages": [MESSAGE], "paused": False, "backlog": 3}).encode()
    raw = b'{ "x": "\\ud800" }'
    client, script = scripted(httpx.Response(200, content=body.replace(b'{"n": 1}', raw)))
    pulled = await client.pull(Q, batch=5, lease_ms=1_000, consumer="c", worker="w", wait_s=2.5)
    [message] = pulled.messages
    assert (message.lease, message.attempts, message.until, message.raw) == ("L1", 2, 9, raw)
    assert (message.data, message.key, message.headers) == ({"x": "\ud800"}, None, None)
    assert (pulled.paused, pulled.backlog) == (False, 3)
    [request] = script.requests
    assert dict(request.url.params) == {"consumer": "c", "wait": "2.5"}
    assert sent(request) == {"batch": 5, "lease_ms": 1_000, "worker": "w"}
    assert request.extensions["timeout"]["read"] == 32.5


async def test_headers_and_keys_come_with_a_message() -> None:
    client, script = scripted(ok({"messages": [{**MESSAGE, "key": "k", "headers": {"h": "v"}}]}))
    [message] = (await client.pull(Q)).messages
    assert (message.key, message.headers) == ("k", {"h": "v"})
    assert sent(script.requests[0]) == {}  # all as the consumer has it


async def test_a_pull_is_never_repeated_for_the_first_may_have_taken_messages() -> None:
    client, script = scripted(httpx.ReadError("cut"))
    with pytest.raises(Unreachable):
        await client.pull(Q)
    assert len(script.requests) == 1


async def test_each_lease_is_told_what_became_of_it() -> None:
    client, script = scripted(*[verdicts("done", "stale", "finished")] * 3)
    answers = await client.ack(Q, ["L1", "L2", "L3"])
    assert answers == [Answered("L1", "done"), Answered("L2", "stale"), Answered("L3", "finished")]
    assert [one.settled for one in answers] == [True, False, True]
    await client.release(Q, iter(["L1"]))
    await client.extend(Q, ["L1"], 5_000)
    assert [request.url.path.rpartition("/")[2] for request in script.requests] == [
        "ack",
        "release",
        "extend",
    ]
    assert [sent(request) for request in script.requests[1:]] == [
        {"leases": ["L1"]},
        {"leases": ["L1"], "lease_ms": 5_000},
    ]


async def test_attempts_are_given_up_alike_or_each_with_its_own_words() -> None:
    client, script = scripted(verdicts("done", "done"))
    await client.retry(Q, ["L1", Failed("L2", permanent=True)], delay_ms=0, error="no")
    assert sent(script.requests[0])["retries"] == [
        {"lease": "L1", "delay_ms": 0, "error": "no"},
        {"lease": "L2", "permanent": True},
    ]


async def test_what_is_said_of_leases_is_repeated_when_the_answer_is_lost() -> None:
    lost: list[httpx.Response | Exception] = [httpx.ReadError("cut"), verdicts("finished")]
    client, script = scripted(*lost * 4)
    await client.ack(Q, ["L1"])
    await client.retry(Q, ["L1"])
    await client.release(Q, ["L1"])
    await client.extend(Q, ["L1"], 1)
    assert len(script.requests) == 8


async def test_many_leases_go_in_several_calls_and_come_back_in_order() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        leases = sent(request)["leases"]
        return ok({"results": [{"lease": lease, "outcome": "done"} for lease in leases]})

    client, script = scripted(answer, answer)
    leases = [f"L{n}" for n in range(1_500)]
    assert [one.lease for one in await client.ack(Q, leases)] == leases
    assert len(script.requests) == 2


async def test_an_answer_of_something_else_is_no_answer() -> None:
    client, _ = scripted(ok({"results": [{"lease": "L1", "outcome": "perhaps"}]}))
    with pytest.raises(BadAnswer):
        await client.ack(Q, ["L1"])


async def test_consumers_are_listed_made_and_removed() -> None:
    client, script = scripted(
        ok({"consumers": [CONSUMER]}), ok(CONSUMER), ok({}), problem(404, "consumer_not_found")
    )
    [consumer] = await client.consumers(Q)
    assert (consumer.config.ordering, consumer.config.attempts_max) == ("fifo", None)
    assert consumer.config.backoff == Backoff(list_ms=(1, 2))
    assert (consumer.unfinished, consumer.total_acked) == (5, 7)
    assert await client.put_consumer(Q, "a_b", consumer.config, start="beginning") == consumer
    asked = sent(script.requests[1])
    assert (script.requests[1].method, script.requests[1].url.path) == ("PUT", f"/v1/{Q}/consumers/a_b")
    assert (asked["start"], asked["ordering"], asked["dead_letters"]) == ("beginning", "fifo", None)
    await client.delete_consumer(Q, "a_b")
    with pytest.raises(Refused, match="consumer_not_found"):
        await client.delete_consumer(Q, "a_b")


async def test_the_rules_of_a_consumer_default_to_those_of_the_server() -> None:
    client, script = scripted(ok(CONSUMER))
    await client.put_consumer(Q, "c")
    assert sent(script.requests[0])["attempts_max"] == ConsumerRules().attempts_max == 5


async def test_the_counts_of_a_queue_have_those_of_its_consumers() -> None:
    stats = {"id": "i", "dxn": Q, "config": {"kind": "work"}, "created": 1, "entries": 2, "bytes": 3}
    client, _ = scripted(
        *(ok({**stats, "oldest": None, "cursor": "c", **more}) for more in ({}, {"consumers": [CONSUMER]}))
    )
    assert (await client.stats(Q)).consumers == ()
    assert [one.name for one in (await client.stats(Q)).consumers] == ["default"]


async def test_peeking_and_explaining_say_where_messages_stand() -> None:
    standing = {
        "id": "a",
        "position": 3,
        "state": "leased",
        "attempts": 1,
        "due": 9,
        "worker": "w",
        "last_error": None,
        "key": "k",
        "priority": 4,
        "data": [1],
    }
    ended = {"attempt": 1, "ending": "retried", "worker": "w", "began": 1, "ended": 2, "error": "e"}
    waits_for = {"position": 1, "state": "leased", "attempts": 1, "due": 5}
    told = {
        "consumer": "default",
        "why": "behind",
        "state": "waiting",
        "until": None,
        "behind": 3,
        "key": "k",
        "worker": None,
        "attempts": 1,
        "last_error": "e",
        "history": [ended],
    }
    client, script = scripted(
        ok({"messages": [standing], "resume": 3}),
        ok({"id": "a", "consumers": [told]}),
        ok({"lines": [{**waits_for, "key": "k", "waiting": 3}], "resume": "z"}),
    )
    page = await client.peek(Q, states=["leased", "ready"], after=2, limit=1)
    assert (page.resume, page.messages[0].worker, page.messages[0].data) == (3, "w", [1])
    assert script.requests[0].url.params.get_list("state") == ["leased", "ready"]
    [explanation] = await client.explain(Q, "a")
    assert (explanation.why, explanation.behind, explanation.history[0].error) == ("behind", 3, "e")
    page_of_lines = await client.lines(Q, consumer="c", after="j", limit=5)
    assert page_of_lines == LinePage([Line("k", 1, "leased", 1, 5, 3)], "z")
    assert dict(script.requests[2].url.params) == {"consumer": "c", "after": "j", "limit": "5"}


async def test_queues_are_purged_removed_and_messages_skipped() -> None:
    client, script = scripted(ok({"deleted": 4}), ok({}), ok({}), ok({}))
    assert await client.purge(Q) == 4
    await client.remove(Q)
    await client.skip(Q, "a", consumer="c")
    await client.hurry(Q, "a", consumer="c")
    asked = [(request.method, request.url.path.rpartition("/")[2]) for request in script.requests]
    assert asked == [("POST", "purge"), ("DELETE", "config"), ("POST", "skip"), ("POST", "hurry")]
    assert [sent(request) for request in script.requests[2:]] == [{"id": "a", "consumer": "c"}] * 2


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (ConsumerRules, models.ConsumerConfig),
        (Backoff, backoff.Backoff),
        (Consumer, models.ConsumerInfo),
        (QueueConfig, models.QueueConfig),
        (Explanation, models.Explanation),
        (Ended, models.Ended),
        (Line, models.Line),
        (LetterFilter, models_letters.LetterFilter),
        (Failed, models.Retry),
    ],
)
def test_what_the_client_knows_of_is_what_the_server_has(ours: type[Struct], theirs: type[Struct]) -> None:
    """A rule the client does not know would be lost when it replaces the others."""

    def defaults(kind: type[Struct]) -> dict[str, object]:
        return {field.name: str(field.default) for field in structs.fields(kind)}

    known, there = defaults(ours), defaults(theirs)
    assert known.keys() == there.keys()
    if ours not in (Consumer, Backoff):
        assert known == there
