"""Prompts of the roles, as agents get them: what they refuse, what they say, and that what they say works."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rookery.core.errors import ConfigurationError, Conflict, InvalidParams, NotFound, PermissionDenied
from rookery.domains.tracker.briefs import role_text
from rookery.domains.tracker.contract import packaged_contract
from rookery.domains.tracker.review_briefs import ARTIFACT_SHOWN, DIFF_SHOWN, OUTPUT_SHOWN
from tests.domains.tracker.claimant import Claimant, claimant, good_text, sha256
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.prompting import HOSTILE, asked, named, parts, refused, told
from tests.domains.tracker.reviewing import author

PHASES = [("research", "researcher"), ("architecture", "architect"), ("architecture", "researcher"),
          ("grooming", "planner"), ("ready", "worker")]  # fmt: skip


async def rejected(claim: Claimant, reason: str = "too thin", fix: str = "measure it") -> None:
    """A claim that a judge has sent back."""
    await claim.claim()
    await claim.desk.call(
        claim.bound("judge"),
        "reject_phase",
        phase=claim.phase,
        artifact_hash=sha256(claim.file),
        reason=reason,
        fix_instructions=fix,
    )


@pytest.mark.parametrize(
    ("profile", "names"),
    [
        ("worker", {"judge_phase", "review_pr", "scan_project"}),
        ("judge", {"work_on_phase", "scan_project", "take_in_requests"}),
        ("scanner", {"work_on_phase", "judge_phase", "review_pr"}),
        ("intake", {"work_on_phase", "judge_phase", "review_pr", "scan_project"}),
        (None, {"work_on_phase", "judge_phase", "review_pr", "scan_project", "take_in_requests"}),
    ],
)
async def test_a_profile_has_no_prompt_for_what_it_may_not_do(desk: Desk, profile: str | None, names: set[str]) -> None:
    actor = desk.actor(profile, await desk.issue())
    for name in names:
        with pytest.raises(PermissionDenied):
            await told(desk, actor, name, **({"request": "x"} if name == "take_in_requests" else {}))
    assert not names & {each.name for each in desk.fleet.platform.registry.prompts(actor)}


@pytest.mark.parametrize(
    ("profile", "name"), [("worker", "work_on_phase"), ("judge", "judge_phase"), ("judge", "review_pr")]
)
async def test_what_needs_an_issue_needs_a_bound_one_that_is_there(desk: Desk, profile: str, name: str) -> None:
    unbound = await refused(desk, PermissionDenied, "none is bound", desk.actor(profile), name)
    assert unbound.layer == "binding"
    assert "--issue-id" in str(unbound.hint)
    issue = await desk.issue()
    actor = desk.actor(profile, issue)
    gone = (
        replace(actor, issue="iss-0"),
        replace(actor, tenant="other"),
        replace(actor, closed=frozenset({issue.project_id})),
    )
    for absent in gone:
        await refused(desk, NotFound, "the bound issue is not there", absent, name)
    moved = replace(actor, project="prj-other")
    await refused(desk, NotFound, "moved to another project", moved, name)


@pytest.mark.parametrize(
    ("profile", "phase"),
    [("worker", "research"), ("researcher", "ready"), ("architect", "grooming"), ("planner", "architecture")],
)
async def test_a_profile_does_not_work_on_a_phase_of_others(desk: Desk, profile: str, phase: str) -> None:
    actor = desk.actor(profile, await desk.issue(phase=phase))
    for arguments in ({}, {"phase": phase}):
        refusal = await refused(
            desk, PermissionDenied, f"does not work on {phase}", actor, "work_on_phase", **arguments
        )
        assert refusal.layer == "phase"
        assert f"a {profile} works on " in str(refusal.hint)


async def test_a_phase_that_the_issue_is_not_in_is_refused(desk: Desk) -> None:
    researcher = desk.actor("researcher", await desk.issue(phase="research"))
    await refused(desk, Conflict, "DEF-001 is in research", researcher, "work_on_phase", phase="architecture")
    await refused(desk, InvalidParams, "phase", researcher, "work_on_phase", phase="testing")


async def test_a_project_can_keep_a_profile_away_from_a_phase(desk: Desk) -> None:
    claim = await claimant(desk, "architecture", "researcher")
    contract = (Path(__file__).parents[3] / "src/rookery/domains/tracker/contracts/architecture.md").read_text()
    folder = claim.repository / "prompts" / "phases"
    folder.mkdir(parents=True)
    (folder / "architecture.md").write_text(contract.replace("[architect, researcher]", "[architect]"))
    assert "# You are a researcher" in await told(desk, claim.actor, "work_on_phase")
    git(claim.repository, "add", "-A")
    git(claim.repository, "commit", "-q", "-m", "a contract of our own")
    await refused(desk, PermissionDenied, "is for architect, not for a researcher", claim.actor, "work_on_phase")
    assert "# You are an architect" in await told(desk, claim.bound("architect"), "work_on_phase")


async def test_a_contract_that_is_none_is_named(desk: Desk) -> None:
    claim = await claimant(desk)
    folder = claim.repository / "prompts" / "phases"
    folder.mkdir(parents=True)
    (folder / "research.md").write_text("# no front matter\n")
    git(claim.repository, "add", "-A")
    git(claim.repository, "commit", "-q", "-m", "broken")
    await refused(desk, ConfigurationError, "research.md on main has no front matter", claim.actor, "work_on_phase")


@pytest.mark.parametrize(("phase", "profile"), PHASES)
async def test_an_agent_that_does_what_it_is_told_completes_its_phase(desk: Desk, phase: str, profile: str) -> None:
    claim = await claimant(desk, phase, profile)
    text = await told(desk, claim.actor, "work_on_phase")
    assert text.startswith(role_text(profile))
    assert parts(text) == [
        role_text(profile).partition("\n")[0].removeprefix("# "),
        f"The contract of {phase}, version 1",
        f"{claim.issue.identifier}: login fails",
        "What to do now",
    ]
    assert named(text) & desk.fleet.names(desk.owner) <= desk.fleet.names(claim.actor)
    wanted = asked(text, "complete_phase")
    for section in packaged_contract(phase).required_sections:
        assert f"`## {section}`" in text
    filled = {"confidence": "high", "open_questions": [], "summary": "done"}
    if phase == "ready":
        (claim.folder / "login.py").write_text("x = 1\n", encoding="utf-8")
        git(claim.folder, "add", "-A")
        git(claim.folder, "commit", "-q", "-m", "log in")
    else:
        path = claim.folder / wanted["artifact_path"]
        path.write_text(good_text(phase))
        filled["artifact_hash"] = sha256(path)
        assert f"`sha256sum {wanted['artifact_path']}`" in text
    made = await desk.call(claim.actor, "complete_phase", **{**wanted, **filled})
    assert made.phase == phase
    assert ("recommended_next_phase" in wanted) == (phase != "ready")


async def test_a_person_gets_the_text_of_the_role_that_would_do_it(desk: Desk) -> None:
    issue = await desk.issue(phase="grooming")
    person = desk.fleet.actor(as_owner=True, issue=issue.id)
    assert (await told(desk, person, "work_on_phase")).startswith("# You are a planner")


async def test_what_the_project_asks_for_and_its_gates_are_told(desk: Desk) -> None:
    claim = await claimant(desk, "ready")
    gates = [{"command": "make `all`", "label": "Build", "required": True}]
    await desk.call(desk.person("repo"), "configure_project", worker_instructions="# Rules\n\nNo globals.", gates=gates)
    text = await told(desk, claim.actor, "work_on_phase")
    assert "# What this project asks of those who work on it\n\n## Rules\n\nNo globals." in text
    assert "`` make `all` `` (Build, required)" in text
    assert f"It has to name `{claim.folder}`." in text


async def test_an_issue_that_nobody_took_has_to_be_claimed_first_and_its_number_is_given(desk: Desk) -> None:
    await desk.issue(status="todo")
    worker = desk.actor("worker", "DEF-001", session="s-1")
    text = await told(desk, worker, "work_on_phase")
    assert "Take it with `claim_issue` first" in text
    assert "fence" not in asked(text, "complete_phase")
    claimed = await desk.call(worker, "claim_issue", issue_id="DEF-001")
    text = await told(desk, worker, "work_on_phase")
    assert asked(text, "complete_phase")["fence"] == claimed.fence
    assert "`claim_issue`" not in text.partition("# What to do now")[2]
    await desk.call(worker, "update_issue_status", status="blocked")
    assert "nothing can be claimed now" in await told(desk, worker, "work_on_phase")


async def test_what_was_rejected_has_to_be_mended_first(desk: Desk) -> None:
    claim = await claimant(desk)
    assert "Mend exactly this first" not in await told(desk, claim.actor, "work_on_phase")
    await rejected(claim)
    after = (await told(desk, claim.actor, "work_on_phase")).partition("# What to do now")[2]
    assert "Mend exactly this first:**\n\n> too thin\n\nTo fix:\n\n> measure it\n" in after


async def test_a_skipped_phase_is_not_recommended(desk: Desk) -> None:
    await desk.call(desk.person(), "configure_project", pipeline=["research", "grooming", "ready"])
    researcher = desk.actor("researcher", await desk.issue(phase="research"))
    assert (
        asked(await told(desk, researcher, "work_on_phase"), "complete_phase")["recommended_next_phase"] == "grooming"
    )


async def test_no_text_of_an_issue_becomes_a_part_of_the_prompt(desk: Desk) -> None:
    claim = await claimant(desk)
    await desk.call(desk.person("repo"), "edit_issue", issue_id=claim.issue.id, description=HOSTILE, title=HOSTILE)
    await desk.call(claim.actor, "add_comment", content=HOSTILE)
    await desk.call(desk.person("repo"), "configure_project", worker_instructions=HOSTILE, judge_instructions=HOSTILE)
    text = await told(desk, claim.actor, "work_on_phase")
    assert len(parts(text)) == 5
    assert parts(text)[-1] == "What to do now"
    await rejected(claim, HOSTILE, HOSTILE)
    claim.write(good_text("research") + HOSTILE)
    await claim.claim(summary=HOSTILE, open_questions=[HOSTILE])
    text = await told(desk, claim.bound("judge"), "judge_phase")
    assert len(parts(text)) == 9
    assert parts(text)[-3:] == ["Earlier rejections", "Checklist", "How to decide"]


async def test_a_judge_has_nothing_to_judge_without_a_claim(desk: Desk) -> None:
    judge = desk.actor("judge", await desk.issue(phase="research"))
    await refused(desk, Conflict, "no research claim of DEF-001 waits", judge, "judge_phase")
    ready = desk.actor("judge", await desk.issue(phase="ready"))
    refusal = await refused(desk, Conflict, "has no artifact", ready, "judge_phase")
    assert "review_pr" in str(refusal.hint)


async def test_a_judge_that_does_what_it_is_told_decides_on_what_it_read(desk: Desk) -> None:
    claim = await claimant(desk)
    await rejected(claim)
    claim.write(good_text("research") + "measured")
    await desk.call(desk.person("repo"), "configure_project", judge_instructions="Be strict.")
    await claim.claim(summary="we should", open_questions=["who pays?"], confidence="low")
    claim.file.unlink()
    judge = claim.bound("judge")
    text = await told(desk, judge, "judge_phase")
    assert parts(text) == [
        "You are a judge",
        "What was asked for: the contract of research, version 1",
        "What this project asks of its judges",
        f"{claim.issue.identifier}: login fails",
        parts(text)[4],
        "The artifact",
        "Earlier rejections",
        "Checklist",
        "How to decide",
    ]
    assert parts(text)[4].endswith(" by researcher")
    for expected in (
        "- **Confidence:** low",
        "> we should",
        "- who pays?",
        "measured\n```",
        "> measure it",
        "Be strict.",
    ):
        assert expected in text
    for section in packaged_contract("research").required_sections:
        assert f"- [ ] **{section}** is there" in text
    assert named(text) & desk.fleet.names(desk.owner) <= desk.fleet.names(judge) | desk.fleet.names(claim.actor)
    reject, approve = asked(text, "reject_phase"), asked(text, "approve_phase")
    assert reject["artifact_hash"] == approve["artifact_hash"]
    assert (await desk.call(judge, "approve_phase", **approve)).verdict == "approved"


async def test_a_long_artifact_is_shown_in_part_with_where_the_rest_is(desk: Desk) -> None:
    claim = await claimant(desk)
    claim.write(good_text("research") + "more text\n" * (ARTIFACT_SHOWN // 5))
    await claim.claim()
    text = await told(desk, claim.bound("judge"), "judge_phase")
    assert re.search(r"\(Cut here: \d\d\d,\d\d\d more characters\.\)", text)
    assert f"`issue://{claim.issue.identifier}/artifacts/research` has all of it" in text
    assert len(text) < ARTIFACT_SHOWN + 30_000


async def test_a_judge_reviews_the_open_pull_request_only(desk: Desk) -> None:
    work = await author(desk)
    judge = work.bound("judge")
    await refused(desk, Conflict, "has no pull request", judge, "review_pr")
    await work.open()
    await desk.call(judge, "approve_pr")
    await refused(desk, Conflict, "is approved, not open", judge, "review_pr")


async def test_a_judge_that_does_what_it_is_told_decides_on_the_pull_request(desk: Desk) -> None:
    work = await author(desk)
    failed = {"command": "make lint", "label": "Lint", "exit_code": 2, "required": False}
    await work.open(gate_results=[{**failed, "output": "```\n# bad" + "x" * OUTPUT_SHOWN}])
    judge = work.bound("judge")
    text = await told(desk, judge, "review_pr")
    assert parts(text) == [
        "You are a judge",
        "What was asked for: the contract of ready, version 1",
        f"{work.issue.identifier}: login fails",
        "Revision 1 of the pull request",
        "Gates",
        "The change",
        "How to decide",
    ]
    for expected in (
        "## Lint: failed with 2 (optional)",
        "The last 4,000 of ",
        "- **Risk:** ",
        "Why this risk:",
        "```diff",
    ):
        assert expected in text
    assert work.diff.strip() in text
    assert named(text) & desk.fleet.names(desk.owner) <= desk.fleet.names(judge) | desk.fleet.names(work.actor)
    await desk.call(judge, "reject_pr", **asked(text, "reject_pr"))
    after = await told(desk, work.actor, "work_on_phase")
    assert "Mend exactly this first:**\n\n> <what is wrong, where>\n\nTo fix:\n\n> <what to change>\n" in after


async def test_of_a_long_diff_the_beginning_is_shown(desk: Desk) -> None:
    work = await author(desk)
    work.tree.commit("big.txt", "a line of text\n" * (DIFF_SHOWN // 10))
    await work.open()
    text = await told(desk, work.bound("judge"), "review_pr")
    assert "more characters.)" in text
    assert f"`git diff main...{work.tree.branch}` shows all of it" in text
    assert len(text) < DIFF_SHOWN + 30_000
