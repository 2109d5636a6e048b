"""Judges that are dispatched: what they are shown, and that only a verdict on what they were sent for counts."""

from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.domains.tracker.tables import phase_claims, prs
from tests.domains.tracker.desk import git
from tests.engine.crew import Crew, Started, build, call, write_artifact


async def claimed(crew: Crew, phase: str = "research") -> tuple[sa.Row[Any], sa.Row[Any]]:
    """An issue in review, and the claim that waits for a judge."""
    await crew.open(write_artifact)
    issue = await crew.todo(phase=phase)
    await crew.dispatched(issue)
    await crew.advance()
    return crew.reload(issue), crew.rows(sa.select(phase_claims))[-1]


async def opened(crew: Crew) -> tuple[sa.Row[Any], sa.Row[Any]]:
    """An issue in review, and its open pull request."""
    await crew.open(build)
    issue = await crew.todo()
    await crew.dispatched(issue)
    await crew.advance()
    return crew.reload(issue), crew.rows(sa.select(prs))[-1]


def judge(crew: Crew, issue: sa.Row[Any], claim: sa.Row[Any]) -> dict[str, Any]:
    return {"work": "judge_phase", "role": "judge", "about": claim.finding_id}


@pytest.mark.anyio
async def test_a_judge_that_says_nothing_was_idle_and_the_issue_stays_in_review(crew: Crew) -> None:
    issue, claim = await claimed(crew)
    crew.play("!say hm")
    row = await crew.dispatched(issue, **judge(crew, issue, claim))
    assert crew.came_to(row) == ("ended", "idle", "the judge ended without a verdict")
    assert (crew.standing(issue), row.fence) == (("review", None), None)


@pytest.mark.anyio
async def test_a_verdict_of_somebody_else_is_not_the_judges(crew: Crew) -> None:
    issue, claim = await claimed(crew)
    person = crew.fleet.actor(as_owner=True, project="shop", issue=issue.id)
    queued = crew.queue(issue, **judge(crew, issue, claim))
    await crew.call(person, "approve_phase", phase="research", artifact_hash=claim.artifact_hash)
    await crew.advance()
    await crew.work()
    state, outcome, _ = crew.came_to(queued)
    assert (state, outcome, len(crew.runtime.started)) == ("ended", "cancelled", 1)
    assert crew.reload(issue).phase == "architecture"


@pytest.mark.anyio
async def test_a_judge_of_another_claim_than_the_latest_is_not_started(crew: Crew) -> None:
    issue, claim = await claimed(crew)
    row = await crew.dispatched(issue, **{**judge(crew, issue, claim), "about": "pc-of-long-ago"})
    assert crew.came_to(row)[:2] == ("ended", "cancelled")
    assert len(crew.runtime.started) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "phase"), [("approve_phase", "architecture"), ("reject_phase", "research")])
async def test_a_judge_decides_on_the_artifact_in_a_copy_of_its_own(crew: Crew, tool: str, phase: str) -> None:
    issue, claim = await claimed(crew)
    said = {"phase": "research", "artifact_hash": claim.artifact_hash, "reason": "I have read it"}
    seen: list[tuple[bool, str]] = []

    def judged(started: Started) -> Sequence[str]:
        seen.append((started.folder.is_dir(), git(started.folder, "branch", "--show-current")))
        return ["!write scribble.txt mine", call(tool, **said)]

    crew.runtime.script = judged
    row = await crew.dispatched(issue, **judge(crew, issue, claim))
    assert crew.came_to(row) == ("ended", "succeeded", None)
    (worker, started), workspace = crew.runtime.started, row.workspace
    assert (seen, started.actor.profile) == ([(True, "")], "judge")
    assert str(started.folder) == workspace != str(worker.folder)
    assert not started.folder.exists()
    assert "a copy of the project for reading" in started.prompt
    assert "What there is to say." in started.prompt
    await crew.advance()
    assert (crew.reload(issue).status, crew.reload(issue).phase) == ("todo", phase)


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "status"), [("approve_pr", "review"), ("reject_pr", "todo")])
async def test_a_judge_decides_on_the_change_as_it_was_claimed(crew: Crew, tool: str, status: str) -> None:
    issue, pr = await opened(crew)
    seen: list[str] = []

    def judged(started: Started) -> Sequence[str]:
        seen.append((started.folder / "a.txt").read_text(encoding="utf-8"))
        return [call(tool, revision=1, reason="I have read it")]

    crew.runtime.script = judged
    row = await crew.dispatched(issue, work="judge_pr", role="judge", about=pr.id)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    assert seen == ["one\n"]
    assert crew.standing(issue) == (status, None)
    assert "+one" in crew.runtime.prompts[-1]


@pytest.mark.anyio
async def test_a_pull_request_that_was_decided_meanwhile_needs_no_judge(crew: Crew) -> None:
    issue, pr = await opened(crew)
    person = crew.fleet.actor(as_owner=True, project="shop", issue=issue.id)
    queued = crew.queue(issue, work="judge_pr", role="judge", about=pr.id)
    await crew.call(person, "reject_pr", revision=1, reason="no")
    await crew.work()
    assert crew.came_to(queued) == ("ended", "cancelled", "the pull request is rejected")
    assert crew.standing(issue) == ("todo", None)


@pytest.mark.anyio
async def test_whoever_mends_a_rejected_change_is_told_what_was_said_and_earlier_rejections_apart(crew: Crew) -> None:
    issue, _ = await opened(crew)
    for revision, reason in ((1, "no tests at all"), (2, "the test is wrong")):
        crew.play(call("reject_pr", revision=revision, reason=reason))
        about = crew.rows(sa.select(prs).order_by(prs.c.revision))[-1].id
        await crew.dispatched(crew.reload(issue), work="judge_pr", role="judge", about=about)
        crew.runtime.script = lambda started, n=revision: [f"!append a.txt {n}", *build(started)[1:]]
        await crew.dispatched(crew.reload(issue))
        await crew.advance()
    prompt = crew.runtime.prompts[-1]
    mend = prompt.index("Mend exactly this first")
    assert prompt.index("# Earlier rejections") < prompt.index("> no tests at all") < mend
    assert mend < prompt.index("> the test is wrong")
    assert (prompt.count("no tests at all"), prompt.count("> the test is wrong")) == (1, 1)
