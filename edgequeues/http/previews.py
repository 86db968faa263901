"""Previews: a JSON value cut to a bound, in its own shape, so that a page of many stays small."""

from __future__ import annotations

from typing import Any

from edgequeues.core import jsontext

PARSED_MAX = 64 * 1024  # characters of data that are taken apart; of more, the beginning is shown as a text
CHARS_MAX = 1_000  # of all texts, names and numbers in a preview, about
TEXT_MAX = 200  # of one text
MORE = "…"


def preview(data: str) -> object:
    """A JSON text as a value of at most about CHARS_MAX characters.

    Texts are cut and end in `…`; of a list or an object with more than fits, the first members are there, and
    beside them, under `…` or as the last element, how many are not.
    """
    if len(data) > PARSED_MAX:
        return data[:CHARS_MAX] + MORE
    value = jsontext.value(data)
    return value if len(data) <= CHARS_MAX else _Cutting().cut(value)


class _Cutting:
    """One preview. left: characters that it may still have."""

    def __init__(self) -> None:
        self.left = CHARS_MAX

    def cut(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return self._list(value)
        self.left -= len(str(value)) if isinstance(value, int | float) else 4
        return value

    def _text(self, value: str) -> str:
        size = max(min(len(value), TEXT_MAX, self.left), 0)
        self.left -= size
        return value if size == len(value) else value[:size] + MORE

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for number, (name, member) in enumerate(value.items()):
            if self.left <= 0:
                made[MORE] = f"{len(value) - number} more"
                break
            self.left -= len(name)
            made[name[:TEXT_MAX]] = self.cut(member)
        return made

    def _list(self, value: list[Any]) -> list[Any]:
        made: list[Any] = []
        for number, element in enumerate(value):
            if self.left <= 0:
                made.append(f"{MORE} {len(value) - number} more")
                break
            self.left -= 1
            made.append(self.cut(element))
        return made
