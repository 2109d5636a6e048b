import asyncio
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import ConfigurationError, Conflict, InvalidParams, PermissionDenied, ValidationFailed
from rookery.core.tool import PROFILES
from rookery.domains.tracker.project_store import Projects
from rookery.domains.tracker.tables import artifacts, finding_processing, findings, phase_claims
from rookery.domains.tracker.worktree import MARKER, Marker, write_marker
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.states import PHASE_PROFILES, PHASES
from tests.domains.tracker.claimant import claimant, good_text, refused, standing
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.test_contract import contract_text

FAR_AWAY_MS = 9_000_000_000_000


async def test_only_profiles_that_do_phases_have_the_tool_and_each_only_for_its_own(desk: Desk) -> None:
    ready = await claimant(desk, "ready")
    for profile in ("judge", "scanner", "intake"):
        await ready.refused(PermissionDenied, "complete_phase", actor=ready.bound(profile))
    for profile in sorted(set(PROFILES.values()) - {"judge", "scanner", "intake"}):
        actor = ready.bound(profile, worktree=str(ready.folder))
        for phase in PHASES:
            if profile not in PHASE_PROFILES[phase]:
                told = await ready.refused(PermissionDenied, profile, actor=actor, completed_phase=phase)
                assert told.layer == "phase"
                assert " or ".join(sorted(PHASE_PROFILES[phase])) in told.message


async def test_only_the_current_phase_of_an_issue_in_progress_can_be_claimed(desk: Desk) -> None:
    at = await claimant(desk, "architecture", "researcher")
    told = await at.refused(Conflict, "is in architecture, not in research", completed_phase="research")
    assert "architecture" in str(told.hint)
    for status in ("backlog", "todo", "review", "blocked", "done", "cancelled"):
        desk.change(sa.update(issues).values(status=status))
        await at.refused(Conflict, f"is {status}, not in_progress")
    with pytest.raises(InvalidParams):
        await at.claim(completed_phase="testing")


async def test_a_lease_of_another_and_an_old_number_are_refused(desk: Desk) -> None:
    at = await claimant(desk, session="s1")
    lease = {"lease_session": "s1", "lease_name": "somebody", "lease_until_ms": FAR_AWAY_MS, "fence": 3}
    desk.change(sa.update(issues).values(lease_subject="agt-else", **lease))
    await at.refused(Conflict, "claimed by somebody")
    desk.change(sa.update(issues).values(lease_subject=at.actor.subject))
    await at.refused(Conflict, "its number is 3, not 2", fence=2)
    assert (await at.claim(fence=3)).id.startswith("pc-")
    assert (await at.claim()).id.startswith("pc-")


async def test_the_worktree_must_be_there_marked_as_the_issues_and_the_agent_in_it(desk: Desk) -> None:
    at, other = await claimant(desk), await claimant(desk)
    elsewhere = at.bound("researcher", worktree=str(at.folder), cwd=str(other.folder))
    await at.refused(Conflict, f"cd {at.folder}", actor=elsewhere)
    escaped = at.bound("researcher", worktree=str(other.folder), cwd=str(other.folder))
    await at.refused(Conflict, f"belongs to {other.issue.identifier}", actor=escaped)
    write_marker(str(at.folder), Marker(issue=other.issue.identifier))
    await at.refused(Conflict, f"belongs to {other.issue.identifier}", project_path=str(at.repository))
    (at.folder / MARKER).unlink()
    await at.refused(Conflict, "marker file not found")
    arguments = at.arguments()
    shutil.rmtree(at.folder)
    await refused(desk, Conflict, "does not exist any more", at.actor, "complete_phase", **arguments)


async def test_the_project_path_is_the_root_of_the_worktree_or_of_the_project(desk: Desk, tmp_path: Path) -> None:
    at, other = await claimant(desk), await claimant(desk)
    wrong = ["relative", ".", "/", str(at.folder.parent), str(at.folder / "docs"), str(other.folder), str(tmp_path)]
    for path in wrong:
        told = await at.refused(
            ValidationFailed, "neither the bound worktree nor the project's root", project_path=path
        )
        assert str(at.folder) in str(told.hint)
    link = tmp_path / "link"
    link.symlink_to(at.folder)
    assert (await at.claim(project_path=f"{link}/")).id.startswith("pc-")
    there = at.repository / at.file.relative_to(at.folder)
    there.parent.mkdir(parents=True)
    shutil.copyfile(at.file, there)
    assert (await at.claim(project_path=str(at.repository))).id.startswith("pc-")


