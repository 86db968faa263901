"""The verbs of work queues, a part of `Client`.

Lists of leases and ids may have any length: they go in calls of up to 1,000. What is said of leases can be repeated,
and is, where a call fails on the way; a failure in the middle leaves the first calls done.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from itertools import count

from edgequeues.client import answers, wire, work_answers, work_wire
from edgequeues.client.http import Transport
from edgequeues.client.messages import (
    Answered,
    Consumer,
    ConsumerRules,
    DeadLetter,
    Explanation,
    Failed,
    FilterReplay,
    LetterFilter,
    LetterPage,
    LetterPreview,
    LinePage,
    Pulled,
    Replayed,
    StandingPage,
    Start,
)
from edgequeues.client.values import AppendAnswer, ConfigChange, QueueConfig, require_many

PAGE_LETTERS = 1_000


class WorkVerbs:
    """What is done with messages, consumers and dead letters. `consumer` may be left out where there is one, or
    one called `default`.
    """

    _transport: Transport
    _keyed: bool

    # -- messages ----------------------------------------------------------------------------------------

    async def push(self, dxn: str, entries: Iterable[object], *, keyed: bool | None = None) -> AppendAnswer:
        """Append up to 1,000 messages, all or nothing; when this returns they are on disk.

        entries: as for `append`. The queue is made as a work queue by its first push.
        keyed: give those without an idempotency key a random one. None: as the client was told.
        Repeated by itself only if every entry has an idempotency key. Raises Refused: `exists` for other data
        under an id that is there, `queue_full`, `idempotency_mismatch`.
        """
        require_many(entries)
        call = work_wire.push(dxn, entries, self._new_key(keyed))
        return answers.appended(await self._transport.send(call))

    async def push_all(
        self, dxn: str, entries: Iterable[object], *, keyed: bool | None = None
    ) -> AsyncGenerator[AppendAnswer, None]:
        """Push any number of messages in calls of up to 1,000 and 8 MiB; yield the answer of each.

        keyed: as for `push`. After an exception the calls not answered are unknown; with idempotency keys of the
        caller's own all may be pushed again.
        """
        require_many(entries)
        for call in work_wire.pushes(dxn, entries, self._new_key(keyed)):
            yield answers.appended(await self._transport.send(call))

    async def pull(
        self,
        dxn: str,
        *,
        batch: int | None = None,
        lease_ms: int | None = None,
        consumer: str | None = None,
        worker: str | None = None,
        wait_s: float | None = None,
    ) -> Pulled:
        """Lease messages; they are hidden from others until the lease is answered or lapses. Never repeated.

        batch: 1 to 100. About 4 MiB of data end a batch sooner.
        lease_ms: 1 to 43,200,000. None, both: as the consumer has it.
        worker: how the caller calls itself, shown by `explain`.
        wait_s: seconds, up to 60, to wait for the first message.
        Raises Refused: `queue_not_found`, `no_consumer`, `consumer_not_found`.
        """
        call = work_wire.pull(
            dxn, consumer=consumer, batch=batch, lease_ms=lease_ms, worker=worker, wait_s=wait_s
        )
        return work_answers.pulled(await self._transport.send(call))

    async def ack(
        self, dxn: str, leases: Iterable[str], *, results: Mapping[str, object] | None = None
    ) -> list[Answered]:
        """Finish messages; return what became of each lease, in order.

        results: by lease, what came of it: told to those who send the message again, and by `results`, for
            24 h. As data of an entry, 64 KiB each.
        """
        return await self._answer(leases, lambda part: work_wire.ack(dxn, part, results or {}))

    async def retry(
        self,
        dxn: str,
        leases: Iterable[str | Failed],
        *,
        delay_ms: int | None = None,
        error: str | None = None,
        permanent: bool = False,
    ) -> list[Answered]:
        """Give attempts up, so that the messages are tried again, or are dead letters after the last attempt.

        leases: each as a text, to which the other parameters apply, or as a Failed with its own.
        delay_ms: up to 365 days. None: as the consumer's back-off says. error: up to 4,096 characters.
        permanent: not to be tried again.
        """
        if isinstance(leases, str):
            raise TypeError("leases come as a list or another iterable, not as one string")
        failed = [
            one if isinstance(one, Failed) else Failed(one, delay_ms, error, permanent) for one in leases
        ]
        found: list[Answered] = []
        for part in work_wire.parts(failed):
            found += work_answers.verdicts(await self._transport.send(work_wire.retry(dxn, part)))
        return found

    async def release(self, dxn: str, leases: Iterable[str]) -> list[Answered]:
        """Give messages back untouched: they are ready at once, and the attempts do not count."""
        return await self._answer(leases, lambda part: work_wire.release(dxn, part))

    async def extend(self, dxn: str, leases: Iterable[str], lease_ms: int) -> list[Answered]:
        """Have leases end `lease_ms` from now. One that has lapsed stays so (`lapsed`)."""
        return await self._answer(leases, lambda part: work_wire.extend(dxn, part, lease_ms))

    async def skip(self, dxn: str, object_id: str, *, consumer: str | None = None) -> None:
        """Give up a message that nobody holds, so that its line goes on; it becomes a dead letter.

        Raises Refused: `entry_not_found`, or `invalid_request` while it is leased.
        """
        answers.checked(await self._transport.send(work_wire.skip(dxn, object_id, consumer=consumer)))

    async def hurry(self, dxn: str, object_id: str, *, consumer: str | None = None) -> None:
        """Have a message that backs off, or waits for its time, be ready now.

        Raises Refused: `entry_not_found`, or `invalid_request` for one that waits for no time.
        """
        answers.checked(await self._transport.send(work_wire.hurry(dxn, object_id, consumer=consumer)))

    # -- looking -----------------------------------------------------------------------------------------

    async def peek(
        self,
        dxn: str,
        *,
        states: Iterable[str] = (),
        consumer: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> StandingPage:
        """Look at messages by position, without changing anything.

        states: some of `scheduled`, `waiting`, `ready`, `leased`, `backoff`. None named: all.
        after: a position, as `resume` gives it. limit: 1 to 1,000. None: 100.
        """
        call = work_wire.peek(dxn, consumer=consumer, states=states, after=after, limit=limit)
        return work_answers.standings(await self._transport.send(call))

    async def explain(self, dxn: str, object_id: str) -> list[Explanation]:
        """Say for each consumer why a message is not delivered now. Raises Refused: `entry_not_found`."""
        answer = await self._transport.send(work_wire.explain(dxn, object_id))
        return answers.decoded(answer, work_answers.Explained).consumers

    async def lines(
        self, dxn: str, *, consumer: str | None = None, after: str | None = None, limit: int | None = None
    ) -> LinePage:
        """Return ordering keys whose messages wait, the longest lines first of those looked at: 1,000 keys at most.

        after: a key, as `resume` gives it. limit: 1 to 1,000. None: 100.
        """
        call = work_wire.lines(dxn, consumer=consumer, after=after, limit=limit)
        return answers.decoded(await self._transport.send(call), LinePage)

    # -- consumers ---------------------------------------------------------------------------------------

    async def consumers(self, dxn: str) -> list[Consumer]:
        """Return the consumers of a queue with their rules and counts. Raises Refused: `queue_not_found`."""
        answer = await self._transport.send(work_wire.list_consumers(dxn))
        return answers.decoded(answer, work_answers.Consumers).consumers

    async def put_consumer(
        self, dxn: str, name: str, rules: ConsumerRules | None = None, *, start: Start = "new"
    ) -> Consumer:
        """Make a consumer, or replace all its rules. start: is a new one given what is there already (`beginning`)?

        Raises Refused: `queue_not_found`, or `invalid_request` for rules that cannot be, or another ordering.
        """
        call = work_wire.put_consumer(dxn, name, rules or ConsumerRules(), start=start)
        return answers.decoded(await self._transport.send(call), Consumer)

    async def delete_consumer(self, dxn: str, name: str) -> None:
        """Remove a consumer with what it had still to do. Raises Refused: `consumer_not_found`."""
        answers.checked(await self._transport.send(work_wire.delete_consumer(dxn, name)))

    # -- dead letters ------------------------------------------------------------------------------------

    async def dead_letters(
        self, dxn: str, *, after: int | None = None, limit: int | None = None, where: str | None = None
    ) -> LetterPage:
        """Return dead letters that lie in this queue. after, limit: as for `peek`.

        where: an expression that holds for them. So many are looked at, so there may be none, with more behind.
        """
        call = work_wire.dead(dxn, after=after, limit=limit, where=where)
        return work_answers.letters(await self._transport.send(call))

    async def iterate_dead_letters(
        self, dxn: str, *, after: int | None = None, page_size: int = PAGE_LETTERS, where: str | None = None
    ) -> AsyncGenerator[DeadLetter, None]:
        """Yield all dead letters of a queue, or those for which an expression holds, page by page."""
        while True:
            page = await self.dead_letters(dxn, after=after, limit=page_size, where=where)
            for letter in page.letters:
                yield letter
            after = page.resume
            if after is None:
                return

    async def replay(
        self, dxn: str, object_ids: Iterable[str], *, per_second: float | None = None
    ) -> list[Replayed]:
        """Make new messages of dead letters, where they came from, in the order in which they were pushed.

        A letter is replayed once: a second time answers `already`. Of more than 1,000 ids, each thousand is
        ordered by itself. per_second: spreads the new messages by their due times.
        """
        found: list[Replayed] = []
        for part in work_wire.parts(object_ids):
            call = work_wire.replay(dxn, part, per_second=per_second)
            found += answers.decoded(await self._transport.send(call), work_answers.Replays).results
        return found

    async def replay_where(
        self,
        dxn: str,
        where: LetterFilter | None = None,
        *,
        limit: int | None = None,
        per_second: float | None = None,
    ) -> FilterReplay:
        """Replay the dead letters a filter names (None: all) that were not yet, in the order of their pushes.

        limit: no more than so many. What dies again meanwhile is left to the next call. Repeated by itself only
        without a limit.
        """
        call = work_wire.replay_where(dxn, where or LetterFilter(), limit=limit, per_second=per_second)
        return answers.decoded(await self._transport.send(call), FilterReplay)

    async def preview_replay(self, dxn: str, where: LetterFilter | None = None) -> LetterPreview:
        """Count what `replay_where` would replay, and return the first ten. Changes nothing."""
        call = work_wire.preview(dxn, where or LetterFilter())
        return work_answers.preview(await self._transport.send(call))

    # -- queues ------------------------------------------------------------------------------------------

    async def purge(self, dxn: str, where: LetterFilter | None = None) -> int:
        """Delete all that is in a queue now, or the dead letters a filter names; return how many are gone.

        What comes later stays.
        """
        call = work_wire.purge(dxn, where)
        return answers.decoded(await self._transport.send(call), answers.Deleted).deleted

    async def make_queue(
        self,
        dxn: str,
        profile: str = "work",
        *,
        settings: ConfigChange | None = None,
        rules: Mapping[str, object] | None = None,
    ) -> QueueConfig:
        """Make a work queue with the consumer `default`, or set one anew; return its settings.

        profile: `work`, `switchboard`, `webhook` or `inbound`: has the settings and rules that are not said here.
        rules: some of the consumer's, by the names they have in ConsumerRules.
        """
        call = work_wire.make_queue(dxn, profile, settings=settings, rules=rules)
        return answers.decoded(await self._transport.send(call), QueueConfig)

    async def remove(self, dxn: str) -> None:
        """Remove a queue with all that is in it and its consumers. Raises Refused: `queue_not_found`."""
        answers.checked(await self._transport.send(wire.delete_queue(dxn)))

    def _new_key(self, keyed: bool | None) -> wire.NewKey | None:
        """What makes the keys of a call, if it is to have some: a random one for the call, and the entry's number.

        The keys of a call are neighbours in the server's table, which spares it most of their cost.
        """
        if not (self._keyed if keyed is None else keyed):
            return None
        call, numbers = self._transport.new_key(), count(1)
        return lambda: f"{call}-{next(numbers)}"

    async def _answer(
        self, leases: Iterable[str], call: Callable[[Sequence[str]], wire.Call]
    ) -> list[Answered]:
        found: list[Answered] = []
        for part in work_wire.parts(leases):
            found += work_answers.verdicts(await self._transport.send(call(part)))
        return found
