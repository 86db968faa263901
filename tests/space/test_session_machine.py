"""Random work on a queue whose ordering keys are sessions: what the machine of work does, and what ends sessions."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from edgequeues.core.errors import ConsumerNotFound
from edgequeues.models import Ordering, Start
from edgequeues.space.shard import SpaceShard

from .test_work_machine import WorkMachine
from .work_items import Task, Worker
from .work_model import JOBS

SESSIONS = st.sampled_from("ab")


class SessionMachine(WorkMachine):
    """Rules: those of the other machine, and what is done to sessions. The consumer `default` delivers to them."""

    sessions: ClassVar[bool] = True

    def make(self, name: str, ordering: Ordering, start: Start, drawn: dict[str, Any]) -> None:
        super().make(name, "per_key" if name == "default" else ordering, start, drawn)

    def delivering(self) -> Worker | None:
        """Who delivers to sessions, when what is due has been taken on."""
        worker = self.model.workers.get("default")
        if worker is None:
            with pytest.raises(ConsumerNotFound):
                self.call(SpaceShard.close_session, JOBS, "a")
        self.settled(SpaceShard.consumers, JOBS)
        return worker

    @staticmethod
    def of_session(worker: Worker, session: str) -> list[Task]:
        """Its messages, the newest first."""
        found = [task for task in worker.tasks.values() if task.line == session]
        return sorted(found, key=lambda task: -task.item.position)

    @rule(session=SESSIONS)
    def close(self, session: str) -> None:
        """I4: what is handed out ends too, so that answers about it change nothing."""
        worker = self.delivering()
        if worker is None:
            return
        tasks = self.of_session(worker, session)
        closed = self.call(SpaceShard.close_session, JOBS, session)
        assert (closed.expired, closed.through) == (len(tasks), None)
        for task in tasks:
            worker.totals["expired"] += 1
            self.model.end(worker, task)

    @rule(session=SESSIONS)
    def skip_what_a_session_waits_for(self, session: str) -> None:
        worker = self.delivering()
        if worker is None:
            return
        head = next(iter(self.of_session(worker, session)[-1:]), None)
        may = head is not None and head.state != "leased"
        assert self.call(SpaceShard.skip_head, JOBS, session) == (head.item.id if head and may else None)
        if head and may:
            self.model.bury(worker, head, "skipped")

    @rule(session=SESSIONS)
    def hurry(self, session: str) -> None:
        worker = self.delivering()
        if worker is None:
            return
        head = next(iter(self.of_session(worker, session)[-1:]), None)
        may = head is not None and head.state in ("backoff", "scheduled")
        assert self.call(SpaceShard.hurry_head, JOBS, session) == (head.item.id if head and may else None)
        if head and may:
            head.state, head.due, head.ready = "ready", None, self.model.at

    @rule()
    def reclaim(self) -> None:
        """I3, I4: what was handed out has failed, and is another one's from now on."""
        worker = self.delivering()
        if worker is None:
            return
        leased = [task for task in worker.tasks.values() if task.state == "leased"]
        assert self.call(SpaceShard.reclaim, JOBS, "default") == len(leased)
        for task in leased:
            task.due = self.model.at
            self.model.lapse(worker, task)

    @rule(session=SESSIONS)
    def look(self, session: str) -> None:
        """A session is what its tasks come to."""
        worker = self.delivering()
        if worker is None:
            return
        told = self.call(SpaceShard.session, JOBS, session)
        tasks = self.of_session(worker, session)
        assert (told is None) == (not tasks)
        if told is not None:
            head = tasks[-1]
            assert (told.depth, told.head.id, told.head.state) == (len(tasks), head.item.id, head.state)
            assert told.head.failures == head.attempts - (head.state == "leased")


TestSessions = SessionMachine.TestCase
TestSessions.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
