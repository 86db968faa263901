"""Conditions: which dead letters somebody means, in the language of the expressions of specs.

The fields of the message are read by their names, as in a `map_to`. Beside them there are the facts of the letter
below; where a field has the name of a fact, the fact is meant, and the field is `message.<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from edgequeues.core import attrs, jsontext
from edgequeues.core.attrs import AttrType
from edgequeues.core.expression_nodes import children
from edgequeues.core.expression_values import truthy
from edgequeues.core.expressions import Env, ExprError, compile_expr
from edgequeues.spec import pieces
from edgequeues.spec.checking import INT, JSON, STRING, TIME, Anything
from edgequeues.spec.ir import MessageType, QueueSpec

BOOL = AttrType("bool", optional=True)
MAYBE = AttrType("string", optional=True)
FACTS: dict[str, AttrType] = {
    "message": JSON,
    "error": STRING,
    "reason": AttrType("enum", values=("exhausted", "permanent", "skipped", "malformed")),
    "attempts": INT,
    "failed_at": TIME,
    "first_seen_at": TIME,
    "last_seen_at": TIME,
    "queue": STRING,
    "consumer": STRING,
    "key": MAYBE,
    "type": MAYBE,
    "replayed": AttrType("bool"),
}


class _Facts(Anything):
    """The facts, and any field of a message whose type nobody knows."""

    def __getitem__(self, name: str) -> AttrType:
        return FACTS.get(name, JSON)


WHERE = "where"  # how the text is called in refusals


def read(text: str | None) -> str | None:
    """The text of a condition, as far as that can be judged without a queue. Raises InvalidRequest.

    Called at the edge: no text is parsed in a turn.
    """
    if text is not None:
        pieces.read(WHERE, text)
    return text


class Condition:
    """A condition, compiled. Raises InvalidRequest.

    scans: how often it may go through all that a message holds; each time takes as long as the message is.
    """

    def __init__(self, text: str, message_type: MessageType | None) -> None:
        self._type = message_type or {}
        scope = _Facts() if message_type is None else {**message_type, **FACTS}
        expr = pieces.expression(WHERE, text, scope, (BOOL,))
        self._holds = compile_expr(expr)
        self.scans = _scans(expr)

    def __call__(self, data: str, facts: Mapping[str, Any], at: int) -> bool:
        """Does it hold for a message at unix ms `at`? Where it cannot be computed, it does not.

        facts: all of FACTS but `message`.
        """
        value = jsontext.value(data)
        known = attrs.fields_of(self._type, value)
        try:
            return truthy(self._holds(Env({**known, **facts, "message": value}, at / 1_000)))
        except ExprError:
            return False


def _scans(node: Any) -> int:
    """Comparisons that look at every element of a list or an object: all but those with a constant."""
    inner = [child for child, _ in children(node, ())]
    key = next(iter(node))
    own = key == "in" or (key in ("eq", "ne") and not any("lit" in child for child in inner))
    return own + sum(map(_scans, inner))


@lru_cache(maxsize=256)
def condition(text: str, rules: str | None) -> Condition:
    """The condition of a text. rules: of the queue whose messages are meant, as its row says them; None: of any.

    Raises InvalidRequest for what is no expression, for a field that no message of that queue has, and for what is
    neither true nor false.
    """
    spec = None if rules is None else msgspec.json.decode(rules, type=QueueSpec)
    return Condition(text, None if spec is None else spec.message_type)
