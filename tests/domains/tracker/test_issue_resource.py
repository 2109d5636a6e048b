"""issue://{identifier} and what was claimed for it, as callers read them."""

from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.resource import Entry
from rookery.domains.tracker.resources import LISTED
from rookery.domains.tracker.sections import headings
from rookery.domains.tracker.tables import artifacts, comments, findings
from rookery.lifecycle.issue_tables import issues
from rookery.lifecycle.run_store import NewRun, Runs
from rookery.lifecycle.suite_tables import test_health
from tests.domains.tracker.claimant import claimant, good_text
from tests.domains.tracker.desk import Desk


async def read(desk: Desk, actor: Actor, uri: str) -> str:
    (part,) = await desk.fleet.platform.calls.read(actor, uri)
    assert part.mime_type == "text/markdown"
    assert isinstance(part.text, str)
    return part.text


async def entries(desk: Desk, actor: Actor, uri: str) -> list[Entry]:
    found = desk.fleet.platform.registry.find_resource(uri)
    assert found is not None
    declared, _ = found
    assert declared.entries is not None
    return list(await desk.fleet.platform.calls.look_up(actor, declared, "entries", declared.entries, {}))


async def completed(desk: Desk, actor: Actor, uri: str, name: str, typed: str) -> list[Any]:
    found = desk.fleet.platform.registry.find_resource(uri)
    assert found is not None
    declared, _ = found
    completer = declared.complete[name]
    look = lambda ctx: completer(ctx, typed, {})  # noqa: E731
    return await desk.fleet.platform.calls.look_up(actor, declared, "complete", look, {name: typed})


def sections(text: str) -> list[str]:
    return [heading for level, heading in headings(text) if level == 2]


@pytest.mark.parametrize("rest", ["", "/artifacts/research"])
async def test_an_agent_without_the_right_reads_nothing(desk: Desk, rest: str) -> None:
    issue = await desk.issue()
    with pytest.raises(PermissionDenied):
        await read(desk, desk.fleet.actor(), f"issue://{issue.identifier}{rest}")
    assert "issue" not in {each.name for each in desk.fleet.platform.registry.resources(desk.fleet.actor())}


@pytest.mark.parametrize("rest", ["", "/artifacts/research"])
async def test_what_another_tenant_or_a_closed_project_has_is_as_absent_as_what_never_was(
    desk: Desk, rest: str
) -> None:
    await desk.project("secret")
    hidden = await desk.issue(project="secret")
    await desk.call(desk.owner, "set_project_members", project="secret", agents=[])
    for actor in (desk.stranger, desk.actor("worker")):
        told = set[tuple[str, str | None]]()
        for name in (hidden.identifier, hidden.id, "SEC-999", "nonsense"):
            with pytest.raises(NotFound) as caught:
                await read(desk, actor, f"issue://{name}{rest}")
            told.add((caught.value.message.replace(name, "X"), caught.value.hint))
        assert len(told) == 1
        assert await entries(desk, actor, "issue://X-1") == []
        assert await completed(desk, actor, "issue://X-1", "identifier", "") == []


@pytest.mark.parametrize("name", ["..", "a%2F..%2Fb", "%00", "x" * 101, "%20"])
async def test_an_address_that_is_none_is_refused(desk: Desk, name: str) -> None:
    with pytest.raises((NotFound, InvalidParams)):
        await read(desk, desk.owner, f"issue://{name}")


async def test_an_artifact_needs_a_phase_and_a_claim(desk: Desk) -> None:
    issue = await desk.issue(phase="research")
    worker = desk.actor("worker", issue)
    with pytest.raises(InvalidParams, match="phase"):
        await read(desk, worker, f"issue://{issue.identifier}/artifacts/nonsense")
    for phase in ("research", "ready"):
        with pytest.raises(NotFound, match=f"has no claimed artifact of {phase}"):
            await read(desk, worker, f"issue://{issue.identifier}/artifacts/{phase}")
    assert await entries(desk, worker, "issue://X-1/artifacts/research") == []
    assert await entries(desk, desk.actor("worker"), "issue://X-1/artifacts/research") == []


