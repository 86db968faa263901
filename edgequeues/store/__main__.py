"""`python -m edgequeues.store MODULE:FUNCTION`: the checks of somebody's store, as a table."""

from __future__ import annotations

import sys

from edgequeues.store.command import main

sys.exit(main(sys.argv[1:]))
