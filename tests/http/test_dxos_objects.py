from __future__ import annotations

import json
import re

import pytest

from edgequeues.core.errors import EdgeQueuesError, InvalidId, InvalidJson, InvalidRequest, TooLarge
from edgequeues.http import dxos_objects
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, Entry, NewEntry

ID = "01M8FKA3WZEBT1AM92PBD0K8XJ"
OTHER = "01m8fka3wzebt1am92pbd0k8xk"
TYPE = "dxn:type:example.com/type/Note:0.1.0"
NEWER, OLDER = "org.dxos.key.queue-position", "dxos.org/key/queue-position"
HALF = f'{{"id":"{OTHER}","half":"\\ud83d"}}'  # sends the body that holds it down the careful path
GITHUB = '{"source":"github.com","id":"42"}'
MADE = f'{{"source":"{OLDER}","id":"7"}},{{"source":"{NEWER}","id":"7"}}'
APPENDED = f'{{"source":"{NEWER}","id":"7"}},{{"source":"{OLDER}","id":"7"}}'


def body(*texts: str) -> bytes:
    return f'{{"objects":[{",".join(texts)}]}}'.encode()


def one(text: str) -> NewEntry:
    """The object of `text`, alone and beside one that msgspec refuses: the same."""
    [alone] = dxos_objects.objects(body(text))
    assert dxos_objects.objects(body(HALF, text))[-1] == alone
    return alone


def refusal(text: str) -> EdgeQueuesError:
    """Why `text` is refused, with the same words on either path."""
    found = []
    for first in (f'{{"id":"{OTHER}"}}', HALF):
        with pytest.raises(EdgeQueuesError) as caught:
            dxos_objects.objects(body(first, text))
        found.append((type(caught.value), caught.value.detail))
    assert found[0] == found[1]
    assert caught.value.detail.startswith("objects[1]")
    return caught.value


def stored(data: str, object_id: str = ID, position: int = 7) -> Entry:
    return Entry(object_id, position, "v", None, 1, 1, None, None, None, data)


def shown(data: str, object_id: str = ID) -> str:
    rendered = dxos_objects.render(stored(data, object_id))
    assert rendered is not None
    return rendered.decode()


# What is inserted


def test_an_object_becomes_an_entry_with_its_id_and_type() -> None:
    text = f'{{"id":"{ID}","@type":"{TYPE}","n":1}}'
    assert one(text) == NewEntry(text, ID, TYPE)


def test_objects_come_in_the_order_sent_and_any_number_of_them() -> None:
    ids = [f"01M8FKA3WZEBT1AM92PBD0{n:04d}" for n in range(2 * ENTRIES_MAX)]
    found = dxos_objects.objects(body(*[f'{{"id":"{each}"}}' for each in ids]))
    assert [each.object_id for each in found] == ids
    assert dxos_objects.objects(body()) == []


@pytest.mark.parametrize(
    "text",
    [
        f'{{ "z" : 1.0 ,"id":\n"{ID}" , "a":[ 1 ,2], "a":0 }}',
        f'{{"id":"{ID}","n":123456789012345678901234567890,"t":"\\u00e9 \\ud83d \\u0000 é"}}',
        f'{{"id":"{OTHER}","@meta":{{"keys":[]}},"inner":{{"id":1,"@type":2,"@meta":3}}}}',
        f'{{"id":"{ID}","@meta":{{ "keys" : [ {GITHUB} ] , "keys":[]}}}}',
        f'{{"id":"{ID}","@meta":[],"note":"queue-position"}}',
        f'{{"id":"{ID}","@meta":{{"keys":5}},"note":"{NEWER}"}}',
    ],
)
def test_every_byte_stays_as_received(text: str) -> None:
    assert one(text).data == text


@pytest.mark.parametrize("kind", ["1", "null", '["T"]', '{"T":1}', "true"])
def test_a_type_that_is_no_string_is_kept_and_not_used(kind: str) -> None:
    text = f'{{"id":"{ID}","@type":{kind}}}'
    assert one(text) == NewEntry(text, ID, None)


