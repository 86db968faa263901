"""Pieces of the language by themselves: what they are read as, and that nobody pays for the parser unasked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from edgequeues.core.errors import InvalidRequest
from edgequeues.spec import pieces, wording
from edgequeues.spec.checking import Anything
from edgequeues.spec.ir import CommandMapping, QueueMapping

SERVED = "import sys, edgequeues.app, edgequeues.spec.conditions as conditions"
ASKED = f"{SERVED}; conditions.of_letters('true', None)"


@pytest.mark.parametrize(("program", "imported"), [(SERVED, "False"), (ASKED, "True")])
def test_a_server_that_is_never_given_text_never_imports_the_parser(program: str, imported: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print('lark' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == imported


@pytest.mark.parametrize(
    "text", ["a.b == 1 && !c", 'x in ["a", "b"] ? 1 : 2', 'has(a["b-c"]) || size(d) > 3', "-a + 2 * b"]
)
def test_an_expression_is_read_as_it_is_written(text: str) -> None:
    assert wording.text(pieces.expression("where", text, Anything())) == text


def test_a_mapping_is_read_as_in_a_spec() -> None:
    assert pieces.mapping("map_to", "queue next") == QueueMapping("next")
    found = pieces.mapping("map_to", "command A.B { x: y  // and\n z: 1 }")
    assert isinstance(found, CommandMapping)
    assert list(found.input_map) == ["x", "z"]


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("a ==", "where: line 1, column 5: the end of the text cannot stand here"),
        ("a\n  == b c", "where: line 2, column 8: `c` cannot stand here"),
        ('"open', "where: line 1, column 1: this string does not end on its line"),
        ("nosuch(a)", "where: line 1, column 1: there is no function `nosuch`"),
        ("(" * 100 + "a" + ")" * 100, "nested more than 64 deep"),
        (f"a == {'1' * 400}", "Write a smaller one"),
        (f'"{"x" * 5_000}" == a', "has 5007 bytes, at most 4096 are taken"),
    ],
)
def test_what_is_no_expression_is_told_with_its_place(text: str, about: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        pieces.expression("where", text, Anything())
    assert about in refused.value.detail
