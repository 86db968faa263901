"""Specs and expressions of all kinds, drawn by Hypothesis: of a right form, in the form that text gives them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from edgequeues.core.attrs import AttrType
from edgequeues.spec import ir

identifiers = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,6}\Z") | st.sampled_from(
    ["in", "true", "null", "now", "queue", "message", "map_to", "low", "high", "has", "input", "message_type"]
)
names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,8}\Z")
texts = st.text(st.characters(codec="utf-8"), max_size=8)
integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars: st.SearchStrategy[Any] = st.none() | st.booleans() | integers | floats | texts


def literal(value: Any) -> ir.Expr:
    kinds = {bool: "bool", int: "int", float: "float", str: "string", type(None): "null"}
    return {"lit": {kinds[type(value)]: True if value is None else value}}


literals = st.builds(literal, scalars)
roots = st.just({"var": {"now": True}}) | st.builds(
    lambda name: {"var": {"input": {"field": name}}}, identifiers
)
steps = st.lists(st.integers(0, 9) | identifiers | texts, min_size=1, max_size=4)
BINARY = ["eq", "ne", "lt", "le", "gt", "ge", "in", "add", "sub", "mul", "div"]
FUNCTIONS = ["len", "str", "int", "float", "lower", "upper", "time"]


def _larger(inner: st.SearchStrategy[ir.Expr]) -> st.SearchStrategy[ir.Expr]:
    startable = inner.filter(lambda expr: "get" not in expr)  # a path from a path is one path
    return st.one_of(
        st.builds(lambda key, a, b: {key: [a, b]}, st.sampled_from(BINARY), inner, inner),
        st.builds(lambda key, a: {key: a}, st.sampled_from(["not", "neg", "bool", "is_null"]), inner),
        st.builds(
            lambda key, a: {key: a}, st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)
        ),
        st.builds(lambda a: {"coalesce": a}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda a: {"arr": a}, st.lists(inner, max_size=3)),
        st.builds(
            lambda a: {"obj": a}, st.dictionaries(texts | st.sampled_from(["lit", "var"]), inner, max_size=3)
        ),
        st.builds(lambda a, b, c: {"if": {"cond": a, "then": b, "else": c}}, inner, inner, inner),
        st.builds(
            lambda key, a, b: {key: {"expr": a, "path": b}}, st.sampled_from(["get", "has"]), startable, steps
        ),
        st.builds(lambda name, a: {"call": {"fn": name, "args": [a]}}, st.sampled_from(FUNCTIONS), inner),
        st.builds(lambda a, b, c: {"time_between": {"expr": a, "from": b, "to": c}}, inner, inner, inner),
        st.builds(
            lambda a, table, rest: {"map_enum": {"expr": a, "mapping": table, **rest}},
            inner,
            st.dictionaries(texts, scalars, max_size=3),
            st.fixed_dictionaries({}, optional={"default": inner}),
        ),
    )


expressions = st.recursive(literals | roots, _larger, max_leaves=5)
fields = st.dictionaries(identifiers, expressions, max_size=3)
plain = st.builds(
    AttrType, st.sampled_from(["json", "string", "int", "float", "bool", "time"]), st.booleans()
) | st.builds(
    lambda values, optional: AttrType("enum", optional, None, tuple(values)),
    st.lists(texts, min_size=1, max_size=3, unique=True),
    st.booleans(),
)
types = st.recursive(
    plain,
    lambda inner: st.builds(
        lambda of, optional: AttrType("map", optional, None, (), of), inner, st.booleans()
    ),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
attributes = types | st.builds(
    lambda attr, default: AttrType(attr.type, attr.optional, default, attr.values, attr.of),
    types,
    json_values,
)
message_types = st.dictionaries(identifiers, attributes, max_size=3)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


waits = st.integers(0, 365 * 86_400_000)
retentions = st.builds(ir.Retention, maybe(st.integers(1, 10**6)), maybe(st.integers(1, 10**6)))
deliveries = st.builds(
    ir.Delivery,
    max_attempts=maybe(st.integers(1, 10**6)),
    initial_backoff_ms=waits,
    backoff_ms=st.lists(waits, max_size=3).map(tuple),
    jitter=st.floats(0, 1),
    dead_letter_queue=maybe(names),
    batch=st.integers(1, 100),
)
rate_limits = st.builds(
    ir.RateLimit, st.floats(0.01, 10_000), maybe(st.integers(1, 10**6)), maybe(expressions)
)
mappings = st.builds(ir.CommandMapping, identifiers, identifiers, fields) | st.builds(
    ir.QueueMapping, names, fields
)


@st.composite
def queues(draw: st.DrawFn) -> ir.QueueSpec:
    key = draw(maybe(expressions))
    ordering = "per_key" if key is not None else draw(st.sampled_from(["unordered", "fifo"]))
    return draw(
        st.builds(
            ir.QueueSpec,
            message_type=maybe(message_types),
            ordering=st.just(ordering),
            ordering_key=st.just(key),
            priority=maybe(expressions),
            idempotency_key=maybe(expressions),
            filter=maybe(expressions),
            schedule=maybe(expressions),
            delay_ms=waits,
            on_invalid=st.sampled_from(["reject", "dead_letter"]),
            rate_limit=maybe(rate_limits),
            retention=retentions,
            delivery=deliveries,
            map_to=maybe(mappings),
        )
    )


headers = st.from_regex(r"\A[A-Za-z0-9-]{1,8}\Z")
variables = st.lists(st.from_regex(r"\A[A-Z_]{1,8}\Z"), min_size=1, max_size=2).map(tuple)
hmacs = st.builds(
    ir.Hmac,
    headers,
    variables,
    maybe(st.sampled_from(["github", "stripe", "hmac"])),
    algo=st.sampled_from(["sha1", "sha256"]),
    encoding=st.sampled_from(["hex", "base64"]),
    prefix=texts,
    timestamp_header=maybe(headers),
    tolerance_seconds=st.integers(1, 600),
)
verifies = st.one_of(
    st.just(ir.Verify(none=True)),
    st.builds(lambda hmac: ir.Verify(hmac=hmac), hmacs),
    st.builds(lambda header, secrets: ir.Verify(token=ir.SharedToken(header, secrets)), headers, variables),
)
targets = st.fixed_dictionaries({"on_type": identifiers, "command": identifiers, "input_map": fields})


@st.composite
def webhooks(draw: st.DrawFn) -> ir.WebhookSpec:
    target: dict[str, Any] = draw(targets | st.just({}))
    return ir.WebhookSpec(
        verify=draw(verifies),
        queue=draw(maybe(names)),
        allow_ips=draw(st.lists(texts, max_size=2).map(tuple)),
        headers=draw(st.lists(headers, max_size=2).map(tuple)),
        filter=draw(maybe(expressions)),
        idempotency_key=draw(maybe(expressions)),
        for_each=draw(maybe(expressions)),
        answer=draw(st.sampled_from(["json", "twiml"])),
        message=draw(maybe(fields)),
        **target,
    )


ways: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    st.just({"python": "incidents:create"}),
    st.builds(lambda path: {"http": f"https://example.com/{path}"}, texts),
)


@st.composite
def commands(draw: st.DrawFn) -> ir.CommandSpec:
    return ir.CommandSpec(
        input=draw(maybe(message_types)), timeout_ms=draw(st.integers(1, 600_000)), **draw(ways)
    )


schedules = st.builds(
    ir.ScheduleSpec,
    texts,
    names,
    texts,
    fields,
    st.sampled_from(["once", "skip", "all"]),
)
specs = st.builds(
    ir.Spec,
    st.just(0),
    st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,8}\Z"),
    st.dictionaries(names, queues(), max_size=2),
    st.dictionaries(names, webhooks(), max_size=2),
    st.dictionaries(st.builds("{}.{}".format, identifiers, identifiers), commands(), max_size=2),
    st.dictionaries(names, schedules, max_size=2),
)