def test_names_in_escapes_count() -> None:
    text = f'{{"\\u0069d":"{ID}","@\\u0074ype":"T"}}'
    assert one(text) == NewEntry(text, ID, "T")


def test_of_an_id_given_twice_the_last_counts_at_its_place() -> None:
    first, second, again = f'{{"id":"{ID}","n":1}}', f'{{"id":"{OTHER}"}}', f'{{"id":"{ID}","n":2}}'
    found = dxos_objects.objects(body(first, second, again))
    assert [each.data for each in found] == [second, again]
    assert [each.data for each in dxos_objects.objects(body(first, second, first))] == [second, first]


def test_other_members_of_the_body_are_ignored() -> None:
    text = f'{{"id":"{ID}"}}'
    for late in ('"x":{"objects":1}', '"objec\\u0074":"objects"', '"half":"\\ud83d"', '"objects\\"":1'):
        sent = f' {{ "v": 1e400, "objects" : [ {text} ] , {late} }} '.encode()
        assert [each.data for each in dxos_objects.objects(sent)] == [text]


@pytest.mark.parametrize(
    ("text", "error", "detail"),
    [
        ("1", InvalidRequest, ": expected an object"),
        ("[]", InvalidRequest, ": expected an object"),
        ("{}", InvalidRequest, ".id: missing"),
        (f'{{"inner":{{"id":"{ID}"}}}}', InvalidRequest, ".id: missing"),
        ('{"id":1}', InvalidRequest, ".id: expected a string"),
        ('{"id":null}', InvalidRequest, ".id: expected a string"),
        ('{"id":"x"}', InvalidId, ".id: 'x' is not a ULID"),
        ('{"id":"\\ud83d"}', InvalidId, ".id: '\\ud83d' is not a ULID"),
        (f'{{"id":"8{ID[1:]}"}}', InvalidId, f".id: '8{ID[1:]}' is not a ULID"),
        (f'{{"id":"{ID}","@type":""}}', InvalidId, ".@type: type name '': "),
        (f'{{"id":"{ID}","@type":"\\ud83d"}}', InvalidId, ".@type: type name "),
        (f'{{"id":"{ID}","id":"{ID}"}}', InvalidJson, ".id: given twice"),
        (f'{{"id":"{ID}","\\u0069d":1}}', InvalidJson, ".id: given twice"),
        (f'{{"id":"{ID}","@type":"T","@type":"T"}}', InvalidJson, ".@type: given twice"),
        (f'{{"id":"{ID}","@meta":0,"@meta":0}}', InvalidJson, ".@meta: given twice"),
        (f'{{"id":"{ID}","@meta":0,"\\u0040meta":0}}', InvalidJson, ".@meta: given twice"),
        (f'{{"id":"{ID}","n":1e400}}', InvalidJson, ": byte 39: number beyond double range"),
    ],
)
def test_an_object_is_refused_by_its_place(text: str, error: type[Exception], detail: str) -> None:
    refused = refusal(text)
    assert type(refused) is error
    assert refused.detail.startswith(f"objects[1]{detail}")


def test_an_object_may_be_nested_64_deep() -> None:
    for levels, fine in ((63, True), (64, False)):
        text = f'{{"id":"{ID}","n":{"[" * levels}{"]" * levels}}}'
        if fine:
            assert one(text).data == text
        else:
            assert re.search("nested more than 64 deep", refusal(text).detail)


def test_the_size_bound_is_on_what_is_stored() -> None:
    def sized(size: int) -> str:
        return f'{{"id":"{ID}","t":"{"x" * (size - 42)}"}}'

    largest = one(sized(ENTRY_BYTES_MAX))
    assert len(largest.data) == ENTRY_BYTES_MAX
    assert one(shown(largest.data)) == largest
    wide = sized(ENTRY_BYTES_MAX).replace("xx", "é")
    assert one(wide).data == wide
    assert isinstance(refusal(wide.replace("éé", "ééé", 1)), TooLarge)
    refused = refusal(sized(ENTRY_BYTES_MAX + 1))
    assert isinstance(refused, TooLarge)
    assert refused.detail == f"objects[1]: {ENTRY_BYTES_MAX + 1} bytes, at most {ENTRY_BYTES_MAX}"


