"""From text to a spec: everything that is wrong with it at once, and where in the text each part stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from edgequeues.core.errors import InvalidRequest
from edgequeues.spec import ir
from edgequeues.spec.building import Building
from edgequeues.spec.faults import Fault, Lines, Path, Place, in_order, listed
from edgequeues.spec.keys import KEYS, shape
from edgequeues.spec.parts import command, queue, schedule, webhook
from edgequeues.spec.syntax import SyntaxFault, read
from edgequeues.spec.tree import Block, Entry, Word

PARTS = {"queue": "queues", "webhook": "webhooks", "command": "commands", "schedule": "schedules"}
_APP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


class Parsed(NamedTuple):
    """spec: None where there are faults. draft: what could be made of the text all the same, to look for more.

    marks: where each part of the spec stands, by its path: of a value its first character, of a block its name.
    """

    spec: ir.Spec | None
    faults: list[Fault]
    marks: Mapping[Path, Place]
    draft: ir.Spec | None


def parse(text: str, file: str = "<text>") -> Parsed:
    """Read a spec. Raises nothing; `file` is what faults about the whole text call it.

    A syntax error ends the reading, everything else is found at once.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > ir.SPEC_BYTES_MAX:
        what = f"{file} has {size} bytes, at most {ir.SPEC_BYTES_MAX} are taken"
        return Parsed(None, [Fault((), what, "Split it into several apps.")], {}, None)
    lines = Lines(text)
    try:
        found = read(lines)
    except SyntaxFault as error:
        return Parsed(None, [error.fault], {}, None)
    making = Building(lines)
    draft = _spec(making, found)
    if draft is not None and not making.faults:
        try:
            return Parsed(ir.decode(ir.encode(draft)), [], making.marks, draft)
        except InvalidRequest as error:  # a bound that only JSON knows
            making.faults.append(Fault((), error.detail, error.remedy))
    return Parsed(None, in_order(making.faults, making.marks), making.marks, draft)


def _spec(making: Building, found: list[Entry | Block]) -> ir.Spec | None:
    apps = [item for item in found if isinstance(item, Block) and item.key.text == "app"]
    for item in found:
        key = item.key.text
        if item in apps:
            continue
        owners = [owner for owner, keys in KEYS.items() if key in keys]
        remedy = (
            f"It belongs in {listed(f'{owner} {{}}' for owner in owners)}."
            if owners
            else "Write `app Name {`."
        )
        making.blame((key,), item.key, f"`{key}` cannot stand outside of `app`", remedy)
    if not apps:
        if not making.faults:
            making.faults.append(Fault((), "there is no app", "Write `app Name { ... }`.", Place(1, 1)))
        return None
    for second in apps[1:]:
        making.twice(("app",), second.key, apps[0].key)
    return _app(making, apps[0])


def _app(making: Building, app: Block) -> ir.Spec | None:
    making.mark((), app.key)
    making.keys(app.body, "app", ())
    name = "app"
    if len(app.name) != 1:
        making.blame(("app",), app.key, "an app has a name", f"Write {shape('app', 'named')}.")
    else:
        name = app.name[0].text
        making.mark(("app",), app.name[0])
        if not making.troubles(("app",), app.troubles) and not _APP.fullmatch(name):
            remedy = "It has letters, digits, `_` and `-`, 64 at most, and begins with a letter or a digit."
            making.blame(("app",), app.name[0], "this is no name of an app", remedy)
    queues = {found: queue(making, path, block) for found, path, block in _named(making, app, "queue")}
    webhooks = {found: webhook(making, path, block) for found, path, block in _named(making, app, "webhook")}
    commands = {found: command(making, path, block) for found, path, block in _named(making, app, "command")}
    schedules = {
        found: schedule(making, path, block) for found, path, block in _named(making, app, "schedule")
    }
    return ir.Spec(0, name, queues, webhooks, commands, schedules)


def _named(making: Building, app: Block, kind: str) -> Iterator[tuple[str, Path, Block]]:
    """The queues, webhooks, commands or schedules with their names and paths; each name once."""
    first: dict[str, Block] = {}
    for block in app.body:
        if not isinstance(block, Block) or block.key.text != kind or not block.name:
            continue
        name = ".".join(word.text for word in block.name)
        path = (PARTS[kind], name)
        at = Word(name, block.name[0].start, block.name[-1].end)
        if name in first:
            making.twice(path, at, first[name].name[0])
            continue
        first[name] = block
        making.mark(path, at)
        if making.troubles(path, block.troubles):
            continue
        if kind == "command" or _NAME.fullmatch(name):
            yield name, path, block
        else:
            remedy = (
                "Names have letters, digits, `_` and `-`, 128 at most, and begin with a letter or a digit."
            )
            making.blame(path, at, f"this is no name of a {kind}", remedy)
    if len(first) > ir.QUEUES_MAX:
        what = f"{len(first)} of this kind, at most {ir.QUEUES_MAX} are taken"
        making.blame((PARTS[kind],), list(first.values())[ir.QUEUES_MAX].key, what, "Split the app.")
