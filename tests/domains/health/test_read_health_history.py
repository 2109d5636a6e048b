"""`read_health_history`: the snapshots of a project as series."""

import pytest

from rookery.core.errors import NotFound, PermissionDenied
from rookery.domains.health.history import read_health_history
from rookery.identity.store import IdentityStore
from tests.domains.runs.told import read
from tests.platform_fixtures import Fleet


async def test_agents_do_not_read_it_and_no_project_has_another_tenants(fleet: Fleet) -> None:
    with pytest.raises(PermissionDenied):
        await read(fleet, read_health_history, fleet.actor(agent="default"))
    await fleet.call(fleet.owner, "record_health_snapshot", counts={"todos": 4})
    fleet.platform.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    theirs = await read(fleet, read_health_history, fleet.actor(tenant="other", as_owner=True))
    assert theirs.snapshots == []
    with pytest.raises(NotFound):
        await read(fleet, read_health_history, fleet.actor(as_owner=True, project="nowhere"))


async def test_without_snapshots_every_count_is_missing(fleet: Fleet) -> None:
    history = await read(fleet, read_health_history)
    assert (history.project, history.snapshots, history.has_folder) == ("default", [], False)
    assert all(metric.points == [] and metric.latest is None for metric in history.metrics)


async def test_counts_are_series_that_go_somewhere(fleet: Fleet) -> None:
    for todos in (4, 4, 9, 12):
        await fleet.call(fleet.owner, "record_health_snapshot", counts={"todos": todos, "hacks": 1})
    history = await read(fleet, read_health_history, days=7)
    metrics = {metric.name: metric for metric in history.metrics}
    assert [value for _, value in metrics["todos"].points] == [4, 4, 9, 12]
    assert (metrics["todos"].direction, metrics["todos"].latest) == ("rising", 12)
    assert (metrics["hacks"].direction, metrics["fixmes"].direction) == ("steady", None)
    assert [each["counts"]["todos"] for each in history.snapshots] == [12, 9, 4, 4]
