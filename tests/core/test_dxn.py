from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgequeues.core import dxn
from edgequeues.core.dxn import Dxn
from edgequeues.core.errors import InvalidDxn, InvalidId

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
DXOS_SPACE = "BA25QRC2FEWCSAMRP4RZL65LWJ7352CKE"

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,25}", fullmatch=True)
spaces = names.filter(lambda name: name not in ("data", "trace"))
objects = st.from_regex(r"[A-Za-z0-9._~-]{1,40}", fullmatch=True)
tags = st.sampled_from(dxn.Tag.__args__)  # type: ignore[attr-defined]
addresses = st.builds(Dxn, spaces, names, st.none() | objects, tags)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("dxn:queue:s:q", Dxn("s", "q")),
        ("dxn:queue:s:q:o", Dxn("s", "q", "o")),
        ("dxn:queue:data:s:q", Dxn("s", "q")),
        ("dxn:queue:data:s:q:o", Dxn("s", "q", "o")),
        ("dxn:queue:trace:s:q", Dxn("s", "q", tag="trace")),
        ("dxn:queue:trace:s:q:o", Dxn("s", "q", "o", "trace")),
        ("dxn:edge:queue:s:q", Dxn("s", "q")),
        ("dxn:edge:queue:s:q:o", Dxn("s", "q", "o")),
        ("dxn:edge:queue:data:s:q", Dxn("s", "q")),
        ("dxn:edge:queue:trace:s:q:o", Dxn("s", "q", "o", "trace")),
        ("echo://s/q", Dxn("s", "q")),
        ("echo://s/q/o", Dxn("s", "q", "o")),
        ("dxn:queue:s:data", Dxn("s", "data")),
        ("dxn:queue:data:s:trace:data", Dxn("s", "trace", "data")),
        (f"dxn:queue:{DXOS_SPACE}:{ULID.lower()}", Dxn(DXOS_SPACE, ULID.lower())),
        ("dxn:queue:s:q:..", Dxn("s", "q", "..")),
    ],
)
def test_every_form_of_the_contract_is_accepted(text: str, address: Dxn) -> None:
    assert dxn.parse(text) == address


@given(addresses)
def test_what_is_printed_parses_to_the_same_address(address: Dxn) -> None:
    assert dxn.parse(str(address)) == address


@given(addresses)
def test_every_form_of_one_address_is_printed_alike(address: Dxn) -> None:
    tail = str(address).removeprefix("dxn:queue:")
    assert dxn.parse(f"dxn:edge:queue:{tail}") == address
    if address.tag == "data":
        assert dxn.parse(f"dxn:queue:data:{tail}") == address
        assert dxn.parse(f"echo://{tail.replace(':', '/')}") == address


@given(addresses)
def test_a_shard_tells_space_and_tag(address: Dxn) -> None:
    assert dxn.from_shard(address.shard) == (address.space, address.tag)


def test_traces_live_in_a_shard_of_their_own() -> None:
    assert dxn.parse("dxn:queue:s:q").shard == "s"
    assert dxn.parse("dxn:queue:trace:s:q").shard == "s~trace"


@pytest.mark.parametrize(
    "name", ["", "~trace", "s~data", "s~", "s~trace~trace", "data", "trace~trace", "s.db"]
)
def test_a_file_that_is_no_shard_is_refused(name: str) -> None:
    with pytest.raises(InvalidId):
        dxn.from_shard(name)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "begins with none of"),
        ("dxn:queue", "begins with none of"),
        ("DXN:queue:s:q", "begins with none of"),
        ("dxn:echo:s:q", "begins with none of"),
        ("dxn:edge:s:q", "begins with none of"),
        (" dxn:queue:s:q", "begins with none of"),
        ("echo:/s/q", "begins with none of"),
        ("dxn:queue:", "1 part(s) where <space>:<queue>[:<object>] belongs"),
        ("dxn:queue:s", "1 part(s) where"),
        ("dxn:queue:data:s", "1 part(s) where"),
        ("dxn:queue:s:q:o:x", "4 part(s) where"),
        ("echo://s", "1 part(s) where <space>/<queue>[/<object>] belongs"),
        ("echo://s/q/o/x", "4 part(s) where"),
        ("echo://data/q", "space id 'data': a tag is never a space"),
        ("dxn:queue:data:trace:q", "space id 'trace': a tag is never a space"),
        ("dxn:queue::q", "space id '': empty"),
        ("dxn:queue:s:", "queue id '': empty"),
        ("dxn:queue:s:q:", "object id '': empty"),
        ("echo://s/q/", "object id '': empty"),
        ("dxn:queue:s%20:q", "space id 's%20': '%' is not allowed as character 2"),
        ("dxn:queue:s:q:a/b", "object id 'a/b': '/' is not allowed as character 2"),
        ("dxn:queue:s:q\n", "queue id 'q\\n': '\\n' is not allowed as character 2"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong_and_where(text: str, fault: str) -> None:
    with pytest.raises(InvalidDxn) as caught:
        dxn.parse(text)
    assert fault in caught.value.detail
    assert repr(text) in caught.value.detail


@given(st.text() | st.text(alphabet=":/abdtrace~", max_size=30).map("dxn:queue:".__add__))
def test_no_text_is_answered_with_anything_but_an_address_or_a_refusal(text: str) -> None:
    try:
        address = dxn.parse(text)
    except InvalidDxn as error:
        error.detail.encode()
    else:
        assert dxn.parse(str(address)) == address
