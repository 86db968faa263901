"""How queues are doing, asked by the client."""

from __future__ import annotations

from pathlib import Path

from .working import serving

JOBS = "dxn:queue:demo:jobs"


async def test_a_queue_says_how_it_is_doing_and_pages_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as (client, _):
        await client.push(JOBS, [{"n": n} for n in range(3)])
        await client.pull(JOBS)
        for n in range(105):
            await client.append(f"dxn:queue:demo:log{n:03}", [{"n": n}])
        found = [one async for one in client.iterate_doing("demo")]
        assert len(found) == 106
        [jobs] = [one for one in found if one.kind == "work"]
        assert (jobs.depth, jobs.in_flight, jobs.states["ready"], jobs.entries) == (2, 1, 2, 3)
        assert (sum(jobs.rates.came), sum(jobs.rates.acked)) == (3, 0)
        page = await client.doing("demo", name="LOG00", limit=4)
        assert {one.name for one in page.queues} < {f"log{n:03}" for n in range(10)}
        assert (len(page.queues), page.next) == (4, page.queues[-1].id)
