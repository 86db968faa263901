"""Any allowed name has a file of its own, on every file system, and none leads out of the folder."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shards import files
from shards.errors import InvalidName
from shards.testing import running

from .examples import Notes

names = st.from_regex(files.NAME, fullmatch=True)
FOLDER = Path("folder")


@given(names)
@example("aB" * 64)
@example("Ab" * 64)
@example("a0" + "B" * 126)
def test_a_name_comes_back_from_its_file_name(name: str) -> None:
    assert files.decode(files.encode(name)) == name


@given(names)
@example("aB" * 64)
def test_a_file_name_has_no_upper_case_and_fits_every_file_system(name: str) -> None:
    encoded = files.encode(name)
    assert encoded == encoded.lower()
    assert encoded.isascii()
    assert len(encoded) + len(".db-refused") <= 255


@given(names, names)
def test_two_names_never_share_a_file_even_where_case_is_folded(one: str, other: str) -> None:
    if one != other:
        assert str(files.path_of(FOLDER, one)).casefold() != str(files.path_of(FOLDER, other)).casefold()


@given(names, st.randoms(use_true_random=False))
def test_names_that_differ_in_case_only_have_files_of_their_own(name: str, rng: random.Random) -> None:
    other = "".join(rng.choice([letter.lower(), letter.upper()]) for letter in name)
    if name != other:
        assert files.encode(name).casefold() != files.encode(other).casefold()


@given(st.text(max_size=200))
def test_what_is_not_a_name_is_refused_or_stays_in_the_folder(text: str) -> None:
    try:
        path = files.path_of(FOLDER, text)
    except InvalidName:
        assert not files.NAME.fullmatch(text)
    else:
        assert path.parent.parent == FOLDER
        assert ".." not in path.parts


@given(
    st.text(alphabet="abAB+.-_~1", max_size=12)
    | st.from_regex(r"[ab]{120,130}\+\+[0-9a-f]{1,33}", fullmatch=True)
)
def test_only_what_encode_makes_is_decoded(stem: str) -> None:
    name = files.decode(stem)
    assert name is None or files.encode(name) == stem


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".a",
        "-a",
        "a/b",
        "../a",
        "a\\b",
        "a\0b",
        "a b",
        "ä",
        "a\n",
        "/etc/passwd",
        "a" * 129,
        "~a",
        "a:b",
    ],
)
async def test_an_invalid_name_is_refused_before_anything_is_made(name: str) -> None:
    async with running(Notes) as namespace:
        with pytest.raises(InvalidName, match="1 to 128"):
            namespace.ref(name)
        with pytest.raises(InvalidName):
            await namespace.find(name)
        assert namespace.names() == []


async def test_names_are_listed_in_order_and_page_by_page() -> None:
    chosen = sorted(["a", "A", "aB", "Ab", "b1", "zz", "Z.9", "m_m", "n~", "0"])
    async with running(Notes) as namespace:
        for name in chosen:
            await namespace.ref(name).call(Notes.add, name)
        (namespace.folder / "ab").mkdir(exist_ok=True)
        (namespace.folder / "ab" / "Stray.db").touch()
        (namespace.folder / "ab" / "a.db").touch()  # right name, wrong folder
        assert namespace.names() == chosen
        assert namespace.names(after=chosen[3], limit=2) == chosen[4:6]
        for name in chosen:
            await namespace.evict(name)
            assert await namespace.ref(name).call(Notes.texts) == [name]


async def test_the_longest_name_works() -> None:
    name = "aB" * 64
    async with running(Notes) as namespace:
        await namespace.ref(name).call(Notes.add, "x")
        await namespace.evict(name)
        assert await namespace.ref(name).call(Notes.texts) == ["x"]
        assert namespace.names() == [name]
