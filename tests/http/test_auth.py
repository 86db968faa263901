"""Who needs a token, how far it reaches, and what everybody may do. In virtual time."""

from __future__ import annotations

import logging
from pathlib import Path

import apsw
import pytest
import trio

from edgequeues.control import FILE_NAME
from edgequeues.http.auth import LOOK_S

from .dxos_queue import OTHER_SPACE, QUEUE, SPACE, Queue, body, note, refused
from .world import Header, World, bearer, challenged, denied, heeded, worlds

Q = "dxn:queue:demo:log"
LOG = f"/v1/{Q}"
ENTRY = {"entries": [{"data": 1}]}
PROXIED = (b"x-forwarded-for", b"203.0.113.9")


# -- when a token is needed -------------------------------------------------------------------------------


async def test_without_any_token_everybody_on_this_machine_may_do_everything(world: World) -> None:
    client = await world.open()
    await client.append(Q, 1)
    assert (await client.get("/v1/spaces", bearer("eq_never_made"))).status == 200
    assert (await client.get(LOG, (b"authorization", b"Basic YTpi"))).status == 200


@pytest.mark.parametrize("header", [PROXIED, (b"forwarded", b"for=203.0.113.9")])
async def test_a_request_that_came_through_a_proxy_is_not_of_this_machine(
    world: World, header: Header
) -> None:
    client = await world.open()
    assert challenged(await client.get("/v1/spaces", header))
    assert challenged(await client.post(LOG, ENTRY, header))
    assert (await client.get("/v1/spaces")).json()["spaces"] == []


async def test_the_first_token_counts_within_a_second_and_so_does_its_end(world: World) -> None:
    client = await world.open()
    assert (await client.get("/v1/spaces")).status == 200
    token = world.token()
    await heeded()
    assert challenged(await client.get("/v1/spaces"))
    assert (await client.get("/v1/spaces", token)).status == 200
    world.revoke()
    await heeded()
    assert challenged(await client.get("/v1/spaces", token))
    assert challenged(await client.get("/v1/spaces"))  # and not open again


async def test_between_two_looks_at_the_file_the_server_asks_nothing_of_the_disk(world: World) -> None:
    client = await world.open()
    assert (await client.get("/v1/spaces")).status == 200
    world.token()
    await trio.sleep(LOOK_S / 2)
    assert (await client.get("/v1/spaces")).status == 200
    await trio.sleep(LOOK_S / 2)
    assert challenged(await client.get("/v1/spaces"))


async def test_tokens_made_before_the_start_count_at_once(world: World) -> None:
    token = world.token()
    client = await world.open()
    assert challenged(await client.get("/v1/spaces"))
    assert (await client.get("/v1/spaces", token)).status == 200


async def test_required_needs_a_token_even_where_there_is_none(world: World) -> None:
    client = await world.open(auth="required")
    assert challenged(await client.get("/v1/spaces"))


async def test_off_needs_none_even_where_there_are_some(world: World) -> None:
    world.token()
    client = await world.open(auth="off")
    assert (await client.get("/v1/spaces", PROXIED)).status == 200
    assert (await client.get("/v1/spaces", bearer("eq_never_made"))).status == 200


async def test_while_the_file_is_being_written_what_was_known_holds(world: World) -> None:
    token = world.token()
    client = await world.open()
    writer = apsw.Connection(str(world.folder / FILE_NAME))
    writer.execute("BEGIN EXCLUSIVE; UPDATE tokens SET revoked_ts = 1")
    await heeded()
    assert (await client.get("/v1/spaces", token)).status == 200
    assert challenged(await client.get("/v1/spaces"))
    writer.execute("COMMIT")
    await heeded()
    assert challenged(await client.get("/v1/spaces", token))


# -- tokens -----------------------------------------------------------------------------------------------


async def test_a_token_that_does_not_hold_is_refused_though_there_is_a_grant_to_everybody(
    world: World,
) -> None:
    good, gone = world.token(), world.token(name="gone")
    ended = world.token(expires_in_ms=500)
    world.revoke("gone")
    world.let_everybody("read")
    client = await world.open()
    assert (await client.get(LOG, ended)).status == 200
    await trio.sleep(0.5)
    for wrong in (gone, ended, bearer("eq_x_y"), bearer("\xff"), (good[0], good[1] + b"x")):
        reply = await client.get(LOG, wrong)
        assert challenged(reply)
        assert reply.json()["detail"].startswith("the token is unknown, revoked or expired. ")
    assert (await client.get(LOG, good)).status == 200


async def test_the_scheme_of_a_token_may_be_in_any_case(world: World) -> None:
    name, value = world.token()
    client = await world.open()
    for scheme in (b"bearer ", b"BEARER ", b"Bearer   "):
        assert (await client.get("/v1/spaces", (name, value.replace(b"Bearer ", scheme)))).status == 200
    for scheme in (b"Basic ", b"", b"Bearer"):
        assert challenged(await client.get("/v1/spaces", (name, value.replace(b"Bearer ", scheme))))


