"""Specs that files hold and that are to hold on a server: in which space, and that nothing is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from edgequeues.core.errors import EdgeQueuesError, reason
from edgequeues.core.ids import check_space
from edgequeues.spec.check import Allowed
from edgequeues.spec.ir import Spec
from edgequeues.spec.load import load


class SpecError(Exception):
    """A spec that will not do. The message names every place that is at fault, and what to do about each."""


class Given(NamedTuple):
    """A spec that was named with the space in which it is to hold. origin: the file."""

    spec: Spec
    space: str
    origin: str


def given(text: str, allowed: Allowed | None) -> Given:
    """The spec of FILE or FILE=SPACE; without a space, that of the app's name. Raises SpecError."""
    name, _, space = text.partition("=")
    spec = read(Path(name), allowed)
    try:
        return Given(spec, check_space(space or spec.app), name)
    except EdgeQueuesError as error:
        raise SpecError(f"{text}: {error}") from error


def read(path: Path, allowed: Allowed | None = None) -> Spec:
    """The spec of a file, checked; allowed: what it may use of the server's surroundings, None: anything.

    Raises SpecError.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SpecError(f"{path}: {reason(error)}; name a file of a spec") from error
    found = load(content, str(path), allowed)
    if found.spec is None:
        raise SpecError("\n".join(found.render()))
    return found.spec
