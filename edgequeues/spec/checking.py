"""What all checks of a spec share: the faults so far, and whether an expression fits where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from edgequeues.core.attrs import AttrType, check_type, show
from edgequeues.core.expression_nodes import ExprFault
from edgequeues.core.expression_types import assignable, infer
from edgequeues.core.expressions import compile_expr
from edgequeues.spec import ir
from edgequeues.spec.effects import ENTITY_ID
from edgequeues.spec.faults import Fault, Path, meant

Scope = Mapping[str, AttrType]

STRING, INT, TIME, JSON = AttrType("string"), AttrType("int"), AttrType("time"), AttrType()
# What is computed of a message may be null: then it is as if it were not said. A key is a text or an integer.
KEY = (AttrType("string", optional=True), AttrType("int", optional=True))
NUMBER, MOMENT = (AttrType("int", optional=True),), (AttrType("time", optional=True),)


class Anything(Mapping[str, AttrType]):
    """The fields of a message without a type: any name, any value."""

    def __getitem__(self, name: str) -> AttrType:
        return JSON

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class Allowed(Struct, frozen=True):
    """What a server lets specs use. modules, http_hosts, secrets: names. environment: its variables."""

    modules: tuple[str, ...] = ()
    http_hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}

    def lets_run(self, function: str) -> bool:
        """May a command be `module:function`?"""
        return function.partition(":")[0] in self.modules

    def lets_call(self, host: str, port: int | None) -> bool:
        """May a command be a request to this host?"""
        return bool({host, f"{host}:{port}"} & {one.lower() for one in self.http_hosts})

    def secret(self, variable: str) -> str | None:
        """The value of a variable that specs may use as a secret, if it is set."""
        return self.environment.get(variable) if variable in self.secrets else None


class Checking:
    """A spec under examination."""

    def __init__(self, spec: ir.Spec, allowed: Allowed | None) -> None:
        self.spec = spec
        self.allowed = allowed
        self.faults: list[Fault] = []
        self._queues = {name: _sound(queue.message_type) for name, queue in spec.queues.items()}
        self._inputs = {name: _sound(command.input) for name, command in spec.commands.items()}

    def blame(self, path: Path, what: str, remedy: str = "") -> None:
        """Note a fault."""
        self.faults.append(Fault(path, what, remedy))

    def known_queue(self, path: Path, name: str) -> bool:
        """Is there such a queue? Blames a reference to none."""
        if name in self.spec.queues:
            return True
        remedy = meant(name, self.spec.queues, f"Declare it: `queue {name} {{ ... }}`.")
        self.blame(path, f"there is no queue `{name}` in this spec", remedy)
        return False

    def scope(self, queue: str | None) -> Scope:
        """The fields of a queue's messages."""
        declared = self.message_type(queue)
        return Anything() if declared is None else declared

    def message_type(self, queue: str | None) -> Scope | None:
        """The type of a queue's messages; None: any. A field whose type makes no sense may be anything."""
        return self._queues.get(queue or "")

    def input(self, command: str) -> Scope | None:
        """The type of a command's input; None: any."""
        return self._inputs.get(command)

    def expression(
        self, path: Path, expr: ir.Expr | None, scope: Scope, wanted: Sequence[AttrType] = ()
    ) -> AttrType | None:
        """Blame an expression that cannot be computed, or whose value is of none of the wanted types.

        Its type, where nothing is blamed.
        """
        if expr is None:
            return None
        try:
            compile_expr(expr)
        except ExprFault as fault:
            self.blame((*path, *fault.path), fault.text, "Correct the expression.")
            return None
        told: list[str] = []

        def report(at: tuple[str | int, ...], text: str) -> None:
            told.append(text)
            self.blame((*path, *at), text, _remedy(text, scope))

        found = infer(expr, scope, report=report)
        if found is None or told:
            return None
        faults = [assignable(found, one) for one in wanted]
        if wanted and all(faults):
            names = " or ".join(show(one).removesuffix("?") for one in wanted)
            self.blame(path, f"{faults[0]}", f"An expression of type {names} is wanted here.")
            return None
        return found

    def fields(self, path: Path, given: ir.Fields, scope: Scope, target: Scope | None, whose: str) -> None:
        """Blame what does not fit of a mapping into a message or an input. target: None: of any fields."""
        for name, expr in given.items():
            if target is None or (name == ENTITY_ID and name not in target):
                self.expression((*path, name), expr, scope)
            elif name in target:
                self.expression((*path, name), expr, scope, (target[name],))
            else:
                self.expression((*path, name), expr, scope)
                remedy = meant(name, target, "Declare it there, or leave it out here.")
                self.blame((*path, name), f"{whose} has no field `{name}`", remedy)
        self.filled(path, given, target, whose)

    def filled(
        self,
        path: Path,
        given: Mapping[str, object],
        target: Scope | None,
        whose: str,
        how: str = "Give it here, or declare",
    ) -> None:
        """Blame fields that must be there and that nobody fills. how: that could be mended."""
        for name, attr in (target or {}).items():
            if name not in given and not may_be_missing(attr):
                remedy = f"{how} it `{name}: {show(attr)}?`."
                self.blame(path, f"nothing fills the field `{name}` of {whose}", remedy)

    def fit(self, path: Path, given: Scope, target: Scope, whose: str, how: str, *, partly: bool) -> None:
        """Blame a message of fields `given` that is no `target`. partly: what the target lacks is left out.

        how: fields could be filled that are not.
        """
        for name, attr in given.items():
            if name in target:
                fault = assignable(attr, target[name])
                if fault is not None:
                    remedy = f"Declare it `{name}: {show(attr)}` there."
                    self.blame(path, f"the field `{name}` of {whose}: {fault}", remedy)
            elif not partly:
                remedy = meant(name, target, "Declare it there, or map the fields one by one.")
                self.blame(path, f"{whose} has no field `{name}`", remedy)
        self.filled(path, given, target, whose, how)


def may_be_missing(attr: AttrType) -> bool:
    """Does a message do without this field?"""
    return attr.optional or attr.default is not None


def _sound(declared: Scope | None) -> Scope | None:
    if declared is None:
        return None
    return {name: attr if check_type(attr) is None else JSON for name, attr in declared.items()}


def _remedy(text: str, scope: Scope) -> str:
    if not text.startswith("there is no field"):
        return "Correct the expression, or the type of the field."
    if not scope:
        return "There is `now` alone: nothing else is known here."
    return f"There are {', '.join(f'`{name}`' for name in [*list(scope)[:20], 'now'])}."
