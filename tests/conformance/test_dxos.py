"""The packages of the real DXOS client against a real server: their suite, and what it does not ask."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from edgequeues.client import Client, NewEntry
from tests.e2e.process import environment, serving

BOTH_FRONTS = True

HERE = Path(__file__).parent
SUITE = HERE / "vendor" / "dxos"
CASES = 48
NODE_S = 120.0
KEEPALIVE_S = 12.0  # the client connects anew after so long without an answer to its pings

SPACE = "BCBABYAWQDPHIINAIKJ3WN6K22T4GSOVR"
QUEUE = "01M8FKA3WZEBT1AM92PBD0K8XJ"
NATIVE = f"dxn:queue:{SPACE}:{QUEUE}"

CASE = re.compile(r"^(PASS|FAIL)  (.+)  \(\d+ ms\)$((?:\n      (?!info: ).*)*)", re.MULTILINE)

needs_packages = pytest.mark.skipif(
    not (SUITE / "node_modules").is_dir(), reason="the DXOS packages are not installed: make conformance"
)


def failures(printed: str) -> list[str]:
    """Name and reason of each case of the suite that failed."""
    return [f"{name}:{reason}" for verdict, name, reason in CASE.findall(printed) if verdict == "FAIL"]


async def node(script: Path, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run a script to its end. It comes through a pipe: modules are then looked for in the suite's folder."""
    with trio.fail_after(NODE_S):
        return await trio.run_process(
            ["node", "--input-type=module", "-", *args],
            stdin=await trio.Path(script).read_bytes(),
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            cwd=SUITE,
            env=environment(),
        )


async def result(script: Path, *args: str) -> Any:
    """What a script of ours prints, as JSON."""
    ended = await node(script, *args)
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout)


@pytest.mark.slow
@needs_packages
async def test_every_case_of_the_suite_passes(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        ended = await node(SUITE / "conformance.mjs", server.url)
    printed = ended.stdout.decode()
    failed = failures(printed)
    assert not failed, "\n".join(failed)
    assert printed.endswith(f"\n{CASES} passed, 0 failed\n"), printed + ended.stderr.decode()
    assert ended.returncode == 0


@pytest.mark.slow
@needs_packages
async def test_entries_of_other_dialects_do_not_hide_a_queue_from_echo(tmp_path: Path) -> None:
    def note(name: str) -> dict[str, str]:
        return {"@type": "dxn:type:example.com/type/Note:0.1.0", "name": name}

    async with serving(tmp_path / "data") as server:
        async with Client(server.url) as client:
            entries = [
                NewEntry(note("made natively"), id="01M8FK50DYAKPPRAM14W2RPG2F"),
                NewEntry(note("its id is no ULID"), id="first"),
                NewEntry(17, id="01M8FK50DYAKPPRAM14W2RPG2G"),
                NewEntry(note("the last"), id="01M8FK50DYAKPPRAM14W2RPG2H"),
            ]
            await client.append(NATIVE, entries)
        seen = await result(HERE / "reader.mjs", server.url, SPACE, QUEUE)
    assert seen == {"names": ["made natively", "the last"], "error": None}


@pytest.mark.slow
@needs_packages
async def test_the_messenger_of_the_client_connects_once_and_stays(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        seen = await result(HERE / "messenger.mjs", server.url, str(KEEPALIVE_S + 3))
    assert seen == {"probes": 1, "connections": 1, "connected": True}


def test_a_failed_case_is_reported_with_its_reason() -> None:
    printed = (
        "PASS  insert: one  (3 ms)\n"
        "      info: the place is kept\n"
        "FAIL  query: limit  (12 ms)\n"
        "      first two: got [] want [1,2]\n"
        "      info: of no interest\n"
        "PASS  delete: by ids  (1 ms)\n"
        "\n2 passed, 1 failed\n"
    )
    assert failures(printed) == ["query: limit:\n      first two: got [] want [1,2]"]
