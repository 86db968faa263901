"""How long does it take from `git clone` to the first message read back? `python3 bench/newcomer.py [REPOSITORY]`.

Does what README.md says: clones, types the first command under "Start", waits until the server is ready, runs the
first block under "Two minutes with curl" and the first line of the second. Needs nothing but what must be there
before the clone. The package index counts as warm when this project was installed once on the machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

READY_S = 300
WANTED_S = 60
ADDRESS = "http://127.0.0.1:8700"
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def main() -> None:
    """Measure, and print a line for each step."""
    repository = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parent.parent)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        checkout = Path(folder, "edgequeues")
        subprocess.run(["git", "clone", "--quiet", repository, str(checkout)], check=True)
        told("cloned", began)
        start, append, read = blocks((checkout / "README.md").read_text())
        command = start.split("#")[0].split()
        with subprocess.Popen(
            [*command, "ARGS=--port 0"],
            cwd=checkout,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as server:
            try:
                url = ready(server)
                told("the server is ready", began)
                shell = f"{append}\necho\n{read.splitlines()[0]}".replace(ADDRESS, url)
                answers = subprocess.run(
                    ["bash", "-euc", shell], capture_output=True, text=True, check=True
                ).stdout
                [entry] = json.loads(answers.splitlines()[-1])["entries"]
                assert entry["data"] == {"text": "hello"}, answers
                took_s = told("the first message was read back", began)
            finally:
                os.killpg(server.pid, signal.SIGTERM)
        if took_s > WANTED_S:
            print(f"newcomer: more than the {WANTED_S} s that are wanted on a warm package index")


def blocks(readme: str) -> tuple[str, str, str]:
    """The first command of the start, and the first two blocks of curl."""
    _, _, after = readme.partition("## Start\n")
    start, _, tour = after.partition("## Two minutes with curl\n")
    [first, second] = BLOCK.findall(tour)[:2]
    return BLOCK.findall(start)[0].splitlines()[0], first, second


def ready(server: subprocess.Popen[str]) -> str:
    """Pass on what is printed until the server says its address."""
    assert server.stdout is not None
    ends = time.perf_counter() + READY_S
    for line in server.stdout:
        word, _, url = line.strip().partition(" ")
        if word == "ready":
            return url
        assert time.perf_counter() < ends, "it takes too long"
    raise SystemExit("newcomer: the server ended before it was ready")


def told(what: str, began: float) -> float:
    """Print a step and how many seconds it came after the beginning, and return those."""
    took_s = time.perf_counter() - began
    print(f"newcomer: {took_s:6.1f} s  {what}", flush=True)
    return took_s


if __name__ == "__main__":
    main()
