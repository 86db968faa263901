"""Every bench runs, with sizes too small to say anything; what it says is never asserted."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from bench import main
from bench.figures import Against, figure, quantile

STARTS_SERVERS = ("http", "http-memory", "work-http", "work-latency", "hooks", "visible")
EVERY = [
    pytest.param(name, marks=pytest.mark.slow if name in STARTS_SERVERS else ())
    for name in main.BENCHES
    if name not in main.ON_REQUEST  # they fetch what they need: see test_peers
]


@pytest.mark.parametrize("name", EVERY)
def test_a_bench_prints_one_line_of_json_for_each_measurement(name: str, tmp_path: Path) -> None:
    out = io.StringIO()
    lines = list(main.measure([name], "tiny", tmp_path, main.Teller(as_json=True, out=out)))
    told = [json.loads(line) for line in lines]
    assert out.getvalue().splitlines() == lines
    assert {"machine", name} == {one["bench"] for one in told}
    assert told[1]["case"].startswith("flush")
    assert all(one["value"] >= 0 and one["unit"] for one in told[1:])
    assert list(tmp_path.iterdir()) == []


def test_a_table_sets_the_ratio_beside_its_target() -> None:
    out = io.StringIO()
    good, bad = (
        Against(what="raw", value=0.6, target=0.5),
        Against(what="idle", value=70, target=64, at_most=True),
    )
    main.Teller(as_json=False, out=out).answered(
        "How?", [figure("x", "a case", [3, 1, 2], "ms", against=[good, bad])]
    )
    text = out.getvalue()
    assert ">= 0.5" in text
    assert "<= 64" in text
    assert text.count("not reached") == 1


def test_an_unknown_bench_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no bench is named nothing; there are append"):
        list(main.measure(["nothing"], "tiny", tmp_path, main.Teller(as_json=True)))


def test_quantiles_are_values_that_were_measured() -> None:
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([3, 1, 2], 0.99) == 3
