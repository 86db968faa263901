"""What goes through a front is tried at each of them."""

from __future__ import annotations

from .fronts import both_fronts as pytest_generate_tests
from .fronts import front

__all__ = ["front", "pytest_generate_tests"]
