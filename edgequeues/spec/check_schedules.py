"""What of the schedules of a spec does not fit together, or never comes."""

from __future__ import annotations

from edgequeues.core import cron
from edgequeues.core.cron import CronFault
from edgequeues.spec.checking import Checking
from edgequeues.spec.faults import Path, meant

_ZONE = "Write the name of a place in the tz database, as `Europe/Berlin`, or `UTC`."


def check_schedules(checking: Checking) -> None:
    """Look at each schedule."""
    for name, schedule in checking.spec.schedules.items():
        path: Path = ("schedules", name)
        try:
            cron.check(schedule.cron)
        except CronFault as fault:
            checking.blame((*path, "cron"), fault.what, fault.remedy)
        if schedule.timezone not in cron.zones():
            remedy = meant(schedule.timezone, cron.zones(), _ZONE)
            checking.blame((*path, "timezone"), f"there is no time zone `{schedule.timezone}`", remedy)
        checking.known_queue((*path, "queue"), schedule.queue)
        target, whose = checking.message_type(schedule.queue), f"queue `{schedule.queue}`"
        checking.fields((*path, "message"), schedule.message, {}, target, whose)  # there is `now` alone
