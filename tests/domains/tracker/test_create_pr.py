import asyncio
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, NotFound, PermissionDenied, ValidationFailed
from rookery.core.tool import PROFILES
from rookery.domains.tracker import pr_tools
from rookery.domains.tracker.tables import issue_changes, pr_gates, tracker_projects
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk, git
from tests.domains.tracker.leasing import claimed, run_out
from tests.domains.tracker.reviewing import PASSED, author, refused

ANY_DIFF = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
ANY = {"diff": ANY_DIFF, "branch_name": "work", "base_branch": "main"}


async def test_only_a_worker_with_an_issue_gets_it(desk: Desk) -> None:
    at = await author(desk)
    for profile in sorted(set(PROFILES.values()) - {"worker"}):
        await refused(desk, PermissionDenied, "create_pr", at.bound(profile), "create_pr", **ANY)
    unbound = await refused(desk, PermissionDenied, "none is bound", desk.actor("worker"), "create_pr", **ANY)
    assert unbound.layer == "binding"
    assert "create_pr" in desk.fleet.names(at.actor)
    assert pr_tools.create_pr.deprecated


async def test_an_issue_that_was_moved_away_or_is_gone_is_not_found(desk: Desk) -> None:
    at = await author(desk)
    await desk.project("other")
    project = (await desk.call(desk.owner, "list_projects")).projects
    other = next(each.id for each in project if each.slug == "other")
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(project_id=other))
    await refused(desk, NotFound, "", at.actor, "create_pr", **at.arguments())
    desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(tenant="other"))
    await refused(desk, NotFound, "", at.actor, "create_pr", **at.arguments())


async def test_the_issue_must_be_in_progress(desk: Desk) -> None:
    at = await author(desk)
    for status in ("todo", "review", "blocked", "done", "cancelled"):
        desk.change(sa.update(issues).where(issues.c.id == at.issue.id).values(status=status))
        await refused(desk, Conflict, f"is {status} in phase ready", at.actor, "create_pr", **at.arguments())


async def test_the_issue_must_be_ready(desk: Desk) -> None:
    at = await author(desk, phase="grooming")
    await refused(desk, Conflict, "in phase grooming", at.actor, "create_pr", **at.arguments())


async def test_the_worktree_must_be_the_issues_own(desk: Desk) -> None:
    at, other = await author(desk), await author(desk)
    nowhere = await refused(desk, Conflict, "No worktree", at.bound("worker"), "create_pr", **at.arguments())
    assert "--worktree-path" in str(nowhere.hint)
    theirs = at.bound("worker", worktree=str(other.tree.path))
    await refused(desk, Conflict, f"belongs to {other.issue.identifier}", theirs, "create_pr", **at.arguments())
    escaped = at.bound("worker", worktree=str(at.tree.path), cwd=str(desk.folder))
    await refused(desk, Conflict, "marker file not found", escaped, "create_pr", **at.arguments())
    git(at.repository, "worktree", "remove", "--force", str(at.tree.path))
    await refused(desk, Conflict, "does not exist any more", at.actor, "create_pr", **ANY)


async def test_what_is_no_diff_is_refused(desk: Desk) -> None:
    at = await author(desk)
    plain = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
    for diff in ("", "done!", plain, ANY_DIFF + "@@ -1 +1,9 @@\n a\n"):
        told = await refused(desk, ValidationFailed, "", at.actor, "create_pr", **at.arguments(diff=diff))
        assert "git diff" in str(told.hint)
    assert at.status() == "in_progress"


WRONG: list[tuple[str, Any]] = [
    ("diff", "x" * 5_000_001),
    ("branch_name", ""),
    ("branch_name", "two words"),
    ("branch_name", "--force"),
    ("base_branch", "main..other"),
    ("base_branch", "x" * 251),
    ("gate_results", [{"command": "make"}]),
    ("gate_results", [{**PASSED, "exit_code": 2**40}]),
    ("gate_results", [{**PASSED, "label": "x" * 101}]),
    ("gate_results", [{**PASSED, "output": "x" * 1_000_001}]),
    ("gate_results", [PASSED] * 51),
    ("gate_results", [{**PASSED, "passed": True}]),
    ("fence", 0),
    ("status", "merged"),
]


async def test_wrong_arguments_are_named(desk: Desk) -> None:
    at = await author(desk)
    for field, value in WRONG:
        await refused(desk, InvalidParams, field, at.actor, "create_pr", **at.arguments(**{field: value}))


async def test_a_branch_cannot_be_merged_into_itself(desk: Desk) -> None:
    at = await author(desk)
    await refused(desk, ValidationFailed, "into itself", at.actor, "create_pr", **at.arguments(branch_name="main"))


async def test_a_late_worker_is_refused_by_its_number(desk: Desk) -> None:
    await desk.git_project()
    issue = await desk.issue(project="repo", status="todo")
    tree = desk.worktree(desk.folder / "repo", issue)
    tree.commit("a.py", "a\n")
    there = {"project": "repo", "worktree": str(tree.path)}
    late = await claimed(desk, issue, "one", **there)
    given = {**ANY, "diff": git(tree.path, "diff", "main...HEAD"), "branch_name": tree.branch}
    run_out(desk, issue)
    holder = await claimed(desk, issue, "two", **there)
    await refused(desk, Conflict, "its number is 2, not 1", late, "create_pr", **given, fence=1)
    bystander = desk.actor("worker", issue, session="three", **there)
    await refused(desk, Conflict, "is claimed by", bystander, "create_pr", **given)
    assert (await desk.call(holder, "create_pr", **given, fence=2)).revision == 1
    assert desk.reload(issue).lease_until_ms is None


