import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, PermissionDenied
from rookery.core.tool import PROFILES
from rookery.domains.tracker.tables import comments, findings, phase_verdicts
from tests.domains.tracker.claimant import claimant, good_text, refused, standing
from tests.domains.tracker.desk import Desk


async def test_only_a_judge_may_reject(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"], "reason": "no"}
    for profile in sorted(set(PROFILES.values()) - {"judge"}):
        await refused(desk, PermissionDenied, "reject_phase", at.bound(profile), "reject_phase", **given)


async def test_a_rejection_needs_a_reason_a_claim_and_its_hash(desk: Desk) -> None:
    at = await claimant(desk)
    judge = at.bound("judge")
    digest = at.arguments()["artifact_hash"]
    given = {"phase": "research", "artifact_hash": digest, "reason": "no"}
    await refused(desk, Conflict, "no research claim", judge, "reject_phase", **given)
    await at.claim()
    for change in ({"reason": ""}, {"reason": "x" * 5001}, {"fix_instructions": ""}, {"fix_instructions": "x" * 5001}):
        await refused(desk, InvalidParams, next(iter(change)), judge, "reject_phase", **{**given, **change})
    await refused(desk, InvalidParams, "reason", judge, "reject_phase", phase="research", artifact_hash=digest)
    new = at.write(good_text("research") + "More.\n")
    await at.claim()
    told = await refused(desk, Conflict, digest[:12], judge, "reject_phase", **given)
    assert new[:12] in told.message
    told = await refused(desk, Conflict, "ready", judge, "reject_phase", **{**given, "phase": "ready"})
    assert "reject_pr" in str(told.hint)


async def test_a_rejection_is_recorded_with_a_comment_and_moves_nothing(desk: Desk) -> None:
    at = await claimant(desk, "architecture")
    claim = await at.claim()
    before = standing(desk, at.issue)
    digest = at.arguments()["artifact_hash"]
    made = await desk.call(
        at.bound("judge"),
        "reject_phase",
        phase="architecture",
        artifact_hash=digest,
        reason="Missing rollback strategy",
        fix_instructions="Say how to revert if the migration fails",
    )
    assert made.verdict == "rejected"
    assert "nothing has moved yet" in made.message
    finding = desk.rows(sa.select(findings).where(findings.c.id == made.id))[0]
    assert finding.payload.pop("created_at")
    assert finding.payload == {
        "id": made.id,
        "category": "phase_verdict",
        "phase": "architecture",
        "artifact_hash": digest,
        "verdict": "rejected",
        "reason": "Missing rollback strategy",
        "fix_instructions": "Say how to revert if the migration fails",
    }
    (verdict,) = desk.rows(sa.select(phase_verdicts))
    assert (verdict.claim_id, verdict.verdict) == (claim.id, "rejected")
    (comment,) = desk.rows(sa.select(comments))
    assert comment.author == "judge"
    for part in ("architecture rejected", digest[:12], "Missing rollback strategy", "Say how to revert"):
        assert part in comment.content
    assert standing(desk, at.issue) == before


async def test_instructions_may_be_left_out(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    given = {"phase": "research", "artifact_hash": at.arguments()["artifact_hash"], "reason": "too thin"}
    made = await desk.call(at.bound("judge"), "reject_phase", **given)
    finding = desk.rows(sa.select(findings).where(findings.c.id == made.id))[0]
    assert "fix_instructions" not in finding.payload
    assert "To fix" not in desk.rows(sa.select(comments))[0].content
