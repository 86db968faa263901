from __future__ import annotations

import pytest

from .shell import Q, Shell


def test_each_argument_is_an_entry_kept_as_it_is_written(shell: Shell) -> None:
    result = shell.ok("append", Q, '{ "n":1 }', '"two"', "[3]")
    assert [(one["position"], one["outcome"]) for one in result.records] == [
        (1, "new"),
        (2, "new"),
        (3, "new"),
    ]
    assert shell.ok("read", Q, "--data").out == '{ "n":1 }\n"two"\n[3]\n'


def test_options_go_with_every_entry(shell: Shell) -> None:
    shell.ok("append", Q, "1", "--id", "a", "--type", "t", "--ttl", "1h", "--key", "k", "--header", "x=y=z")
    [entry] = shell.ok("read", Q).records
    assert entry["expires"] == entry["created"] + 3_600_000
    assert {name: entry[name] for name in ("id", "type", "key", "headers", "data")} == {
        "id": "a",
        "type": "t",
        "key": "k",
        "headers": {"x": "y=z"},
        "data": 1,
    }


def test_appending_an_id_again_says_what_became_of_it(shell: Shell) -> None:
    outcomes = [shell.ok("append", Q, data, "--id", "a").records[0]["outcome"] for data in ("1", "1", "2")]
    assert outcomes == ["new", "same", "moved"]


@pytest.mark.parametrize("how", [[], ["--stream"]])
def test_a_keyed_append_whose_answer_was_lost_is_repeated_and_doubles_nothing(
    shell: Shell, how: list[str]
) -> None:
    shell.lost = [Q]
    shell.ok("append", Q, "--keyed", *how, "--file", str(shell.file("more.ndjson", b'1\n{"n": 2}\n')))
    assert shell.lost == []
    assert [entry["data"] for entry in shell.ok("read", Q).records] == [1, {"n": 2}]


def test_a_file_is_one_json_text_or_one_a_line(shell: Shell) -> None:
    one = shell.file("one.json", b'{\n  "pretty": true\n}\n')
    many = shell.file("many.ndjson", b'1\n\n "two" \r\n{"id": "three"}')
    shell.ok("append", Q, "--file", str(one), "-f", str(many))
    assert [entry["data"] for entry in shell.ok("read", Q).records] == [
        {"pretty": True},
        1,
        "two",
        {"id": "three"},
    ]


def test_without_arguments_stdin_is_read(shell: Shell) -> None:
    assert len(shell.ok("append", Q, stdin=b"1\n2\n3\n").records) == 3
    assert shell.ok("append", Q, stdin=b"").records == []


def test_more_than_a_call_takes_goes_in_several(shell: Shell) -> None:
    lines = b"\n".join(b"%d" % n for n in range(2_345))
    assert len(shell.ok("append", Q, stdin=lines).records) == 2_345
    assert [int(line) for line in shell.ok("read", Q, "--data").out.split()] == [*range(2_345)]


def test_entries_as_read_prints_them_can_be_appended_elsewhere(shell: Shell) -> None:
    shell.ok("append", Q, '{"x": [1,  2]}', "--id", "a", "--type", "t", "--key", "k")
    printed = shell.ok("read", Q).out
    shell.ok("append", "dxn:queue:other:copy", "--envelope", stdin=printed.encode())
    [copy] = shell.ok("read", "dxn:queue:other:copy").records
    assert (copy["id"], copy["type"], copy["key"]) == ("a", "t", "k")
    assert shell.ok("read", "dxn:queue:other:copy", "--data").out == '{"x": [1,  2]}\n'


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_a_bad_line_is_named_by_file_and_line(shell: Shell, stream: tuple[str, ...]) -> None:
    path = shell.file("bad.ndjson", b"1\n2\n{oops\n4\n")
    result = shell("append", Q, "--file", str(path), *stream)
    assert result.code == 1
    assert f"{path}:3: " in result.err.splitlines()[-1]
    stored = shell.ok("read", Q, "--data").out.split()
    assert stored == (["1", "2"] if stream else [])


def test_a_stream_prints_a_summary_and_refuses_bad_entries_alone(shell: Shell) -> None:
    result = shell(
        "append", Q, "--stream", "--envelope", stdin=b'{"data":1}\n{"data":2,"id":"not an id"}\n{"data":3}'
    )
    assert result.code == 1
    [summary] = result.records
    assert (summary["appended"], summary["refused"]) == (2, 1)
    assert "entry 2: " in result.err
    assert "[invalid_id]" in result.err
    assert shell.ok("read", Q, "--data").out == "1\n3\n"


def test_a_long_stream_arrives_whole_and_in_order(shell: Shell) -> None:
    lines = b"".join(b"%d\n" % n for n in range(25_000))
    [summary] = shell.ok("append", Q, "--stream", stdin=lines).records
    assert summary["appended"] == 25_000
    assert [int(line) for line in shell.ok("read", Q, "--data").out.split()] == [*range(25_000)]


@pytest.mark.parametrize(
    "args",
    [
        ("append", Q, "1", "2", "--id", "a"),
        ("append", Q, "1", "--stream"),
        ("append", Q, "1", "--file", "x"),
        ("append", Q, "1", "--header", "novalue"),
        ("append", Q, "1", "--ttl", "soon"),
        ("append", "demo/log", "1"),
        ("append", Q + ":object", "1"),
        ("append",),
    ],
)
def test_wrong_usage_is_exit_code_2(shell: Shell, args: tuple[str, ...]) -> None:
    result = shell(*args)
    assert result.code == 2
    assert "Error: " in result.err


@pytest.mark.parametrize("bad", ["{oops", "1 2", "", "NaN"])
def test_an_argument_that_is_not_json_is_named(shell: Shell, bad: str) -> None:
    result = shell("append", Q, "1", bad)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("edgequeues: argument:2: ") or "invalid_json" in result.err


def test_a_file_that_cannot_be_read_is_one_line(shell: Shell) -> None:
    result = shell("append", Q, "--file", str(shell.folder / "absent"))
    assert result.code == 1
    assert result.err.splitlines() == [f"edgequeues: {shell.folder / 'absent'}: No such file or directory"]


def test_a_table_is_printed_on_a_terminal(shell: Shell) -> None:
    out = shell.ok("append", Q, "1", "--id", "a", terminal=True).out
    assert out.split()[:4] == ["position", "outcome", "id", "version"]
    assert out.splitlines()[-1].split()[:3] == ["1", "new", "a"]


def test_what_is_stored_before_a_call_fails_is_shown(shell: Shell) -> None:
    lines = b"".join(b'{"data":%d,"id":"e%d"}\n' % (n, n % 1_500) for n in range(2_001))
    failed = shell("append", Q, "--envelope", stdin=lines.replace(b'"e1400"', b'"not an id"'), terminal=True)
    assert failed.code == 1
    assert len(failed.out.splitlines()) == 2 + 1_000
    assert "[invalid_id]" in failed.err