async def test_there_is_one_open_pull_request_at_a_time(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    await refused(desk, Conflict, "is review", at.actor, "create_pr", **at.arguments())
    for status in ("todo", "in_progress"):
        await desk.call(at.person, "set_issue_status", issue_id=at.issue.id, status=status)
    await refused(desk, Conflict, "revision 1", at.actor, "create_pr", **at.arguments())
    await desk.call(at.bound("judge"), "reject_pr")
    assert at.status() == "in_progress"
    assert (await at.open()).revision == 2
    assert [row.status for row in at.prs()] == ["rejected", "open"]


async def test_of_several_at_once_one_opens_it(desk: Desk) -> None:
    at = await author(desk)
    ends = await asyncio.gather(*(at.open() for _ in range(6)), return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Conflict"] * 5 + ["Opened"]
    assert len(at.prs()) == 1
    assert at.status() == "review"


async def test_a_pull_request_keeps_the_diff_its_counts_its_gates_and_its_risk(desk: Desk) -> None:
    at = await author(desk)
    at.tree.commit("tests/test_login.py", "def test_it():\n    assert True\n")
    at.tree.commit("README.md", "# A project\n\nMore.\n")
    lint = {"command": "make lint", "label": "Lint", "exit_code": 1, "output": "x" * 150_000 + "end", "required": False}
    opened = await at.open(gate_results=[PASSED, lint])
    assert opened.model_dump() == {
        "revision": 1,
        "stats": {"changed_files": 3, "added": 6, "deleted": 0},
        "risk_score": 20,
        "risk_level": "low",
        "reasons": ["6 changed lines in 3 files (0)", "optional gates failed: Lint (20)"],
    }
    (row,) = at.prs()
    assert (row.status, row.branch, row.base, row.diff) == ("open", at.tree.branch, "main", at.diff)
    assert (row.risk_score, row.risk_level, row.source_lines) == (20, "low", 2)
    assert (row.subject, row.profile, row.judged_by) == (at.actor.subject, "worker", None)
    assert row.stats["files"][0] == {"path": "README.md", "status": "modified", "added": 2, "deleted": 0}
    assert row.stats["files"][2]["test"] is True
    gates = desk.rows(sa.select(pr_gates).order_by(pr_gates.c.position))
    assert [(gate.label, gate.exit_code, gate.required) for gate in gates] == [("Tests", 0, True), ("Lint", 1, False)]
    assert (len(gates[1].output), gates[1].output[-3:]) == (100_000, "end")
    assert at.status() == "review"
    shown = (await desk.call(at.bound("judge"), "get_issue")).model_dump()
    assert shown["pr"]["revision"] == 1
    assert "diff" not in shown["pr"]


async def test_the_history_names_the_pull_request_and_the_move(desk: Desk) -> None:
    at = await author(desk)
    await at.open()
    mine = sa.select(issue_changes).where(issue_changes.c.issue_id == at.issue.id).order_by(issue_changes.c.seq)
    assert [(row.field, row.old, row.new, row.author) for row in desk.rows(mine)][-2:] == [
        ("pr", None, "open", "worker"),
        ("status", "in_progress", "review", "worker"),
    ]


async def test_a_gate_that_the_project_requires_is_required_whatever_is_said(desk: Desk) -> None:
    at = await author(desk)
    gates = [{"command": "make test", "label": "Tests", "required": True}]
    gates.append({"command": "make lint", "label": "Lint", "required": False})
    await desk.call(at.person, "configure_project", gates=gates)
    told = await refused(desk, ValidationFailed, "Tests (make test)", at.actor, "create_pr", **at.arguments())
    assert "run them" in str(told.hint)
    failed = {**PASSED, "command": " make test ", "exit_code": 2, "required": False}
    opened = await at.open(gate_results=[failed])
    assert (opened.risk_score, opened.risk_level) == (100, "high")
    assert desk.rows(sa.select(pr_gates.c.required))[0].required is True


async def test_the_projects_thresholds_and_sensitive_paths_decide_the_risk(desk: Desk) -> None:
    at = await author(desk)
    limits = {"lowLines": 0, "highLines": 2}
    await desk.call(at.person, "configure_project", sensitive_paths=["src/*"], risk_thresholds=limits)
    opened = await at.open()
    assert (opened.risk_score, opened.risk_level) == (100, "high")
    assert opened.reasons[1:] == ["sensitive files: src/login.py (30)", "code changed and no test did (10)"]


async def test_settings_of_another_time_do_no_harm(desk: Desk) -> None:
    at = await author(desk)
    mine = tracker_projects.c.project_id == at.issue.project_id
    desk.change(sa.update(tracker_projects).where(mine).values(settings={"unknown": 1}))
    assert (await at.open()).risk_score == 10


async def test_a_name_in_another_alphabet_and_a_binary_file_are_kept_as_they_are(desk: Desk) -> None:
    at = await author(desk)
    (at.tree.path / "bild.png").write_bytes(bytes(range(256)))
    at.tree.commit("docs/übersicht mit 日本.md", "neu\n")
    await at.open()
    files = {file["path"]: file for file in at.prs()[0].stats["files"]}
    assert files["docs/übersicht mit 日本.md"]["added"] == 1
    assert files["bild.png"]["binary"] is True
