"""The OpenAPI document: made of the route tables, what is said of the routes, and the types of bodies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

import edgequeues
from edgequeues.core.errors import RouteNotFound
from edgequeues.core.grants import MEANINGS
from edgequeues.http import problems
from edgequeues.http.routes import Dialect, Route
from edgequeues.openapi.op import AT_THE_FRONT, EVERYWHERE, WITH_BODY, WITH_TOKEN, Chapter, Op, Param

OPENAPI = "3.1.0"
COMPONENTS = "#/components/schemas/"
RESPONSES = "#/components/responses/"
TOKEN = "token"

_SEGMENT = re.compile(r"\{(\w+)(\.\.\.)?\}")


class Undescribed(Exception):
    """Nothing is said of a route, or something of a route that is not there."""


def document(dialects: Sequence[Dialect], chapters: Mapping[str, Chapter]) -> dict[str, Any]:
    """The document, of all routes in the order of the tables. Raises Undescribed."""
    told = [(dialect, chapters[dialect.name]) for dialect in dialects if dialect.name in chapters]
    if len(told) < len(dialects):
        missing = {one.name for one in dialects} - chapters.keys()
        raise Undescribed(f"dialects: {', '.join(sorted(missing))}")
    types = _Types(kind for dialect, chapter in told for kind in _kinds(dialect, chapter))
    paths: dict[str, dict[str, Any]] = {}
    refusals: dict[str, Any] = {}
    for dialect, chapter in told:
        teller = _Teller(dialect, chapter, types)
        for route in dialect.routes:
            path = paths.setdefault(_SEGMENT.sub(r"{\1}", route.template), {})
            path[route.method.lower()] = teller.operation(route)
        refusals |= teller.refusals
    return {
        "openapi": OPENAPI,
        "info": _info(),
        "servers": [{"url": "/", "description": "This server."}],
        "tags": [{"name": dialect.name, "description": chapter.says} for dialect, chapter in told],
        "paths": paths,
        "components": {
            "schemas": types.components,
            "responses": refusals,
            "securitySchemes": {
                TOKEN: {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that `edgequeues token create` gave. A server that only this machine "
                    "reaches asks for none as long as there is none.",
                }
            },
        },
    }


def _info() -> dict[str, Any]:
    return {
        "title": "edgequeues",
        "summary": "Durable queues where each space is an actor that owns one SQLite file.",
        "description": "Every route of every protocol that the server speaks. `x-edgequeues-verb` says what a token "
        "must allow; `x-edgequeues-codes` which values of `code` an error may carry. The contract in words is "
        "`docs/protocol`.",
        "version": edgequeues.__version__,
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def told(chapter: Chapter, route: Route) -> Op:
    """What is said of a route. Raises Undescribed."""
    name = f"{route.method} {route.template}"
    if name not in chapter.operations:
        raise Undescribed(name)
    return chapter.operations[name]


def _kinds(dialect: Dialect, chapter: Chapter) -> Iterator[Any]:
    """Every type that is spoken of."""
    yield chapter.problem
    for route in dialect.routes:
        op = told(chapter, route)
        yield from (one.kind for one in (*op.query, *op.headers, *op.paths))
        yield from (chapter.paths[name].kind for name, _ in _SEGMENT.findall(route.template))
        if op.body is not None:
            yield from op.body.kinds.values()
        for answer in op.answers.values():
            yield from answer.kinds.values()


class _Types:
    """Schemas of types, those of Structs once for all."""

    def __init__(self, kinds: Iterable[Any]) -> None:
        found: list[Any] = []
        for kind in kinds:
            for one in kind if isinstance(kind, tuple) else (kind,):
                if not isinstance(one, Mapping) and one not in found:
                    found.append(one)
        made, raw = msgspec.json.schema_components(found, ref_template=COMPONENTS + "{name}")
        names = {name: name.rpartition(".")[2].lstrip("_") for name in raw}
        twice = sorted(name for name in names.values() if list(names.values()).count(name) > 1)
        assert not twice, f"two types for one name in the document: {', '.join(twice)}"
        self._kinds = found
        self._schemas = [_renamed(one, names) for one in made]
        self.components = {
            names[name]: _renamed(raw[name], names) for name in sorted(raw, key=names.__getitem__)
        }

    def schema(self, kind: Any) -> dict[str, Any]:
        """The schema of a type, or of any of several, or what was given as one."""
        if isinstance(kind, tuple):
            return {"anyOf": [self.schema(one) for one in kind]}
        if isinstance(kind, Mapping):
            return dict(kind)
        return dict(self._schemas[self._kinds.index(kind)])


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    """The same with other names of components."""
    if isinstance(schema, dict):
        changed = {name: _renamed(value, names) for name, value in schema.items()}
        if isinstance(reference := changed.get("$ref"), str):
            changed["$ref"] = COMPONENTS + names[reference.removeprefix(COMPONENTS)]
        if isinstance(title := changed.get("title"), str):
            changed["title"] = title.lstrip("_")
        return changed
    return [_renamed(one, names) for one in schema] if isinstance(schema, list | tuple) else schema


class _Teller:
    """Words the routes of one dialect. refusals: answers that say no, each once, by the name it is referred to by."""

    def __init__(self, dialect: Dialect, chapter: Chapter, types: _Types) -> None:
        self._dialect = dialect
        self._chapter = chapter
        self._types = types
        self.refusals: dict[str, Any] = {}

    def operation(self, route: Route) -> dict[str, Any]:
        """A route as the document has it."""
        op = told(self._chapter, route)
        says = " ".join((route.handler.__doc__ or "").partition("\n\n")[0].split())
        made: dict[str, Any] = {
            "operationId": f"{self._dialect.name}_{op.id or route.name}",
            "tags": [self._dialect.name],
            "summary": says,
        }
        if route.verb is not None:
            made["description"] = f"Needs the verb `{route.verb}`: {MEANINGS[route.verb]}."
            made["x-edgequeues-verb"] = route.verb
        made["security"] = [{}, {TOKEN: []}] if route.verb is not None else [{}]
        if op.streams:
            made["x-edgequeues-stream"] = True
        parameters = [*self._path(route, op), *(self._param(one, "query") for one in op.query)]
        parameters += [self._param(one, "header") for one in op.headers]
        if parameters:
            made["parameters"] = parameters
        if op.body is not None:
            content = self._content(op.body.kinds)
            if op.body.example is not None:
                next(iter(content.values()))["example"] = op.body.example
            made["requestBody"] = {"required": op.body.required, "content": content}
        made["responses"] = self._responses(route, op)
        return made

    def _path(self, route: Route, op: Op) -> Iterator[dict[str, Any]]:
        known = dict(self._chapter.paths) | {one.name: one for one in op.paths}
        for name, _ in _SEGMENT.findall(route.template):
            yield self._param(known[name]._replace(required=True), "path")

    def _param(self, one: Param, place: str) -> dict[str, Any]:
        schema = self._types.schema(one.kind)
        if one.many:
            schema = {"type": "array", "items": schema, "minItems": 1}
        made = {
            "name": one.name,
            "in": place,
            "description": one.says,
            "required": one.required,
            "schema": schema,
        }
        return made if one.example is None else made | {"example": one.example}

    def _content(self, kinds: Mapping[str, Any]) -> dict[str, Any]:
        return {media: {"schema": self._types.schema(kind)} for media, kind in kinds.items()}

    def _responses(self, route: Route, op: Op) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for status, answer in sorted(op.answers.items()):
            one: dict[str, Any] = {"description": answer.says}
            made[str(status)] = one
            if answer.headers:
                one["headers"] = {name: _header(says) for name, says in answer.headers.items()}
            if answer.kinds:
                one["content"] = self._content(answer.kinds)
        for status, kinds in sorted(self._faults(route, op).items()):
            made[str(status)] = {"$ref": RESPONSES + self._shared(status, self._refusal(kinds))}
        return made

    def _shared(self, status: int, refusal: dict[str, Any]) -> str:
        """The name under which a refusal stands among the components."""
        number = 1
        while True:
            name = f"{self._dialect.name}-{status}" + (f"-{number}" if number > 1 else "")
            if self.refusals.setdefault(name, refusal) == refusal:
                return name
            number += 1

    def _faults(self, route: Route, op: Op) -> dict[int, list[type[Exception] | None]]:
        """What may go wrong, by status; None: a bug of ours, or what has no class."""
        kinds = [*EVERYWHERE, *self._chapter.common, *op.errors]
        kinds += [RouteNotFound] if "{" in route.template else []  # for values that no path can be made of
        kinds += WITH_TOKEN if route.verb is not None else ()
        kinds += WITH_BODY if op.body is not None else ()
        found: dict[int, list[type[Exception] | None]] = {500: [None]}
        for kind in dict.fromkeys(kinds):
            found.setdefault(self._dialect.refuse(_example(kind)).status, []).append(kind)
        for status in op.statuses:
            found.setdefault(status, []).append(None)
        return found

    def _refusal(self, kinds: Sequence[type[Exception] | None]) -> dict[str, Any]:
        table = problems.TABLE
        faults = [problems.INTERNAL if kind is None else problems.fault(_example(kind)) for kind in kinds]
        codes = sorted({one.code for one in faults})
        titles = sorted({one.title for one in faults if one in table.values() or one is problems.INTERNAL})
        schema: dict[str, Any] = self._types.schema(self._chapter.problem)
        made: dict[str, Any] = {"description": "; ".join(titles) + "."}
        if self._chapter.coded:
            schema = {"allOf": [schema, {"properties": {"code": {"enum": codes}}}]}
            made["x-edgequeues-codes"] = codes
        headers = _headers_of(kinds)
        if headers:
            made["headers"] = headers
        made["content"] = {self._chapter.problem_media: {"schema": schema}}
        if not self._chapter.coded and not AT_THE_FRONT.isdisjoint(kinds):
            front = {"schema": self._types.schema(problems.Problem)}
            made["content"].setdefault(problems.MEDIA.decode(), front)
        return made


def _example(kind: type[Exception]) -> Exception:
    return kind()


def _headers_of(kinds: Sequence[type[Exception] | None]) -> dict[str, Any]:
    names = {
        name.decode() for kind in kinds if kind is not None for name, _ in problems.headers(_example(kind))
    }
    said = {
        "retry-after": "Seconds to wait before it is tried again; not every error of this status has it.",
        "www-authenticate": "That a token is wanted.",
        "upgrade": "What to ask for.",
        "content-range": "The size there is.",
    }
    return {name: _header(said[name]) for name in sorted(names)}


def _header(says: str) -> dict[str, Any]:
    return {"description": says, "schema": {"type": "string"}}
