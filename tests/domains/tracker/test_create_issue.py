import pytest

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.lifecycle.issue_tables import issues
from tests.domains.tracker.desk import Desk


async def test_a_judge_cannot_create_issues(desk: Desk) -> None:
    with pytest.raises(PermissionDenied):
        await desk.call(desk.actor("judge"), "create_issue", title="more work")
    assert desk.count(issues) == 0


async def test_an_agent_cannot_choose_phase_or_skip_labels(desk: Desk) -> None:
    for label in ("phase:ready", "skip:research", "moved-from:SYM-001"):
        with pytest.raises(InvalidParams, match=label):
            await desk.call(desk.actor("worker"), "create_issue", title="shortcut", labels=["ui", label])
    assert desk.count(issues) == 0


async def test_bad_values_are_refused_by_name(desk: Desk) -> None:
    wrong = {
        "title": ["", "   ", "x" * 501, 7],
        "priority": [0, 5, "high"],
        "labels": ["ui", ["x" * 101], [""], ["l"] * 31],
        "description": ["x" * 50_001],
        "depends_on": [["x"] * 51],
        "status": ["todo"],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(InvalidParams, match=name):
                await desk.call(desk.actor("worker"), "create_issue", **{"title": "fine", name: value})
    assert desk.count(issues) == 0


async def test_a_dependency_must_exist_where_the_agent_may_look(desk: Desk) -> None:
    theirs = await desk.call(desk.stranger, "create_issue", title="theirs")
    for unknown in ("SYM-999", "iss-nothing", "no such thing", theirs.id, "'; DROP TABLE issues; --"):
        with pytest.raises(NotFound):
            await desk.call(desk.actor("worker"), "create_issue", title="later", depends_on=[unknown])
    assert desk.count(issues) == 1


async def test_an_agents_issue_starts_in_the_backlog_and_in_research(desk: Desk) -> None:
    made = await desk.call(desk.actor("worker"), "create_issue", title="  add tests  ", labels=["tests", "tests"])
    assert (made.identifier, made.status, made.labels) == ("DEF-001", "backlog", ["phase:research", "tests"])
    row = desk.reload(made.id)
    assert (row.title, row.priority, row.author, row.project_id) == ("add tests", 3, "worker", desk.owner.project)


async def test_a_persons_issue_is_ready_to_be_worked_on(desk: Desk) -> None:
    made = await desk.call(desk.owner, "create_issue", title="fix login", priority=1)
    assert (made.status, made.labels) == ("todo", ["phase:ready"])
    chosen = await desk.call(desk.owner, "create_issue", title="think first", labels=["phase:research", "ui"])
    assert (chosen.status, chosen.labels) == ("todo", ["phase:research", "ui"])


async def test_a_person_can_choose_one_phase_of_the_pipeline(desk: Desk) -> None:
    for labels in (["phase:research", "phase:ready"], ["phase:later"]):
        with pytest.raises(InvalidParams, match="exactly one phase"):
            await desk.call(desk.owner, "create_issue", title="unclear", labels=labels)


async def test_a_refused_call_leaves_no_gap_in_the_numbers(desk: Desk) -> None:
    worker = desk.actor("worker")
    first = await desk.call(worker, "create_issue", title="one")
    for _ in range(3):
        with pytest.raises(NotFound):
            await desk.call(worker, "create_issue", title="no", depends_on=["DEF-777"])
    second = await desk.call(worker, "create_issue", title="two", depends_on=["def-1", first.id])
    assert (first.identifier, second.identifier) == ("DEF-001", "DEF-002")


async def test_every_project_has_a_prefix_of_its_own(desk: Desk) -> None:
    names = []
    for slug in ("symphony", "symbol", "sym", "9lives", "a", "données"):
        await desk.project(slug) if slug.isascii() else None
        project = slug if slug.isascii() else "default"
        names.append((await desk.call(desk.person(project), "create_issue", title="first")).identifier)
    assert names == ["SYM-001", "SYMB-001", "SYM2-001", "LIV-001", "AX-001", "DEF-001"]


async def test_text_that_no_database_can_store_is_refused(desk: Desk) -> None:
    for text in ("nul \0 inside", "half a \ud800 pair"):
        with pytest.raises(InvalidParams, match="title"):
            await desk.call(desk.owner, "create_issue", title=text)


async def test_any_other_text_comes_back_as_it_was_given(desk: Desk) -> None:
    text = "'; DROP TABLE issues; -- 🦆 \u202e \r\n\t <script> {{7*7}} %s ?"
    made = await desk.call(desk.owner, "create_issue", title="odd", description=text)
    assert (await desk.call(desk.owner, "get_issue", issue_id=made.id)).description == text
