"""Specs for tests, out of the parts that a test is about."""

from __future__ import annotations

from pathlib import Path

from edgequeues.spec import faults, ir
from edgequeues.spec.parse import parse

DATA = Path(__file__).parent / "data"
SAMPLE = (DATA / "incident.spec").read_text()


def app(body: str) -> str:
    return f"app Demo {{\n{body}\n}}\n"


def queue(body: str, name: str = "Jobs") -> str:
    return app(f"queue {name} {{\n{body}\n}}")


def webhook(body: str, verify: str = "verify: none") -> str:
    return app(f"queue Jobs {{}}\nwebhook Hook {{\n{body}\n{verify}\nqueue: Jobs\n}}")


def read(text: str) -> ir.Spec:
    """A spec that must have a right form."""
    found = parse(text)
    assert found.faults == [], said(text)
    assert found.spec is not None
    return found.spec


def only(text: str) -> ir.QueueSpec:
    """The one queue of a spec."""
    [found] = read(text).queues.values()
    return found


def expression(text: str) -> ir.Expr:
    found = only(queue(f"filter: {text}")).filter
    assert found is not None
    return found


def said(text: str) -> list[str]:
    """What is wrong with the form of a text: the first lines, without the file."""
    found = parse(text)
    shown = [faults.render(fault, text, found.marks, "x") for fault in found.faults]
    return [one.split("\n")[0].removeprefix("x:") for one in shown]


def advice(text: str) -> list[str]:
    """What to do about what is wrong with the form of a text."""
    return [fault.remedy for fault in parse(text).faults]
