"""The guide to a switchboard does what it says: its lines are run, print what is shown, and the reply arrives."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import trio

from tests.daemon.smtp_server import mail_server
from tests.house import tree

from .guides import Terminal, files, plain, steps
from .process import serving

GUIDE = "docs/guides/switchboard.md"
REPLY_TEXT = "We have your mail."

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("curl") is None, reason="it wants curl")]


async def test_the_lines_of_the_guide_do_what_it_says(tmp_path: Path) -> None:
    [handler], [mail] = files(GUIDE, "python"), files(GUIDE, "eml")
    (tmp_path / "desk.py").write_text(handler)
    (tmp_path / "order.eml").write_text(mail)
    with mail_server() as mails:
        async with serving(tmp_path / "data", port=str(await free_port())) as server:
            terminal = Terminal(tmp_path, server.url)
            for number, step in enumerate(steps(GUIDE)[1:], 1):
                lines = step.lines.replace("127.0.0.1:8025", f"127.0.0.1:{mails.port}")
                terminal.define(lines)
                printed = plain(await trio.to_thread.run_sync(terminal.run, lines))
                printed = re.sub(r"\d{4}/\d\d/\d\d/", "<day>/", printed)
                assert printed == plain(step.shown), f"{GUIDE}, step {number}"
    [sent] = mails.parsed
    [shown] = [block for _, block in tree.code_blocks(GUIDE) if REPLY_TEXT in block and "Re: " in block]
    headers, _, text = shown.partition("\n\n")
    for line in headers.splitlines():
        name, _, value = line.partition(": ")
        assert sent[name] == value
    assert sent.get_content().split() == text.split()


async def free_port() -> int:
    """Links lead to the port that the settings name, so it has to be known before."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listener.socket.getsockname()[1]
    await listener.aclose()
    return port
