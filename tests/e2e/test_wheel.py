"""The wheel, in an environment that holds nothing else: it serves, consumes, and shows its dashboard."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.daemon.working import event

ROOT = Path(__file__).parents[2]
QUEUES = "/client/v4/accounts/demo/queues"
PATIENCE_S = 60
HANDLER = """
import pathlib

def handle(event, ctx):
    with pathlib.Path("trace").open("a") as trace:
        trace.write(event.id + "\\n")
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`edgequeues` of a new environment, installed from the wheel with what the wheel says it needs."""
    folder = tmp_path_factory.mktemp("wheel")
    wheels = folder / "dist"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = wheels.iterdir()
    pins = re.findall(r"^[a-z0-9-]+==\S+", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
    (folder / "pins.txt").write_text("\n".join(pins))
    venv.create(folder / "venv", with_pip=True)
    pip = [str(folder / "venv/bin/python"), "-m", "pip", "install", "--quiet", "--constraint"]
    done = subprocess.run(
        [*pip, str(folder / "pins.txt"), str(wheel)], cwd=folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "venv/bin/edgequeues"


@contextmanager
def running(*args: str | Path, cwd: Path, **variables: str) -> Iterator[str]:
    """A program of that environment, and what its first line says after `ready`."""
    env = {"HOME": str(cwd), "PATH": os.environ["PATH"], **variables}
    with subprocess.Popen([*map(str, args)], cwd=cwd, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            word, _, rest = process.stdout.readline().strip().partition(" ")
            assert word == "ready"
            yield rest
        finally:
            process.terminate()
            assert process.wait(PATIENCE_S) == 0


def ask(url: str, body: Any = None) -> tuple[bytes, Any]:
    """The body and the headers of an answer, which must be a good one."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data, {"content-type": "application/json"} if data else {})
    with urlopen(request, timeout=PATIENCE_S) as answer:
        return answer.read(), answer.headers


def test_a_wheel_alone_serves_consumes_and_shows_its_dashboard(program: Path, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(HANDLER)
    with running(program, "serve", "--data", tmp_path / "data", "--port", "0", cwd=tmp_path) as url:
        queue = f"{url}/v1/dxn:queue:demo:log"
        ask(queue, {"entries": [{"data": {"text": "hello"}}]})
        assert json.loads(ask(queue)[0])["entries"][0]["data"] == {"text": "hello"}

        made = json.loads(ask(f"{url}{QUEUES}", {"queue_name": "inbox"})[0])["result"]
        inbox = f"{url}{QUEUES}/{made['queue_id']}"
        ask(f"{inbox}/consumers", {"type": "http_pull", "settings": {"max_retries": 9}})
        ask(f"{inbox}/messages", {"body": event(1)})
        consume: list[str | Path] = [program, "consume", "--handler", "shop:handle"]
        with running(*consume, cwd=tmp_path, QUEUE_HTTP_ENDPOINT=inbox, PYTHONPATH=str(tmp_path)):
            until_there(tmp_path / "trace")

        page, headers = ask(f"{url}/ui")
        assert headers["content-type"].startswith("text/html")
        files = re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', page.decode())
        assert {Path(one).suffix for one in files} >= {".css", ".js"}
        for one in files:
            assert ask(url + one)[0]


def until_there(path: Path) -> None:
    """Wait for a file."""
    waiting = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"
    subprocess.run([sys.executable, "-c", waiting, str(path)], check=True, timeout=PATIENCE_S)
