"""The one function that moves phases: exactly once for each finding, by the project's own rules."""

import asyncio
from typing import Any

import sqlalchemy as sa

from rookery.around.audit import audit_log
from rookery.domains.tracker.advance import Advanced, advance
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.risk import GateResult
from rookery.domains.tracker.tables import finding_processing
from tests.domains.tracker.claimant import Claimant, claimant, good_text, sha256
from tests.domains.tracker.desk import Desk, git

NEXT = {"research": "architecture", "architecture": "grooming", "grooming": "ready"}


async def tick(desk: Desk, **how: Any) -> list[Advanced]:
    return await advance(desk.fleet.platform.calls, "default", "repo", **how)


async def decide(at: Claimant, tool: str, **arguments: Any) -> Any:
    judge = at.bound("judge")
    digest = sha256(at.file)
    return await at.desk.call(judge, tool, phase=at.phase, artifact_hash=digest, **arguments)


async def comments(at: Claimant) -> list[str]:
    told = await at.desk.call(at.desk.owner, "get_issue", issue_id=at.issue.id)
    return [each["content"] for each in told.comments]


def waiting(desk: Desk) -> int:
    return len(desk.rows(sa.select(finding_processing).where(finding_processing.c.processed_ms.is_(None))))


async def work_again(at: Claimant) -> None:
    await at.desk.call(at.desk.person("repo"), "set_issue_status", issue_id=at.issue.id, status="in_progress")


async def test_nothing_waits_so_nothing_happens(desk: Desk) -> None:
    await desk.git_project()
    assert await tick(desk) == []


async def test_a_claim_alone_moves_no_phase(desk: Desk) -> None:
    at = await claimant(desk)
    made = await at.claim()
    assert desk.reload(at.issue).status == "in_progress"
    assert await tick(desk) == [Advanced(at.issue.identifier, made.id, "awaiting_verdict")]
    row = desk.reload(at.issue)
    assert (row.status, row.phase) == ("review", "research")
    assert await tick(desk) == []
    assert waiting(desk) == 1


async def test_an_approved_phase_is_followed_by_the_next(desk: Desk) -> None:
    for phase, following in NEXT.items():
        at = await claimant(desk, phase)
        await at.claim()
        await tick(desk)
        await decide(at, "approve_phase", reason="complete")
        (moved,) = await tick(desk)
        assert (moved.outcome, moved.detail) == ("approved", following)
        row = desk.reload(at.issue)
        assert (row.status, row.phase, row.rejections) == ("todo", following, 0)
        assert waiting(desk) == 0
        told = await desk.call(desk.owner, "get_issue", issue_id=at.issue.id)
        assert [each["processed"] for each in told.findings] == [True, True]