async def test_it_is_read_by_identifier_and_by_id(desk: Desk) -> None:
    issue = await desk.issue(description="It says *no*.")
    judge = desk.actor("judge")
    told = await read(desk, judge, f"issue://{issue.identifier}")
    assert told.startswith("# DEF-001: login fails\n\n- **Project:** default\n- **Status:** in_progress\n")
    assert "## Description\n\n> It says *no*.\n" in told
    for name in (issue.id, "def-1", "DEF-0001", "%20DEF-1%20"):
        assert await read(desk, judge, f"issue://{name}") == told


async def test_everything_that_was_recorded_is_there(desk: Desk) -> None:
    needed = await desk.issue("first", status="done")
    issue = await desk.issue("second", labels=["ui"], depends_on=[needed.identifier], status="todo")
    worker = desk.actor("worker", issue, session="s-1")
    await desk.call(worker, "claim_issue", issue_id=issue.identifier)
    await desk.call(worker, "add_comment", content="# looking at it\n\n```")
    await desk.call(worker, "add_finding", category="bug", summary="a race", details="two at once", files=["src/a.py"])
    pattern = "Locks are taken in the order of their names, or two writers wait for each other for ever."
    await desk.call(worker, "add_learning", pattern=pattern, applies_to=["src/**"], learning_type="gotcha")
    run = NewRun(project_id=issue.project_id, issue_id=issue.id, profile="worker", phase="ready")
    started = desk.fleet.platform.database.direct(lambda tx: Runs(tx, "default").start(run), write=True)
    told = await read(desk, worker, f"issue://{issue.identifier}")
    assert sections(told) == ["Description", "Depends on", "Findings", "Learnings", "Comments", "Runs", "History"]
    for expected in (
        "- **Labels:** `ui`\n",
        "- **Held by:** default (worker) until ",
        "- DEF-001 · done · first\n",
        "> a race\n\nDetails:\n\n> two at once\n\nFiles: `src/a.py`\n",
        f"### gotcha · quality 50\n\n> {pattern}\n\nApplies to: `src/**`\n",
        "> # looking at it\n>\n> ```\n",
        f"- {started.id} · worker · ready · running · $0.0000 · ",
        "status: `todo` → `in_progress`",
    ):
        assert expected in told


async def test_subtasks_name_their_parent_and_the_parent_its_subtasks(desk: Desk) -> None:
    issue = await desk.issue()
    child = await desk.call(desk.actor("worker", issue), "create_subtask", title="a part")
    told = await read(desk, desk.owner, f"issue://{issue.identifier}")
    assert "- **Status:** blocked (waits for subtasks)\n" in told
    assert f"## Subtasks\n\n- {child.identifier} · todo · a part\n" in told
    assert f"- **Parent:** {issue.identifier}\n" in await read(desk, desk.owner, f"issue://{child.identifier}")


async def test_tests_that_outgrow_the_code_are_a_warning(desk: Desk) -> None:
    issue = await desk.issue()
    row = {"tenant": "default", "project_id": issue.project_id, "issue_id": issue.id, "author": "worker", "at_ms": 1}
    for count, duration in ((100, 1000), (101, 1900)):
        desk.change(sa.insert(test_health).values(test_count=count, execution_time_ms=duration, **row))
    calm = await read(desk, desk.owner, f"issue://{issue.identifier}")
    assert "## Test health\n\n- **Test runs looked at:** 2\n- **Tests:** 101, +1 %\n" in calm
    assert "Warning" not in calm
    desk.change(sa.insert(test_health).values(test_count=102, execution_time_ms=2000, **row))
    bloated = await read(desk, desk.owner, f"issue://{issue.identifier}")
    assert "- **Warning:** the project's tests outgrow its code" in bloated
    assert "**Warning: the tests of this project outgrow its code.**" in bloated
    assert "- the time per run went from 1000 ms to 2000 ms" in bloated


async def test_claims_do_not_drown_in_findings(desk: Desk) -> None:
    author = await claimant(desk)
    await author.claim(open_questions=["who decides?"])
    row = {"tenant": "default", "issue_id": author.issue.id, "author": "x", "subject": "x", "created_ms": 1}
    for number in range(60):
        payload = {"summary": f"finding {number}", "details": None, "files": []}
        desk.change(sa.insert(findings).values(id=f"fnd-{number}", category="gap", payload=payload, **row))
    told = await read(desk, author.actor, f"issue://{author.issue.identifier}")
    assert "### research claimed by researcher · " in told
    assert "Open questions:\n\n- who decides?\n" in told
    assert "## Findings\n\nThe newest 50 of 60.\n" in told
    assert "> finding 9\n" not in told
    assert "> finding 10\n" in told


