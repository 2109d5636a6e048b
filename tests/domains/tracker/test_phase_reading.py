"""How far an issue has come: each phase with its claim and its verdict."""

from typing import Any

import pytest

from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.tracker.phase_reading import read_phases
from tests.domains.tracker.claimant import claimant, sha256
from tests.domains.tracker.desk import Desk


async def phases(desk: Desk, issue: Any) -> dict[str, Any]:
    found = await desk.fleet.platform.calls.run(desk.owner, read_phases, {"issue_id": issue.identifier})
    return {each.phase: each for each in found.value.phases}


async def test_agents_and_other_tenants_are_refused(desk: Desk) -> None:
    issue = await desk.issue()
    calls = desk.fleet.platform.calls
    with pytest.raises(PermissionDenied):
        await calls.run(desk.actor("worker", issue), read_phases, {"issue_id": issue.id})
    with pytest.raises(NotFound):
        await calls.run(desk.stranger, read_phases, {"issue_id": issue.id})


async def test_what_was_never_worked_on_is_left_out_and_what_comes_later_says_so(desk: Desk) -> None:
    ready = await phases(desk, await desk.issue(phase="ready"))
    assert [step.state for step in ready.values()] == ["skipped", "skipped", "skipped", "current"]
    early = await phases(desk, await desk.issue(phase="research", labels=["skip:grooming"]))
    assert [step.state for step in early.values()] == ["current", "later", "skipped", "later"]
    done = await phases(desk, await desk.issue(status="done"))
    assert done["ready"].state == "done"


async def test_a_claim_waits_with_its_artifact_until_a_judge_has_spoken(desk: Desk) -> None:
    claim = await claimant(desk, "research")
    await claim.claim()
    step = (await phases(desk, claim.issue))["research"]
    assert (step.state, step.judgeable, step.claims) == ("review", True, 1)
    assert step.claim["hash"] == sha256(claim.file)
    assert step.claim["artifact_path"].endswith("research.md")
    await desk.call(
        claim.bound("judge"), "reject_phase", phase="research", artifact_hash=sha256(claim.file), reason="too thin"
    )
    step = (await phases(desk, claim.issue))["research"]
    assert (step.state, step.judgeable, step.verdict["reason"]) == ("rejected", False, "too thin")
