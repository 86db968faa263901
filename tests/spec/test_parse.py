from __future__ import annotations

import json
from pathlib import Path

from edgequeues.spec import ir
from edgequeues.spec.parse import parse

DATA = Path(__file__).parent / "data"
SAMPLE = (DATA / "incident.spec").read_text()


def test_the_sample_is_what_the_golden_file_says() -> None:
    found = parse(SAMPLE)
    assert found.faults == []
    assert found.spec is not None
    golden = json.loads((DATA / "incident.json").read_text())
    assert json.loads(ir.encode(found.spec)) == golden