@pytest.mark.parametrize(
    ("sent", "error", "detail"),
    [
        (b"", InvalidJson, "byte 0: "),
        (b'{"objects":[}', InvalidJson, "byte "),
        (b'{"objects":["\xff"]}', InvalidJson, "byte 13: not UTF-8"),
        (b'{"x":"\xff","objects":[]}', InvalidJson, "byte 6: not UTF-8"),
        (b'{"objects":[]}x', InvalidJson, "byte 14: "),
        (b'{"objects":' + b"[" * 9_999, InvalidJson, "byte 74: nested more than 64 deep"),
        (b"[]", InvalidRequest, "expected an object"),
        (b"1", InvalidRequest, "expected an object"),
        (b"{}", InvalidRequest, "objects: missing"),
        (b'{"x":{"objects":[]}}', InvalidRequest, "objects: missing"),
        (b'{"objects":{}}', InvalidRequest, "objects: expected an array"),
        (b'{"objects":null}', InvalidRequest, "objects: expected an array"),
        (b'{"objects":[],"objects":[]}', InvalidJson, "objects: given twice"),
        (b'{"objects":[],"\\u006fbjects":[]}', InvalidJson, "objects: given twice"),
    ],
)
def test_a_body_is_refused(sent: bytes, error: type[Exception], detail: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(detail)}") as caught:
        dxos_objects.objects(sent)
    assert type(caught.value) is error


# What is shown


@pytest.mark.parametrize("data", ["1", "null", '"{}"', "[]", "[{}]"])
def test_what_is_no_object_is_not_shown(data: str) -> None:
    assert dxos_objects.render(stored(data)) is None


def test_an_id_that_is_no_ulid_is_not_shown() -> None:
    for object_id in ("x", ID[1:], f"8{ID[1:]}", "a." * 13):
        assert dxos_objects.render(stored("{}", object_id)) is None
        assert dxos_objects.render(stored(f'{{"id":"{object_id}","@meta":{{"keys":[]}}}}', object_id)) is None


def test_a_page_leaves_out_what_cannot_be_shown() -> None:
    entries = [
        stored("1"),
        stored(f'{{"id":"{ID}"}}'),
        stored("{}", "x"),
        stored(f'{{"id":"{OTHER}"}}', OTHER),
    ]
    found = json.loads(b"[" + b",".join(dxos_objects.texts(entries)) + b"]")
    assert [each["id"] for each in found] == [ID, OTHER]
    assert dxos_objects.texts([]) == dxos_objects.texts(entries[:1]) == []


def test_both_keys_are_appended_to_the_keys_there_are() -> None:
    before, after = f'{{"id":"{ID}","@type":"T","@meta":{{"keys":[', ']},"n":1}'
    assert shown(before + after) == before + APPENDED + after
    assert shown(before + GITHUB + after) == f"{before}{GITHUB},{APPENDED}{after}"
    spaced = f'{{"@meta" : {{ "x":0 , "keys" : [ {GITHUB} ]}}, "id" : "{ID}" }}'
    assert shown(spaced) == spaced.replace(GITHUB, f"{GITHUB},{APPENDED}")


def test_the_keys_are_made_where_there_are_none() -> None:
    assert shown(f'{{"id":"{ID}" }}') == f'{{"@meta":{{"keys":[{MADE}]}},"id":"{ID}" }}'
    for inner in ("", " ", '"tags":[]'):
        text = f'{{"id":"{ID}","@meta":{{{inner}}}}}'
        comma = "," if inner.strip() else ""
        assert shown(text) == f'{{"id":"{ID}","@meta":{{"keys": [{MADE}]{comma}{inner}}}}}'


def test_a_text_without_the_id_gets_it() -> None:
    for text in ("{}", "{ }", '{"a":1}', '{"@meta":{"keys":[]}}', '{"inner":{"id":1}}'):
        found = json.loads(shown(text))
        assert found.pop("id") == ID
        assert len(found.pop("@meta")["keys"]) == 2
        assert found == {name: value for name, value in json.loads(text).items() if name != "@meta"}


