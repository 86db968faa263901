"""How does it look? Bars for each job, drawn by the cache's interpreter: `python picture.py FILE < bars.json`."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

OURS = "edgequeues"
OUR_COLOUR, OTHER_COLOUR = "#c2410c", "#94a3b8"
COLUMNS = 2


def main() -> None:
    """Draw what standard input describes."""
    matplotlib: Any = import_module("matplotlib")
    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": OURS, "svg.fonttype": "none", "font.size": 9}
    jobs = json.load(sys.stdin)["jobs"]
    pyplot: Any = import_module("matplotlib.pyplot")
    rows = -(-len(jobs) // COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=(11, 2.2 * rows), squeeze=False)
    for axis, job in zip(axes.flat, jobs, strict=False):
        panel(axis, job)
    for axis in axes.flat[len(jobs) :]:
        axis.set_visible(False)
    figure.tight_layout()
    figure.savefig(sys.argv[1], metadata={"Date": None})


def panel(axis: Any, job: dict[str, Any]) -> None:
    """One job: a bar a peer, the longest at the top, with what lies between its rounds."""
    bars = sorted(job["bars"], key=lambda one: one[1], reverse=job["unit"] == "ms")
    names = [name for name, *_ in bars]
    values = [value for _, value, *_ in bars]
    spread = [[v - low for _, v, low, _ in bars], [max(high - v, 0) for _, v, _, high in bars]]
    colours = [OUR_COLOUR if name.startswith(OURS) else OTHER_COLOUR for name in names]
    spread[0] = [max(one, 0) for one in spread[0]]
    axis.barh(names, values, color=colours, xerr=spread, error_kw={"elinewidth": 0.8, "ecolor": "#334155"})
    for index, value in enumerate(values):
        label = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        axis.annotate(label, (value, index), (4, 0), textcoords="offset points", va="bottom", fontsize=7)
    less = " (less is better)" if job["unit"] == "ms" else ""
    axis.set_title(f"{job['name']}, {job['unit']}{less}", loc="left", fontsize=9)
    axis.margins(x=0.15)
    axis.set_xticks([])  # the bars say their values
    for side in ("top", "right", "bottom"):
        axis.spines[side].set_visible(False)


if __name__ == "__main__":
    main()