async def test_without_a_bound_worktree_the_project_itself_is_the_place(desk: Desk) -> None:
    at = await claimant(desk)
    free = at.bound("researcher")
    await at.refused(ValidationFailed, "neither", actor=free)
    await at.refused(ValidationFailed, "does not exist", actor=free, project_path=str(at.repository))
    homeless = await desk.issue(phase="research")
    actor = desk.actor("researcher", homeless)
    await at.refused(Conflict, "no worktree is bound", actor=actor)


async def test_all_fields_that_are_missing_are_named_at_once(desk: Desk) -> None:
    at = await claimant(desk)
    told = await at.refused(
        InvalidParams,
        "needs contract_version, artifact_path, artifact_hash, recommended_next_phase",
        contract_version=None,
        artifact_path=None,
        artifact_hash=None,
        recommended_next_phase=None,
    )
    assert "sha256sum" in str(told.hint)
    told = await at.refused(InvalidParams, "artifact_hash", artifact_hash=None)
    assert "artifact_path" not in told.message
    wrong: list[dict[str, Any]] = [
        {"summary": ""},
        {"summary": "x" * 501},
        {"summary": None},
        {"project_path": None},
        {"confidence": "certain"},
        {"recommended_next_phase": "merge"},
        {"open_questions": ["x"] * 51},
        {"open_questions": ["x" * 2001]},
        {"artifact_path": "docs/tickets/" + "x" * 1000},
        {"issue_id": "REP-002"},
    ]
    for change in wrong:
        await at.refused(InvalidParams, next(iter(change)), **change)


async def test_the_paths_of_a_claim_cannot_leave_their_folders(desk: Desk, tmp_path: Path) -> None:
    at = await claimant(desk)
    (tmp_path / "research.md").write_text(good_text("research"))
    (at.file.parent / "out").symlink_to(tmp_path)
    (at.folder / "docs" / "shelf").symlink_to(tmp_path)
    folder = f"docs/tickets/{at.issue.identifier}"
    for path in (f"{folder}/../../../x/research.md", str(at.file), "research.md", f"{folder}/out/research.md"):
        await at.refused(ValidationFailed, "artifact_path", artifact_path=path)
    for path in ("../docs/x.md", "docs/tickets/x.md", "docs/x.txt", "src/x.md", "docs/shelf/x.md"):
        await at.refused(ValidationFailed, "promote_to", promote_to=path)
    for path in ("..", "/etc", str(tmp_path), "docs/shelf", "docs/../../x"):
        await at.refused(ValidationFailed, "contracts_dir", contracts_dir=path)


async def test_a_claim_with_99_characters_or_another_hash_or_without_a_section_is_refused(desk: Desk) -> None:
    at = await claimant(desk)
    at.write("# " + "x" * 97)
    await at.refused(ValidationFailed, "Artifact content too short (99 chars, minimum 100)")
    at.write("word " * 30)
    await at.refused(ValidationFailed, "Artifact does not appear to be Markdown — no headings found")
    at.write(good_text("research", without=("Risks", "Recommendation")))
    told = await at.refused(ValidationFailed, "Artifact missing required sections: risks, recommendation")
    assert "## Risks, ## Recommendation" in str(told.hint)
    claimed = at.write(good_text("research"))
    at.write(good_text("research") + "One more word.\n")
    told = await at.refused(ValidationFailed, f"the claim says {claimed[:12]}…", artifact_hash=claimed)
    assert "sha256sum" in str(told.hint)
    assert (await at.claim()).id.startswith("pc-")


async def test_of_many_faults_the_first_in_the_agreed_order_is_told(desk: Desk) -> None:
    at = await claimant(desk)
    (at.folder / MARKER).rename(at.folder / "away")
    at.file.unlink()
    faults: dict[str, Any] = {
        "project_path": str(at.folder.parent),
        "artifact_path": "src/research.md",
        "contract_version": 7,
        "artifact_hash": "0" * 64,
    }
    await at.refused(Conflict, "marker file not found", **faults)
    (at.folder / "away").rename(at.folder / MARKER)
    await at.refused(ValidationFailed, "project_path", **faults)
    del faults["project_path"]
    await at.refused(ValidationFailed, "not inside docs/tickets/", **faults)
    del faults["artifact_path"]
    await at.refused(ValidationFailed, "contract_version is 7, but the contract of research has version 1", **faults)
    del faults["contract_version"]
    await at.refused(ValidationFailed, "does not exist", **faults)
    at.write("short")
    await at.refused(ValidationFailed, "hash mismatch", **faults)
    await at.refused(ValidationFailed, "too short (5 chars, minimum 100)")


