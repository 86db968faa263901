"""The DXOS dialect: what is inserted, queried and deleted. The wording of answers is test_dxos_wire's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgequeues.models import ENTRIES_MAX

from .asgi import Client
from .dxos_queue import (
    NEWER,
    OLDER,
    OTHER_QUEUE,
    OTHER_SPACE,
    POSITION_SOURCES,
    Queue,
    body,
    note,
    oid,
    refused,
)

MANY = ENTRIES_MAX + ENTRIES_MAX // 2  # more than a turn takes and a page holds


@pytest.fixture
def queue(client: Client) -> Queue:
    return Queue(client)


@pytest.fixture
async def filled(queue: Queue) -> Queue:
    """Ten objects."""
    await queue.insert(*map(note, range(10)))
    return queue


def positions(shown: Any) -> set[str]:
    """What the position keys of an object say."""
    return {key["id"] for key in shown["@meta"]["keys"] if key["source"] in POSITION_SOURCES}


# -- insert ----------------------------------------------------------------------------------------------


async def test_objects_come_back_in_the_order_sent_whatever_their_ids(queue: Queue) -> None:
    await queue.insert(note(5), note(3))
    await queue.insert(note(4))
    assert (await queue.query()).numbers == [5, 3, 4]


async def test_an_insert_of_nothing_makes_nothing(queue: Queue) -> None:
    await queue.insert()
    assert (await queue.client.get("/v1/spaces")).json()["spaces"] == []


async def test_one_insert_may_hold_more_objects_than_a_turn_takes(queue: Queue) -> None:
    await queue.insert(*map(note, range(MANY)))
    assert (await queue.query()).numbers == list(range(MANY))
    tag = (await queue.ask()).headers["etag"]
    await queue.insert(*map(note, range(MANY)))
    assert (await queue.ask()).headers["etag"] == tag


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"7", "invalid_request"),
        (b'{"n":1}', "invalid_request"),
        (b'{"id":"door"}', "invalid_id"),
        (b'{"id":"%b","n":1e999}' % oid(1).encode(), "invalid_json"),
        (b'{"id":"%b","id":"%b"}' % (oid(1).encode(), oid(2).encode()), "invalid_json"),
    ],
)
async def test_one_bad_object_refuses_all_that_are_sent_with_it(queue: Queue, bad: bytes, code: str) -> None:
    """Also what would have been in an earlier turn."""
    good = body(map(note, range(10, 10 + ENTRIES_MAX + 5)))
    reply = await queue.send(good[:-2] + b"," + bad + b"]}")
    assert (reply.status, refused(reply)) == (400, code)
    assert f"objects[{ENTRIES_MAX + 5}]" in reply.json()["message"]
    assert (await queue.client.get("/v1/spaces")).json()["spaces"] == []


async def test_the_same_insert_again_changes_nothing(filled: Queue) -> None:
    before = await filled.ask()
    await filled.insert(note(7), note(2))
    after = await filled.ask()
    assert (after.body, after.headers["etag"]) == (before.body, before.headers["etag"])


async def test_an_object_that_was_read_may_be_sent_again_as_it_is(filled: Queue) -> None:
    before = await filled.ask()
    await filled.insert(*(await filled.query()).objects)
    assert (await filled.ask()).body == before.body


async def test_an_object_that_changed_moves_to_the_tail_where_followers_see_it(filled: Queue) -> None:
    end = (await filled.query()).next
    await filled.insert(note(3, done=True))
    seen = await filled.query(f"?after={end}")
    assert [(one["n"], one["done"]) for one in seen.objects] == [(3, True)]
    assert (await filled.query()).numbers == [0, 1, 2, 4, 5, 6, 7, 8, 9, 3]


async def test_ids_that_differ_in_case_are_two_objects(queue: Queue) -> None:
    await queue.insert(note(1), {**note(2), "id": oid(1).lower()})
    assert (await queue.query(f"?objectIds={oid(1).lower()}")).numbers == [2]
    assert len((await queue.query()).objects) == 2


async def test_data_is_stored_byte_for_byte_and_shown_so_natively_without_position_keys(queue: Queue) -> None:
    text = (
        f'{{"id":"{oid(1)}", "@meta":{{"keys":[{{"source":"{NEWER}","id":"9"}}]}},'
        f'"ref":{{"/":"dxn:echo:@:{oid(2)}"}},"big":123456789012345678901234567890,"half":"\\ud83d","f":1.0}}'
    )
    reply = await queue.send(f'{{"objects":[{text}]}}'.encode())
    assert reply.status == 201, reply.body
    stored = text.replace(f'{{"source":"{NEWER}","id":"9"}}', "")
    assert f'"data":{stored}}}'.encode() in (await queue.client.get(f"{queue.native}:{oid(1)}")).body
    shown = (await queue.ask()).body.decode()
    assert stored.partition('"keys":[')[2].removeprefix("]") in shown


async def test_an_object_shows_its_position_under_both_names_and_as_the_native_protocol_has_it(
    filled: Queue,
) -> None:
    await filled.delete(f"?ids={oid(0)}")
    entries = (await filled.client.get(filled.native)).json()["entries"]
    shown = (await filled.query()).objects
    assert [positions(one) for one in shown] == [{str(entry["position"])} for entry in entries]
    for one in shown:
        assert {key["source"] for key in one["@meta"]["keys"]} == {NEWER, OLDER}
    assert [entry["data"] for entry in entries] == [note(n) for n in range(1, 10)]


async def test_a_queue_that_lets_no_object_change_says_so(filled: Queue) -> None:
    assert (await filled.client.patch(f"{filled.native}/config", {"mutable": False})).status == 200
    reply = await filled.send(body([note(10), note(3, done=True)]))
    assert (reply.status, refused(reply)) == (409, "exists")
    assert (await filled.query()).numbers == list(range(10))


# -- which queue -----------------------------------------------------------------------------------------


async def test_queues_spaces_and_tags_are_apart(filled: Queue) -> None:
    others = [
        Queue(filled.client, queue=OTHER_QUEUE),
        Queue(filled.client, space=OTHER_SPACE),
        Queue(filled.client, "trace"),
    ]
    for number, other in enumerate(others):
        assert (await other.query()).objects == []
        await other.insert(note(number, other=True))
        assert (await other.query()).numbers == [number]
        await other.delete(f"?ids={oid(number)},{oid(5)}")
        assert (await other.query()).objects == []
    assert (await filled.query()).numbers == list(range(10))


async def test_an_unknown_queue_reads_as_empty_and_is_not_made(queue: Queue) -> None:
    assert await queue.query() == ([], None, None)
    await queue.delete(f"?ids={oid(1)}")
    assert (await queue.client.get("/v1/spaces")).json()["spaces"] == []
    await Queue(queue.client, queue=OTHER_QUEUE).insert(note(1))
    assert await queue.query("?reverse=true&limit=5") == ([], None, None)
    await queue.delete(f"?ids={oid(1)}")
    [only] = (await queue.client.get(f"/v1/spaces/{queue.path.split('/')[3]}/queues")).json()["queues"]
    assert only["id"] == OTHER_QUEUE


# -- query -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?", list(range(10))),
        ("?limit=3", [0, 1, 2]),
        ("?limit=0", []),
        ("?limit=5000000000", list(range(10))),
        ("?reverse=true", list(range(9, -1, -1))),
        ("?reverse=true&limit=2", [9, 8]),
        ("?reverse=false&limit=2", [0, 1]),
        (f"?objectIds={oid(7)}%2C{oid(2)}", [2, 7]),
        (f"?objectIds={oid(7)},{oid(2)},{oid(7)}", [2, 7]),
        (f"?objectIds={oid(7)}&objectIds={oid(2)}", [2, 7]),
        (f"?objectIds={oid(7)}&objectIds=", [7]),
        (f"?objectIds={oid(7)},{oid(2)}&reverse=true&limit=1", [7]),
        (f"?objectIds={oid(77)}", []),
        (f"?objectIds={oid(77)},{oid(1)}", [1]),
        ("?objectIds=", []),
        ("?objectIds=&limit=3", []),
        ("?after=&before=&limit=&reverse=", list(range(10))),
        ("?limit=2&lmit=1&type=none&since=x&wait=5", [0, 1]),
    ],
)
async def test_a_query_is_what_its_parameters_say_and_others_say_nothing(
    filled: Queue, query: str, expected: list[int]
) -> None:
    assert (await filled.query(query)).numbers == expected


async def test_cursors_are_exclusive_and_can_be_combined(filled: Queue) -> None:
    third, seventh = await filled.cursor(3), await filled.cursor(7)
    assert (await filled.query(f"?after={third}&before={seventh}")).numbers == [4, 5, 6]
    assert (await filled.query(f"?after={third}&before={seventh}&reverse=true&limit=2")).numbers == [6, 5]
    assert (await filled.query(f"?after={third}&objectIds={oid(2)},{oid(8)}")).numbers == [8]
    assert (await filled.query(f"?after={seventh}&before={third}")).objects == []


async def test_next_is_the_highest_and_prev_the_lowest_in_either_direction(filled: Queue) -> None:
    ends = (await filled.cursor(9), await filled.cursor(0))
    for query in ("", "?reverse=true"):
        found = await filled.query(query)
        assert (found.next, found.prev) == ends


@pytest.mark.parametrize("more", ["", "&limit=0", "&objectIds=", f"&objectIds={oid(77)}"])
async def test_an_empty_answer_gives_back_its_cursors_to_go_on_with(filled: Queue, more: str) -> None:
    first, last = await filled.cursor(0), await filled.cursor(9)
    assert await filled.query(f"?after={last}{more}") == ([], last, None)
    assert await filled.query(f"?before={first}{more}") == ([], None, first)


async def test_a_cursor_outlives_what_it_points_at_and_no_position_is_used_again(filled: Queue) -> None:
    last = await filled.cursor(9)
    await filled.delete(f"?ids={oid(9)},{oid(8)}")
    await filled.insert(note(8), note(10))
    assert (await filled.query(f"?after={last}")).numbers == [8, 10]


@pytest.mark.parametrize("query", ["", "?reverse=true", f"?limit={MANY + 5}", "?reverse=true&limit=1200"])
async def test_what_fills_several_pages_is_one_json_text_with_the_cursors_of_its_ends(
    queue: Queue, query: str
) -> None:
    count = 2 * ENTRIES_MAX + 100
    await queue.insert(*map(note, range(count)))
    expected = list(range(count))[:: -1 if "reverse" in query else 1]
    expected = expected[: int(query.rpartition("limit=")[2])] if "limit" in query else expected
    found = await queue.query(query)
    assert found.numbers == expected
    assert (found.next, found.prev) == (await queue.cursor(max(expected)), await queue.cursor(min(expected)))


# -- what is not shown -----------------------------------------------------------------------------------


async def put(queue: Queue, layout: str) -> list[int]:
    """Objects (`o`) and what no client may see (`.`), in this order; return the numbers of the objects."""
    hidden: list[Any] = [5, {"id_is": "no ULID"}, [1], None]
    entries = [
        {"data": note(number)} if kind == "o" else {"data": hidden[number % 4], "id": f"hidden-{number}"}
        for number, kind in enumerate(layout)
    ]
    for start in range(0, len(entries), ENTRIES_MAX):
        reply = await queue.client.post(queue.native, {"entries": entries[start : start + ENTRIES_MAX]})
        assert reply.status == 200, reply.body
    return [number for number, kind in enumerate(layout) if kind == "o"]


async def walk(queue: Queue, limit: int, *, reverse: bool = False) -> list[list[int]]:
    """The pages of a client that takes a short one for the last."""
    pages: list[list[int]] = []
    query = f"?limit={limit}" + ("&reverse=true" if reverse else "")
    cursor: str | None = ""
    while True:
        found = await queue.query(query + (f"&{'before' if reverse else 'after'}={cursor}" if cursor else ""))
        pages.append(found.numbers)
        if len(found.objects) < limit:
            return pages
        cursor = found.prev if reverse else found.next
        assert cursor is not None


LAYOUTS = [
    "....",
    "....oo",
    "oo....",
    "o.o.o.o.o",
    ".o..o...o....oo.",
    "ooo" + "." * (ENTRIES_MAX + 10) + "ooo",
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout[:16])
async def test_paging_counts_what_is_shown_and_never_ends_early(queue: Queue, layout: str) -> None:
    objects = await put(queue, layout)
    for limit in (1, 2, 5):
        for reverse in (False, True):
            expected = objects[::-1] if reverse else objects
            pages = await walk(queue, limit, reverse=reverse)
            assert pages == [expected[start : start + limit] for start in range(0, len(expected) + 1, limit)]
    assert (await queue.query()).numbers == objects
    assert (await queue.query("?reverse=true")).numbers == objects[::-1]


async def test_what_is_not_shown_is_passed_by_the_cursors_and_not_picked_by_id(queue: Queue) -> None:
    await put(queue, "oo....")
    assert (await queue.query()).next == (await queue.client.get(queue.native)).json()["nextCursor"]
    reply = await queue.client.post(queue.native, {"entries": [{"id": oid(70), "data": 5}]})
    assert reply.status == 200
    assert (await queue.query(f"?objectIds={oid(70)},{oid(1)}&limit=2")).numbers == [1]


async def test_an_object_that_was_appended_natively_is_shown_with_the_id_it_got(queue: Queue) -> None:
    reply = await queue.client.post(queue.native, {"entries": [{"data": {"@type": "dxn:type:x:0.1.0"}}]})
    [shown] = (await queue.query()).objects
    assert shown["id"] == reply.json()["results"][0]["id"]


# -- delete ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "gone"),
    [
        (f"?ids={oid(3)}%2C{oid(5)}", [3, 5]),
        (f"?ids={oid(3)}&ids={oid(5)},{oid(3)}", [3, 5]),
        (f"?ids={oid(77)}", []),
        (f"?ids={oid(77)},{oid(5)}", [5]),
        ("?ids=", []),
        ("?ids=,&ids=", []),
    ],
)
async def test_delete_removes_the_objects_that_are_named(filled: Queue, query: str, gone: list[int]) -> None:
    for _ in range(2):  # again: no more
        await filled.delete(query)
        assert (await filled.query()).numbers == [n for n in range(10) if n not in gone]


async def test_delete_leaves_no_tombstone(filled: Queue) -> None:
    end = await filled.cursor(9)
    await filled.delete(f"?ids={oid(3)}")
    assert (await filled.query(f"?after={end}")).objects == []
    assert b"deleted" not in (await filled.ask()).body


async def test_delete_between_cursors_leaves_both_ends(filled: Queue) -> None:
    third, seventh = await filled.cursor(3), await filled.cursor(7)
    await filled.delete(f"?after={third}&before={seventh}")
    assert (await filled.query()).numbers == [0, 1, 2, 3, 7, 8, 9]
    await filled.delete(f"?before={third}")
    await filled.delete(f"?after={seventh}")
    assert (await filled.query()).numbers == [3, 7]


async def test_a_list_of_ids_wins_over_cursors_be_it_empty(filled: Queue) -> None:
    await filled.delete(f"?ids=&before={await filled.cursor(9)}")
    assert len((await filled.query()).objects) == 10


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "invalid_request"),
        (f"?id={oid(3)}", "invalid_request"),
        ("?after=", "invalid_request"),
        ("?after=&before=x", "invalid_request"),
        ("?before=x", "invalid_cursor"),
        ("?ids=door", "invalid_id"),
        (f"?ids={oid(3)},door", "invalid_id"),
    ],
)
async def test_a_delete_that_does_not_say_what_is_refused(filled: Queue, query: str, code: str) -> None:
    reply = await filled.client.delete(filled.path + query)
    assert (reply.status, refused(reply)) == (400, code)
    assert len((await filled.query()).objects) == 10


async def test_delete_between_cursors_of_a_space_that_is_not_there_checks_them(queue: Queue) -> None:
    reply = await queue.client.delete(queue.path + "?before=x")
    assert refused(reply) == "invalid_cursor"
    assert json.loads(reply.body)["success"] is False
