"""What is wrong around an agent: each ends the attempt in a clear state, with one comment however often it is tried."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.domains.tracker.desk import git
from tests.engine.crew import Crew, Started, build


async def no_repository(crew: Crew) -> str:
    (crew.repository / ".git").rename(crew.folder / "elsewhere.git")
    return "is not the root of a git repository"


async def no_base_branch(crew: Crew) -> str:
    await crew.call(crew.person("shop"), "configure_project", base_branch="develop")
    return "the base branch 'develop' is not in"


async def a_hook_that_fails(crew: Crew) -> str:
    crew.set(hooks={"before_run": "echo no database here; exit 3"})
    return "no database here"


async def a_hook_that_never_ends(crew: Crew) -> str:
    crew.set(hooks={"after_create": "sleep 60", "limit_s": 1})
    return "after_create"


async def a_broken_contract(crew: Crew) -> str:
    contract = crew.repository / "prompts" / "phases" / "ready.md"
    contract.parent.mkdir(parents=True)
    contract.write_text("---\nphase: [ready\n---\nBuild it.\n", encoding="utf-8")
    git(crew.repository, "add", "-A")
    git(crew.repository, "commit", "-q", "-m", "a contract")
    return "ready.md"


async def a_contract_for_others(crew: Crew) -> str:
    contract = crew.repository / "prompts" / "phases" / "ready.md"
    contract.parent.mkdir(parents=True)
    text = "---\nphase: ready\nversion: 1\nprofiles: [architect]\nrequires_judge: false\n---\nBuild it.\n"
    contract.write_text(text, encoding="utf-8")
    git(crew.repository, "add", "-A")
    git(crew.repository, "commit", "-q", "-m", "a contract")
    return "ready"


FAULTS = [
    no_repository,
    no_base_branch,
    a_hook_that_fails,
    a_hook_that_never_ends,
    a_broken_contract,
    a_contract_for_others,
]


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS, ids=lambda way: way.__name__)
async def test_a_fault_ends_the_attempt_and_is_told_once(crew: Crew, fault: Any) -> None:
    await crew.open()
    issue = await crew.todo()
    says = await fault(crew)
    for attempt in (1, 2):
        row = await crew.dispatched(issue, attempt=attempt)
        assert (row.state, row.outcome, row.run_id) == ("ended", "failed", None)
        assert says in (row.error or "")
        assert crew.standing(issue) == ("todo", None)
    (comment,) = crew.said(issue)
    assert says in comment
    assert crew.runtime.started == []


@pytest.mark.anyio
async def test_a_fault_that_is_mended_is_told_again_when_it_comes_back_differently(crew: Crew) -> None:
    await crew.open()
    issue = await crew.todo()
    for reason in ("first", "second", "second"):
        crew.set(hooks={"before_run": f"echo {reason}; exit 1"})
        await crew.dispatched(issue)
    assert [("first" in said, "second" in said) for said in crew.said(issue)] == [(True, False), (False, True)]


@pytest.mark.anyio
async def test_a_hook_that_fails_after_the_run_is_told_and_undoes_nothing(crew: Crew) -> None:
    await crew.open(build, hooks={"after_run": "echo could not tidy up; exit 1"})
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    (comment,) = crew.said(issue)
    assert comment.startswith("The hook after the run failed")
    assert "could not tidy up" in comment


@pytest.mark.anyio
async def test_an_agent_may_not_edit_outside_of_its_worktree_whatever_its_mode(crew: Crew, tmp_path: Path) -> None:
    def edits(started: Started) -> Sequence[str]:
        (started.folder / "way-out").symlink_to(tmp_path)
        return [
            f'!use Write {{"file_path": "{crew.repository / "README.md"}"}}',
            '!use Edit {"file_path": "../elsewhere.txt"}',
            '!use MultiEdit {"file_path": "way-out/x.txt"}',
            '!use NotebookEdit {"notebook_path": "/srv/notes.ipynb"}',
            f'!use Write {{"file_path": "{started.folder / "inside.txt"}"}}',
        ]

    await crew.open(edits)
    issue = await crew.todo()
    await crew.dispatched(issue)
    (run,) = crew.runs()
    results = [event.payload for event in crew.events(run.id) if event.subtype == "tool_result"]
    assert [result["is_error"] for result in results] == [True, True, True, True, False]
    assert "is outside of the worktree of this session" in results[0]["text"]
    (comment,) = crew.said(issue)
    assert comment.startswith("The worker tried to write outside of its worktree, and was refused:\n\n- ")
    assert (comment.count("\n- "), "/srv/notes.ipynb is outside" in comment) == (4, True)


@pytest.mark.anyio
async def test_what_changed_in_the_projects_own_checkout_is_told(crew: Crew) -> None:
    def strays(started: Started) -> Sequence[str]:
        (crew.repository / "README.md").write_text("# Mine now\n", encoding="utf-8")
        return build(started)

    await crew.open(strays)
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert crew.came_to(row) == ("ended", "succeeded", None)
    (comment,) = crew.said(issue)
    assert comment.startswith("While an agent worked on this, files changed in the project's own checkout.")
    assert comment.endswith("- `README.md`")


@pytest.mark.anyio
async def test_what_somebody_had_changed_there_before_is_nobodys_fault(crew: Crew) -> None:
    await crew.open(build)
    (crew.repository / "README.md").write_text("# A draft of its owner\n", encoding="utf-8")
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    assert (row.outcome, crew.said(issue)) == ("succeeded", [])
    assert (crew.repository / "README.md").read_text(encoding="utf-8") == "# A draft of its owner\n"


@pytest.mark.anyio
async def test_the_tools_of_a_run_are_computed_recorded_and_handed_over(crew: Crew) -> None:
    await crew.call(crew.owner, "set_profile_tools", profile="worker", disallowed=["complete_phase"])
    await crew.open(lambda started: ["!say hm"])
    issue = await crew.todo()
    row = await crew.dispatched(issue)
    (started,) = crew.runtime.started
    assert started.actor.scope_file == frozenset(row.tools["names"])
    assert "add_comment" in row.tools["names"]
    assert "complete_phase" not in row.tools["names"]
    (warning,) = row.tools["warnings"]
    assert warning.startswith("worker cannot do its work without complete_phase")
    about = next(event.payload for event in crew.events(row.run_id) if event.subtype == "other")
    assert about["warnings"] == [warning]
