from __future__ import annotations

import json
import re

import pytest

from edgequeues.core.errors import (
    DuplicateId,
    EdgeQueuesError,
    InvalidId,
    InvalidJson,
    InvalidRequest,
    TooLarge,
)
from edgequeues.http import envelope
from edgequeues.models import ENTRIES_MAX, ENTRY_BYTES_MAX, TTL_MS_MAX, NewEntry

VERSION = "000000000000001b@0a1b2c3d"
HALF = r'"\ud83d"'  # sends whatever holds it down the careful path


def body(*lines: str) -> bytes:
    return f'{{"entries":[{",".join(lines)}]}}'.encode(errors="surrogatepass")


def one(line: str) -> NewEntry:
    """The entry of `line`, read alone, in a body, and in a body that msgspec refuses: always the same."""
    alone = envelope.entry(line.encode())
    assert envelope.entries(body(line)) == [alone]
    assert envelope.entries(body(line, f'{{"data":{HALF}}}')) == [alone, NewEntry(HALF)]
    return alone


def refusal(line: str) -> EdgeQueuesError:
    """Why `line` is refused, with the same words alone, in a body, and in a body that msgspec refuses."""
    with pytest.raises(EdgeQueuesError) as caught:
        envelope.entry(line.encode())
    alone = caught.value
    for first in ('{"data":0}', f'{{"data":{HALF}}}'):
        with pytest.raises(type(alone)) as caught_in_body:
            envelope.entries(body(first, line))
        located = caught_in_body.value.detail
        assert located in (f"entries[1].{alone.detail}", f"entries[1]: {alone.detail}")
    return alone


# What is accepted


def test_data_alone_is_an_entry() -> None:
    for data in ("null", "true", "0", '""', "[]", "{}", '"x"', "[1, 2]", "1.0"):
        assert one(f'{{"data":{data}}}') == NewEntry(data)


def test_every_option_is_kept() -> None:
    line = (
        '{"id":"a.b","type":"Task","ttl_ms":1,"key":"customer 1","headers":{ "a" : "b" , "":"ü"},'
        f'"if_version":"{VERSION}","data":[1]}}'
    )
    assert one(line) == NewEntry("[1]", "a.b", "Task", 1, "customer 1", '{"a":"b","":"ü"}', VERSION)


def test_entries_come_in_the_order_sent() -> None:
    lines = [f'{{"data":{n},"id":"{n}"}}' for n in range(ENTRIES_MAX)]
    assert envelope.entries(body(*lines)) == [NewEntry(str(n), str(n)) for n in range(ENTRIES_MAX)]


@pytest.mark.parametrize(
    "data",
    [
        '{"z":1,"a":2,"z2":[ 1 ,\n2 ]}',
        '{ "b" : 1 }',
        '{"a":1,"a":2}',
        '{"a":"\\u0041\\/\\n","ü":"ü"}',
        "-0.0",
        "1E+2",
        '"\\u00e9 é \\ud83d\\ude00 \U0001f600"',
    ],
)
def test_data_is_kept_byte_for_byte_without_the_blanks_around_it(data: str) -> None:
    assert one(f'{{"data":{data}}}').data == data
    assert one(f' {{ "data" :\r\n\t {data} \n, "key" : "k" }} ') == NewEntry(data, key="k")


def test_oq_s06_numbers_survive_digit_for_digit() -> None:
    data = (
        '{"id": 731094455820113921, "neg": -9223372036854775808, '
        '"big": 123456789012345678901234567890, "f": 1.0, "tiny": 1e-400}'
    )
    assert one(f'{{"data":{data}}}') == NewEntry(data)
    long = f'{{"id":{"9" * 308},"@type":0.{"1" * 5_000}}}'
    assert one(f'{{"data":{long}}}') == NewEntry(long)


