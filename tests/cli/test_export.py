"""`edgequeues export` and `import`: what a queue holds, as lines of JSON, and back."""

from __future__ import annotations

import json

import pytest

from .shell import Shell

JOBS = "dxn:queue:demo:jobs"
LOG = "dxn:queue:demo:log"
DATA = ['{"n": 1.50, "text": "\\ud800"}', "12345678901234567890", '"x"']


@pytest.fixture
def filled(shell: Shell) -> Shell:
    """A log of three entries, and a work queue: acked, leased, delayed, ready with priority."""
    shell.ok("append", LOG, DATA[0], "--id", "a", "--type", "t", "--key", "k", "--header", "h=1")
    for text in DATA[1:]:
        shell.ok("append", LOG, text)
    shell.ok("push", JOBS, "0", "--id", "acked")
    [lease] = [one["lease"] for one in shell.ok("pull", JOBS).records]
    shell.ok("ack", JOBS, lease)
    shell.ok("push", JOBS, "1", "--id", "leased")
    shell.ok("pull", JOBS, "--lease", "1h")
    shell.ok("push", JOBS, "2", "--id", "delayed", "--delay", "1h")
    shell.ok("push", JOBS, "3", "--id", "ready", "--priority", "7", "--key", "k")
    return shell


def test_a_space_comes_back_with_its_bytes_and_its_settings(filled: Shell) -> None:
    filled.ok("config", LOG, "mutable=false")
    filled.ok("pause", JOBS)
    out = filled.folder / "demo.ndjson"
    filled.ok("export", "demo", "--out", str(out))
    filled.ok("import", str(out), "--into", "other")

    def read(space: str) -> list[object]:
        told = filled.ok("read", f"dxn:queue:{space}:log").records
        return [{**one, "position": 0, "version": 0, "created": 0, "updated": 0} for one in told]

    assert read("other") == read("demo")
    for text in DATA:
        assert text in filled.ok("read", "dxn:queue:other:log").out
    assert filled.ok("config", "dxn:queue:other:log").records[0]["mutable"] is False
    assert filled.ok("config", "dxn:queue:other:jobs").records[0]["paused"] is True
    now = {one["id"]: one for one in filled.ok("peek", "dxn:queue:other:jobs").records}
    assert {name: (one["state"], one["attempts"]) for name, one in now.items()} == {
        "leased": ("ready", 0),
        "delayed": ("scheduled", 0),
        "ready": ("ready", 0),
    }
    assert (now["ready"]["priority"], now["ready"]["key"]) == (7, "k")
    was = {one["id"]: one["due"] for one in filled.ok("peek", JOBS).records}
    assert now["delayed"]["due"] == was["delayed"]


def test_one_queue_goes_to_another_address(filled: Shell) -> None:
    out = filled.folder / "log.ndjson"
    filled.ok("export", LOG, "--out", str(out))
    filled.ok("import", str(out), "--into", "dxn:queue:other:copy")
    assert len(filled.ok("read", "dxn:queue:other:copy").records) == 3


def test_an_import_that_is_done_twice_adds_nothing(filled: Shell) -> None:
    out = filled.folder / "demo.ndjson"
    filled.ok("export", "demo", "--out", str(out))
    for _ in range(2):
        filled.ok("import", str(out), "--into", "other")
        assert not list(filled.folder.glob("*.imported*"))
    assert len(filled.ok("read", "dxn:queue:other:log").records) == 3
    assert len(filled.ok("peek", "dxn:queue:other:jobs").records) == 3


