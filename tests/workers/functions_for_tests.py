"""Functions as users write them, for the tests of commands."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from edgequeues.commands import Context, Rejected

Given = dict[str, Any]


def ship(given: Given, context: Context) -> object:
    """Count how often an order was shipped, and tell another queue."""
    before = context.get("Order", given["id"])
    times = 1 if before is None else int(before.attributes["times"]) + 1
    context.put(
        "Order", given["id"], state="shipped", attributes={"times": times, "attempt": context.attempt}
    )
    context.enqueue("done", {"n": times})
    print("shipping", given["id"])  # it must not get among what the server is told
    return {"times": times}


def open_incident(given: Given, context: Context) -> object:
    """Count how often it happened for this message, and say by which process."""
    before = context.get("Incident", context.id)
    times = 1 if before is None else int(before.attributes["times"]) + 1
    attributes = given | {"times": times, "process": os.getpid()}
    context.put("Incident", context.id, state="open", attributes=attributes)
    return times


def cancel(given: Given, context: Context) -> None:
    context.delete("Order", given["id"])


def who(given: Given, context: Context) -> object:
    return [context.id, context.space, context.attempt, os.getpid()]


def slow(given: Given, context: Context) -> object:
    """Look, dawdle, and write: another one is faster."""
    order = context.get("Order", "o")
    time.sleep(given["seconds"])
    context.put(
        "Order", "o", attributes={"by": given["by"], "after": None if order is None else order.version}
    )
    return given["by"]


def linger(given: Given, context: Context) -> object:
    """Tell from when to when it ran."""
    began = time.monotonic()
    time.sleep(0.01)
    span = {"key": given["id"], "by": given["by"], "began": began, "ended": time.monotonic()}
    context.enqueue("done", span)
    return None


def refuse(given: Given, context: Context) -> object:
    context.put("Order", "o")
    raise Rejected(f"no order {given['id']}")


def fail(given: Given, context: Context) -> object:
    context.put("Order", "o")
    context.enqueue("done", {"n": 1})
    raise ValueError("no such total")


def fail_once(given: Given, context: Context) -> object:
    if context.attempt == 1:
        raise ValueError("not yet")
    return ship(given, context)


def hang(given: Given, context: Context) -> object:
    while True:
        time.sleep(1)


def die(given: Given, context: Context) -> object:
    os.kill(os.getpid(), signal.SIGKILL)
    return None


def leave(given: Given, context: Context) -> object:
    sys.stdout.flush()
    os._exit(3)


def exit_politely(given: Given, context: Context) -> object:
    sys.exit("enough")


def return_a_set(given: Given, context: Context) -> object:
    return {1, 2}


def return_nothing_sayable(given: Given, context: Context) -> object:
    return float("nan")


def return_too_much(given: Given, context: Context) -> object:
    return "x" * 70_000


def store_a_set(given: Given, context: Context) -> object:
    context.put("Order", "o", attributes={"of": {1, 2}})
    return None


def post_too_much(given: Given, context: Context) -> object:
    context.enqueue("done", "x" * 2_000_000)
    return None


def name_badly(given: Given, context: Context) -> object:
    context.put("", "o")
    return None


def name_half_a_character(given: Given, context: Context) -> object:
    context.put("Order", "\ud800")
    return None


def key_badly(given: Given, context: Context) -> object:
    context.enqueue("done", 1, key="")
    return None


async def wait(given: Given, context: Context) -> object:
    return None


number = 5
CONFLICT_S = 0.3
