"""What goes through a front is tried at each of them."""

from __future__ import annotations

from tests.e2e.fronts import both_fronts as pytest_generate_tests
from tests.e2e.fronts import front

__all__ = ["front", "pytest_generate_tests"]