@pytest.mark.parametrize("number", ["1e400", "-1E+999", "9" * 400, "9" * 5_000])
def test_oq_s06_a_number_that_no_double_holds_is_refused(number: str) -> None:
    for data in (number, f"[{number}]", f'{{"id":{number}}}', f'{{"a":"1e5","e":{number} }}'):
        error = refusal(f'{{"data":{data}}}')
        assert isinstance(error, InvalidJson)
        assert re.fullmatch(r"data: byte \d+: number beyond double range", error.detail)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_oq_s06_what_is_not_a_number_is_not_json(constant: str) -> None:
    for line in (f'{{"data":{constant}}}', f'{{"data":{{"a":{constant},"b":{HALF}}}}}'):
        for read, text in ((envelope.entry, line.encode()), (envelope.entries, body(line))):
            with pytest.raises(InvalidJson, match=constant.removeprefix("-") + " is not JSON"):
                read(text)


@pytest.mark.parametrize(
    "data",
    [
        r'{"t":"cut \ud83d here"}',
        r'{"\uDC00":1,"b":[ 1 ]}',
        r'"\ud83d"',
        r'[{"t":"\ude00\ud83d"} , 123456789012345678901234567890 , "\u0000"]',
    ],
)
def test_oq_s07_halves_of_pairs_in_data_come_back_as_the_same_escapes(data: str) -> None:
    assert one(f'{{"data":{data}}}') == NewEntry(data)
    three = envelope.entries(body('{"data":1}', f'{{"data": {data} ,"key":"k"}}', '{"data":3,"id":"c"}'))
    assert three == [NewEntry("1"), NewEntry(data, key="k"), NewEntry("3", "c")]


def test_oq_s07_the_names_of_data_with_half_a_pair_are_read_all_the_same() -> None:
    data = r'{"t":"\ud83d","id":"a","@type":"T","x":{"id":1}}'
    assert one(f'{{"data":{data}}}') == NewEntry(data, "a", "T")


@pytest.mark.parametrize(
    "line",
    [
        r'{"data":1,"id":"a\ud83d"}',
        r'{"data":1,"type":"\ud83d"}',
        r'{"data":1,"key":"\udc00\ud83d"}',
        r'{"data":{"id":"a\ud83d"}}',
        r'{"data":{"@type":"\ud83d"}}',
    ],
)
def test_oq_s07_half_a_pair_in_an_id_type_or_key_is_refused(line: str) -> None:
    assert isinstance(refusal(line), InvalidId)


def test_oq_s07_half_a_pair_in_headers_stays_an_escape() -> None:
    assert one(r'{"data":1,"headers":{"a":"\ud83d é"}}').headers == r'{"a":"\ud83d \u00e9"}'


def test_oq_s08_nul_escapes_in_data_and_headers_are_kept() -> None:
    data = r'{"a":"x\u0000y","b":1}'
    new = one(rf'{{"data":{data},"headers":{{"h":"x\u0000y"}}}}')
    assert new == NewEntry(data, headers=r'{"h":"x\u0000y"}')


@pytest.mark.parametrize(
    "line",
    [
        r'{"data":1,"id":"a\u0000"}',
        r'{"data":1,"type":"a\u0000"}',
        r'{"data":1,"key":"\u0000"}',
        r'{"data":{"id":"a\u0000b"}}',
        r'{"data":{"@type":"\u0000"}}',
    ],
)
def test_oq_s08_a_nul_in_an_id_type_or_key_is_refused(line: str) -> None:
    error = refusal(line)
    assert isinstance(error, InvalidId)
    assert r"'\x00' is not allowed as character" in error.detail


# What the data says of itself