async def test_a_verdict_that_came_before_the_tick_counts(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    await decide(at, "approve_phase")
    assert [each.outcome for each in await tick(desk)] == ["awaiting_verdict", "approved"]
    assert desk.reload(at.issue).phase == "architecture"


async def test_many_who_advance_at_once_do_it_once(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    await decide(at, "approve_phase")
    ended = await asyncio.gather(*(tick(desk) for _ in range(8)))
    outcomes = sorted(each.outcome for done in ended for each in done)
    assert outcomes == ["approved", "awaiting_verdict"]
    row = desk.reload(at.issue)
    assert (row.status, row.phase) == ("todo", "architecture")


async def test_each_step_is_recorded_in_the_audit_log(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    await decide(at, "approve_phase")
    await tick(desk)
    records = desk.rows(sa.select(audit_log).where(audit_log.c.tool == "advance"))
    assert [(row.subject, row.issue, row.outcome) for row in records] == [("orchestrator", at.issue.id, "done")] * 2


async def test_a_rejected_phase_is_done_again_and_after_three_a_person_is_asked(desk: Desk) -> None:
    at = await claimant(desk)
    for count in (1, 2, 3):
        at.write(good_text("research") + f"\nAttempt {count}.\n")
        await at.claim()
        await tick(desk)
        await decide(at, "reject_phase", reason="no rollback", fix_instructions="say how")
        (moved,) = await tick(desk)
        row = desk.reload(at.issue)
        assert row.phase == "research"
        if count < 3:
            assert (moved.outcome, row.status, row.rejections) == ("rejected", "todo", count)
            await work_again(at)
    assert (moved.outcome, row.status, row.blocked_on, row.rejections) == ("blocked", "blocked", "person", 0)
    assert "rejected 3 times" in (await comments(at))[-1]


async def test_a_verdict_that_became_stale_is_ignored_with_a_comment(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    await decide(at, "approve_phase")
    old = sha256(at.file)
    at.write(good_text("research") + "\nMore.\n")
    await at.claim()
    assert [each.outcome for each in await tick(desk)] == ["superseded", "stale", "awaiting_verdict"]
    row = desk.reload(at.issue)
    assert (row.status, row.phase) == ("review", "research")
    (comment,) = await comments(at)
    assert old[:12] in comment
    assert "was ignored" in comment


async def test_the_contract_on_the_base_branch_counts_whatever_the_agent_passed(desk: Desk) -> None:
    at = await claimant(desk)
    strict = at.repository / "prompts" / "phases" / "research.md"
    strict.parent.mkdir(parents=True)
    contract = packaged_contract("research")
    strict.write_text(
        "---\nphase: research\nversion: 1\nprofiles: [researcher]\nartifact: research.md\nmin_chars: 100\n"
        "required_sections: [Problem, Cost]\nrequires_judge: true\nnext: architecture\nallowed_writes: []\n"
        f"forbidden_writes: []\n---\n{contract.body}\n",
        encoding="utf-8",
    )
    git(at.repository, "add", "-A")
    git(at.repository, "commit", "-q", "-m", "our own contract")
    await at.claim()
    (done,) = await tick(desk)
    assert done.outcome == "invalid"
    assert "cost" in done.detail
    row = desk.reload(at.issue)
    assert (row.status, row.phase) == ("todo", "research")
    assert "cost" in (await comments(at))[-1]


async def test_a_project_without_judges_for_a_phase_moves_on_by_itself(desk: Desk) -> None:
    at = await claimant(desk, "grooming")
    await desk.call(desk.person("repo"), "configure_project", unjudged=["grooming"])
    await at.claim()
    (done,) = await tick(desk)
    assert (done.outcome, done.detail) == ("approved", "ready")
    assert desk.reload(at.issue).status == "todo"


async def test_skip_labels_and_the_pipeline_are_jumped_over(desk: Desk) -> None:
    at = await claimant(desk)
    labels = ["skip:architecture"]
    await desk.call(desk.person("repo"), "edit_issue", issue_id=at.issue.id, labels=labels)
    await at.claim()
    await decide(at, "approve_phase")
    await tick(desk)
    assert desk.reload(at.issue).phase == "grooming"


async def test_an_approved_artifact_is_copied_to_where_it_was_to_go(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim(promote_to="docs/research/login.md")
    await decide(at, "approve_phase")
    assert not (at.repository / "docs/research/login.md").exists()
    await tick(desk)
    assert (at.repository / "docs/research/login.md").read_bytes() == at.file.read_bytes()
    assert "copied to docs/research/login.md" in (await comments(at))[-1]


async def test_what_people_wrote_is_not_overwritten_by_a_promotion(desk: Desk) -> None:
    at = await claimant(desk)
    theirs = at.repository / "docs" / "login.md"
    theirs.parent.mkdir()
    theirs.write_text("written by hand\n", encoding="utf-8")
    await at.claim(promote_to="docs/login.md")
    await decide(at, "approve_phase")
    await tick(desk)
    assert theirs.read_text(encoding="utf-8") == "written by hand\n"
    assert "was not copied" in (await comments(at))[-1]
    assert desk.reload(at.issue).phase == "architecture"


async def test_a_promotion_never_leaves_the_project(desk: Desk) -> None:
    at = await claimant(desk)
    outside = desk.folder / "outside"
    outside.mkdir()
    await at.claim(promote_to="docs/research/login.md")
    (at.repository / "docs").symlink_to(outside)
    await decide(at, "approve_phase")
    await tick(desk)
    assert list(outside.iterdir()) == []
    assert "was not copied" in (await comments(at))[-1]


async def test_the_worktree_may_be_gone_when_a_phase_is_judged(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    digest = sha256(at.file)
    git(at.repository, "worktree", "remove", "--force", str(at.folder))
    await tick(desk)
    await desk.call(at.bound("judge"), "approve_phase", phase="research", artifact_hash=digest)
    await tick(desk)
    assert desk.reload(at.issue).phase == "architecture"


async def test_a_cancelled_issue_is_left_alone(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    await decide(at, "approve_phase")
    await desk.call(desk.person("repo"), "set_issue_status", issue_id=at.issue.id, status="cancelled")
    assert [each.outcome for each in await tick(desk)] == ["ignored", "ignored"]
    row = desk.reload(at.issue)
    assert (row.status, row.phase) == ("cancelled", "research")


async def test_a_broken_repository_holds_up_its_issue_and_no_other(desk: Desk) -> None:
    at = await claimant(desk)
    await at.claim()
    git(at.repository, "branch", "-m", "main", "trunk")
    (failed,) = await tick(desk)
    assert failed.outcome == "failed"
    assert "main" in failed.detail
    await desk.call(desk.person("repo"), "configure_project", base_branch="trunk")
    assert [each.outcome for each in await tick(desk)] == ["awaiting_verdict"]


async def committed(desk: Desk, **how: Any) -> Claimant:
    at = await claimant(desk, "ready", **how)
    (at.folder / "login.py").write_text("def login() -> bool:\n    return True\n", encoding="utf-8")
    git(at.folder, "add", "-A")
    git(at.folder, "commit", "-q", "-m", "log in")
    return at


async def test_a_claim_of_ready_opens_a_pull_request_with_its_risk(desk: Desk) -> None:
    at = await committed(desk)
    await at.claim()
    (done,) = await tick(desk)
    assert done.outcome == "pr_opened"
    assert desk.reload(at.issue).status == "review"
    pr = (await desk.call(desk.owner, "get_issue", issue_id=at.issue.id)).pr
    assert (pr["status"], pr["revision"], pr["base"]) == ("open", 1, "main")
    assert pr["branch"] == f"symphony/{at.issue.identifier}"
    assert pr["risk_level"] == "low"


async def test_gates_that_fail_make_the_risk_high(desk: Desk) -> None:
    async def run_gates(settings: Any, work: Any, claim: Any) -> list[GateResult]:
        assert "login.py" in work.diff
        return [GateResult(command="make test", label="Tests", exit_code=1, output="1 failed", required=True)]

    at = await committed(desk)
    await at.claim()
    await tick(desk, run_gates=run_gates)
    pr = (await desk.call(desk.owner, "get_issue", issue_id=at.issue.id)).pr
    assert (pr["risk_score"], pr["risk_level"]) == (100, "high")


async def test_work_that_changed_after_the_claim_is_sent_back(desk: Desk) -> None:
    at = await committed(desk)
    await at.claim()
    (at.folder / "more.py").write_text("x = 1\n", encoding="utf-8")
    git(at.folder, "add", "-A")
    git(at.folder, "commit", "-q", "-m", "more")
    (done,) = await tick(desk)
    assert (done.outcome, "moved on" in done.detail) == ("invalid", True)
    assert desk.reload(at.issue).status == "todo"


async def test_a_worktree_that_is_gone_sends_ready_back(desk: Desk) -> None:
    at = await committed(desk)
    await at.claim()
    git(at.repository, "worktree", "remove", "--force", str(at.folder))
    (done,) = await tick(desk)
    assert (done.outcome, "does not exist" in done.detail) == ("invalid", True)
