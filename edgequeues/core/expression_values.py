"""What operators and functions of expressions do to JSON values.

Null goes through; what does not fit is an ExprError. A boolean is no number. Integers and floats are equal by value.
Integers have 64 bits, and no result is infinite.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from edgequeues.core.attrs import INT_MAX, INT_MIN
from edgequeues.core.expression_nodes import At
from edgequeues.core.jsonwords import kind

TEXT_BYTES_MAX = 1024 * 1024  # of a text that an expression makes

Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,10})?")
_DAY, _TIME = r"([0-9]{4})-([0-9]{2})-([0-9]{2})", r"([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]{1,30})?"
_RFC_3339 = re.compile(rf"{_DAY}[Tt ]{_TIME}(?:[Zz]|([+-])([0-9]{{2}}):([0-9]{{2}}))")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ExprError(Exception):
    """An expression has no value for this message. path: of the node that failed, in the expression's JSON."""

    def __init__(self, path: At, text: str) -> None:
        self.path = path
        super().__init__(text)


def truthy(value: Any) -> bool:
    """Null, false, 0 and the empty text are false; all else is true, empty lists and objects too."""
    return True if type(value) is list or type(value) is dict else bool(value)


def equal(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same; 1 and 1.0 are, 1 and true are not, inside containers neither."""
    kind_a, kind_b = type(a), type(b)
    if kind_a is kind_b:
        return _deeply_equal(a, b) if kind_a is list or kind_a is dict else bool(a == b)
    return (kind_a is int or kind_a is float) and (kind_b is int or kind_b is float) and bool(a == b)


def _deeply_equal(a: Any, b: Any) -> bool:
    waiting = [(a, b)]  # not recursion: nothing bounds how deep data is that did not come as JSON
    while waiting:
        a, b = waiting.pop()
        if type(a) is not type(b) or not (type(a) is list or type(a) is dict):
            if not equal(a, b):
                return False
        elif a is not b:
            if len(a) != len(b):
                return False
            if isinstance(a, list):
                waiting.extend(zip(a, b, strict=True))
            elif a.keys() != b.keys():
                return False
            else:
                waiting.extend((value, b[key]) for key, value in a.items())
    return True


def contains(at: At) -> Binary:
    """`in`: an element of a list, or a key of an object."""

    def found(item: Any, box: Any) -> bool | None:
        if type(box) is list:
            return any(equal(item, each) for each in box)
        if box is None:
            return None
        if type(box) is dict:
            if type(item) is str:
                return item in box
            if item is None:
                return None
        raise ExprError(at, f"{kind(item)} in {kind(box)}: a list takes any value, an object takes a text")

    return found


# -- order and arithmetic -----------------------------------------------------------------------------------

ORDERS: dict[str, tuple[str, Binary]] = {
    "lt": ("<", operator.lt),
    "le": ("<=", operator.le),
    "gt": (">", operator.gt),
    "ge": (">=", operator.ge),
}


def order(name: str, at: At) -> Binary:
    """`lt`, `le`, `gt`, `ge`: of two numbers, or of two texts by code points."""
    sign, compare = ORDERS[name]

    def ordered(a: Any, b: Any) -> bool | None:
        kind_a, kind_b = type(a), type(b)
        if kind_a is str and kind_b is str:
            return bool(compare(a, b))
        if (kind_a is int or kind_a is float) and (kind_b is int or kind_b is float):
            return bool(compare(a, b))
        if a is None or b is None:
            return None
        raise ExprError(at, f"{kind(a)} {sign} {kind(b)}: two numbers or two texts are wanted")

    return ordered


def divide(a: float, b: float) -> float:
    """Of integers towards zero. Raises ZeroDivisionError."""
    if type(a) is int and type(b) is int:
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return a / b


ARITHMETIC: dict[str, tuple[str, Binary]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
    "div": ("/", divide),
}


def arithmetic(name: str, at: At) -> Binary:
    """`add`, `sub`, `mul`, `div` of two numbers; `add` joins two texts."""
    sign, compute = ARITHMETIC[name]
    wanted = "two numbers or two texts are wanted" if name == "add" else "two numbers are wanted"

    def computed(a: Any, b: Any) -> Any:
        kind_a, kind_b = type(a), type(b)
        if (kind_a is int or kind_a is float) and (kind_b is int or kind_b is float):
            try:
                return bounded(compute(a, b), sign, at)
            except ZeroDivisionError:
                raise ExprError(at, f"{kind(a)} / zero") from None
            except OverflowError:
                raise ExprError(at, f"{kind(a)} {sign} {kind(b)}: beyond the range of numbers") from None
        if kind_a is str and kind_b is str and sign == "+":
            return short_enough(a + b, sign, at)
        if a is None or b is None:
            return None
        raise ExprError(at, f"{kind(a)} {sign} {kind(b)}: {wanted}")

    return computed


def bounded(number: float, what: str, at: At) -> float:
    """`number`, if it is an integer of 64 bits or a finite float. Raises ExprError."""
    if type(number) is int:
        if not INT_MIN <= number <= INT_MAX:
            raise ExprError(at, f"{what}: the integer is beyond 64 bits")
    elif not math.isfinite(number):
        raise ExprError(at, f"{what}: the number is not finite")
    return number


def short_enough(text: str, what: str, at: At) -> str:
    """`text`, if it has at most TEXT_BYTES_MAX bytes. Raises ExprError."""
    if len(text) > TEXT_BYTES_MAX // 4 and len(text.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        raise ExprError(at, f"{what}: a text of more than {TEXT_BYTES_MAX} bytes")
    return text


def negate(at: At) -> Unary:
    """`neg` of a number."""

    def negated(value: Any) -> float | None:
        if type(value) is int or type(value) is float:
            return bounded(-value, "-", at)
        if value is None:
            return None
        raise ExprError(at, f"- {kind(value)}: a number is wanted")

    return negated


# -- functions ----------------------------------------------------------------------------------------------


def length(at: At) -> Unary:
    """`len`: code points of a text, elements of a list, keys of an object; else null."""

    def measured(value: Any) -> int | None:
        return len(value) if type(value) in {str, list, dict} else None

    return measured


def to_text(at: At) -> Unary:
    """`str`: a text as it is, of a number or a boolean its JSON."""

    def written(value: Any) -> str | None:
        if value is None or type(value) is str:
            return value
        if type(value) is bool:
            return "true" if value else "false"
        if type(value) is int or type(value) is float:
            bounded(value, "string()", at)
            return repr(value)
        raise ExprError(at, f"string() of {kind(value)}: a text, a number or a boolean is wanted")

    return written


def to_int(at: At) -> Unary:
    """`int`: numbers are cut towards zero; a text that is no integer of 64 bits gives null."""

    def read(value: Any) -> int | None:
        if type(value) is int or type(value) is float:
            bounded(value, "int()", at)
            whole = int(value)
            bounded(whole, "int()", at)
            return whole
        if type(value) is str:
            number = int(value) if _INTEGER.fullmatch(value) else None
            return number if number is not None and INT_MIN <= number <= INT_MAX else None
        if value is None:
            return None
        raise ExprError(at, f"int() of {kind(value)}: a number or a text is wanted")

    return read


def to_float(at: At) -> Unary:
    """`float`: a text that is no finite number gives null."""

    def read(value: Any) -> float | None:
        if type(value) is int or type(value) is float:
            bounded(value, "double()", at)
            return float(value)
        if type(value) is str:
            number = float(value) if _NUMBER.fullmatch(value) else math.inf
            return number if math.isfinite(number) else None
        if value is None:
            return None
        raise ExprError(at, f"double() of {kind(value)}: a number or a text is wanted")

    return read


def change_case(name: str, change: Callable[[str], str], at: At) -> Unary:
    """`lower` and `upper`."""

    def changed(value: Any) -> str | None:
        if type(value) is str:
            return short_enough(change(value), f"{name}()", at)  # a few letters become several
        if value is None:
            return None
        raise ExprError(at, f"{name}() of {kind(value)}: a text is wanted")

    return changed


def to_time(at: At) -> Unary:
    """`time`: numbers as they are, RFC 3339 texts as unix seconds, all else null."""
    return unix_seconds


def unix_seconds(value: Any) -> float | None:
    """A number as it is, the time of an RFC 3339 text, else None. A leap second counts as the one after it."""
    if type(value) is int or type(value) is float:
        return value
    found = _RFC_3339.fullmatch(value) if type(value) is str else None
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    fraction, sign, hours, minutes = found.group(7, 8, 9, 10)
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    if second > 60 or ahead >= timedelta(days=1) or int(minutes or 0) > 59:
        return None
    try:
        whole = datetime(year, month, day, hour, minute, tzinfo=UTC) - _EPOCH
    except ValueError:
        return None
    whole += timedelta(seconds=second) + (ahead if sign == "-" else -ahead)
    seconds = whole.days * 86_400 + whole.seconds
    return seconds + float(fraction) if fraction else seconds


FUNCTIONS: dict[str, Callable[[At], Unary]] = {
    "len": length,
    "str": to_text,
    "int": to_int,
    "float": to_float,
    "lower": lambda at: change_case("lower", str.lower, at),
    "upper": lambda at: change_case("upper", str.upper, at),
    "time": to_time,
}