async def test_a_judge_reads_exactly_what_was_claimed_when_the_worktree_is_gone(desk: Desk) -> None:
    author = await claimant(desk)
    text = good_text("research") + "\r\n\ttrailing  \n\n"
    author.write(text)
    await author.claim()
    author.file.unlink()
    judge = author.bound("judge")
    address = f"issue://{author.issue.identifier}/artifacts/research"
    assert await read(desk, judge, address) == text
    assert [entry.uri for entry in await entries(desk, judge, address)] == [address]
    author.write(good_text("research") + "second")
    await author.claim()
    assert (await read(desk, judge, address)).endswith("second")
    assert desk.count(artifacts) == 2
    shown = await read(desk, judge, f"issue://{author.issue.identifier}")
    assert f"`issue://{author.issue.identifier}/artifacts/<phase>`" in shown


async def test_the_verdicts_of_judges_are_there_with_what_to_fix(desk: Desk) -> None:
    author = await claimant(desk)
    await author.claim()
    digest = author.write(author.file.read_text())
    judge = author.bound("judge")
    await desk.call(
        judge, "reject_phase", phase="research", artifact_hash=digest, reason="# thin", fix_instructions="measure it"
    )
    told = await read(desk, author.actor, f"issue://{author.issue.identifier}")
    assert "### research rejected by judge · " in told
    assert "> # thin\n\nTo fix:\n\n> measure it\n" in told
    assert sections(told).count("Claims and verdicts") == 1


async def test_the_newest_open_issues_of_the_bound_project_are_listed(desk: Desk) -> None:
    await desk.project("other")
    await desk.issue("elsewhere", project="other")
    await desk.issue("finished", status="done")
    shown = [await desk.issue(f"issue {number}", status="todo") for number in range(2)]
    found = await entries(desk, desk.actor("worker"), "issue://X-1")
    assert [entry.uri for entry in found] == [f"issue://{issue.identifier}" for issue in reversed(shown)]
    assert (found[0].title, found[0].description) == ("issue 1", "todo, phase:ready, P3")
    values = dict(zip(issues.c.keys(), desk.reload(shown[0]), strict=True))
    for number in range(100, 100 + LISTED):
        new = {"id": f"iss-{number}", "identifier": f"DEF-{number}", "number": number}
        desk.change(sa.insert(issues).values(**{**values, **new}))
    found = await entries(desk, desk.actor("worker"), "issue://X-1")
    assert len(found) == LISTED
    assert await read(desk, desk.owner, found[-1].uri)


async def test_an_identifier_is_completed_within_the_project(desk: Desk) -> None:
    await desk.project("other")
    await desk.issue(project="other")
    for status in ("todo", "done"):
        await desk.issue(status=status)
    worker = desk.actor("worker")
    for typed in ("", "d", "DEF", "def-0", " DEF-00"):
        assert await completed(desk, worker, "issue://X-1", "identifier", typed) == ["DEF-002", "DEF-001"]
    assert await completed(desk, worker, "issue://X-1/artifacts/ready", "identifier", "DEF-001") == ["DEF-001"]
    for typed in ("OTH", "%", "_", "DEF-003", "DEF\\"):
        assert await completed(desk, worker, "issue://X-1", "identifier", typed) == []


async def test_of_many_comments_the_newest_are_shown_and_all_are_counted(desk: Desk) -> None:
    issue = await desk.issue()
    row = {"tenant": "default", "issue_id": issue.id, "author": "worker", "subject": "x", "created_ms": 1}
    for number in range(51):
        desk.change(sa.insert(comments).values(id=f"cmt-{number}", content=f"comment {number}.", **row))
    told = await read(desk, desk.owner, f"issue://{issue.identifier}")
    assert "## Comments\n\nThe newest 50 of 51.\n" in told
    assert "> comment 0.\n" not in told
