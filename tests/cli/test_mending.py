"""Dead letters searched, tried, edited; and the record of what was done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .shell import Shell

J = "dxn:queue:shop:jobs"
D = f"{J}-dlq"
SPEC = b"""
app shop {
  queue jobs {
    message_type { id: json  n: json }
    map_to: command Order.Create { entity_id: id  size: n.size }
  }
}
"""
UNMAPPED = SPEC.replace(b"map_to: command Order.Create { entity_id: id  size: n.size }", b"")


def bury(shell: Shell, *texts: str) -> list[str]:
    """Push messages and give them up; the ids of the letters."""
    for text in texts:
        shell.ok("push", J, text)
    leases = [one["lease"] for one in shell.ok("pull", J, "--batch", str(len(texts))).records]
    shell.ok("retry", J, *leases, "--permanent", "--error", "bad")
    return [one["id"] for one in shell.ok("dlq", "list", D).records]


def mapped(shell: Shell, *texts: str) -> list[str]:
    """Letters of a queue that has a mapping by now."""
    shell.ok("spec", "apply", str(shell.file("shop.eq", UNMAPPED)))
    letters = bury(shell, *texts)
    shell.ok("spec", "apply", str(shell.file("shop.eq", SPEC)))
    return letters


def previewed(shell: Shell, where: str) -> list[Any]:
    [found] = shell.ok("dlq", "replay", D, "--preview", "--where", where).records
    return [one["letter"]["originalMessage"] for one in found["letters"]]


def test_an_expression_says_which_letters_are_listed_replayed_and_purged(shell: Shell) -> None:
    bury(shell, *(f'{{"n": {number}}}' for number in range(5)))
    listed = shell.ok("dlq", "list", D, "--where", 'n >= 2 && error == "bad"').records
    assert [one["letter"]["originalMessage"]["n"] for one in listed] == [2, 3, 4]
    assert previewed(shell, "n == 1 || n == 3") == [{"n": 1}, {"n": 3}]
    [replayed] = shell.ok("dlq", "replay", D, "--where", "n == 1").records
    assert replayed["outcome"] == "replayed"
    assert shell.ok("dlq", "purge", D, "--where", "replayed", "--yes").records == [{"deleted": 1}]
    assert shell.ok("dlq", "list", D, "--where", "n == 1").err == ""


def test_an_expression_that_is_none_is_told_with_its_place(shell: Shell) -> None:
    bury(shell, "1")
    for verb in (("list",), ("replay",), ("purge", "--yes")):
        result = shell("dlq", verb[0], D, "--where", "n >=", *verb[1:])
        assert result.code == 1
        assert "where: line 1, column 5" in result.err


def test_a_letter_is_tried_with_the_mapping_of_its_queue(shell: Shell) -> None:
    good, bad = mapped(shell, '{"id": "a", "n": {"size": 3}}', '{"id": "b", "n": 1}')
    tried = {"ok": True, "command": "Order.Create", "queue": None, "input": {"entity_id": "a", "size": 3}}
    assert shell.ok("dlq", "try", J, good).records == [tried]
    result = shell("dlq", "try", D, bad)
    assert result.code == 1
    [record] = result.records
    assert [(one["field"], one["found"]) for one in record["errors"]] == [
        ("size", "missing after n, which is an integer")
    ]
    assert "it does not fit: size" in result.err
    shown = shell("dlq", "try", D, bad, terminal=True)
    assert "missing after n" in shown.out
    assert shell.ok("peek", J).records == []


def test_a_letter_is_tried_with_another_mapping_and_other_data(shell: Shell) -> None:
    [letter] = mapped(shell, '{"id": "b", "n": 1}')
    file = shell.file("mapping", b"queue next { twice: n * 2 }\n")
    assert shell.ok("dlq", "try", D, letter, "--map-to", str(file)).records[0]["input"] == {"twice": 2}
    shown = shell.ok(
        "dlq", "try", D, letter, "--set", "n.size=7", "--edit", "-", stdin=b'{"id": "c", "n": {}}'
    )
    assert shown.records[0]["input"] == {"entity_id": "c", "size": 7}
    shown = shell.ok("dlq", "try", D, letter, "--set", 'n={"size": 8}', terminal=True)
    assert '"size": 8' in shown.out
    result = shell("dlq", "try", D, letter, "--map-to", str(shell.file("mapping", b"command Order")))
    assert (result.code, "map_to: line 1" in result.err) == (1, True)


def test_a_letter_is_replayed_with_another_message_once(shell: Shell) -> None:
    [letter] = bury(shell, '{"n": {"size": 1, "tags": ["a", "b"]}}')
    changes = ("--set", "n.size=5", "--set", "n.tags.1=plain text", "--set", 'n.new={"x":null}')
    [first] = shell.ok("dlq", "replay", D, letter, *changes).records
    [again] = shell.ok("dlq", "replay", J, letter, "--edit", str(shell.file("edit.json", b"{}"))).records
    assert (first["outcome"], again["outcome"]) == ("replayed", "already")
    assert first["message"] == again["message"]
    [message] = shell.ok("peek", J).records
    assert message["data"] == {"n": {"size": 5, "tags": ["a", "plain text"], "new": {"x": None}}}


def test_a_message_that_the_queue_does_not_take_is_not_sent(shell: Shell) -> None:
    shell.ok("spec", "apply", str(shell.file("shop.eq", SPEC.replace(b"id: json", b"id: string"))))
    shell.ok("spec", "apply", str(shell.file("shop.eq", UNMAPPED.replace(b"id: json", b"id: string"))))
    [letter] = bury(shell, '{"id": "a", "n": 1}')
    result = shell("dlq", "replay", D, letter, "--set", "id=5")
    assert result.code == 1
    assert "message.id: an integer where a text is wanted" in result.err


@pytest.mark.parametrize(
    "change", ["n", "=5", "n.size.deep=1", "m.size=1", "tags.2=1", "tags.x=1", "n.size.a.b=1"]
)
def test_a_change_that_leads_nowhere_is_wrong_usage(shell: Shell, change: str) -> None:
    [letter] = bury(shell, '{"n": {"size": 1}, "tags": ["a", "b"]}')
    assert shell("dlq", "replay", D, letter, "--set", change).code == 2
    assert shell.ok("peek", J).records == []


@pytest.mark.parametrize(
    "args",
    [
        ("replay", D, "--all", "--set", "n=1"),
        ("replay", D, "a", "b", "--set", "n=1"),
        ("replay", D, "a", "--set", "n=1", "--per-second", "5"),
        ("try", D),
        ("try", D, "a", "--map-to", "-", "--edit", "-"),
    ],
)
def test_wrong_usage_is_exit_code_2(shell: Shell, args: tuple[str, ...]) -> None:
    assert shell("dlq", *args).code == 2


def test_a_file_that_is_not_there_is_one_line(shell: Shell) -> None:
    [letter] = bury(shell, "1")
    result = shell("dlq", "try", D, letter, "--map-to", str(shell.folder / "nothing"))
    assert (result.code, "No such file" in result.err) == (1, True)


def test_what_was_done_is_shown_with_who_did_it(shell: Shell) -> None:
    first, second = bury(shell, "1", "2")
    shell.ok("dlq", "replay", D, first)
    shell.ok("dlq", "purge", D, "--where", "!replayed", "--yes")
    shell.ok("pause", J)
    found = shell.ok("audit", "shop").records
    assert [(one["action"], one["queue"], one["who"]["id"]) for one in found] == [
        ("replay", "jobs-dlq", "loopback"),
        ("delete_letters", "jobs-dlq", "loopback"),
        ("pause", "jobs", "loopback"),
    ]
    assert found[1]["detail"] == {"count": 1, "ids": [second], "filter": {"where": "!replayed"}}
    assert shell.ok("audit", "shop", "--queue", "jobs").records == found[2:]
    assert shell.ok("audit", "shop", "--after", "1", "-n", "1").records == found[1:2]
    shown = shell.ok("audit", "shop", "-n", "2", terminal=True)
    assert "delete_letters" in shown.out
    assert json.loads(json.dumps(found[1]["detail"]))["count"] == 1
    assert "there are more: --after 2" in shown.err
    assert "[queue_not_found]" in shell("audit", "nobody").err