@pytest.mark.parametrize("own", ["1", "null", '{"id":1}', '"x"', f'"{OTHER}"', '"\\ud83d"'])
def test_another_id_in_the_text_is_replaced(own: str) -> None:
    text = f'{{"a":[ 0.0 ] ,"id" : {own} ,"@meta":{{"keys":[]}}}}'
    assert shown(text) == text.replace(own, f'"{ID}"', 1).replace("[]", f"[{APPENDED}]")
    start = f'{{"id":{own},"@meta":{{"keys":['
    assert shown(start + "]}}") == start.replace(own, f'"{ID}"', 1) + APPENDED + "]}}"


def test_the_same_id_in_escapes_is_left_alone() -> None:
    text = f'{{"id":"\\u0030{ID[1:]}","@meta":{{"keys":[]}}}}'
    assert shown(text) == text.replace("[]", f"[{APPENDED}]")


@pytest.mark.parametrize(
    "meta", ["1", "null", "[]", '"x"', '{"keys":null}', '{"keys":{}}', '{"keys":[],"keys":0}']
)
def test_a_meta_no_client_could_read_is_replaced(meta: str) -> None:
    text = f'{{"id":"{ID}","@type":"T","@meta":{meta},"n":1}}'
    found = json.loads(shown(text))
    assert [key["source"] for key in found.pop("@meta")["keys"]][-2:] in ([NEWER, OLDER], [OLDER, NEWER])
    assert found == {"id": ID, "@type": "T", "n": 1}


def test_position_keys_of_another_queue_are_replaced() -> None:
    for other in (APPENDED, APPENDED.replace('"7"', '"1"'), f'{{"id":1,"source":"{NEWER}"}} , {GITHUB}'):
        text = f'{{"id":"{ID}","@meta":{{"keys":[{other}]}}}}'
        kept = GITHUB in other
        assert shown(text) == text.replace(other, f"{GITHUB},{APPENDED}" if kept else APPENDED)


# Read, and inserted again


@pytest.mark.parametrize("name", [NEWER, OLDER, OLDER.replace("/", "\\/"), OLDER.replace("-", "\\u002d")])
def test_position_keys_are_cut_out_however_they_are_written(name: str) -> None:
    key = f'{{ "id":"1", "source" : "{name}", "half":"\\ud83d" }}'
    start, end = f'{{"id":"{ID}","@meta":{{"keys":[ ', ' ]},"n":1}'
    for sent, kept in [
        (key, ""),
        (f"{key} , {key}", ""),
        (f"{key} , {GITHUB} , 1", f"{GITHUB} , 1"),
        (f"{GITHUB} , {key}", GITHUB),
        (f"{GITHUB} , {key} , {key}, 1 ,{key}", f"{GITHUB}, 1"),
    ]:
        assert one(start + sent + end).data == start + kept + end


def test_an_object_read_and_written_anew_by_a_client_is_what_was_stored_if_that_was_compact() -> None:
    for text in (
        f'{{"id":"{ID}","@type":"{TYPE}","n":1}}',
        f'{{"id":"{ID}","@type":"{TYPE}","@meta":{{"keys":[]}},"n":1}}',
        f'{{"id":"{ID}","@type":"{TYPE}","@meta":{{"keys":[{GITHUB}]}},"n":1}}',
    ):
        anew = json.dumps(json.loads(shown(text)), separators=(",", ":"))
        assert one(anew).data == text


def test_a_made_meta_that_was_moved_stays_without_position_keys() -> None:
    moved = json.loads(shown(f'{{"id":"{ID}","n":1}}'))
    moved["@meta"] = moved.pop("@meta")
    assert json.loads(one(json.dumps(moved)).data) == {"id": ID, "n": 1, "@meta": {"keys": []}}


def test_what_only_looks_like_made_keys_leaves_valid_json() -> None:
    for meta in (
        f'{{"keys": [{MADE}] ,"a":1}}',
        f'{{"keys": [{MADE}] }}',
        f'{{"keys": [{MADE}],"keys":[{APPENDED}]}}',
    ):
        found = json.loads(one(f'{{"id":"{ID}","@meta":{meta}}}').data)
        assert not found["@meta"].get("keys")
