"""Golden requests and replies: read from files, played against an app, quoted in the protocol pages.

A folder of them belongs to the page of the same name.

A file is a title line, then steps. `>` lines are a request (method and path, headers, a bare `>`, the body), `<`
lines the reply expected of it: status, those headers that are named, the whole body. `...` as the last line of a
body: it goes on, and the client hangs up. `{{name}}` captures on its first use what is there, and stands for just
that afterwards. `= 2 s` lets that time pass.

Run as a module, it copies the files into the pages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import trio

from .asgi import Client, Pairs

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "transcripts"
PAGES = {
    name: ROOT / "docs" / "protocol" / f"{name}.md" for name in ("native", "dxos", "cloudflare", "admin")
}

HOLE = re.compile(r"\{\{(\w+)\}\}")
BLOCK = re.compile(r"<!-- transcript (\S+) -->\n.*?<!-- end -->", re.DOTALL)
GOES_ON = "\n..."


@dataclass
class Step:
    """A request and its reply, or `pause_s` of nothing."""

    request: list[str]
    reply: list[str]
    pause_s: float = 0.0


def steps(text: str) -> list[Step]:
    """Take a file apart. Comments are lines that begin with anything else."""
    found: list[Step] = []
    for line in text.splitlines():
        kind, rest = line[:1], line[2:]
        if kind == "=":
            found.append(Step([], [], float(rest.split()[0])))
        elif kind == ">":
            if not found or found[-1].reply or not found[-1].request:
                found.append(Step([], []))
            found[-1].request.append(rest)
        elif kind == "<":
            found[-1].reply.append(rest)
    return found


def split(lines: list[str]) -> tuple[str, dict[str, str], str]:
    """First line, headers, body of one side of a step."""
    blank = lines.index("") if "" in lines else len(lines)
    headers = dict(line.split(": ", 1) for line in lines[1:blank])
    return lines[0], headers, "\n".join(lines[blank + 1 :])


class Player:
    """Plays the steps of one file; remembers what was captured."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._captured: dict[str, str] = {}

    async def play(self, step: Step) -> None:
        """Send the request and compare the reply. Raises AssertionError."""
        if step.pause_s:
            await trio.sleep(step.pause_s)
            return
        line, headers, body = split([self._filled(line) for line in step.request])
        method, target = line.split(" ", 1)
        status, expected, text = split(step.reply)
        given = [(name.encode(), value.encode()) for name, value in headers.items()]
        actual_status, actual, answer = await self._ask(method, target, given, body.encode(), text)
        assert str(actual_status) == status, answer
        for name, value in expected.items():
            self._match(value, actual.get(name, "(absent)"))
        self._match(text.removesuffix(GOES_ON), answer)

    async def _ask(
        self, method: str, target: str, headers: Pairs, body: bytes, expected: str
    ) -> tuple[int, dict[str, str], str]:
        if not expected.endswith(GOES_ON):
            reply = await self._client.ask(method, target, body or None, headers=headers)
            return reply.status, reply.headers, reply.body.decode().rstrip("\n")
        async with self._client.open(method, target, headers=headers) as exchange:
            exchange.end(body)
            await exchange.begun()
            answer = ""
            while answer.count("\n") < expected.count("\n"):
                answer += (await exchange.piece() or b"").decode()
            return exchange.status, exchange.headers, answer.rstrip("\n")

    def _filled(self, line: str) -> str:
        return HOLE.sub(lambda hole: self._captured[hole[1]], line)

    def _match(self, expected: str, actual: str) -> None:
        """Compare, with holes for what is not known yet."""
        pattern, new = "", set()
        for number, part in enumerate(HOLE.split(expected)):
            if number % 2 == 0:
                pattern += re.escape(part)
            elif part in self._captured:
                pattern += re.escape(self._captured[part])
            else:
                pattern += f"(?P={part})" if part in new else rf'(?P<{part}>[^"\s,}}]+)'
                new.add(part)
        found = re.fullmatch(pattern, actual)
        assert found is not None, f"expected\n{expected}\nbut got\n{actual}"
        self._captured.update(found.groupdict())


def quoted(page: str) -> str:
    """The page with its transcript blocks as the files are now."""
    return BLOCK.sub(lambda block: as_block(block[1]), page)


def as_block(name: str) -> str:
    """One transcript as the page shows it: its title, then the exchange."""
    title, _, rest = (FOLDER / name).read_text().partition("\n")
    return f"<!-- transcript {name} -->\n{title}\n\n```text\n{rest.strip()}\n```\n<!-- end -->"


if __name__ == "__main__":
    for page in PAGES.values():
        page.write_text(quoted(page.read_text()))
