"""A signed POST becomes a durable message, and its sender is told what became of it."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from edgequeues.spec.hooks import RECENT_MAX

from .fronted import FrontName
from .hooking import PAGERDUTY, PD, QUEUE, Hooked, github, hooked, one_hook, pagerduty, slack, twilio, written

FORM = (b"content-type", b"application/x-www-form-urlencoded")


@pytest.fixture
async def alerts(tmp_path: Path, front: FrontName) -> AsyncIterator[Hooked]:
    async with hooked(tmp_path, PAGERDUTY, front) as found:
        yield found


async def test_s2_45_a_call_is_answered_202_with_its_key_and_the_message_is_in_the_queue(
    alerts: Hooked,
) -> None:
    body = b'{"event": {"id": "e1", "n": 1.0e5}}'
    reply = await alerts.signed(body, (b"user-agent", b"PagerDuty-Webhook/V3.0"), (b"cookie", b"no"))
    assert reply.status == 202
    [entry] = await alerts.entries()
    assert reply.json() == {"ok": True, "queued": True, "idempotency_key": "e1", "message_id": entry["id"]}
    data = entry["data"]
    assert data["payload"] == {"event": {"id": "e1", "n": 100000}}
    assert data["headers"]["user-agent"] == "PagerDuty-Webhook/V3.0"
    assert "cookie" not in data["headers"]
    assert "x-pagerduty-signature" not in data["headers"]
    assert data["received_at"] == pytest.approx(alerts.now_s, abs=1)
    assert set(data) == {"payload", "headers", "source_ip", "received_at"}


async def test_the_payload_is_kept_as_it_came(alerts: Hooked) -> None:
    body = b'{"id" : 731094455820113921,  "x": 1.50e3, "s": "\\ud83d", "z": "\\u0000"}'
    await alerts.taken(body)
    raw = (await alerts.client.get("/v1/dxn:queue:ops:Incoming")).body
    assert body in raw


async def test_an_unknown_webhook_is_404(alerts: Hooked) -> None:
    reply = await alerts.signed(b"{}", hook="nobody")
    assert (reply.status, reply.code) == (404, "hook_not_found")


async def test_a_webhook_is_found_by_its_space_too(alerts: Hooked) -> None:
    assert (await alerts.signed(b'{"event":{"id":"1"}}', hook="ops/alert")).status == 202
    assert (await alerts.signed(b"{}", hook="other/alert")).status == 404


async def test_a_call_that_is_not_signed_is_401_and_nothing_is_stored(alerts: Hooked) -> None:
    for headers in ([], [(b"x-pagerduty-signature", b"v1=" + b"0" * 64)], [pagerduty(b"{}", "other")]):
        reply = await alerts.send(b"{}", *headers)
        assert (reply.status, reply.code) == (401, "bad_signature")
    assert await alerts.entries() == []
    counts = await alerts.counts()
    assert (counts["refused_missing"], counts["refused_mismatch"], counts["refused"]) == (1, 2, 3)


async def test_a_body_that_is_no_json_is_400(alerts: Hooked) -> None:
    for body in (b"", b"   ", b"{", b"{'a':1}", b'"\xff"', b"[" * 100 + b"]" * 100, b"1e999"):
        reply = await alerts.signed(body)
        assert (reply.status, reply.code) == (400, "invalid_json"), body
    assert await alerts.entries() == []


async def test_a_body_that_is_too_large_is_413_before_its_signature_counts(
    tmp_path: Path, front: FrontName
) -> None:
    async with hooked(tmp_path, PAGERDUTY, front, hook_body_bytes_max=2_000) as alerts:
        body = written({"x": "y" * 2_000})
        for headers in ((), (pagerduty(body),)):
            reply = await alerts.send(body, *headers)
            assert (reply.status, reply.code) == (413, "too_large")


async def test_a_media_type_that_is_neither_json_nor_a_form_is_415(alerts: Hooked) -> None:
    reply = await alerts.signed(b"<x/>", (b"content-type", b"text/xml"))
    assert (reply.status, reply.code) == (415, "unsupported_media_type")
    for kind in (b"application/json; charset=utf-8", b"application/cloudevents+json", b"text/plain"):
        await alerts.taken(written({"event": {"id": kind.decode()}}), (b"content-type", kind))


async def test_gzip_is_unpacked_within_bounds_and_signed_as_it_was_sent(
    tmp_path: Path, front: FrontName
) -> None:
    async with hooked(tmp_path, PAGERDUTY, front, hook_body_bytes_max=10_000) as alerts:
        coded = (b"content-encoding", b"gzip")
        await alerts.taken(gzip.compress(b'{"event":{"id":"z"}}'), coded)
        assert [one["payload"]["event"]["id"] for one in await alerts.messages()] == ["z"]
        bomb = gzip.compress(b'"' + b"a" * 5_000_000 + b'"')
        assert (await alerts.signed(bomb, coded)).status == 413
        cut = gzip.compress(b'{"a":1}')[:-3]
        for body in (cut, b"plain", gzip.compress(b"{}") + b"more"):
            assert (await alerts.signed(body, coded)).status == 400
        assert (await alerts.signed(b"{}", (b"content-encoding", b"br"))).status == 415


async def test_a_message_that_is_not_of_the_queues_type_is_400(tmp_path: Path, front: FrontName) -> None:
    spec = f"""
      queue Jobs {{ message_type {{ id: string }} }}
      webhook alert {{ queue: Jobs  {PD}  message {{ id: payload.id }} }}
    """
    async with hooked(tmp_path, spec, front) as alerts:
        reply = await alerts.signed(b'{"id": 7}')
        assert (reply.status, reply.code) == (400, "invalid_message")
        assert "message.id" in reply.json()["detail"]
        await alerts.taken(b'{"id": "7"}')
        assert await alerts.messages("Jobs") == [{"id": "7"}]


async def test_what_will_not_do_is_a_dead_letter_where_the_spec_says_so(
    tmp_path: Path, front: FrontName
) -> None:
    spec = f"""
      queue Jobs {{
        message_type {{ id: string }}  on_invalid: dead_letter  delivery {{ dead_letter_queue: Graves }}
      }}
      queue Graves {{ retention {{ max_age_seconds: 60 }} }}
      webhook alert {{ queue: Jobs  {PD}  message {{ id: payload.id }} }}
    """
    async with hooked(tmp_path, spec, front) as alerts:
        for body in (b'{"id": 7}', b"{", b'"\xff\xfe"'):
            reply = await alerts.signed(body)
            assert reply.status == 202
            said = reply.json()
            assert (said["queued"], said["state"]) == (False, "dead")
            again = await alerts.signed(body)
            assert (again.json()["duplicate"], again.json()["state"]) == (True, "dead")
        letters = await alerts.letters()
        assert [one["reason"] for one in letters] == ["malformed"] * 3
        assert [one["originalMessage"] for one in letters] == [{"id": 7}, "{", "Iv/+Ig=="]
        assert "id" in letters[0]["lastError"]


async def test_what_the_filter_does_not_hold_for_is_told_so(tmp_path: Path, front: FrontName) -> None:
    spec = f'{QUEUE} webhook alert {{ queue: Incoming  {PD}  filter: payload.type != "ping" }}'
    async with hooked(tmp_path, spec, front) as alerts:
        reply = await alerts.signed(b'{"type":"ping"}')
        assert (reply.status, reply.json()) == (200, {"ok": True, "filtered": True})
        await alerts.taken(b'{"type":"pong"}')
        assert len(await alerts.entries()) == 1
        assert (await alerts.counts()) == {"filtered": 1, "queued": 1}


async def test_each_element_of_an_array_is_a_message(tmp_path: Path, front: FrontName) -> None:
    spec = f"""{QUEUE} webhook alert {{
      queue: Incoming  {PD}  for_each: payload.events  idempotency_key: item.id
    }}"""
    async with hooked(tmp_path, spec, front) as alerts:
        body = b'{"events": [{"id":"a","n":1.0}, {"id":"b"}, {"id":"a"}]}'
        said = await alerts.taken(body)
        assert [(one["idempotency_key"], one.get("duplicate")) for one in said["messages"]] == [
            ("a", None),
            ("b", None),
            ("a", True),
        ]
        assert said["queued"] is True
        assert [one["payload"]["id"] for one in await alerts.messages()] == ["a", "b"]
        assert b'{"id":"a","n":1.0}' in (await alerts.client.get("/v1/dxn:queue:ops:Incoming")).body
        again = await alerts.signed(body)
        assert all(one["duplicate"] for one in again.json()["messages"])
        nothing = await alerts.signed(b'{"events": []}')
        assert (nothing.status, nothing.json()) == (200, {"ok": True, "queued": False, "messages": []})
        for wrong in (b"{}", b'{"events": 7}'):
            assert (await alerts.signed(wrong)).status == 400
        many = written({"events": [{"id": str(n)} for n in range(1_001)]})
        assert (await alerts.signed(many)).status == 413


async def test_a_repeat_is_told_the_state_and_the_result_of_the_first(alerts: Hooked) -> None:
    body = b'{"event":{"id":"e1"}}'
    first = await alerts.taken(body)
    again = await alerts.taken(body)
    assert again == first | {"duplicate": True}
    [held] = await alerts.pull()
    await alerts.ack(held, results={held["lease"]: {"incident": 7}})
    done = await alerts.signed(body)
    assert done.status == 200
    assert done.json() == {
        "ok": True,
        "queued": False,
        "idempotency_key": "e1",
        "message_id": first["message_id"],
        "duplicate": True,
        "state": "processed",
        "result": {"incident": 7},
    }


async def test_a_signed_body_does_not_pass_again_under_another_header(
    tmp_path: Path, front: FrontName
) -> None:
    spec = one_hook("alert", "hmac", "X-Hub-Signature-256", "GH")
    async with hooked(tmp_path, spec, front) as alerts:
        body = b'{"zen":"x"}'
        first = await alerts.send(body, github(body), (b"x-github-delivery", b"d-1"))
        assert first.json()["idempotency_key"] == "d-1"
        again = await alerts.send(body, github(body), (b"x-github-delivery", b"d-2"))
        assert (again.status, again.json()["duplicate"]) == (202, True)
        other = b'{"zen":"y"}'
        known = await alerts.send(other, github(other), (b"x-github-delivery", b"d-1"))
        assert known.json()["duplicate"] is True  # the id of the provider tells as well
        assert len(await alerts.entries()) == 1


async def test_without_an_id_of_its_own_a_body_is_known_by_its_digest(
    tmp_path: Path, front: FrontName
) -> None:
    spec = f"{QUEUE} webhook alert {{ queue: Incoming  verify: none }}"
    async with hooked(tmp_path, spec, front) as alerts:
        first = (await alerts.send(b'{"a":1}')).json()
        assert first["idempotency_key"].startswith("sha256:")
        assert (await alerts.send(b'{"a":1}')).json()["duplicate"] is True
        assert "duplicate" not in (await alerts.send(b'{"a":2}')).json()


async def test_the_address_decides_where_the_spec_names_some(tmp_path: Path) -> None:
    spec = f'{QUEUE} webhook alert {{ queue: Incoming  {PD}  allow_ips: ["10.0.0.0/8", "2001:db8::1"] }}'
    async with hooked(tmp_path, spec, trusted_proxies=["127.0.0.1"]) as alerts:
        body = b'{"event":{"id":"1"}}'
        for forwarded, status in (
            (b"10.1.2.3", 202),
            (b"8.8.8.8, 10.1.2.3", 202),
            (b"10.1.2.3, 8.8.8.8", 403),
            (b"2001:db8::1", 202),
            (b"junk", 403),
        ):
            reply = await alerts.signed(body, (b"x-forwarded-for", forwarded))
            assert reply.status == status, forwarded
        assert (await alerts.signed(body)).status == 403
        [message] = await alerts.messages()
        assert message["source_ip"] == "10.1.2.3"


async def test_without_a_trusted_proxy_nobody_says_where_he_is(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY) as alerts:
        await alerts.taken(b'{"event":{"id":"1"}}', (b"x-forwarded-for", b"10.1.2.3"))
        [message] = await alerts.messages()
        assert message["source_ip"] == "127.0.0.1"


async def test_slacks_question_whose_the_address_is_is_answered_when_it_is_signed(
    tmp_path: Path, front: FrontName
) -> None:
    spec = one_hook("alert", "hmac", "X-Slack-Signature", "SLACK")
    async with hooked(tmp_path, spec, front) as alerts:
        body = b'{"type":"url_verification","challenge":"3eZbrw1a"}'
        reply = await alerts.send(body, *slack(body, alerts.now_s))
        assert (reply.status, reply.json()) == (200, {"challenge": "3eZbrw1a"})
        assert (await alerts.send(body)).status == 401
        assert await alerts.entries() == []


async def test_twilio_signs_the_address_it_was_given(tmp_path: Path, front: FrontName) -> None:
    spec = one_hook("sms", "hmac", "X-Twilio-Signature", "TWILIO")
    fields = {"Body": "Hi there", "MessageSid": "SM1"}
    body = b"MessageSid=SM1&Body=Hi+there"
    async with hooked(tmp_path, spec, front, public_base_url="https://hooks.example.com") as alerts:
        signature = twilio(fields, "https://hooks.example.com/hook/sms")
        reply = await alerts.client.ask(
            "POST", "/hook/sms", body, headers=[(b"host", b"hooks.example.com"), signature, FORM], host=False
        )
        assert (reply.status, reply.json()["idempotency_key"]) == (202, "SM1")
        [message] = await alerts.messages()
        assert message["payload"] == fields
        other = twilio(fields, "http://localhost:8700/hook/sms")
        assert (await alerts.send(body, other, FORM, hook="sms")).status == 401


async def test_a_sender_that_wants_twiml_is_told_in_it(tmp_path: Path, front: FrontName) -> None:
    spec = f'{QUEUE} webhook alert {{ queue: Incoming  {PD}  answer: twiml  filter: payload.type != "ping" }}'
    async with hooked(tmp_path, spec, front) as alerts:
        for body, status in (
            (b'{"event":{"id":"1"}}', 202),
            (b'{"event":{"id":"1"}}', 202),
            (b'{"type":"ping"}', 200),
        ):
            reply = await alerts.signed(body)
            assert (reply.status, reply.headers["content-type"]) == (status, "text/xml; charset=utf-8")
            assert reply.body.endswith(b"<Response></Response>")
        refused = await alerts.send(b"{}")
        assert (refused.status, refused.code) == (401, "bad_signature")
        assert len(await alerts.entries()) == 1


async def test_where_no_address_is_set_the_host_header_counts(tmp_path: Path) -> None:
    spec = one_hook("sms", "hmac", "X-Twilio-Signature", "TWILIO")
    async with hooked(tmp_path, spec) as alerts:
        signature = twilio({"MessageSid": "SM1"}, "http://localhost:8700/hook/sms?a=b")
        reply = await alerts.send(b"MessageSid=SM1", signature, FORM, hook="sms?a=b")
        assert reply.status == 202


async def test_a_shared_token_is_compared(tmp_path: Path, front: FrontName) -> None:
    spec = one_hook("tg", "token", "X-Token", "TG")
    async with hooked(tmp_path, spec, front) as alerts:
        assert (await alerts.send(b"{}", (b"x-token", b"tg-dummy"), hook="tg")).status == 202
        for token in (b"", b"tg-dumm", b"tg-dummy2", b"\xff"):
            assert (await alerts.send(b"{}", (b"x-token", token), hook="tg")).status == 401
        [message] = await alerts.messages()
        assert "x-token" not in message["headers"]


async def test_a_message_has_the_fields_that_the_spec_computes(tmp_path: Path, front: FrontName) -> None:
    spec = f"""
      queue Jobs {{ message_type {{ id: string  all: json  kind: string?  agent: string? }} }}
      webhook alert {{
        queue: Jobs  {PD}  headers: ["x-kind"]
        message {{ id: payload.event.id  all: payload  kind: headers["X-Kind"]  agent: headers["x-missing"] }}
      }}
    """
    async with hooked(tmp_path, spec, front) as alerts:
        await alerts.taken(b'{"event":{"id":"1"} }', (b"x-kind", b"blue"))
        assert await alerts.messages("Jobs") == [
            {"id": "1", "all": {"event": {"id": "1"}}, "kind": "blue", "agent": None}
        ]


async def test_s2_83_a_full_queue_is_503_with_retry_after(tmp_path: Path, front: FrontName) -> None:
    """Unsigned calls are still 401, and repeats still 2xx."""
    async with hooked(tmp_path, PAGERDUTY.replace("max_depth: 1000", "max_depth: 1"), front) as alerts:
        await alerts.taken(b'{"event":{"id":"1"}}')
        reply = await alerts.signed(b'{"event":{"id":"2"}}')
        assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "queue_full", "5")
        assert (await alerts.taken(b'{"event":{"id":"1"}}'))["duplicate"] is True
        assert (await alerts.send(b'{"event":{"id":"2"}}')).status == 401
        assert (await alerts.counts())["shed"] == 1
        [held] = await alerts.pull()
        await alerts.ack(held)
        assert "duplicate" not in await alerts.taken(b'{"event":{"id":"2"}}')


# -- what became of calls ---------------------------------------------------------------------------------


async def test_the_last_calls_are_told_one_by_one(tmp_path: Path, front: FrontName) -> None:
    spec = f"""{QUEUE} webhook alert {{
      queue: Incoming  {PD}  for_each: payload.events  idempotency_key: item.id
    }}"""
    async with hooked(tmp_path, spec, front) as alerts:
        await alerts.signed(b'{"events": [{"id":"a"}]}')
        await trio.sleep(2)
        await alerts.signed(b'{"events": [{"id":"a"}, {"id":"b"}]}')
        await alerts.signed(b'{"events": []}')
        await alerts.signed(b"{")
        await alerts.send(b"{}")
        recent = await alerts.recent()
        assert [(one["status"], one["outcome"]) for one in recent] == [
            (202, "queued"),
            (202, "duplicate,queued"),
            (200, "nothing"),
            (400, "invalid"),
            (401, "refused_missing"),
        ]
        assert recent[1]["at"] - recent[0]["at"] == 2_000
        assert (await alerts.counts())["queued"] == 2


async def test_of_very_many_calls_the_last_are_remembered(tmp_path: Path) -> None:
    async with hooked(tmp_path, PAGERDUTY) as alerts:
        for n in range(RECENT_MAX + 3):
            assert (await alerts.signed(b'{"event":{"id":"%d"}}' % max(n, 3))).status == 202
        outcomes = [one["outcome"] for one in await alerts.recent()]
        assert outcomes == [
            "duplicate",
            *["queued"] * (RECENT_MAX - 1),
        ]  # the first three calls are forgotten
