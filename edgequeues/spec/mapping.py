"""Fields that are computed by expressions: of a message from a request, of a command's input from a message."""

from __future__ import annotations

from typing import Any, NamedTuple

from edgequeues.core import attrs
from edgequeues.core.attrs import AttrType
from edgequeues.core.errors import InvalidMessage
from edgequeues.core.expression_reading import found
from edgequeues.core.expressions import Env, ExprError, bare_path, compile_expr
from edgequeues.core.jsonwords import path_text
from edgequeues.spec import wording
from edgequeues.spec.ir import Expr


class Misfit(NamedTuple):
    """Why a field cannot be made. path: where its expression looks, if it only does that. found: what was there."""

    field: str
    expression: str
    path: str | None
    found: str | None
    error: str


class Field:
    """One field. attr: its type; None: any. A value of another type is told with what was there.

    needed: where there is no type, a field that is only a path must lead to something: what is missing or null is
    more often a mistake than meant. An expression may still give null.
    """

    def __init__(self, name: str, expr: Expr, attr: AttrType | None, *, needed: bool = False) -> None:
        self.name = name
        self.path = bare_path(expr)
        self._expr = expr
        self._compute = compile_expr(expr)
        self._check = None if attr is None else attrs.checker({name: attr})
        self._needed = needed and attr is None and self.path is not None

    @property
    def part(self) -> str | None:
        """The input field that this one is, whole and as it came; None: it is computed."""
        return None if self.path is None or self.path[1] else self.path[0]

    def __call__(self, env: Env) -> Any:
        """The value of the field. Raises InvalidMessage."""
        try:
            value = self._compute(env)
        except ExprError as error:
            raise InvalidMessage(f"{self.name}: {wording.text(self._expr)}: {error}") from None
        fault = None if self._check is None else self._check({self.name: value})
        if self._needed and value is None:
            fault = f"{self.name}: nothing where a value is needed"
        if fault is None:
            return value
        text = wording.text(self._expr)
        raise InvalidMessage(
            f"{fault}; " + (f"it is {text}" if self.path is None else f"{text} is {found(env, self.path)}")
        )

    def misfit(self, env: Env) -> Misfit | None:
        """Why the field cannot be made; None: it can."""
        try:
            self(env)
        except InvalidMessage as error:
            text = wording.text(self._expr)
            if self.path is None:
                return Misfit(self.name, text, None, None, error.detail)
            return Misfit(self.name, text, path_text(*self.path), found(env, self.path), error.detail)
        return None