async def test_a_token_of_another_folder_is_unknown(world: World, tmp_path: Path) -> None:
    world.token()
    async with worlds(tmp_path / "other", world.front) as other:
        foreign = other.token()
    client = await world.open()
    assert challenged(await client.get("/v1/spaces", foreign))


async def test_a_refused_token_is_in_no_answer_and_no_log(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    client = await world.open(auth="required")
    caplog.set_level(logging.DEBUG)
    reply = await client.get("/v1/spaces", bearer("eq_id_very-secret"))
    assert challenged(reply)
    assert b"very-secret" not in reply.body
    assert "very-secret" not in caplog.text


async def test_a_token_reaches_as_far_as_its_spaces_and_queues(world: World) -> None:
    token = world.token("read", "append", spaces=["demo"], queues=["log*"])
    client = await world.open()
    assert (await client.post(LOG, ENTRY, token)).status == 200
    assert (await client.get(f"{LOG}2", token)).status == 200
    for path in ("/v1/dxn:queue:other:log", "/v1/dxn:queue:demo:lo", f"/v1/dxn:queue:{SPACE}:{QUEUE}"):
        reply = await client.post(path, ENTRY, token)
        assert denied(reply) == "forbidden"
    reply = await client.ask("DELETE", LOG + "?id=x", headers=[token])
    assert denied(reply) == "forbidden"
    assert "the token does not let you delete queue log of space demo. " in reply.json()["detail"]


async def test_every_form_of_an_address_is_the_same_to_a_token(world: World) -> None:
    token = world.token("read", spaces=["demo"], queues=["log"])
    client = await world.open()
    for form in (
        Q,
        "dxn:queue:data:demo:log",
        "dxn:queue:trace:demo:log",
        "dxn:edge:queue:demo:log",
        "dxn%3Aqueue:demo:log",
    ):
        assert (await client.get(f"/v1/{form}", token)).status == 200
    assert (await client.get(f"/v1/{Q}:id", token)).status == 404
    for form in ("dxn:queue:data:other:log", "dxn:edge:queue:other:log", "dxn:queue:other:log:id"):
        assert denied(await client.get(f"/v1/{form}", token)) == "forbidden"


async def test_the_list_of_spaces_needs_a_token_for_all_of_them(world: World) -> None:
    some = world.token("list", spaces=["demo*"])
    all_spaces = world.token("list")
    part = world.token("list", queues=["log"])
    client = await world.open()
    assert denied(await client.get("/v1/spaces", some)) == "forbidden"
    assert (await client.get("/v1/spaces", all_spaces)).status == 200
    assert (await client.get("/v1/spaces/demo/queues", some)).status == 200
    assert denied(await client.get("/v1/spaces/other/queues", some)) == "forbidden"
    assert denied(await client.get("/v1/spaces/demo/queues", part)) == "forbidden"


# -- what everybody may do --------------------------------------------------------------------------------


async def test_a_grant_to_everybody_lets_dxos_clients_into_one_space(world: World) -> None:
    world.let_everybody("read", "append", "delete", spaces=[SPACE])
    client = await world.open()
    queue = Queue(client)
    await queue.insert(note(1))
    assert (await queue.query()).numbers == [1]
    await queue.delete(f"?ids={note(1)['id']}")
    for tag in ("data", "trace"):
        reply = await Queue(client, tag, OTHER_SPACE).send(body([note(1)]))
        assert (reply.status, refused(reply)) == (401, "unauthenticated")
        assert reply.headers["www-authenticate"] == 'Bearer realm="edgequeues"'
    assert challenged(await client.get("/v1/spaces"))
    assert challenged(await client.get(f"{queue.native}/config".replace(SPACE, OTHER_SPACE)))
    assert challenged(await client.ask("PUT", f"{queue.native}/config", b"{}"))


async def test_a_token_adds_to_what_everybody_may_do(world: World) -> None:
    world.let_everybody("read", spaces=["public"])
    token = world.token("append", spaces=["demo"])
    client = await world.open()
    assert (await client.post(LOG, ENTRY, token)).status == 200
    assert (await client.get("/v1/dxn:queue:public:log", token)).status == 200
    assert denied(await client.get(LOG, token)) == "forbidden"
    assert challenged(await client.get(LOG))


async def test_a_grant_to_everybody_alone_closes_all_else(world: World) -> None:
    world.let_everybody("read", spaces=["public"])
    client = await world.open()
    assert challenged(await client.get("/v1/spaces"))


async def test_the_dxos_dialect_refuses_in_its_own_words(world: World) -> None:
    reader = world.token("read", spaces=[SPACE])
    queue = Queue(await world.open())
    reply = await queue.ask()
    assert (reply.status, refused(reply)) == (401, "unauthenticated")
    assert "www-authenticate" in reply.headers
    assert (await queue.ask("", reader)).status == 200
    reply = await queue.send(body([note(1)]), reader)
    assert (reply.status, refused(reply)) == (403, "forbidden")
    assert "www-authenticate" not in reply.headers