def test_an_interrupted_export_goes_on_and_is_the_same_in_the_end(shell: Shell) -> None:
    for part in range(3):
        lines = "\n".join(json.dumps({"n": 500 * part + n}) for n in range(500))
        shell.ok("append", LOG, "--stream", stdin=lines.encode())
    shell.ok("push", JOBS, "1")
    whole, cut = shell.folder / "whole", shell.folder / "cut"
    shell.ok("export", "demo", "--out", str(whole))
    content = whole.read_bytes()
    for size in (0, 10, len(content) // 3, len(content) // 2, len(content) - 5, len(content)):
        cut.write_bytes(content[:size])
        shell.ok("export", "demo", "--out", str(cut), "--resume")
        assert cut.read_bytes() == content, size


def test_an_interrupted_import_goes_on_where_it_was(shell: Shell) -> None:
    lines = "\n".join(json.dumps({"n": n}) for n in range(1_200))
    shell.ok("append", LOG, "--stream", stdin=lines.encode())
    whole, cut = shell.folder / "whole", shell.folder / "cut"
    shell.ok("export", LOG, "--out", str(whole))
    content = whole.read_bytes()
    cut.write_bytes(b"".join(content.splitlines(keepends=True)[:700]))
    result = shell("import", str(cut), "--into", "other")
    assert (result.code, "not a whole export" in result.err) == (1, True)
    # nobody works half of it
    assert shell.ok("config", "dxn:queue:other:log").records[0]["paused"] is True
    cut.write_bytes(content)
    shell.ok("import", str(cut), "--into", "other")
    found = [one["data"]["n"] for one in shell.ok("read", "dxn:queue:other:log").records]
    assert found == list(range(1_200))
    assert shell.ok("config", "dxn:queue:other:log").records[0]["paused"] is False


def test_dead_letters_come_as_messages_and_more_may_die_where_they_go(filled: Shell) -> None:
    [message] = filled.ok("pull", JOBS, "--lease", "1h").records
    filled.ok("retry", JOBS, message["lease"], "--permanent", "--error", "no")
    out = filled.folder / "demo.ndjson"
    filled.ok("export", "demo", "--out", str(out))
    filled.ok("import", str(out), "--into", "other")
    assert len(filled.ok("peek", "dxn:queue:other:jobs-dlq").records) == 1
    [again] = filled.ok("pull", "dxn:queue:other:jobs").records
    filled.ok("retry", "dxn:queue:other:jobs", again["lease"], "--permanent", "--error", "no")
    assert len(filled.ok("peek", "dxn:queue:other:jobs-dlq").records) == 2


def test_what_is_wrong_is_said(filled: Shell) -> None:
    out = filled.folder / "demo.ndjson"
    filled.ok("export", LOG, "--out", str(out))
    assert "is there already" in filled("export", LOG, "--out", str(out)).err
    assert "is an export of" in filled("export", JOBS, "--out", str(out), "--resume").err
    assert "--out" in filled("export", LOG, "--resume").err
    assert "no queue in space" in filled("export", "nowhere").err
    bad = filled.file("bad.ndjson", b'{"line": "entry"}\n')
    assert "bad.ndjson:1" in filled("import", str(bad)).err


def test_what_one_of_several_consumers_has_still_to_do_is_exported(shell: Shell) -> None:
    shell.ok("push", JOBS, "1", "--id", "half")
    shell.ok("consumer", "set", JOBS, "other", "--beginning")
    shell.ok("push", JOBS, "2", "--id", "done")
    for consumer, batch in (("default", "2"), ("other", "1")):
        for one in shell.ok("pull", JOBS, "--consumer", consumer, "--batch", batch).records:
            if (consumer, one["id"]) != ("default", "done"):
                shell.ok("ack", JOBS, one["lease"])
    shell.ok("push", JOBS, "3", "--id", "fresh")
    told = [one["id"] for one in shell.ok("export", JOBS).records if one["line"] == "entry"]
    assert told == ["done", "fresh"]  # "half" is done with by both, "done" by neither: each has some left
    [last] = shell.ok("pull", JOBS, "--consumer", "other", "--batch", "1").records
    shell.ok("ack", JOBS, last["lease"])
    told = [one["id"] for one in shell.ok("export", JOBS).records if one["line"] == "entry"]
    assert (last["id"], told) == ("done", ["done", "fresh"])  # as `default` holds it


def test_an_import_is_gone_on_with_where_it_was_going_and_of_the_same_file_alone(shell: Shell) -> None:
    lines = "\n".join(json.dumps({"n": n}) for n in range(1_200))
    shell.ok("append", LOG, "--stream", stdin=lines.encode())
    whole, cut = shell.folder / "whole", shell.folder / "cut"
    shell.ok("export", LOG, "--out", str(whole))
    content = whole.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(content[:700]))
    assert shell("import", str(cut), "--into", "other").code == 1
    assert "go on with that" in shell("import", str(cut), "--into", "third").err
    cut.write_bytes(b"".join([*content[:2], *content[3:], content[2]]))
    assert "another file" in shell("import", str(cut), "--into", "other").err


def test_a_file_of_something_else_is_not_written_over(shell: Shell) -> None:
    shell.ok("append", LOG, "1")
    letter = shell.file("letter.txt", b"Dear Anna,\n")
    assert "is no export" in shell("export", LOG, "--out", str(letter), "--resume").err
    assert letter.read_bytes() == b"Dear Anna,\n"


def test_a_space_does_not_go_into_one_queue(filled: Shell) -> None:
    out = filled.folder / "demo.ndjson"
    filled.ok("export", "demo", "--out", str(out))
    assert "names a space" in filled("import", str(out), "--into", "dxn:queue:other:all").err


def test_into_a_pipe_it_is_one_json_text_a_line(filled: Shell) -> None:
    kinds = [one["line"] for one in filled.ok("export", LOG).records]
    assert kinds == ["export", "queue", "entry", "entry", "entry", "mark", "end", "whole"]
