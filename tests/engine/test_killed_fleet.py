"""`rookery up` is killed in the middle of runs: after each start the work goes on, and nothing happens twice."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.domains.tracker.desk import git
from tests.engine.killed_fleet import KilledFleet
from tests.server.conftest import Place, plugin

__all__ = ["plugin"]
MOMENTS = (
    "SELECT id FROM dispatches WHERE state = 'running'",
    "SELECT id FROM comments",
    "SELECT finding_id FROM phase_claims",
    "SELECT id FROM prs",
    "SELECT id FROM dispatches WHERE role = 'judge' AND state = 'running'",
)
"""Each is true a little later than the one before: as soon as it is, the server is killed."""
ISSUES = 3


@pytest.fixture
def fleet(database_url: str, plugin: Path, tmp_path: Path) -> Iterator[KilledFleet]:
    place = Place(plugin)
    place.plugin = None
    try:
        yield KilledFleet(place, tmp_path, database_url)
    finally:
        place.close()


def test_a_server_that_is_killed_again_and_again_brings_every_issue_to_approval_once(fleet: KilledFleet) -> None:
    names = [fleet.issue(f"the {number}th thing") for number in range(ISSUES)]
    for moment in MOMENTS:
        fleet.until(lambda moment=moment: fleet.rows(moment), moment)
        fleet.kill()
    fleet.until(lambda: approved(fleet) == ISSUES, "every change is approved")
    fleet.until(lambda: not fleet.rows("SELECT id FROM dispatches WHERE state != 'ended'"), "nothing is under way")

    claims = fleet.rows(
        "SELECT c.issue_id, p.outcome FROM phase_claims c JOIN finding_processing p ON p.finding_id = c.finding_id"
    )
    assert Counter(row["outcome"] for row in claims) == {"pr_opened": ISSUES}
    assert {row["status"] for row in fleet.rows("SELECT status FROM prs")} == {"approved"}
    assert not fleet.rows("SELECT id FROM agent_runs WHERE status IN ('queued', 'running')")
    assert overlapping(fleet) == []
    for name in names:
        fleet.rookery("merge", name)
    assert {row["status"] for row in fleet.rows("SELECT status FROM issues")} == {"done"}
    work = git(fleet.repository, "log", "--format=%s", "--no-merges", "main").splitlines()
    assert sorted(work) == sorted([*names, "first"])


def approved(fleet: KilledFleet) -> int:
    return len(fleet.rows("SELECT id FROM prs WHERE status = 'approved'"))


def overlapping(fleet: KilledFleet) -> list[str]:
    """Runs of one issue that were under way at the same moment."""
    runs = fleet.rows("SELECT id, issue_id, started_ms, ended_ms FROM agent_runs ORDER BY started_ms, id")
    last: dict[str, int] = {}
    found: list[str] = []
    for run in runs:
        if run["started_ms"] < last.get(run["issue_id"], 0):
            found.append(run["id"])
        last[run["issue_id"]] = max(run["ended_ms"], last.get(run["issue_id"], 0))
    return found
