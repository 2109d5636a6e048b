import asyncio
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import InvalidParams, NotFound, PermissionDenied, RookeryError, ValidationFailed
from rookery.domains.tracker.tables import coverage
from tests.domains.tracker.desk import Desk

SEEN = {"file_path": "server/dispatcher.ts", "concept": "error_handling", "status": "covered"}


async def refused(desk: Desk, kind: type[RookeryError], **changes: Any) -> RookeryError:
    with pytest.raises(kind) as caught:
        await desk.call(desk.actor("scanner"), "record_coverage", **{**SEEN, **changes})
    assert caught.value.hint
    assert desk.count(coverage) == 0
    return caught.value


async def test_only_the_scanner_has_it(desk: Desk) -> None:
    for profile in ("worker", "researcher", "judge", "architect", "planner", "intake"):
        with pytest.raises(PermissionDenied):
            await desk.call(desk.actor(profile), "record_coverage", **SEEN)
    assert desk.count(coverage) == 0


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../x.py", "a/../../b", "a/..", "~/x", ".", "./", " ", "a\\b", "a\nb", "a\u202eb", "//a"],
)
async def test_a_path_must_stay_inside_the_project(desk: Desk, path: str) -> None:
    await refused(desk, ValidationFailed, file_path=path)


async def test_values_out_of_bounds_are_refused(desk: Desk) -> None:
    for changes in (
        {"file_path": ""},
        {"file_path": "x" * 1001},
        {"concept": " "},
        {"concept": "x" * 101},
        {"status": "reviewed"},
        {"notes": "x" * 5001},
        {"notes": "a\0b"},
        {"project_id": "other"},
    ):
        await refused(desk, InvalidParams, **changes)


async def test_a_file_with_issues_needs_a_ticket_of_this_project(desk: Desk) -> None:
    await refused(desk, ValidationFailed, status="has_issues")
    await desk.project("other")
    elsewhere = await desk.issue(project="other")
    foreign = await desk.call(desk.stranger, "create_issue", title="theirs")
    told = {
        (await refused(desk, NotFound, status="has_issues", ticket_id=ticket)).message.replace(ticket, "X")
        for ticket in ("SYM-999", "iss-1", "'; DROP TABLE coverage", elsewhere.id, elsewhere.identifier, foreign.id)
    }
    assert told <= {"there is no issue X", "there is no issue X in this project"}
    await refused(desk, NotFound, status="covered", ticket_id="SYM-999")


async def test_what_was_examined_is_recorded_with_its_ticket(desk: Desk) -> None:
    ticket, scanner = await desk.issue(), desk.actor("scanner")
    arguments = {**SEEN, "status": "has_issues", "ticket_id": ticket.identifier.lower(), "notes": "no timeout"}
    found = await desk.call(scanner, "record_coverage", **arguments)
    assert (found.file_path, found.concept, found.status, found.ticket_id) == (
        "server/dispatcher.ts",
        "error_handling",
        "has_issues",
        ticket.identifier,
    )
    row = desk.rows(sa.select(coverage))[0]
    assert (row.ticket_id, row.notes, row.author, row.tenant) == (ticket.id, "no timeout", "scanner", "default")
    assert row.updated_ms == found.updated_ms


async def test_a_later_record_replaces_the_one_of_the_same_file_and_concept(desk: Desk) -> None:
    ticket, scanner = await desk.issue(), desk.actor("scanner")
    await desk.call(
        scanner, "record_coverage", **{**SEEN, "status": "has_issues", "ticket_id": ticket.id, "notes": "bad"}
    )
    await desk.call(scanner, "record_coverage", **{**SEEN, "file_path": "./server//dispatcher.ts"})
    await desk.call(scanner, "record_coverage", **{**SEEN, "concept": "type_safety"})
    await desk.call(scanner, "record_coverage", **{**SEEN, "file_path": "Server/dispatcher.ts"})
    rows = desk.rows(sa.select(coverage).where(coverage.c.concept == "error_handling"))
    found = {row.file_path: (row.status, row.ticket_id, row.notes) for row in rows}
    assert found == {
        "server/dispatcher.ts": ("covered", None, None),
        "Server/dispatcher.ts": ("covered", None, None),
    }
    assert desk.count(coverage) == 3


async def test_projects_and_tenants_keep_their_own_records(desk: Desk) -> None:
    await desk.project("other")
    for actor in (desk.actor("scanner"), desk.actor("scanner", project="other"), desk.stranger):
        await desk.call(actor, "record_coverage", **SEEN)
    rows = desk.rows(sa.select(coverage))
    assert len({row.project_id for row in rows}) == len(rows) == 3


async def test_of_many_who_record_the_same_at_once_one_row_stays(desk: Desk) -> None:
    scanner = desk.actor("scanner")
    calls = [desk.call(scanner, "record_coverage", **SEEN, notes=f"note {n}") for n in range(16)]
    await asyncio.gather(*calls)
    assert desk.count(coverage) == 1
