"""What the demo tells, above all when something goes wrong: that is when somebody reads it."""

from collections.abc import Callable

import pytest

from rookery.db.tx import Tx
from rookery.demo.happenings import happenings
from rookery.domains.tracker.advance import orchestrator
from rookery.domains.tracker.store import Issues
from rookery.engine.dispatches import Dispatches, NewDispatch
from tests.platform_fixtures import Fleet

pytestmark = pytest.mark.anyio


@pytest.fixture
def fleet(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Fleet:
    return make_fleet(prepared_database_url)


def lines(fleet: Fleet, project_id: str) -> list[tuple[str, str]]:
    told = fleet.platform.database.direct(lambda tx: happenings(tx, project_id))
    return [(each.who, each.what) for each in told]


async def test_an_attempt_that_fails_is_told_with_its_error(fleet: Fleet) -> None:
    owner, issue = fleet.owner, await fleet.issue("login fails")
    project = owner.project or ""

    def fail(tx: Tx) -> None:
        store = Dispatches(tx, owner.tenant)
        new = NewDispatch(
            project_id=project, work="phase", role="worker", agent="ada", issue_id=issue, phase="ready", attempt=2
        )
        row = store.queue(new)
        assert row is not None
        store.begin(row)
        store.end(row.id, "failed", "the disk\nis full " + "x" * 500)

    fleet.platform.database.direct(fail, write=True)
    told = lines(fleet, project)
    assert ("owner", "makes an issue, DEF-001: login fails") in told
    began, ended = (line for line in told if line[0] == "worker")
    assert began == ("worker", "begins to build DEF-001 (attempt 2)")
    assert ended[1].startswith("its run ended: failed. the disk is full xxx")
    assert len(ended[1]) < 200


async def test_a_blocked_issue_is_told_with_what_the_orchestrator_wrote(fleet: Fleet) -> None:
    owner, issue = fleet.owner, await fleet.issue("login fails")
    project = owner.project or ""

    def block(tx: Tx) -> None:
        store = Issues(tx, orchestrator(owner.tenant, project, owner.project_slug or ""))
        row = store.ours(issue)
        row = store.move(row, "in_progress", "orchestrator", why="a test")
        store.move(row, "blocked", "orchestrator", why="a test", blocked_on="person")
        store.comment(row, "A person has to look at it.")

    fleet.platform.database.direct(block, write=True)
    await fleet.call(fleet.actor(as_owner=True, issue=issue), "add_comment", content="I look at it.")
    assert [line for line in lines(fleet, project) if line[0] != "owner"] == [
        ("orchestrator", "sets DEF-001 to blocked"),
        ("orchestrator", "writes on DEF-001: A person has to look at it."),
    ]


async def test_what_happens_elsewhere_is_not_told(fleet: Fleet) -> None:
    await fleet.issue()
    assert lines(fleet, "prj-other") == []
