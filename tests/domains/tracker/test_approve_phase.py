import asyncio
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, PermissionDenied, ValidationFailed
from rookery.core.tool import PROFILES
from rookery.domains.tracker.tables import finding_processing, findings, phase_verdicts
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.claimant import claimant, good_text, refused, standing, written
from tests.domains.tracker.desk import Desk

NO_HASH = "0" * 64


async def test_only_a_judge_may_approve(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    given: dict[str, Any] = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"]}
    for profile in sorted(set(PROFILES.values()) - {"judge"}):
        await refused(desk, PermissionDenied, "approve_phase", at.bound(profile), "approve_phase", **given)
    unbound = desk.actor("judge", project="repo")
    told = await refused(desk, PermissionDenied, "none is bound", unbound, "approve_phase", **given)
    assert told.layer == "binding"


async def test_there_must_be_a_claim_of_the_current_phase_that_waits(desk: Desk) -> None:
    at = await claimant(desk, "architecture")
    judge = at.bound("judge")

    async def refuses(says: str, phase: str, digest: str = NO_HASH) -> Conflict:
        told = await refused(desk, Conflict, says, judge, "approve_phase", phase=phase, artifact_hash=digest)
        assert isinstance(told, Conflict)
        return told

    await refuses("no architecture claim", "architecture")
    await refuses("is in architecture, not in research", "research")
    assert "approve_pr" in str((await refuses("ready has no artifact", "ready")).hint)
    made = await at.claim()
    digest = at.arguments()["artifact_hash"]
    desk.change(sa.update(finding_processing).values(outcome="invalid", processed_ms=1))
    await refuses("no architecture claim", "architecture", digest)
    desk.change(sa.update(finding_processing).values(outcome=None, processed_ms=None))
    desk.change(sa.update(issues).values(status="cancelled"))
    await refuses("is cancelled", "architecture", digest)
    desk.change(sa.update(issues).values(status="review", phase="grooming"))
    await refuses("is in grooming", "architecture", digest)
    await refuses("no grooming claim", "grooming", digest)
    assert desk.rows(sa.select(findings.c.id)) == [(made.id,)]


async def test_a_verdict_for_another_hash_than_the_latest_claims_is_refused(desk: Desk) -> None:
    at = await claimant(desk)
    judge = at.bound("judge")
    old = at.arguments()["artifact_hash"]
    await at.claim()
    new = at.write(good_text("research") + "More.\n")
    await at.claim()
    told = await refused(desk, Conflict, "", judge, "approve_phase", phase="research", artifact_hash=old)
    assert f"{old[:12]}…" in told.message
    assert f"{new[:12]}…" in told.message
    for wrong in ("abc", "x" * 64):
        await refused(desk, ValidationFailed, "64", judge, "approve_phase", phase="research", artifact_hash=wrong)
    for change in ({"artifact_hash": "0" * 81}, {"reason": "x" * 5001}, {"phase": "review"}):
        given = {"phase": "research", "artifact_hash": new, **change}
        await refused(desk, InvalidParams, next(iter(change)), judge, "approve_phase", **given)
    made = await desk.call(judge, "approve_phase", phase="research", artifact_hash=f"sha256:{new.upper()}")
    assert made.verdict == "approved"


async def test_whoever_claimed_does_not_judge_unless_it_is_a_person(desk: Desk) -> None:
    tools = ["complete_phase", "approve_phase"]
    for name in ("ada", "bob"):
        await desk.call(desk.owner, "create_agent", name=name, permissions=tools)
    at = await claimant(desk, profile=None, agent="ada")
    await at.claim()
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"]}
    await refused(desk, Conflict, "whoever made it", at.bound(None, agent="ada"), "approve_phase", **given)
    assert (await desk.call(at.bound(None, agent="bob"), "approve_phase", **given)).verdict == "approved"
    person = at.bound(None, as_owner=True, worktree=str(at.folder))
    await at.claim(person)
    assert (await desk.call(person, "approve_phase", **given)).verdict == "approved"
    at.write(good_text("research") + "More.\n")
    await at.claim()
    given["artifact_hash"] = at.arguments()["artifact_hash"]
    assert (await desk.call(at.bound("judge", agent="ada"), "approve_phase", **given)).verdict == "approved"


async def test_a_claim_is_judged_once(desk: Desk) -> None:
    at = await claimant(desk)
    claim = await at.claim()
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"]}
    await desk.call(at.bound("judge"), "approve_phase", **given)
    told = await refused(desk, Conflict, claim.id, at.bound("judge", session="2"), "approve_phase", **given)
    assert "judged once" in str(told.hint)
    await refused(desk, Conflict, claim.id, at.bound("judge"), "reject_phase", reason="no", **given)


async def test_of_many_judges_at_once_one_is_heard(desk: Desk) -> None:
    at = await claimant(desk)
    claim = await at.claim()
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"]}
    judges = [at.bound("judge", session=str(number)) for number in range(8)]
    calls = [
        desk.call(judge, "approve_phase", **given)
        if at_number % 2
        else desk.call(judge, "reject_phase", reason="no", **given)
        for at_number, judge in enumerate(judges)
    ]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Conflict"] * 7 + ["Verdict"]
    (verdict,) = desk.rows(sa.select(phase_verdicts))
    assert verdict.claim_id == claim.id
    assert desk.count(findings) == desk.count(finding_processing) == 2
    rejected = verdict.verdict == "rejected"
    assert written(desk)[-1] == (1 if rejected else 0)


async def test_an_approval_is_recorded_and_moves_nothing(desk: Desk) -> None:
    at = await claimant(desk)
    claim = await at.claim()
    desk.change(sa.update(issues).values(status="review"))
    before = standing(desk, at.issue)
    digest = at.arguments()["artifact_hash"]
    made = await desk.call(
        at.bound("judge"), "approve_phase", phase="research", artifact_hash=digest, reason="Complete and checked."
    )
    assert made.id.startswith("pv-")
    assert "nothing has moved yet" in made.message
    finding = desk.rows(sa.select(findings).where(findings.c.id == made.id))[0]
    assert finding.payload.pop("created_at")
    assert finding.payload == {
        "id": made.id,
        "category": "phase_verdict",
        "phase": "research",
        "artifact_hash": digest,
        "verdict": "approved",
        "reason": "Complete and checked.",
    }
    assert (finding.category, finding.author, finding.issue_id) == ("phase_verdict", "judge", at.issue.id)
    (verdict,) = desk.rows(sa.select(phase_verdicts))
    assert (verdict.finding_id, verdict.claim_id, verdict.verdict) == (made.id, claim.id, "approved")
    waiting = desk.rows(sa.select(finding_processing).order_by(finding_processing.c.seq))
    assert [(row.finding_id, row.processed_ms) for row in waiting] == [(claim.id, None), (made.id, None)]
    assert standing(desk, at.issue) == before
    assert written(desk)[-1] == 0
