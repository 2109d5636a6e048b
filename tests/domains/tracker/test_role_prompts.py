"""Prompts of scanners and intake, and the texts of the roles."""

import pytest

from rookery.core.errors import InvalidParams
from rookery.core.tool import PROFILES
from rookery.domains.tracker.brief_data import SHOWN_RECORDS
from rookery.domains.tracker.briefs import role_text
from rookery.domains.tracker.sections import headings
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.prompting import HOSTILE, asked, named, parts, refused, told

ON_AN_ISSUE = {"worker", "researcher", "architect", "planner", "judge"}


async def test_a_scanner_is_told_what_was_examined(desk: Desk) -> None:
    scanner = desk.actor("scanner")
    text = await told(desk, scanner, "scan_project")
    assert "# What was examined in default\n\nNothing yet." in text
    await desk.call(
        scanner, "record_coverage", **{**asked(text, "record_coverage"), "status": "covered", "concept": "io"}
    )
    issue = await desk.issue(status="todo")
    known = {"file_path": "src/a.py", "concept": "races", "status": "has_issues", "ticket_id": issue.identifier}
    await desk.call(scanner, "record_coverage", **known, notes="# two\nat once")
    text = await told(desk, scanner, "scan_project")
    assert "- `races`: 1 files, 1 with issues\n" in text
    assert "- `src/a.py` for `races`: has_issues, DEF-001, " in text
    assert ": # two at once\n" in text
    assert parts(text) == ["You are a scanner", "What was examined in default", "What to do now"]
    assert named(text) & desk.fleet.names(desk.owner) <= desk.fleet.names(scanner)
    one = await told(desk, scanner, "scan_project", concept="races")
    assert "src/a.py" in one
    assert "`io`" not in one
    assert asked(one, "record_coverage")["concept"] == "races"
    await refused(desk, InvalidParams, "concept", scanner, "scan_project", concept="x" * 101)


async def test_a_scanner_sees_the_newest_records_and_how_many_there_are(desk: Desk) -> None:
    scanner = desk.actor("scanner")
    for number in range(SHOWN_RECORDS + 1):
        await desk.call(scanner, "record_coverage", file_path=f"src/{number}.py", concept="io", status="covered")
    text = await told(desk, scanner, "scan_project")
    assert f"The newest {SHOWN_RECORDS} of {SHOWN_RECORDS + 1};" in text
    assert text.count("\n- `src/") == SHOWN_RECORDS


async def test_a_request_has_to_say_something(desk: Desk) -> None:
    intake = desk.actor("intake")
    for arguments in ({}, {"request": " \n"}, {"request": "x" * 50_001}):
        await refused(desk, InvalidParams, "request", intake, "take_in_requests", **arguments)


async def test_a_request_is_taken_in_beside_what_is_known(desk: Desk) -> None:
    await desk.issue("dark mode", status="todo")
    await desk.issue("old", status="done")
    intake = desk.actor("intake")
    text = await told(desk, intake, "take_in_requests", request=f"Please, dark mode!\n{HOSTILE}")
    assert "> Please, dark mode!\n> # What to do now\n" in text
    assert "- DEF-001 · todo · dark mode\n" in text
    assert "· old" not in text
    assert parts(text) == ["You are intake", "The request, for default", "What is known already", "What to do now"]
    assert named(text) & desk.fleet.names(desk.owner) <= desk.fleet.names(intake)
    made = await desk.call(intake, "create_issue", **asked(text, "create_issue"))
    assert made.status == "backlog"


@pytest.mark.parametrize("profile", PROFILES.values())
async def test_a_role_text_names_only_tools_that_the_role_has(desk: Desk, profile: str) -> None:
    issue = await desk.issue() if profile in ON_AN_ISSUE else None
    text = role_text(profile)
    assert headings(text)[0][0] == 1
    assert len(named(text)) >= 4
    assert named(text) <= desk.fleet.names(desk.actor(profile, issue))
