"""What does docs/performance.md say of others? `python -m bench.peers.page` makes its section of what was saved.

`--write` puts it into the page, and draws the picture that the section shows.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.figures import Figure, shorten, shown
from bench.peers import main as peers
from bench.peers.cache import Cache

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "pictures" / "peers.svg"
RESULTS = ROOT / "bench" / "results"
DRAW = Path(__file__).with_name("picture.py")
BEGIN, END = "<!-- peers -->\n", "<!-- end peers -->\n"
INTRO = """\
## Beside others

`edgequeues bench peers` fetches other servers into `.bench-peers/`, starts each on loopback and gives all the same
jobs, in rounds that take turns; what does not install is left out. `--also "OPTIONS"` adds an edgequeues with these
options of `serve`, `--only NAME` leaves out the others. The load comes from one process by raw sockets with requests
made before, so what a client library costs is not in it. Objects and messages are of 200 bytes, and ratios are
medians of the ratios round by round.
"""
BEFORE = """\
What was saved is in `bench/results/{name}`, by a {effort} run; the load of the machine when it began: {load}.

Traced once on one connection, an append of one object is one sync by each of them; a pull of one message and its ack
are two, but one by NATS JetStream and by beanstalkd, which does not write down what is reserved.
"""
WORK = """\
`push 1, pull and ack 10` is done by 4 producers and 4 consumers, each of whom asks when ten messages are there for
him. One who waits is pushed 200 messages a second. PostgreSQL's consumer is woken by LISTEN; RabbitMQ's pulls are
`basic.get`s, and its acks are not answered. A queue is a Durable Object, a stream, a tube, or a value of a column.
"""
SHOWN = (
    "append 1, 1 connection", "append 1, 32 connections", "append 100, 32 connections", "read 100",
    "push 1, pull and ack 10", "push to one who waits",
)  # fmt: skip


def load(path: Path) -> tuple[Mapping[str, Any], list[Figure]]:
    """The facts of the machine, and the figures of peers."""
    first, *lines = path.read_text().splitlines()
    figures = [msgspec.json.decode(line, type=Figure) for line in lines]
    return msgspec.json.decode(first), [one for one in figures if one.bench == peers.NAME]


def by_job(figures: Sequence[Figure]) -> dict[str, dict[str, Figure]]:
    """By job, and in it by peer."""
    found: dict[str, dict[str, Figure]] = {}
    for one in figures:
        job, _, name = one.case.rpartition(": ")
        found.setdefault(job, {})[name] = one
    return found


def section(path: Path) -> str:
    """All that stands between the two markers, for the lines in this file."""
    facts, figures = load(path)
    jobs = by_job(figures)
    parts = [INTRO, f"![what each peer gets through of each job]({PICTURE.relative_to(PAGE.parent)})\n"]
    parts += [WORK, BEFORE.format(name=path.name, effort=facts["effort"], load=facts["load"])]
    served = {job: found for job, found in jobs.items() if not job.startswith(peers.INSIDE)}
    inside = {job: found for job, found in jobs.items() if job.startswith(peers.INSIDE)}
    for some in (served, inside):
        parts += [*_tables(some)]
    return "\n".join(parts)


def _tables(jobs: Mapping[str, Mapping[str, Figure]]) -> Iterator[str]:
    """Who took part and how, then a row for each job."""
    notes = {name: one.note for found in jobs.values() for name, one in found.items()}
    if not notes:
        return
    yield "\n".join(
        ["| peer | durable by |", "|---|---|", *(f"| {n} | {note} |" for n, note in notes.items())]
    )
    yield ""
    yield "| " + " | ".join(["job", "unit", *notes, "flush ms"]) + " |"
    rows = ["|---|---|" + "---:|" * (len(notes) + 1)]
    for job, found in jobs.items():
        some = next(iter(found.values()))
        cells = [shown(found[name].value) if name in found else "" for name in notes]
        rows.append("| " + " | ".join([job, some.unit, *cells, shown(some.more["flush ms"])]) + " |")
        if "p99 ms" in some.more and some.unit == "ms":
            cells = [shown(found[name].more["p99 ms"]) if name in found else "" for name in notes]
            rows.append("| " + " | ".join([f"{job.rpartition(',')[0]}, p99", "ms", *cells, ""]) + " |")
    yield "\n".join(rows)
    yield ""
    yield from _ratios(jobs, tuple(notes))


def _ratios(jobs: Mapping[str, Mapping[str, Figure]], names: Sequence[str]) -> Iterator[str]:
    """The first who took part, as a multiple of each of those it is set against."""
    ours = [name for name in names if name.startswith("edgequeues")]
    against = [key for key in peers.AGAINST if key in names]
    heads = [f"{name} of {other}" for name in ours for other in against if name != other]
    if not heads:
        return
    yield "| ratio | " + " | ".join(heads) + " |"
    rows = ["|---|" + "---:|" * len(heads)]
    for job, found in jobs.items():
        cells = []
        for name in ours:
            more = found[name].more if name in found else {}
            cells += [shown(more[f"of {o}"]) if f"of {o}" in more else "" for o in against if name != o]
        rows.append("| " + " | ".join([job, *cells]) + " |")
    yield "\n".join(rows)
    yield ""


def bars(figures: Sequence[Figure]) -> dict[str, Any]:
    """What the picture shows: for each job the value of each peer, and its extremes."""
    jobs = {job: found for job, found in by_job(figures).items() if job.startswith(SHOWN)}
    jobs = {job: found for job, found in jobs.items() if not job.endswith("waiting")}
    return {
        "jobs": [
            {
                "name": job,
                "unit": next(iter(found.values())).unit,
                "bars": [[name, shorten(one.value), one.low, one.high] for name, one in found.items()],
            }
            for job, found in jobs.items()
        ]
    }


def draw(figures: Sequence[Figure], to: Path) -> None:
    """Draw it, by a program that runs where the drawing library is. Raises Absent."""
    to.parent.mkdir(parents=True, exist_ok=True)
    data = msgspec.json.encode(bars(figures))
    subprocess.run([Cache().python(), DRAW, to], input=data, check=True)


def renewed(page: str, made: str) -> str:
    """The page with this section in place of its own, at its end where it has none."""
    before, found, rest = page.partition(BEGIN)
    if not found:
        return f"{page.rstrip()}\n\n{BEGIN}{made}{END}"
    _, ends, after = rest.partition(END)
    if not ends:
        raise ValueError(f"no {END.strip()!r} behind {BEGIN.strip()!r}")
    return before + found + made + ends + after


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the section, or write it into the page, with its picture."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers.page", description="Tell of the peers.")
    parser.add_argument("file", nargs="?", type=Path, help="saved lines; default: the newest of peers")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}, with the picture")
    asked = parser.parse_args(arguments)
    path = asked.file or max(RESULTS.glob(f"{peers.NAME}-*.jsonl"))
    if asked.write:
        draw(load(path)[1], PICTURE)
        PAGE.write_text(renewed(PAGE.read_text(), section(path)))
    else:
        print(section(path).strip())


if __name__ == "__main__":
    main()
