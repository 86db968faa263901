"""Whether the parts of a spec fit together: each fault as people read it, and as paths of the JSON.

tests/spec/faults/*.txt hold a spec each, `--`, and all that is told of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from edgequeues.spec import ir
from edgequeues.spec.check import Allowed, check
from edgequeues.spec.faults import Fault
from edgequeues.spec.load import load

from .texts import SAMPLE

HIDDEN = "hunter2"  # what no fault may ever show
ALLOWED = Allowed(
    modules=("incidents", "shop.orders"),
    http_hosts=("hooks.example.com", "127.0.0.1:9000"),
    secrets=(
        "SECRET",
        "SIGN",
        "WORDS",
        "UNSET",
        "EMPTY",
        "BLANK",
        "LINE",
        "AHEAD",
        "PAGERDUTY_WEBHOOK_SECRET",
    ),
    environment={
        "SECRET": HIDDEN,
        "SIGN": "whsec_c2lnbmVkLWJ5LXVz",
        "WORDS": "no base64!",
        "EMPTY": "",
        "BLANK": " \t",
        "LINE": f"{HIDDEN}\n",
        "AHEAD": f" {HIDDEN}",
        "PATH": HIDDEN,
        "PAGERDUTY_WEBHOOK_SECRET": HIDDEN,
    },
)


class Case(NamedTuple):
    claim: str
    text: str
    told: str


def cases() -> list[Case]:
    found = []
    for file in sorted(Path(__file__).with_name("faults").glob("*.txt")):
        for part in file.read_text().removeprefix("== ").split("\n== "):
            claim, _, rest = part.partition("\n")
            text, _, told = rest.partition("\n--\n")
            found.append(Case(claim, f"{text}\n", told.strip("\n")))
    return found


def plain(faults: list[Fault]) -> set[tuple[object, ...]]:
    """Faults without their order and their places in a text."""
    return {(fault.path, fault.what, fault.remedy) for fault in faults}


def by_claim(case: Case) -> str:
    return case.claim


@pytest.mark.parametrize("case", cases(), ids=by_claim)
def test_a_fault_is_told_with_its_line_a_caret_and_what_to_do(case: Case) -> None:
    found = load(case.text.encode(), "x", ALLOWED)
    assert found.spec is None
    assert "\n".join(found.render()) == case.told
    assert all(fault.remedy for fault in found.faults)
    assert HIDDEN not in case.told


@pytest.mark.parametrize("case", cases(), ids=by_claim)
def test_the_same_spec_as_json_has_the_same_faults_by_their_paths(case: Case) -> None:
    found = load(case.text.encode(), "x", ALLOWED)
    assert found.draft is not None
    again = load(ir.encode(found.draft), "x.json", ALLOWED)
    assert again.spec is None
    assert plain(again.faults) == plain(found.faults)


@pytest.mark.parametrize("case", cases(), ids=by_claim)
def test_each_fault_is_told_in_the_order_of_the_text(case: Case) -> None:
    places = [line.split(":")[1:3] for line in case.told.split("\n") if line.startswith("x:")]
    assert places
    assert places == sorted(places, key=lambda place: (int(place[0]), int(place[1])))


def test_each_claim_is_made_once() -> None:
    claims = [case.claim for case in cases()]
    assert len(claims) == len(set(claims))


def test_the_sample_has_no_fault() -> None:
    assert load(SAMPLE.encode(), "x", ALLOWED).faults == []


def test_what_the_server_allows_is_not_looked_at_where_nothing_is_known_of_it() -> None:
    text = """
    app Demo {
      queue Jobs {}
      webhook Hook { queue: Jobs  verify_token { header: "X-Token" secret_env: "PATH" } }
      command A.A { run: python "os:system" }
      command A.B { run: http "https://10.1.2.3/x" secret_env: "SIGN" }
      command A.C { run: http "http://other.example.com/x" secret_env: "SIGN" }
    }
    """
    assert [fault.what for fault in load(text.encode()).faults] == [
        "what is sent without TLS can be read and changed on its way"
    ]
    assert len(load(text.encode(), "x", Allowed()).faults) == 7


def test_what_a_server_allows_is_no_fault() -> None:
    text = """
    app Demo {
      queue Jobs {}
      webhook Hook { queue: Jobs  verify_token { header: "X-Token" secret_env: "SECRET" } }
      command A.A { run: python "incidents:create" }
      command A.B { run: http "https://hooks.example.com/x" secret_env: "SIGN" }
      command A.C { run: http "http://127.0.0.1:9000/x" secret_env: "SIGN" }
    }
    """
    assert load(text.encode(), "x", ALLOWED).faults == []


def test_the_expressions_of_a_webhook_speak_of_the_request_and_of_the_item() -> None:
    text = """
    app Demo {
      queue Jobs {}
      webhook Hook {
        verify: none
        queue: Jobs
        filter: payload.kind == headers["X-Kind"] && source_ip != "" && received_at > 0
        for_each: payload.events
        idempotency_key: item.id
        message { a: item.a  b: payload.b  at: received_at }
      }
    }
    """
    assert load(text.encode()).faults == []


def test_what_is_computed_of_a_message_may_be_null() -> None:
    text = """
    app Demo {
      queue Jobs {
        message_type { id: string?  level: int?  at: time? }
        ordering: per_key(id)
        priority: level
        idempotency_key: id
        schedule: at
        rate_limit { per_second: 1 key: id }
        map_to: queue Others
      }
      queue Others {}
    }
    """
    assert load(text.encode()).faults == []


def test_a_queue_may_take_the_dead_letters_of_several_and_more_than_it_wants() -> None:
    text = """
    app Demo {
      queue A { delivery { dead_letter_queue: Dead } }
      queue B { delivery { dead_letter_queue: Dead } }
      queue Dead { message_type { original_message: json  error: string?  note: string? } }
    }
    """
    assert load(text.encode()).faults == []


def test_a_field_whose_type_makes_no_sense_is_blamed_once() -> None:
    text = """
    app Demo {
      queue Jobs {
        message_type { level: enum("a", "a") }
        filter: level + 1 > 2
        map_to: queue Other
      }
      queue Other { message_type { level: int } }
    }
    """
    assert [fault.what for fault in load(text.encode()).faults] == ['the enum has "a" twice']


def test_faults_of_the_form_and_of_the_whole_are_told_in_one_run_and_none_twice() -> None:
    text = "app Demo {\n  queue Jobs {\n    priority: 12\n    delay_ms: no\n    filter: size()\n  }\n}\n"
    assert [fault.what for fault in load(text.encode()).faults] == [
        "there is no priority 12",
        "`delay_ms` wants a plain value",
        "0 arguments where 1 is wanted",
    ]


def test_check_finds_nothing_in_a_spec_that_load_took() -> None:
    found = load(SAMPLE.encode(), "x", ALLOWED)
    assert found.spec is not None
    assert check(found.spec, ALLOWED) == []
