"""Write every page and picture that is made from the code."""

from __future__ import annotations

from tests.house import tree
from tests.reference.made import MADE, spliced

for path, make in MADE.items():
    target = tree.ROOT / path
    before = target.read_text(encoding="utf-8") if target.is_file() else ""
    after = spliced(before, make())
    if after != before:
        target.write_text(after, encoding="utf-8")
        print(f"wrote {path}")