@pytest.mark.parametrize(
    ("line", "object_id", "type_name"),
    [
        ('{"data":{"id":"a","@type":"T"}}', "a", "T"),
        ('{"data":{"@type":"T","x":1,"id":"a"}}', "a", "T"),
        ('{"data":{"id":"a","@type":"T"},"id":"a","type":"T"}', "a", "T"),
        ('{"data":{"id":1,"@type":null},"id":"a","type":"T"}', "a", "T"),
        ('{"data":{"id":1,"@type":["T"]}}', None, None),
        ('{"data":{"id":{"id":"a"}}}', None, None),
        ('{"data":{"x":{"id":"a","@type":"T"}}}', None, None),
        ('{"data":{"x":{"id":"a","@type":"T"},"id":"b","y":[{"id":"c"}]}}', "b", None),
        ('{"data":{"x":"id","y":"@type"}}', None, None),
        ('{"data":{"ID":"a","type":"T"}}', None, None),
        ('{"data":[{"id":"a"}],"id":"b"}', "b", None),
        ('{"data":"{\\"id\\":\\"a\\"}"}', None, None),
        (r'{"data":{"\u0069d":"a","@typ\u0065":"T"}}', "a", "T"),
        (r'{"data":{"id":"\u0061","@type":"\u00e9"}}', "a", "é"),
        (r'{"data":{"id":"a"},"id":"\u0061"}', "a", None),
        (r'{"data":{"\"id":"a","id\\":"b"}}', None, None),
    ],
)
def test_id_and_type_come_from_the_data_where_it_has_them_as_strings(
    line: str, object_id: str | None, type_name: str | None
) -> None:
    new = one(line)
    assert (new.object_id, new.type) == (object_id, type_name)


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ('{"data":{"id":"a"},"id":"b"}', "id: 'b', but data.id is 'a'"),
        ('{"data":{"@type":"T"},"type":"t"}', "type: 't', but data[\"@type\"] is 'T'"),
        (r'{"data":{"id":"a","x":"\ud83d"},"id":"b"}', "id: 'b', but data.id is 'a'"),
    ],
)
def test_an_option_that_contradicts_the_data_is_refused(line: str, detail: str) -> None:
    error = refusal(line)
    assert isinstance(error, InvalidRequest)
    assert error.detail == detail


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ('{"id":"a","id":"a"}', "id"),
        ('{"id":"a","x":{"id":"b"},"id":"c"}', "id"),
        ('{"id":null,"id":1}', "id"),
        (r'{"id":"a","\u0069d":"b"}', "id"),
        (r'{"\u0069d":"a","i\u0064":"b"}', "id"),
        ('{"@type":"T","@type":"T"}', "@type"),
        (r'{"@type":"T","\u0040type":"U","x":"\ud83d"}', "@type"),
    ],
)
def test_data_that_names_itself_twice_is_refused(data: str, name: str) -> None:
    error = refusal(f'{{"data":{data}}}')
    assert isinstance(error, InvalidJson)
    assert error.detail == f"data: {name!r} given twice"


def test_any_other_name_may_come_twice_in_data() -> None:
    for data in ('{"a":1,"a":2}', '{"a":{"id":1,"id":2}}', '{"id":"a","x":[{"id":1,"id":2}],"x":0}'):
        assert one(f'{{"data":{data}}}').data == data


# What is refused


