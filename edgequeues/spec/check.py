"""Whether the parts of a spec fit together, and whether the server allows what it asks for."""

from __future__ import annotations

from edgequeues.spec import ir
from edgequeues.spec.check_queues import ENVELOPE, check_queues
from edgequeues.spec.check_schedules import check_schedules
from edgequeues.spec.check_webhooks import REQUEST, SCHEMES, check_commands, check_webhooks, scheme_of
from edgequeues.spec.checking import Allowed, Checking
from edgequeues.spec.faults import Fault

__all__ = ["ENVELOPE", "REQUEST", "SCHEMES", "Allowed", "check", "scheme_of"]


def check(spec: ir.Spec, allowed: Allowed | None = None) -> list[Fault]:
    """Everything that is wrong with a spec whose form is right. allowed: None: what a server allows is not looked at.

    Each fault has the path of what is at fault.
    """
    checking = Checking(spec, allowed)
    check_queues(checking)
    check_webhooks(checking)
    check_commands(checking)
    check_schedules(checking)
    return list(dict.fromkeys(checking.faults))
