"""What the functions of expressions convert, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from edgequeues.core.expressions import ExprError

from .expression_kit import call, path, value_of


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("len", "hé😀", 3),
        ("len", "\ud83d", 1),
        ("len", [1, 2], 2),
        ("len", {"a": 1}, 1),
        ("len", 5, None),
        ("len", True, None),
        ("len", None, None),
        ("str", "a", "a"),
        ("str", 5, "5"),
        ("str", -0.0, "-0.0"),
        ("str", 2.5, "2.5"),
        ("str", True, "true"),
        ("str", None, None),
        ("int", 5, 5),
        ("int", -2.9, -2),
        ("int", "12", 12),
        ("int", "-012", -12),
        ("int", "1_0", None),
        ("int", " 1", None),
        ("int", "1.0", None),
        ("int", "\u0661", None),
        ("int", "", None),
        ("int", "9223372036854775807", 2**63 - 1),
        ("int", "9223372036854775808", None),
        ("int", "9" * 5_000, None),
        ("int", None, None),
        ("float", 5, 5.0),
        ("float", "1e3", 1000.0),
        ("float", "-1.5", -1.5),
        ("float", "nan", None),
        ("float", "inf", None),
        ("float", "1e999", None),
        ("float", "1_0", None),
        ("float", "", None),
        ("float", None, None),
        ("lower", "ÀB", "àb"),
        ("lower", None, None),
        ("upper", "straße", "STRASSE"),
        ("upper", "\ud83d", "\ud83d"),
        ("time", 5, 5),
        ("time", 5.5, 5.5),
        ("time", True, None),
        ("time", None, None),
        ("time", {}, None),
        ("time", "1970-01-01T00:00:00Z", 0),
        ("time", "1970-01-02t00:00:00.25z", 86_400.25),
        ("time", "2024-02-29 12:00:00+01:30", 1_709_202_600),
        ("time", "1969-12-31T23:59:59-00:00", -1),
        ("time", "0001-01-01T00:00:00+23:59", -62_135_683_140),
        ("time", "9999-12-31T23:59:60-23:59", 253_402_387_140),
        ("time", "2016-12-31T23:59:60Z", 1_483_228_800),
        ("time", "2023-02-29T00:00:00Z", None),
        ("time", "2024-01-01T24:00:00Z", None),
        ("time", "2024-01-01T00:00:61Z", None),
        ("time", "2024-01-01T00:00:00+24:00", None),
        ("time", "2024-01-01T00:00:00+00:60", None),
        ("time", "2024-01-01T00:00:00", None),
        ("time", "2024-01-01", None),
        ("time", "0000-01-01T00:00:00Z", None),
        ("time", "\u0662024-01-01T00:00:00Z", None),
        ("time", "2024-01-01T00:00:00Z\n", None),
    ],
)
def test_functions_convert_or_give_null(name: str, value: Any, result: Any) -> None:
    got = value_of(call(name, path("a")), a=value)
    assert (got, type(got)) == (result, type(result))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("str", [], "string() of a list"),
        ("str", {}, "string() of an object"),
        ("str", 10**400, "string(): the integer is beyond 64 bits"),
        ("int", True, "int() of a boolean"),
        ("int", [], "int() of a list"),
        ("int", 1e300, "int(): the integer is beyond 64 bits"),
        ("int", float("inf"), "int(): the number is not finite"),
        ("float", False, "double() of a boolean"),
        ("float", {}, "double() of an object"),
        ("lower", 5, "lower() of an integer"),
        ("upper", ["a"], "upper() of a list"),
    ],
)
def test_functions_refuse_what_cannot_be_converted(name: str, value: Any, words: str) -> None:
    with pytest.raises(ExprError) as caught:
        value_of(call(name, path("a")), a=value)
    assert words in str(caught.value)
    assert caught.value.path == ()


MIB = 1024 * 1024


def test_no_text_grows_beyond_a_mebibyte() -> None:
    double = {"add": [path("a"), path("a")]}
    assert len(value_of(double, a="x" * (MIB // 2))) == MIB
    for half in ("x" * (MIB // 2 + 1), "é" * (MIB // 4 + 1), "\ud83d" * (MIB // 6 + 1)):
        with pytest.raises(ExprError, match="more than 1048576 bytes"):
            value_of(double, a=half)
    with pytest.raises(ExprError, match="more than 1048576 bytes"):
        value_of(call("upper", path("a")), a="ﬃ" * (MIB // 3 + 1))
