"""Reading what a message holds, by paths: what an expression may see, and how it gets there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from edgequeues.core.expression_nodes import Place, Steps
from edgequeues.core.jsonwords import kind, path_text


class Env(Struct, frozen=True):
    """What an expression may read. now: unix seconds.

    more: the other variables by name: actor, state, attrs, row, arg, rows_count, agg, e_type, e_actor, e_time,
    e_payload, and next_state, to which the command at hand leads. What is not there is null.
    """

    input: Mapping[str, Any]
    now: float = 0.0
    more: Mapping[str, Any] = {}


Closure = Callable[[Env], Any]


def read(place: Place) -> Closure:
    """A variable, or a path that starts at one."""
    start, steps = origin(place)
    keys = [step for step in steps if isinstance(step, str)]
    if place.group == "input" and len(keys) == len(steps):
        return _keys(keys)
    return steps_into(start, steps) if steps else start


def origin(place: Place) -> tuple[Closure, Steps]:
    """What a place is read from, and the steps from there."""
    steps = place.steps if place.field is None else [place.field, *place.steps]
    if place.group == "input":
        return lambda env: env.input, steps
    if place.group == "now":
        return lambda env: env.now, steps
    group = place.group
    return lambda env: env.more.get(group), steps


def _keys(steps: list[str]) -> Closure:
    """A path of keys from the input. Only objects have keys: what is no object raises, as a missing key does."""
    field, *more = steps
    if not more:
        return lambda env: env.input.get(field)
    first, *rest = more
    if not rest:

        def two(env: Env) -> Any:
            try:
                return env.input[field][first]
            except (KeyError, TypeError):
                return None

        return two
    second, *last = rest
    if not last:

        def three(env: Env) -> Any:
            try:
                return env.input[field][first][second]
            except (KeyError, TypeError):
                return None

        return three

    def many(env: Env) -> Any:
        try:
            value = env.input[field][first][second]
            for step in last:
                value = value[step]
        except (KeyError, TypeError):
            return None
        return value

    return many


def steps_into(start: Closure, steps: Steps, missing: object = None) -> Closure:
    """A path from any value; `missing` where nothing is at its end.

    A position counts in lists alone: it would find a character in a text.
    """

    def walked(env: Env) -> Any:
        value = start(env)
        for step in steps:
            if not has_step(value, step):
                return missing
            value = value[step]
        return value

    return walked


def has_step(value: Any, step: str | int) -> bool:
    """Whether there is a member of that name, or an element at that position."""
    if isinstance(step, int):
        return type(value) is list and step < len(value)
    return (type(value) is dict or isinstance(value, Mapping)) and step in value


def found(env: Env, path: tuple[str, Steps]) -> str:
    """What is at a path, as `bare_path` gives it: "null", "a text", "missing after payload.incident"."""
    field, steps = path
    if field not in env.input:
        return "missing"
    value = env.input[field]
    for index, step in enumerate(steps):
        if not has_step(value, step):
            where = path_text(field, steps[:index])
            fits = type(value) is (dict if type(step) is str else list)
            return f"missing after {where}" + ("" if fits else f", which is {kind(value)}")
        value = value[step]
    return kind(value)
