"""The bench of peers asks, counts and tells; what it asks here are fakes, and nothing is installed."""

from __future__ import annotations

import re
import socketserver
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pytest

from bench.figures import figure
from bench.peers import beanstalkd, jobs, load, main, nats, page, postgres, rabbitmq, redis, working
from bench.peers.cache import Cache
from bench.peers.load import Refused, Request, numbered
from bench.peers.peer import NUMBER, OBJECT_BYTES, Contender, Peer, text
from bench.peers.process import Absent
from bench.rig import Rig

FACTS = '{"bench":"machine","effort":"quick","load":0.5}'


class FakeTubes(socketserver.StreamRequestHandler):
    """Beanstalkd that keeps nothing."""

    tubes: ClassVar[dict[bytes, deque[tuple[int, bytes]]]] = {}
    tube = watched = b"default"
    there = threading.Condition()
    made = 0

    def handle(self) -> None:
        while words := self.rfile.readline().split():
            self.wfile.write(getattr(self, words[0].decode())(*words[1:]))

    def use(self, tube: bytes) -> bytes:
        self.tube = tube
        return b"USING %b\r\n" % tube

    def watch(self, tube: bytes) -> bytes:
        self.watched = tube
        return b"WATCHING 2\r\n"

    def ignore(self, _: bytes) -> bytes:
        return b"WATCHING 1\r\n"

    def put(self, _priority: bytes, _delay: bytes, _run: bytes, size: bytes) -> bytes:
        body = self.rfile.read(int(size) + 2)
        with self.there:
            FakeTubes.made += 1
            self.tubes.setdefault(self.tube, deque()).append((self.made, body))
            self.there.notify_all()
        return b"INSERTED %d\r\n" % self.made

    def reserve(self) -> bytes:
        with self.there:
            self.there.wait_for(lambda: self.tubes.get(self.watched), 5)
            number, body = self.tubes[self.watched].popleft()
        return b"RESERVED %d %d\r\n%b" % (number, len(body) - 2, body)

    def delete(self, _: bytes) -> bytes:
        return b"DELETED\r\n"


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def serving(handler: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    with Server(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@contextmanager
def fake_tubes(_place: Path, _cache: Cache) -> Iterator[Peer]:
    FakeTubes.tubes.clear()
    with serving(FakeTubes) as port:
        yield beanstalkd.Beanstalkd(port)


def absent(_place: Path, _cache: Cache) -> AbstractContextManager[Peer]:
    raise Absent("it is nowhere")


def waiting() -> int:
    return sum(map(len, FakeTubes.tubes.values()))


@pytest.fixture
def tubes(tmp_path: Path) -> Iterator[Peer]:
    with fake_tubes(tmp_path, Cache(tmp_path)) as peer:
        yield peer


# -- asking -------------------------------------------------------------------------------------------------


def test_every_object_is_as_long_as_it_should_be_and_never_the_same() -> None:
    first, second = islice(numbered(Request(text(0) + text(7))), 2)
    assert len(first.data) == 2 * OBJECT_BYTES
    assert first.data != second.data
    assert len(NUMBER.findall(first.data)) == 2


def test_a_round_counts_what_was_answered(tubes: Peer) -> None:
    template = tubes.append("tube", 3)
    found = load.drive(tubes.wire, islice(numbered(template), 20), connections=4)
    assert len(found.took) == 20
    assert waiting() == 60
    assert found.rate > 0


def test_a_refusal_is_not_taken_for_fast(tubes: Peer) -> None:
    with pytest.raises(Refused, match="OUT_OF_MEMORY"):
        load.lines(b"INSERTED")(b"OUT_OF_MEMORY\r\n", 1)


def test_what_is_pushed_is_pulled_and_acked_to_the_end(tubes: Peer) -> None:
    run = working.work(tubes, seconds=0.05, workers=2, each=5)
    assert run().value > 0
    assert waiting() == 0


def test_a_depth_stays(tubes: Peer) -> None:
    run = working.work(tubes, seconds=0.05, workers=1, each=5, depth=200)
    run()
    assert waiting() == 200


def test_one_who_waits_receives_each_message(tubes: Peer) -> None:
    told = working.latency(tubes, 5)()
    assert 0 < told.value <= told.more["p99 ms"]


def test_queues_are_pushed_to_in_turn(tubes: Peer) -> None:
    assert jobs.queues(tubes, 3, 2, 0.02)().value > 0


# -- protocols ----------------------------------------------------------------------------------------------

HELD: list[tuple[Callable[[bytes, int], bool], bytes, int, bool]] = [
    (redis.ends, b"$3\r\n1-0\r\n", 2, True),
    (redis.ends, b"$3\r\n1-0\r\n", 4, False),
    (redis.ends, b"*1\r\n+PONG\r\n", 0, True),
    (nats.ends, b"MSG i 1 2\r\n{}\r\n", 1, True),
    (nats.ends, b"MSG i 1 2\r\n{}\r\n", 2, False),
    (nats.ends, b"HMSG i 1 9 9\r\nNATS/1.0 204 EOB\r\n\r\n\r\n\r\n", 0, True),
    (postgres.ends, b"2\0\0\0\4C\0\0\0\4Z\0\0\0\5I", 1, True),
    (postgres.ends, b"2\0\0\0\4C\0\0\0\4", 1, False),
]
BAD: list[tuple[Callable[[bytes, int], bool], bytes, int]] = [
    (redis.ends, b"-ERR no\r\n", 2),
    (nats.ends, b'MSG i 1 9\r\n{"error":{}}\r\n', 1),
    (postgres.ends, b"E\0\0\0\x0cSERROR\0\0Z\0\0\0\5I", 1),
]


@pytest.mark.parametrize(("ends", "held", "answers", "whole"), HELD)
def test_an_answer_ends_where_it_ends(
    ends: Callable[[bytes, int], bool], held: bytes, answers: int, whole: bool
) -> None:
    assert ends(held, answers) is whole


@pytest.mark.parametrize(("ends", "held", "answers"), BAD)
def test_an_error_is_seen(ends: Callable[[bytes, int], bool], held: bytes, answers: int) -> None:
    with pytest.raises(Refused):
        ends(held, answers)


class Said(socketserver.BaseRequestHandler):
    """Says the next of `pieces` whenever it is sent something, and at once again after an empty one."""

    pieces: ClassVar[deque[bytes]] = deque()

    def handle(self) -> None:
        while self.request.recv(65_536):
            while self.pieces and not (piece := self.pieces.popleft()).endswith(b"..."):
                self.request.sendall(piece)


def test_a_pull_that_waits_pulls_again_when_it_is_told() -> None:
    empty, row = b"2\0\0\0\4C\0\0\0\4Z\0\0\0\5I", b"2\0\0\0\4D<7>C\0\0\0\4Z\0\0\0\5I"
    Said.pieces = deque([empty, b"A\0\0\0\x0dtold", b"...", row])
    with serving(Said) as port:
        wire = postgres.Listening(port)
        assert b"<7>" in wire.ask(Request(b"pull", 0))
        wire.close()


def test_confirms_of_many_count_for_each() -> None:
    ask, ack = rabbitmq.publish(b"q", b"{}"), rabbitmq.CONFIRM
    confirm = rabbitmq.method(60, 80, (2).to_bytes(8, "big") + b"\1")
    assert ask.count(rabbitmq.END) >= 3
    assert ack.findall(confirm) == [((2).to_bytes(8, "big"), b"\1")]


# -- telling ------------------------------------------------------------------------------------------------


def test_who_is_not_there_is_left_out_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = [Contender("tubes", "-f 0", fake_tubes), Contender("nobody", "never", absent)]
    figures = [*main.measure(Rig(tmp_path, "tiny", 0.1), some, ())]
    assert "left out: nobody: it is nowhere" in capsys.readouterr().err
    assert {one.note for one in figures} == {"-f 0"}
    assert {one.case.rpartition(": ")[2] for one in figures} == {"tubes"}
    assert not any(one.case.startswith("read") for one in figures)
    assert all("flush ms" in one.more for one in figures)


def test_an_unknown_peer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no peer is named nothing"):
        next(main.measure(Rig(tmp_path, "tiny", 0.1, only=["nothing"]), (), ()))


def test_what_cannot_be_fetched_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(Absent, match="npm is not there"):
        Cache(tmp_path).workerd()
    with pytest.raises(Absent, match="no apt-get"):
        Cache(tmp_path).program("no-such-program", "no-such-package")


def saved(folder: Path) -> Path:
    path = folder / "peers-1.jsonl"
    told = [("edgequeues", 300.0, {"of workerd": 3.0}), ("workerd", 100.0, {"of edgequeues": 0.333})]
    lines = [
        figure("peers", f"append 1, 1 connection: {name}", [value], "objects/s",
               more=more | {"flush ms": 0.1}, note=f"set by {name}").line()
        for name, value, more in told
    ]  # fmt: skip
    path.write_text("\n".join([FACTS, *lines]) + "\n")
    return path


def test_the_section_names_settings_and_ratios(tmp_path: Path) -> None:
    section = page.section(saved(tmp_path))
    assert "| workerd | set by workerd |" in section
    assert "| append 1, 1 connection | objects/s | 300 | 100 | 0.1 |" in section
    assert "| append 1, 1 connection | 3 |" in section
    assert "when it began: 0.5" in section


def test_the_page_says_what_was_measured() -> None:
    text = page.PAGE.read_text()
    named = re.search(r"`bench/results/(peers-[\w.-]+)`", text)
    assert named is not None
    assert page.renewed(text, page.section(page.RESULTS / named[1])) == text
    assert page.PICTURE.is_file()


def test_the_picture_has_a_bar_a_peer(tmp_path: Path) -> None:
    _, figures = page.load(saved(tmp_path))
    [job] = page.bars(figures)["jobs"]
    assert [name for name, *_ in job["bars"]] == ["edgequeues", "workerd"]


def test_only_the_section_is_replaced() -> None:
    first = page.renewed("before\n", "old\n")
    assert first == f"before\n\n{page.BEGIN}old\n{page.END}"
    assert page.renewed(f"{first}after\n", "new\n") == f"before\n\n{page.BEGIN}new\n{page.END}after\n"
    with pytest.raises(ValueError, match="no '<!-- end peers -->'"):
        page.renewed(f"before\n{page.BEGIN}", "new\n")
