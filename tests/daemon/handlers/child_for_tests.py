"""A command that speaks the protocol as its page has it, with the standard library alone.

It does what the first tag of an event says. Arguments: a folder that `once` makes a mark in.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hear() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def call(number: int, method: str, **params: Any) -> dict[str, Any]:
    say(type="call", id=number, call=1, method=method, params=params)
    answer = hear()
    assert (answer["type"], answer["call"]) == ("answer", 1)
    return answer


def note(text: object) -> dict[str, Any]:
    return {"artifacts": [{"kind": "note", "note": str(text)}]}


def rude(todo: str) -> None:
    """What no command should do."""
    match todo:
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit(3)
        case "print":
            print("a line for people", flush=True)
        case "long":
            sys.stdout.write("x" * (2 * 1024 * 1024))
            sys.stdout.flush()
        case "stranger":
            say(type="result", id=999_999, result=None)
        case "hang" | "deaf":
            time.sleep(3_600)
        case "parent":
            subprocess.Popen(["sleep", "3600"])
            time.sleep(3_600)
        case "noise":
            for _ in range(2_000):
                sys.stderr.write("noise\n")
            sys.stderr.write("x" * 100_000 + "\n")
            sys.stderr.flush()
        case "flood":
            while True:
                say(type="call", id=last, call=2, method="count", params={"name": "floods"})


def deal(message: dict[str, Any]) -> dict[str, Any] | None:  # noqa: PLR0911
    event, number = message["event"], message["id"]
    todo, text = event["tags"][0], event["content"].get("text", "")
    rude(todo)
    match todo:
        case "reply" | "dict":
            return {"reply": {"channel": "sms", "body": text}}
        case "artifacts":
            return note(f"attempt {message['attempt']}")
        case "big":
            return note(len(text))
        case "who":
            return note(os.getpid())
        case "budget":
            return note(message["budgetMs"])
        case "count":
            say(
                type="call",
                id=number,
                method="log",
                params={"message": "counting", "fields": {"colour": "blue"}},
            )
            params = {"name": "things", "value": 2, "labels": {"colour": "blue"}}
            say(type="call", id=number, method="count", params=params)
            params = {"name": "size", "value": 1.5, "labels": {"colour": "blue"}}
            say(type="call", id=number, method="observe", params=params)
        case "nonsense":
            return {"reply": {"channel": "smoke"}}
        case "object":
            answer = call(number, "url", ref=event["content"]["attachments"][0]["r2"])
            return note(answer["result"]["presignedGetUrl"])
        case "send":
            assert "error" not in call(number, "sendSms", body="now")
        case "blocked":
            answer = call(number, "sendSms", body="now", to="+15550666")
            say(type="error", id=number, error=answer["error"], permanent=answer["permanent"])
            return {"said": True}
        case "wrong":
            return note(call(number, "sendSms", text="now")["error"])
    return None


def main() -> None:
    global last  # noqa: PLW0603
    assert hear() == {"type": "hello", "version": 1}
    if "dumb" in sys.argv:
        time.sleep(3_600)
    if "broken" in sys.argv:
        sys.stderr.write("no such database\n")
        sys.exit(4)
    say(type="ready")
    sys.stderr.write("ready for +15550100\n")
    sys.stderr.flush()
    while (message := hear())["type"] != "stop":
        if message["type"] != "event":
            continue
        last = message["id"]
        match message["event"]["tags"][0]:
            case "raise":
                say(type="error", id=last, error="Odd: no such thing")
            case "again":
                say(type="error", id=last, error="later", retryAfterMs=7_000)
            case "never":
                say(type="error", id=last, error="not for us", permanent=True)
            case "patient":
                assert hear() == {"type": "cancel", "id": last}
                say(type="error", id=last, error="stopped")
            case _:
                result = deal(message)
                if result is None or "said" not in result:
                    say(type="result", id=last, result=result)
    if (marks := [word for word in sys.argv[1:] if Path(word).is_dir()]) and marks:
        (Path(marks[0]) / "stopped").touch()


last = 0
if __name__ == "__main__":
    main()
