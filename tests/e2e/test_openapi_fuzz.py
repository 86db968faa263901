"""Requests made of the server's own description, valid and not: no answer is a 5xx, and none is undescribed."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import allow_header_conformance, not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from edgequeues.openapi.chapters import CHAPTERS
from edgequeues.openapi.op import NDJSON

from .openapi_server import described, pulled, running, seed

EXAMPLES = int(
    os.environ.get("EDGEQUEUES_TEST_EXAMPLES", "15")
)  # of each operation, beside what it is always tried with
DOCUMENT = described()
# They have no end; tests/http/test_subscribe.py and tests/http/test_live.py read them.
STREAMS = [
    operation["operationId"]
    for methods in DOCUMENT["paths"].values()
    for operation in methods.values()
    if "x-edgequeues-stream" in operation
]
STRICT = {name for name, chapter in CHAPTERS.items() if chapter.strict}
RESTORE = "PUT /admin/spaces/{space}/backup"
REFUSED = {
    "GET /ws/{identity}/{device}",  # takes WebSockets alone
    "POST /ingest/sms",  # takes what Twilio has signed
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    unsupported_method,
    allow_header_conformance,
    missing_required_header,
]

pytestmark = pytest.mark.slow


def strict(doc: dict[str, Any]) -> dict[str, Any]:
    """The same where no object has more members than are told: what comes must be told, too."""
    for one in doc["components"]["schemas"].values():
        if "properties" in one:
            one.setdefault("additionalProperties", False)
    return doc


schema = schemathesis.openapi.from_dict(strict(DOCUMENT))


@schemathesis.serializer("application/x-ndjson", "message/rfc822", "application/vnd.sqlite3", "*/*")
def as_it_is(_: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("openapi")) as url:
        yield url


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        yield session


@pytest.fixture
def there(url: str) -> dict[str, list[str]]:
    return seed(url)


@pytest.fixture(scope="module")
def outcomes() -> dict[str, set[int]]:
    """Statuses that each operation was answered with."""
    return defaultdict(set)


def chosen(values: Sequence[object], instead_of: object) -> Any:
    """Mostly one of the values; now and then what was made up."""
    number = crc32(repr(instead_of).encode())
    return instead_of if number % 4 == 0 or not values else values[number // 4 % len(values)]


def is_right(case: Any, place: str) -> bool:
    """Is this part of a request as the description wants it, and not wrong on purpose?"""
    return not (case.meta and case.meta.is_negative_at(ParameterLocation(place)))


def must_refuse(case: Any, response: Any) -> bool:
    """Is what is wrong in a query or a body to be refused? Not by those who take what they know, nor in a stream.

    What is wrong in a path may be the path to something else, and in a header what a proxy has put there.
    """
    streamed = response.headers.get("content-type") == [NDJSON]
    too_large = response.status_code == 431  # a refusal that the check does not know
    return case.operation.definition.raw["tags"][0] in STRICT and not streamed and not too_large


def steer(case: Any, url: str, there: dict[str, list[str]]) -> None:
    """Lead a request to something that is there, and have none wait."""
    path = case.operation.path
    where = (f"{case.operation.method.upper()} {path}", path, path.split("/")[1])
    for name, value in (case.path_parameters or {}).items() if is_right(case, "path") else ():
        known = [there[key] for key in (*(f"{name} of {one}" for one in where), name) if key in there]
        case.path_parameters[name] = chosen(known[0] if known else [], value)
    query = case.query or {}
    for name in ("tenant_id", "id", "event"):
        if name in query and isinstance(query[name], str) and is_right(case, "query"):
            query[name] = chosen(there.get(name, []), query[name])
    if "wait" in query:
        query["wait"] = 0
    if case.operation.label.startswith("PUT /blobs/") and case.headers is not None:
        case.headers["content-type"] = "text/plain"
    of_blob = case.operation.label.startswith("GET /blobs/{space}/") and is_right(case, "query")
    if of_blob and chosen([""], query) == "":
        case.query = {}  # without what would be a link
    body = case.body
    if isinstance(body, dict) and is_right(case, "body"):
        if isinstance(body.get("leases"), list) and body["leases"]:
            body["leases"] = pulled(url) + body["leases"][1:]
        for name in ("id", "session_id", "key", "bucket"):
            if name in body:
                mine = there.get(f"{name} of {case.operation.label}", there.get(name, []))
                body[name] = chosen(mine, body[name])
    if case.operation.label == RESTORE and all(is_right(case, one) for one in ("body", "query", "header")):
        replace_by_backup(case, url)


def replace_by_backup(case: Any, url: str) -> None:
    """Mostly, send a backup in the place of a space."""
    backup = requests.get(f"{url}/admin/spaces/demo/backup", timeout=60).content
    case.body = chosen([backup], case.body)
    if case.body == backup:
        case.query = {"replace": "true"}
        case.headers.pop("repr-digest", None)


@schema.exclude(operation_id=STREAMS).parametrize()
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)
def test_what_is_answered_is_what_was_described(
    case: Any,
    url: str,
    there: dict[str, list[str]],
    session: requests.Session,
    outcomes: dict[str, set[int]],
) -> None:
    is_wrong = not (is_right(case, "query") and is_right(case, "body"))  # before anything is put there
    steer(case, url, there)
    response = case.call(base_url=url, session=session)
    outcomes[case.operation.label].add(response.status_code)
    wrong = [negative_data_rejection] if is_wrong and must_refuse(case, response) else []
    case.validate_response(response, checks=[*CHECKS, *wrong])


def test_each_operation_was_carried_out_at_least_once(outcomes: dict[str, set[int]]) -> None:
    """Else the test above would have tried refusals alone."""
    if EXAMPLES < 15 or len(outcomes) < len(list(schema.get_all_operations())) - len(STREAMS):
        pytest.skip("only some operations were tried, or each too seldom")
    refused = {label for label, statuses in outcomes.items() if not any(one < 300 for one in statuses)}
    assert refused == REFUSED
