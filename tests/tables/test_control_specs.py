"""The specs in `control.db`: kept over openings, and added to files of before there were any."""

from __future__ import annotations

from pathlib import Path

import apsw

from edgequeues.control import FILE_NAME, Control, SpecRow
from edgequeues.core.grants import grant

NOW = 1_700_000_000_000
READ = grant(["read"], ["demo"])


def test_a_file_of_before_specs_keeps_its_tokens_and_takes_specs(tmp_path: Path) -> None:
    with Control.open(tmp_path) as control:
        token, _ = control.create("laptop", READ, now_ms=NOW)
    earlier = apsw.Connection(str(tmp_path / FILE_NAME))
    earlier.execute("DROP TABLE specs")
    earlier.pragma("user_version", 1)
    earlier.close()
    row = SpecRow("demo", "shop", "shop.spec", "{}", NOW)
    with Control.open(tmp_path) as control:
        assert control.tokens() == [token]
        control.put_spec(row)
    with Control.open(tmp_path) as control:
        assert control.specs() == [row]
        control.put_spec(row._replace(ir='{"version":0}'))
        assert [one.ir for one in control.specs()] == ['{"version":0}']
        control.remove_spec("demo", "shop")
        control.remove_spec("demo", "other")
        assert control.specs() == []