async def test_what_is_no_text_or_has_another_name_is_refused(desk: Desk) -> None:
    at = await claimant(desk)
    at.file.write_bytes(good_text("research").encode() + b"\xff")
    await at.refused(ValidationFailed, "Artifact is not UTF-8")
    at.write(good_text("research") + "\0")
    await at.refused(ValidationFailed, "Artifact contains a NUL character")
    at.write(good_text("research"))
    at.file.rename(at.file.with_name("notes.md"))
    path = f"docs/tickets/{at.issue.identifier}/notes.md"
    await at.refused(ValidationFailed, "is called research.md, not notes.md", artifact_path=path)


async def test_a_claim_records_everything_and_moves_nothing(desk: Desk) -> None:
    at = await claimant(desk, "architecture")
    text = "\ufeff" + good_text("architecture").replace("\n", "\r\n")
    digest = at.write(text)
    before = standing(desk, at.issue)
    made = await at.claim(
        artifact_hash=f"SHA256:{digest.upper()}",
        open_questions=["Who pays?"],
        confidence="high",
        promote_to="docs/design/login.md",
        recommended_next_phase="grooming",
    )
    assert (made.identifier, made.phase) == (at.issue.identifier, "architecture")
    assert "Nothing has moved yet" in made.message
    assert "judge" in made.message
    (finding,) = desk.rows(sa.select(findings))
    created_at = finding.payload.pop("created_at")
    assert created_at.endswith("+00:00")
    assert finding.payload == {
        "id": made.id,
        "category": "phase_completion",
        "completed_phase": "architecture",
        "contract_version": 1,
        "artifact_path": f"docs/tickets/{at.issue.identifier}/design.md",
        "artifact_hash": digest,
        "summary": "done",
        "open_questions": ["Who pays?"],
        "confidence": "high",
        "promote_to": "docs/design/login.md",
        "recommended_next_phase": "grooming",
    }
    assert made.id.startswith("pc-")
    assert (finding.id, finding.category, finding.author) == (made.id, "phase_completion", "architect")
    (waiting,) = desk.rows(sa.select(finding_processing))
    assert (waiting.finding_id, waiting.seq, waiting.outcome, waiting.processed_ms) == (
        made.id,
        finding.seq,
        None,
        None,
    )
    (claim,) = desk.rows(sa.select(phase_claims))
    assert (claim.finding_id, claim.phase, claim.artifact_hash) == (made.id, "architecture", digest)
    assert (claim.worktree, claim.subject, claim.profile) == (str(at.folder), at.actor.subject, "architect")
    (kept,) = desk.rows(sa.select(artifacts))
    assert (kept.hash, kept.content, kept.phase) == (digest, text, "architecture")
    assert standing(desk, at.issue) == before
    shown = (await desk.call(at.actor, "get_issue")).findings
    assert [(each["id"], each["processed"]) for each in shown] == [(made.id, False)]


async def test_an_artifact_may_be_named_for_its_phase_and_be_claimed_again(desk: Desk) -> None:
    at = await claimant(desk, "architecture", "researcher")
    at.file.rename(at.file.with_name("architecture.md"))
    path = f"docs/tickets/{at.issue.identifier}/architecture.md"
    at.write(good_text("architecture"))
    digest = at.arguments()["artifact_hash"]
    at.file.unlink()
    first = await at.claim(artifact_path=path, artifact_hash=digest)
    again = await at.claim(artifact_path=f"./{path}", artifact_hash=digest)
    assert first.id != again.id
    assert [desk.count(table) for table in (findings, phase_claims, artifacts)] == [2, 2, 1]
    assert desk.rows(sa.select(artifacts.c.path))[0].path == path


async def test_a_project_may_have_contracts_of_its_own(desk: Desk) -> None:
    at = await claimant(desk)
    own = at.folder / "prompts" / "phases"
    own.mkdir(parents=True)
    (own / "research.md").write_text(contract_text(version="2", min_chars="10"))
    await at.refused(ValidationFailed, "has version 2")
    at.write("## Problem\n\n## Who cares?\n")
    await at.refused(ValidationFailed, "neither", contract_version=2, project_path="/")
    made = await at.claim(contract_version=2)
    assert desk.rows(sa.select(findings).where(findings.c.id == made.id))[0].payload["contract_version"] == 2
    (at.folder / "rules").mkdir()
    (at.folder / "rules" / "research.md").write_text(contract_text(version="3", required_sections="[Costs]"))
    for folder in ("rules", "./rules/", str(at.folder / "rules")):
        await at.refused(ValidationFailed, "has version 3", contract_version=2, contracts_dir=folder)
    await at.refused(ValidationFailed, "is not a folder", contracts_dir="nowhere")
    (at.folder / "rules" / "research.md").write_text("no contract")
    await at.refused(ConfigurationError, "has no front matter", contracts_dir="rules")
    (at.folder / "rules" / "research.md").unlink()
    at.write(good_text("research"))
    assert (await at.claim(contracts_dir="rules")).id.startswith("pc-")


