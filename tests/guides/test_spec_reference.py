"""What the documents show of specs is true: each is taken, or told what is shown; all words are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect

from edgequeues.core.attrs import AttrName
from edgequeues.core.expressions import Env, ExprError, compile_expr
from edgequeues.spec import ir
from edgequeues.spec.expression_tree import BINARY, FUNCTIONS, MANY
from edgequeues.spec.keys import KEYS
from edgequeues.spec.load import load
from edgequeues.spec.parts import PRIORITIES, UNLIMITED_KEYS
from tests.house import tree

PAGE = "docs/reference/spec.md"
AS_JSON = re.compile(r"^```spec\n([^`]+)```\n\n```json\n([^`]+)```", re.MULTILINE)
BLOCK = re.compile(r"^```spec( faulty)?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ `(\w+)`$", re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+ \|$", re.MULTILINE)
PARTS: dict[str, Any] = {
    "queue": ir.QueueSpec,
    "rate_limit": ir.RateLimit,
    "retention": ir.Retention,
    "delivery": ir.Delivery,
    "webhook": ir.WebhookSpec,
    "verify_hmac": ir.Hmac,
    "verify_token": ir.SharedToken,
    "command": ir.CommandSpec,
    "schedule": ir.ScheduleSpec,
}


def shown(faulty: bool) -> Iterator[tuple[str, str, str]]:
    """The specs that documents show: where, the text, and the text block right after it."""
    for path in tree.documents():
        if path == "README.md" or path.startswith("docs/"):
            for found in BLOCK.finditer(tree.text(path)):
                if bool(found[1]) == faulty:
                    yield path, found[2], found[3] or ""


def by_path(value: object) -> str:
    return value if isinstance(value, str) and "\n" not in value else ""


@pytest.mark.parametrize(("path", "text", "after"), list(shown(faulty=False)), ids=by_path)
def test_a_spec_that_is_shown_has_no_fault(path: str, text: str, after: str) -> None:
    assert load(text.encode(), path).render() == []


@pytest.mark.parametrize(("path", "text", "after"), list(shown(faulty=True)), ids=by_path)
def test_a_faulty_spec_is_told_what_is_shown_below_it(path: str, text: str, after: str) -> None:
    assert "\n".join(load(text.encode(), "shop.spec").render()) + "\n" == after


def test_a_spec_and_its_json_are_the_same() -> None:
    [(text, stored)] = AS_JSON.findall(tree.text(PAGE))
    found = load(text.encode())
    assert found.spec is not None
    assert msgspec.json.decode(ir.encode(found.spec)) == msgspec.json.decode(stored)
    assert load(stored.encode()).spec == found.spec


def test_both_kinds_are_shown() -> None:
    assert {path for path, *_ in shown(faulty=True)} == {PAGE}
    assert len([path for path, *_ in shown(faulty=False) if path == PAGE]) >= 6


RESULTS = re.compile(r"^Of the message `(.+)`:\n\n((?:\|.*\n)+)", re.MULTILINE)


def results() -> list[tuple[str, str, str]]:
    """The message, an expression, and what the page says that it gives."""
    [(message, table)] = RESULTS.findall(tree.text(PAGE))
    rows = re.findall(r"^\| `(.+)` \| (.+) \|$", table, re.MULTILINE)
    return [(message, expression, gives) for expression, gives in rows]


@pytest.mark.parametrize(("message", "expression", "gives"), results(), ids=by_path)
def test_an_expression_on_the_page_gives_what_is_shown(message: str, expression: str, gives: str) -> None:
    found = load(f"app Shown {{ queue Jobs {{ filter: {expression} }} }}".encode())
    assert found.spec is not None, found.render()
    compute = compile_expr(found.spec.queues["Jobs"].filter)
    env = Env(msgspec.json.decode(message))
    if gives.startswith("an error: "):
        with pytest.raises(ExprError, match=f"^{re.escape(gives.removeprefix('an error: '))}$"):
            compute(env)
    else:
        assert msgspec.json.encode(compute(env)).decode() == gives.strip("`")


# -- tables -------------------------------------------------------------------------------------------------


def tables() -> dict[str, dict[str, tuple[str, str]]]:
    """By block: its keys, with what is written of the value and the default of each."""
    _, *parts = HEADING.split(tree.text(PAGE))
    found = {}
    for name, section in zip(parts[::2], parts[1::2], strict=True):
        own = section.split("\n#")[0]
        found[name] = {key: (value, default) for key, value, default in ROW.findall(own)}
    return found


def test_each_block_has_a_table_of_its_keys_in_the_order_in_which_they_are_printed() -> None:
    assert {name: list(rows) for name, rows in tables().items()} == {
        name: list(keys) for name, keys in KEYS.items()
    }


def in_words(kind: Any) -> str:
    """A plain type; "" for others, as expressions."""
    if isinstance(kind, inspect.Metadata):
        return in_words(kind.type)
    if isinstance(kind, inspect.UnionType):
        others = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        return in_words(others[0]) if len(others) == 1 else ""
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        word = "integer" if isinstance(kind, inspect.IntType) else "number"
        return f"{word}, {kind.ge} to {kind.le}"
    if isinstance(kind, inspect.LiteralType):
        return ", ".join(f"`{word}`" for word in kind.values)
    if isinstance(kind, inspect.VarTupleType):
        return f"list of up to {kind.max_length}: {in_words(kind.item_type)}"
    return "text" if isinstance(kind, inspect.StrType) else ""


def plain_fields() -> Iterator[tuple[str, str, inspect.Field]]:
    """The settings whose range and default the tables say as ir.py does: block, key, field."""
    for block, part in PARTS.items():
        info = msgspec.inspect.type_info(part)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            key = "secret_env" if field.name == "secret_envs" else field.name
            if key in KEYS[block] and in_words(field.type):
                yield block, key, field


@pytest.mark.parametrize(("block", "key", "field"), list(plain_fields()), ids=by_path)
def test_ranges_in_the_tables_are_those_that_are_checked(block: str, key: str, field: inspect.Field) -> None:
    words, written = in_words(field.type), tables()[block][key][0]
    if key in UNLIMITED_KEYS:
        words += ", or `unlimited`"
    if key == "secret_env" and block != "command":
        words = f"text, or {words}"
    if key in ("queue", "dead_letter_queue"):
        words = "name of a queue of this spec"
    written = written.replace("(expression)", "")  # per_key takes one
    assert sorted(written.split(", ")) == sorted(words.split(", "))


@pytest.mark.parametrize(("block", "key", "field"), list(plain_fields()), ids=by_path)
def test_defaults_in_the_tables_are_those_that_hold(block: str, key: str, field: inspect.Field) -> None:
    written = tables()[block][key][1]
    if key == "max_age_seconds":
        assert written == f"required; {ir.QueueSpec().retention.max_age_seconds} without the block"
    elif field.required:
        assert written == "required"
    elif field.default in (None, (), ""):
        assert written in ("none", "as the header tells")
    else:
        default = int(field.default) if isinstance(field.default, float) else field.default
        assert written == f"`{default}`"


# -- words --------------------------------------------------------------------------------------------------


def test_every_type_operator_function_scheme_and_word_is_on_the_page() -> None:
    page = tree.text(PAGE)
    missing = [name for name in get_args(AttrName) if not re.search(rf"^\| `{name}\b", page, re.MULTILINE)]
    missing += [name for name in FUNCTIONS if not re.search(rf"^\| .*`{name}\(", page, re.MULTILINE)]
    signs = (*BINARY, *(sign.replace("|", "\\|") for sign in MANY), "!")
    missing += [sign for sign in signs if f"`{sign}`" not in page]
    missing += [word for word in (*get_args(ir.Scheme), *PRIORITIES) if f"`{word}`" not in page]
    assert missing == []


def test_the_grammar_on_the_page_is_the_one_that_is_read_by() -> None:
    """Without what the parser alone needs: the names of alternatives, of tokens, and of rules that are left out."""
    grammar = tree.text("edgequeues/spec/grammar.lark")
    tokens = dict(re.findall(r'^(\w+): (".+")$', grammar, re.MULTILINE)) | {"IN": '"in"'}
    rules = grammar[grammar.index("start:") : grammar.index("NAME: /")]
    rules = re.sub(r" +-> \w+$", "", rules, flags=re.MULTILINE)
    rules = re.sub(r"^\?", "", rules, flags=re.MULTILINE)
    rules = re.sub(r"\b_?[A-Z_]+\b", lambda found: tokens.get(found[0], found[0]), rules)
    [written] = [block for language, block in tree.code_blocks(PAGE) if language == "ebnf"]
    assert written == f"{rules.strip()}\n"


def test_commands_on_the_page_that_look_at_files_are_there() -> None:
    from edgequeues.cli.spec import spec

    page = tree.text(PAGE)
    assert [name for name in spec.commands if f"`edgequeues spec {name} " not in page] == []
