from __future__ import annotations

from .shell import Shell
from .test_spec_server import a_file, words

SPEC = """\
app shop {
  queue jobs {}
  schedule nightly { cron: "0 3 * * *" timezone: "Europe/Berlin" queue: jobs message { kind: "nightly" } }
  schedule tick { cron: "*/5 * * * *" queue: jobs missed: skip }
}
"""


def test_schedules_are_listed_for_programs_and_for_people(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    nightly, tick = shell.ok("schedules", "shop").records
    assert (nightly["name"], nightly["cron"], nightly["timezone"]) == (
        "nightly",
        "0 3 * * *",
        "Europe/Berlin",
    )
    assert (tick["missed"], tick["made"], tick["last"], tick["last_error"]) == ("skip", 0, None, None)
    assert [row[0] for row in words(shell.ok("schedules", "shop", terminal=True).out)] == ["nightly", "tick"]


def test_applying_a_spec_tells_when_its_schedules_come_next(shell: Shell) -> None:
    file = a_file(shell, SPEC)
    assert "nightly    made" in shell.ok("spec", "apply", file, "--dry-run", terminal=True).out
    assert shell.ok("schedules", "shop").out == ""
    [told] = shell.ok("spec", "apply", file).records
    assert [one["schedule"] for one in told["schedules"]] == ["nightly", "tick"]
    assert all(one["next"] > 0 for one in told["schedules"])


def test_one_can_be_run_now(shell: Shell) -> None:
    shell.ok("spec", "apply", a_file(shell, SPEC))
    [made] = shell.ok("schedules", "shop", "--run", "nightly").records
    [entry] = shell.ok("read", "dxn:queue:shop:jobs").records
    assert (entry["id"], entry["data"]) == (made["id"], {"kind": "nightly"})
    assert "nightly: new" in shell.ok("schedules", "shop", "--run", "nightly", terminal=True).out
    failed = shell("schedules", "shop", "--run", "weekly")
    assert failed.code == 1
    assert "No schedule has this name" in failed.err


def test_the_name_of_a_space_is_checked_before_anything_is_asked(shell: Shell) -> None:
    assert shell("schedules", "not a space").code == 2


def test_a_schedule_that_never_comes_is_told_with_its_place(shell: Shell) -> None:
    file = a_file(shell, SPEC.replace("0 3 * * *", "0 3 30 2 *"))
    failed = shell("spec", "check", file, terminal=True)
    assert failed.code == 1
    assert "shop.spec:3:28: `0 3 30 2 *` never comes" in failed.out + failed.err