async def test_a_contract_may_be_for_fewer_profiles(desk: Desk) -> None:
    at = await claimant(desk, "architecture", "researcher")
    own = at.folder / "prompts" / "phases"
    own.mkdir(parents=True)
    fields = {"phase": "architecture", "profiles": "[architect]", "artifact": "design.md", "version": "1"}
    (own / "architecture.md").write_text(contract_text(**fields, required_sections="[Design]"))
    told = await at.refused(PermissionDenied, "is for architect, not for a researcher")
    assert told.layer == "phase"
    architect = at.bound("architect", worktree=str(at.folder))
    assert (await at.claim(architect)).phase == "architecture"


async def test_ready_needs_no_artifact_and_records_the_commit(desk: Desk) -> None:
    at = await claimant(desk, "ready")
    told = await at.refused(
        InvalidParams,
        "so no artifact_path, artifact_hash, recommended_next_phase, promote_to",
        artifact_path="docs/tickets/x/ready.md",
        artifact_hash="0" * 64,
        recommended_next_phase="ready",
        promote_to="docs/x.md",
    )
    assert "leave these out" in str(told.hint)
    await at.refused(ValidationFailed, "has version 1", contract_version=2)
    await at.refused(ValidationFailed, "nothing is committed beyond main")
    (at.folder / "login.py").write_text("x = 1\n", encoding="utf-8")
    git(at.folder, "add", "-A")
    git(at.folder, "commit", "-q", "-m", "log in")
    (at.folder / "forgotten.py").write_text("y = 1\n", encoding="utf-8")
    await at.refused(ValidationFailed, "changes that are not committed")
    (at.folder / "forgotten.py").unlink()
    made = await at.claim(project_path=str(at.repository))
    head = git(at.folder, "rev-parse", "HEAD").strip()
    (claim,) = desk.rows(sa.select(phase_claims))
    assert (claim.branch, claim.head) == (f"symphony/{at.issue.identifier}", head)
    assert (claim.worktree, claim.artifact_hash) == (str(at.folder), None)
    (finding,) = desk.rows(sa.select(findings))
    nothing = ("artifact_path", "artifact_hash", "promote_to", "recommended_next_phase")
    assert [finding.payload[name] for name in nothing] == [None] * 4
    assert desk.count(artifacts) == 0
    assert head[:12] in made.message
    assert desk.reload(at.issue).status == "in_progress"
    git(at.folder, "checkout", "-q", "--detach")
    await at.claim()
    assert desk.rows(sa.select(phase_claims).order_by(phase_claims.c.seq))[1].branch is None


async def test_ready_outside_a_repository_is_refused(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    await desk.project("plain", folder)
    issue = await desk.issue(project="plain")
    actor = desk.actor("worker", issue, project="plain")
    arguments = {"completed_phase": "ready", "summary": "done", "project_path": str(folder)}
    await refused(desk, ValidationFailed, "not the root of a git working tree", actor, "complete_phase", **arguments)


class Meanwhile(ThreadPoolExecutor):
    """Does something else just before the files of a claim are read."""

    def __init__(self, desk: Desk, change: sa.Executable) -> None:
        super().__init__(1)
        self._desk = desk
        self._change = change

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        def both() -> Any:
            self._desk.change(self._change)
            return fn(*args, **kwargs)

        return super().submit(both)


@pytest.mark.parametrize(
    "values",
    [{"phase": "grooming"}, {"status": "blocked"}, {"lease_subject": "x", "lease_until_ms": FAR_AWAY_MS}, {"fence": 9}],
    ids=["phase", "status", "lease", "fence"],
)
async def test_what_changes_while_the_files_are_read_counts(desk: Desk, values: dict[str, Any]) -> None:
    at = await claimant(desk, session="s1")
    desk.change(sa.update(issues).values(fence=1))
    executor = Meanwhile(desk, sa.update(issues).values(**values))
    asyncio.get_running_loop().set_default_executor(executor)
    await at.refused(Conflict, at.issue.identifier, fence=1)


async def test_a_person_may_claim_any_phase(desk: Desk) -> None:
    at = await claimant(desk)
    person = desk.actor(None, at.issue, project="repo", as_owner=True, worktree=str(at.folder))
    assert (await at.claim(person)).phase == "research"


async def test_where_no_judge_is_wanted_the_claim_says_what_follows(desk: Desk) -> None:
    at = await claimant(desk, "grooming")
    assert "lets a judge decide" in (await at.claim()).message
    person = desk.person("repo")
    desk.fleet.platform.database.direct(lambda tx: Projects(tx, person).update(unjudged=["grooming"]), write=True)
    assert "moves the issue on" in (await at.claim()).message