@pytest.mark.parametrize(
    ("line", "kind", "detail"),
    [
        ("1", InvalidRequest, "expected an object"),
        ("[]", InvalidRequest, "expected an object"),
        ("null", InvalidRequest, "expected an object"),
        ("{}", InvalidRequest, "data: missing"),
        ('{"id":"a"}', InvalidRequest, "data: missing"),
        ('{"data":1,"Id":"a"}', InvalidRequest, "Id: unknown field"),
        ('{"data":1,"dues":1}', InvalidRequest, "dues: unknown field"),
        ('{"data":1,"due":1,"delay_ms":1}', InvalidRequest, "due: give either due or delay_ms"),
        ('{"data":1,"due":-1}', InvalidRequest, "due: expected an integer from 0 to 253402300799999"),
        ('{"data":1,"priority":10}', InvalidRequest, "priority: expected an integer from 0 to 9"),
        ('{"data":1,"delay_ms":1.5}', InvalidRequest, "delay_ms: expected an integer from 0 to 31536000000"),
        ('{"data":1,"idempotency_key":""}', InvalidId, "idempotency key '': empty, character 1 is missing"),
        (r'{"data":1,"a b\u0000":1}', InvalidRequest, r"'a b\x00': unknown field"),
        (r'{"data":1,"\ud83d":1}', InvalidRequest, r"'\ud83d': unknown field"),
        ('{"data":1,"id":1}', InvalidRequest, "id: expected a string"),
        ('{"data":1,"key":null}', InvalidRequest, "key: expected a string"),
        ('{"data":1,"type":1}', InvalidRequest, "type: expected a string"),
        ('{"data":1,"key":["a"]}', InvalidRequest, "key: expected a string"),
        ('{"data":1,"if_version":1}', InvalidRequest, "if_version: expected a string"),
        (
            '{"data":1,"if_version":"1"}',
            InvalidRequest,
            "version '1': not <16 lower-case hex digits>@<actor>",
        ),
        ('{"data":1,"headers":[]}', InvalidRequest, "headers: expected an object of strings"),
        ('{"data":1,"headers":null}', InvalidRequest, "headers: expected an object of strings"),
        ('{"data":1,"headers":{"a":1}}', InvalidRequest, "headers.a: expected a string"),
        ('{"data":1,"id":"a b"}', InvalidId, "object id 'a b': ' ' is not allowed as character 2"),
        ('{"data":{"id":"a b"}}', InvalidId, "object id 'a b': ' ' is not allowed as character 2"),
        ('{"data":1,"id":""}', InvalidId, "object id '': empty, character 1 is missing"),
        ('{"data":1,"type":""}', InvalidId, "type name '': empty, character 1 is missing"),
        ('{"data":1,"key":""}', InvalidId, "ordering key '': empty, character 1 is missing"),
        ('{"data":1,"data":1}', InvalidJson, "data: given twice"),
        ('{"data":{"x":[1,"2"]},"data":{"x":[1,"2"]}}', InvalidJson, "data: given twice"),
        ('{"data":1,"id":"a","id":"a"}', InvalidJson, "id: given twice"),
        (r'{"data":1,"id":"a","\u0069d":"a"}', InvalidJson, "id: given twice"),
        ('{"ttl_ms":1,"data":1,"ttl_ms":2}', InvalidJson, "ttl_ms: given twice"),
        ('{"data":1,"headers":{},"headers":{}}', InvalidJson, "headers: given twice"),
        ('{"data":1,"headers":{"a":"1","a":"1"}}', InvalidJson, "headers.a: given twice"),
        ('{"data":1,"type":"a","type":"\\"\\""}', InvalidJson, "type: given twice"),
        (f'{{"data":{"[" * 65}{"]" * 65}}}', InvalidJson, "data: byte 64: nested more than 64 deep"),
    ],
)
def test_a_faulty_entry_is_refused_with_its_place(
    line: str, kind: type[EdgeQueuesError], detail: str
) -> None:
    error = refusal(line)
    assert type(error) is kind
    assert error.detail == detail


@pytest.mark.parametrize(
    "ttl", ["0", "-1", "1.0", "1e3", '"1"', "null", "true", str(TTL_MS_MAX + 1), "9" * 5_000]
)
def test_a_ttl_is_a_whole_number_of_milliseconds(ttl: str) -> None:
    error = refusal(f'{{"data":1,"ttl_ms":{ttl}}}')
    assert type(error) is InvalidRequest
    assert error.detail == f"ttl_ms: expected an integer from 1 to {TTL_MS_MAX}"


def test_a_ttl_may_be_as_long_as_a_century() -> None:
    assert one(f'{{"data":1,"ttl_ms":{TTL_MS_MAX}}}').ttl_ms == TTL_MS_MAX


def test_headers_have_a_number_and_a_size() -> None:
    many = {f"h{n}": "" for n in range(64)}
    large = {"h": "x" * (8 * 1024 - len('{"h":""}'))}
    for headers in ({}, many, large):
        assert one(json.dumps({"data": 1, "headers": headers})).headers == json.dumps(
            headers, separators=(",", ":")
        )
    assert refusal(json.dumps({"data": 1, "headers": {**many, "x": ""}})).detail == "headers: 65, at most 64"
    error = refusal(json.dumps({"data": 1, "headers": {"h": large["h"] + "x"}}))
    assert type(error) is InvalidRequest
    assert error.detail == "headers: 8193 bytes of JSON, at most 8192"


def test_headers_may_hold_quotes_and_backslashes() -> None:
    headers = {'"': '"\\"', "\\": "a\\", "etag": '"abc"'}
    text = one(json.dumps({"data": 1, "headers": headers, "type": '"'})).headers
    assert text == json.dumps(headers, separators=(",", ":"))


