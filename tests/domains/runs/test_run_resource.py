import json
from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound, PermissionDenied
from rookery.core.resource import Entry
from rookery.domains.runs.resources import LAST, LISTED
from rookery.domains.runs.shown import PAGE_BYTES
from tests.domains.runs.conftest import Ward
from tests.lifecycle.run_rows import said, texts


async def read(ward: Ward, run: str, actor: Actor | None = None) -> list[dict[str, Any]]:
    """The lines of the resource, each of which must be JSON."""
    (part,) = await ward.fleet.platform.calls.read(actor or ward.actor(), f"run://{run}/events")
    assert part.mime_type == "application/x-ndjson"
    assert isinstance(part.text, str)
    return [json.loads(line) for line in part.text.split("\n")[:-1]]


async def entries(ward: Ward, actor: Actor) -> list[Entry]:
    found = ward.fleet.platform.registry.find_resource("run://run-0/events")
    assert found is not None
    declared, _ = found
    assert declared.entries is not None
    return list(await ward.fleet.platform.calls.look_up(actor, declared, "entries", declared.entries, {}))


async def test_a_worker_does_not_read_a_run(ward: Ward) -> None:
    run, worker = ward.start(), ward.actor("worker")
    with pytest.raises(PermissionDenied):
        await read(ward, run, worker)
    with pytest.raises(PermissionDenied):
        await entries(ward, worker)
    assert "run_events" not in {each.name for each in ward.fleet.platform.registry.resources(worker)}


async def test_what_is_closed_or_of_another_tenant_is_as_absent_as_what_never_was(ward: Ward, stranger: Actor) -> None:
    run = ward.start()
    await ward.fleet.call(ward.fleet.owner, "create_project", slug="open")
    await ward.close()
    outside = ward.fleet.actor(profile="judge", project="open")
    for actor in (stranger, outside):
        told = list[str]()
        for name in (run, "run-0"):
            with pytest.raises(NotFound) as caught:
                await read(ward, name, actor)
            told.append(str(caught.value).replace(name, "…"))
        assert told[0] == told[1]
        assert await entries(ward, actor) == []


@pytest.mark.parametrize("name", ["..", "a%2Fb/..", "%00", ""])
async def test_an_address_that_leads_elsewhere_is_none(ward: Ward, name: str) -> None:
    with pytest.raises((NotFound, InvalidParams)):
        await read(ward, name)


async def test_a_run_is_read_line_by_line(ward: Ward) -> None:
    run = ward.start()
    assert await read(ward, run) == []
    ward.rows.append(run, said("first\nsecond \u2028 ✓"), said("third"))
    lines = await read(ward, run)
    assert texts(lines) == ["first\nsecond \u2028 ✓", "third"]
    told = await ward.fleet.call(ward.actor(), "query_run_events", run_id=run)
    assert lines == told.events


async def test_of_a_long_run_the_last_events_are_read(ward: Ward) -> None:
    run = ward.start()
    ward.rows.append(run, *(said(str(number)) for number in range(LAST + 20)))
    assert texts(await read(ward, run)) == [str(number) for number in range(20, LAST + 20)]
    long = "x" * (PAGE_BYTES // 5)
    ward.rows.append(run, *(said(f"{number}{long}") for number in range(9)))
    assert [text[0] for text in texts(await read(ward, run))] == ["5", "6", "7", "8"]


async def test_the_runs_of_the_bound_issue_are_listed_or_else_those_of_the_project(ward: Ward) -> None:
    mine = [ward.start(profile="worker", phase="ready"), ward.start()]
    other = ward.start(issue_id=ward.rows.issue("SYM-002", ward.project))
    ward.rows.start("prj-elsewhere")
    bound = await entries(ward, ward.fleet.actor(profile="judge", issue=ward.issue))
    assert [entry.uri for entry in bound] == [f"run://{run}/events" for run in reversed(mine)]
    assert (bound[1].name, bound[1].title) == (mine[0], "worker, ready, running")
    assert [entry.name for entry in await entries(ward, ward.actor())] == [other, *reversed(mine)]
    for _ in range(LISTED):
        ward.start()
    assert len(await entries(ward, ward.actor())) == LISTED
    assert await read(ward, bound[0].name) == []
