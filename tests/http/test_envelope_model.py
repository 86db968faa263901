"""Random entries against a model that reads with the standard library and follows the contract to the letter."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from edgequeues.core.backoff import DELAY_MS_MAX
from edgequeues.core.errors import EdgeQueuesError
from edgequeues.http import envelope
from edgequeues.models import PRIORITY, TTL_MS_MAX, UNIX_MS_MAX, NewEntry

INTEGERS = {
    "ttl_ms": (1, TTL_MS_MAX),
    "priority": (0, 9),
    "due": (0, UNIX_MS_MAX),
    "delay_ms": (0, DELAY_MS_MAX),
}
FIELDS = ("data", "id", "type", "key", "headers", "if_version", "idempotency_key", *INTEGERS)
VERSION = "000000000000001b@0a1b2c3d"
BESIDE = '{"data":"\\ud83d"}'  # an entry that sends a whole body down the careful path

strings = st.sampled_from(["a", "b", "T", "", "a b", "\0", "\ud83d", "é", '"', "\\", "x" * 129]).map(
    json.dumps
)
scalars = strings | st.sampled_from(["0", "1", "-1", "1.5", "null", "true", "1e400", "1e308", "9" * 30])
integers = st.sampled_from(["1", "5", "9", " 1"] * 4 + ["0", "-1", "10", "1.5", "null", '"1"', "9" * 30])
escaped_names = ["id", "@type", "x", "\\u0069d", "@typ\\u0065", "\\ud83d", 'i\\"d']


def object_of(names: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    member = st.tuples(names, st.sampled_from([":", " : "]), values).map(
        lambda parts: '"{}"{}{}'.format(*parts)
    )
    return st.lists(member, max_size=4).map(lambda members: "{" + ", ".join(members) + "}")


datas = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | object_of(st.sampled_from(escaped_names), inner)
    ),
    max_leaves=6,
)
options = st.fixed_dictionaries(
    {"data": datas},
    optional={
        "id": strings | st.just("null"),
        "type": strings | st.just("null"),
        "key": strings,
        "headers": object_of(st.sampled_from(["a", "b", "\\ud83d"]), strings) | scalars,
        "if_version": strings | st.just(f'"{VERSION}"'),
        "idempotency_key": strings,
        **dict.fromkeys(INTEGERS, integers),
    },
)
extras = st.lists(st.tuples(st.sampled_from([*FIELDS, "i\\u0064", "dues"]), scalars), max_size=1)


class Wrong(Exception):
    pass


def reject_duplicates(pairs: list[tuple[str, Any]], names: tuple[str, ...]) -> dict[str, Any]:
    found = [name for name, _ in pairs if name in names]
    if len(found) != len(set(found)):
        raise Wrong
    return dict(pairs)


def own_string(data: Any, name: str) -> str | None:
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, str) else None


def fits(text: str | None, pattern: str) -> str | None:
    if text is not None and not re.fullmatch(pattern, text):
        raise Wrong
    return text


def model(line: str, data: str) -> NewEntry:
    """The entry, or Wrong. `data`: the text that stands for the data, if it comes but once."""
    pairs = json.loads(line, object_pairs_hook=lambda pairs: pairs)
    sent = reject_duplicates(pairs, FIELDS)
    if set(sent) - set(FIELDS) or "1e400" in data:
        raise Wrong
    value = json.loads(data)
    if isinstance(value, dict):
        reject_duplicates(json.loads(data, object_pairs_hook=lambda pairs: pairs), ("id", "@type"))
    for name in ("id", "type", "key", "if_version", "idempotency_key"):
        null_allowed = name in ("id", "type") and name in sent and sent[name] is None
        if not (null_allowed or isinstance(sent.get(name, ""), str)):
            raise Wrong
    for name, own in (("id", own_string(value, "id")), ("type", own_string(value, "@type"))):
        if own is not None and sent.setdefault(name, own) not in (own, None):
            raise Wrong
    for name, (low, high) in INTEGERS.items():
        if name in sent and (type(sent[name]) is not int or not low <= sent[name] <= high):
            raise Wrong
    if "due" in sent and "delay_ms" in sent:
        raise Wrong
    headers = None
    if "headers" in sent:
        if not isinstance(sent["headers"], list) or not re.search(r'"headers":\{', line):
            raise Wrong
        headers = reject_duplicates(sent["headers"], ("a", "b", "\ud83d"))
    printable = "[^\0\ud800-\udfff]"
    return NewEntry(
        data,
        fits(sent.get("id"), r"[A-Za-z0-9._~-]{1,128}"),
        fits(sent.get("type"), printable + "{1,512}"),
        sent.get("ttl_ms"),
        fits(sent.get("key"), printable + "{1,256}"),
        None if headers is None else json.dumps(headers),
        fits(sent.get("if_version"), VERSION),
        priority=sent.get("priority", PRIORITY),
        due=sent.get("due"),
        delay_ms=sent.get("delay_ms"),
        idempotency_key=fits(sent.get("idempotency_key"), printable + "{1,256}"),
    )


def read(line: str) -> set[NewEntry | type[EdgeQueuesError]]:
    """What becomes of `line` alone, in a body, and in a body that msgspec refuses."""
    found: set[NewEntry | type[EdgeQueuesError]] = set()
    for text in (None, f'{{"entries":[{line}]}}', f'{{"entries":[{line},{BESIDE}]}}'):
        try:
            found.add(envelope.entry(line.encode()) if text is None else envelope.entries(text.encode())[0])
        except EdgeQueuesError as error:
            found.add(type(error))
    return found


@given(options, extras, st.randoms(use_true_random=False))
def test_entries_are_read_as_the_contract_says_by_either_path(
    sent: dict[str, str], extra: list[tuple[str, str]], random: Any
) -> None:
    members = [*sent.items(), *extra]
    random.shuffle(members)
    line = "{" + ",".join(f'"{name}":{value}' for name, value in members) + "}"
    [outcome] = read(line)
    try:
        expected = model(line, sent["data"])
    except Wrong:
        event("refused")
        assert isinstance(outcome, type)
        return
    event("accepted")
    assert isinstance(outcome, NewEntry)
    assert json.loads(outcome.headers or "null") == json.loads(expected.headers or "null")
    assert replace(outcome, headers=None) == replace(expected, headers=None)
