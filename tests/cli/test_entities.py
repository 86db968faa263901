from __future__ import annotations

import json

import pytest

from .shell import Shell

SPEC = b"""
app shop {
  queue orders {
    message_type { order: string  n: int }
    map_to: command Order.UpsertOrder { entity_id: order  state: n == 0 ? "new" : "paid"  n: n }
  }
}
"""


@pytest.fixture
def shop(shell: Shell) -> Shell:
    """A space `shop` with the orders a, b and c; c was changed once."""
    shell.ok("spec", "apply", str(shell.file("shop.spec", SPEC)))
    lines = [json.dumps({"order": name, "n": n}) for n, name in enumerate("abc")] + ['{"order":"c","n":7}']
    shell.ok("push", "dxn:queue:shop:orders", stdin="\n".join(lines).encode())
    for _ in range(100):  # commands are carried out while a server runs, which is while a command line does
        if [one["version"] for one in shell.ok("entities", "shop", "Order").records] == [1, 1, 2]:
            return shell
    raise AssertionError("the orders were not carried out")


def test_entities_are_listed_by_id(shop: Shell) -> None:
    found = shop.ok("entities", "shop", "Order").records
    assert [(one["id"], one["state"], one["version"], one["attributes"]) for one in found] == [
        ("a", "new", 1, {"n": 0}),
        ("b", "paid", 1, {"n": 1}),
        ("c", "paid", 2, {"n": 7}),
    ]
    shown = shop.ok("entities", "shop", "Order", terminal=True).out.splitlines()
    assert shown[0].split() == ["id", "state", "version", "updated", "attributes"]
    assert [line.split()[0] for line in shown[2:]] == ["a", "b", "c"]
    assert shown[-1].rstrip().endswith('{"n":7}')


def test_where_there_are_more_it_says_how_to_go_on(shop: Shell) -> None:
    result = shop.ok("entities", "shop", "Order", "--limit", "2")
    assert [one["id"] for one in result.records] == ["a", "b"]
    assert result.err == "there are more: go on with --after b, or raise --limit\n"
    result = shop.ok("entities", "shop", "Order", "--after", "b")
    assert ([one["id"] for one in result.records], result.err) == (["c"], "")


def test_one_entity_is_shown_field_by_field(shop: Shell) -> None:
    [record] = shop.ok("entities", "shop", "Order", "c").records
    assert (record["version"], record["attributes"]) == (2, {"n": 7})
    shown = shop.ok("entities", "shop", "Order", "c", terminal=True).out.splitlines()
    assert [line.split()[0] for line in shown] == [
        "id",
        "state",
        "version",
        "created",
        "updated",
        "attributes",
    ]
    assert shown[-1].split() == ["attributes", '{"n":7}']


def test_its_history_names_the_messages(shop: Shell) -> None:
    found = shop.ok("entities", "shop", "Order", "c", "--history").records
    assert [(one["version"], one["command"], one["queue"]) for one in found] == [
        (1, "UpsertOrder", "orders"),
        (2, "UpsertOrder", "orders"),
    ]
    shown = shop.ok("entities", "shop", "Order", "c", "--history", terminal=True).out.splitlines()
    assert f"message {found[1]['message'][:8]}" in shown[-1]
    first = shop.ok("entities", "shop", "Order", "c", "--history", "--limit", "1")
    receipt = first.records[0]["receipt"]
    assert first.err == f"there are more: go on with --after {receipt}, or raise --limit\n"
    rest = shop.ok("entities", "shop", "Order", "c", "--history", "--after", str(receipt)).records
    assert rest == found[1:]


def test_what_is_not_there_is_refused(shop: Shell) -> None:
    result = shop("entities", "shop", "Order", "x")
    assert (result.code, result.out) == (1, "")
    assert "Order x" in result.err
    assert "[entity_not_found]" in result.err
    assert shop.ok("entities", "shop", "Other").out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("shop", "Order", "--history"), "name its ID"),
        (("shop", "Order", "a", "--after", "b"), "an ID names one entity"),
        (("shop", "Order", "a", "--limit", "1"), "an ID names one entity"),
        (("shop", "Order", "a", "--history", "--after", "b"), "wants a receipt"),
        (("no space", "Order"), "SPACE"),
        (("shop", ""), "it is empty"),
        (("shop", "Order", "--limit", "0"), "--limit"),
    ],
)
def test_what_makes_no_sense_together_is_wrong_usage(
    shop: Shell, arguments: tuple[str, ...], said: str
) -> None:
    result = shop("entities", *arguments)
    assert result.code == 2
    assert said in result.err