def test_data_is_measured_in_bytes() -> None:
    fits = '"' + "x" * (ENTRY_BYTES_MAX - 2) + '"'
    wide = '"' + "é" * (ENTRY_BYTES_MAX // 2 - 1) + '"'
    for data in (fits, wide):
        assert envelope.entry(f'{{"data":{data}}}'.encode()).data == data
    for data in (fits[:-1] + 'x"', wide[:-1] + 'x"'):
        error = refusal(f'{{"data":{data}}}')
        assert type(error) is TooLarge
        assert error.detail == f"data: {ENTRY_BYTES_MAX + 1} bytes, at most {ENTRY_BYTES_MAX}"


@pytest.mark.parametrize("data", ["1", HALF])
def test_a_call_has_at_least_one_entry_and_at_most_a_thousand(data: str) -> None:
    line = f'{{"data":{data}}}'
    assert len(envelope.entries(body(*[line] * ENTRIES_MAX))) == ENTRIES_MAX
    with pytest.raises(TooLarge, match="1001 entries, at most 1000"):
        envelope.entries(body(*[line] * (ENTRIES_MAX + 1)))
    with pytest.raises(InvalidRequest, match="entries: empty, at least one is needed"):
        envelope.entries(b'{"entries":[]}')


@pytest.mark.parametrize("data", ["1", HALF])
def test_one_call_names_an_object_once(data: str) -> None:
    lines = ['{"data":{"id":"a"}}', f'{{"data":{data}}}', '{"data":1,"id":"A"}', '{"data":2,"id":"a"}']
    with pytest.raises(DuplicateId) as caught:
        envelope.entries(body(*lines))
    assert caught.value.detail == "entries[0] and entries[3] are both 'a'"
    assert len(envelope.entries(body(*lines[:3]))) == 3


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        (b"", InvalidJson, "byte 0: "),
        (b"[]", InvalidRequest, "expected an object"),
        (b"{}", InvalidRequest, "entries: missing"),
        (b'{"entries":{}}', InvalidRequest, "entries: expected an array"),
        (b'{"entries":null}', InvalidRequest, "entries: expected an array"),
        (b'{"entries":[{"data":1}],"x":1}', InvalidRequest, "x: unknown field"),
        (b'{"entries":[{"data":1}],"entries":[{"data":1}]}', InvalidJson, "entries: given twice"),
        (b'{"entries":[{"data":1}]', InvalidJson, "byte 23: "),
        (b'{"entries":[{"data":1}]}}', InvalidJson, "byte 24: extra data"),
        (b'{"entries":[{"data":01}]}', InvalidJson, "byte 21: "),
        (b'{"entries":[{"data":"\xff"}]}', InvalidJson, "byte 21: not UTF-8"),
        (b'{"entries":[{"data":1,"id":"\xff"}]}', InvalidJson, "byte 28: not UTF-8"),
        (b'\xef\xbb\xbf{"entries":[{"data":1}]}', InvalidJson, "byte 0: "),
        (b'{"entries":[{"data":' + b"[" * 100_000, InvalidJson, "byte 81: nested more than 64 deep"),
        (b"[" * 100_000, InvalidJson, "byte 64: nested more than 64 deep"),
    ],
)
def test_a_faulty_body_is_refused(text: bytes, kind: type[EdgeQueuesError], detail: str) -> None:
    with pytest.raises(kind) as caught:
        envelope.entries(text)
    assert caught.value.detail.startswith(detail)


def test_a_line_is_one_json_text() -> None:
    for line in (b"", b" ", b'{"data":1}{"data":2}', b'{"data":1', b'{"data":"\xff"}', b'{"data":1}\x00'):
        with pytest.raises(InvalidJson, match=r"^byte \d+: "):
            envelope.entry(line)


@pytest.mark.parametrize("beside", ["", ',"key":"\\u0041"'])
def test_null_for_an_id_or_a_type_is_none_whatever_the_data_says(beside: str) -> None:
    line = '{"data":{"id":"no id","@type":"t"},"id":null,"type":null' + beside + "}"
    found = envelope.entry(line.encode())
    assert (found.object_id, found.type) == (None, None)
