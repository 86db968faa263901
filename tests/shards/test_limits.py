"""How many shards may be open follows what the system lets a process open."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource
from shards.limits import Limits, fit_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
limits = fit_files(Limits(open_max={open_max}), 100)
print(limits.open_max, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "open_max", "printed"),
    [
        (64, 4096, 512, "512 3172"),  # raised to what is needed, no further
        (64, 1000, 512, "150 1000"),  # the hard limit decides
        (2000, 4096, 100, "100 2000"),  # enough already
        (64, 64, 512, "1 64"),
    ],
)
def test_the_open_file_limit_is_raised_or_the_cap_lowered(
    soft: int, hard: int, open_max: int, printed: str
) -> None:
    """In a process of its own, since a hard limit cannot be raised again."""
    program = PROGRAM.format(soft=soft, hard=hard, open_max=open_max)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == printed
