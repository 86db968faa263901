"""`python -m edgequeues.events`: the JSON Schema of events, as docs/protocol/switchboard-event.schema.json has it."""

from __future__ import annotations

import sys

from edgequeues.events import schema

sys.stdout.write(schema.text())
