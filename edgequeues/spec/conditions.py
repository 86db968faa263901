"""Conditions: which dead letters, or which messages, somebody means, in the language of the expressions of specs.

The fields of the message are read by their names, as in a `map_to`. Beside them there are the facts below, of the
letter or of where the message stands; where a field has the name of a fact, the fact is meant, and the field is
`message.<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from edgequeues.core import attrs, jsontext
from edgequeues.core.attrs import AttrType
from edgequeues.core.errors import InvalidRequest
from edgequeues.core.expression_nodes import children
from edgequeues.core.expression_values import truthy
from edgequeues.core.expressions import Env, ExprError, compile_expr
from edgequeues.core.lifecycle import STANDS
from edgequeues.models import ENTRY_BYTES_MAX
from edgequeues.spec import pieces
from edgequeues.spec.checking import INT, JSON, STRING, TIME, Anything
from edgequeues.spec.ir import MessageType, QueueSpec

CONDITIONS_MAX = 500  # messages for which one turn looks whether a condition holds
CONDITION_BYTES = ENTRY_BYTES_MAX  # of data that conditions go through in one turn, about
CONDITION_BYTES_OF_ONE = 8 * ENTRY_BYTES_MAX  # of one message, each time it is gone through counted

BOOL = AttrType("bool", optional=True)
MAYBE = AttrType("string", optional=True)
MAYBE_INT, MAYBE_TIME = AttrType("int", optional=True), AttrType("time", optional=True)
Facts = Mapping[str, AttrType]
LETTER: Facts = {
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
MESSAGE: Facts = {
    "message": JSON,
    "id": STRING,
    "key": MAYBE,
    "type": MAYBE,
    "priority": INT,
    "created_at": TIME,
    "updated_at": TIME,
    "state": AttrType("enum", values=STANDS),
    "consumer": MAYBE,
    "attempts": MAYBE_INT,
    "due_at": MAYBE_TIME,
    "worker": MAYBE,
    "error": MAYBE,
    "first_seen_at": MAYBE_TIME,
    "last_seen_at": MAYBE_TIME,
}


class _Facts(Anything):
    """The facts, and any field of a message whose type nobody knows."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def __getitem__(self, name: str) -> AttrType:
        return self._facts.get(name, JSON)


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

    def __init__(self, text: str, message_type: MessageType | None, facts: Facts) -> None:
        self._type = message_type or {}
        scope = _Facts(facts) if message_type is None else {**message_type, **facts}
        expr = pieces.expression(WHERE, text, scope, (BOOL,))
        self._holds = compile_expr(expr)
        self.scans = _scans(expr)

    def __call__(self, data: str, facts: Mapping[str, Any], at: int) -> bool:
        """Does it hold for a message at unix ms `at`? Where it cannot be computed, it does not.

        facts: all of them but `message`.
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


def work(size: int, scans: int, what: str) -> int:
    """Bytes that a condition goes through of a message. Raises InvalidRequest where it would take seconds."""
    work = size * max(scans, 1)
    if scans > 1 and work > CONDITION_BYTES_OF_ONE:
        raise InvalidRequest(
            f"where: it goes {scans} times through the {size} bytes of {what}, which takes too long: compare less"
            " with lists, or leave that one out by other fields of the filter"
        )
    return work


def of_letters(text: str, rules: str | None) -> Condition:
    """A condition for dead letters. rules: of the queue whose messages they were, as its row says them; None: of any.

    Raises as `of_messages` does.
    """
    return _condition(text, rules, letters=True)


def of_messages(text: str, rules: str | None) -> Condition:
    """A condition for messages and where they stand. rules: of their queue, as its row says them; None: of any.

    Raises InvalidRequest for what is no expression, for a field that no message of that queue has, and for what is
    neither true nor false.
    """
    return _condition(text, rules, letters=False)


@lru_cache(maxsize=256)
def _condition(text: str, rules: str | None, *, letters: bool) -> Condition:
    spec = None if rules is None else msgspec.json.decode(rules, type=QueueSpec)
    return Condition(text, None if spec is None else spec.message_type, LETTER if letters else MESSAGE)
