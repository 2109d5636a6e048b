"""How the work of a project is prepared and checked: only its owner says so, and it is recorded."""

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.domains.work.project_settings import configure_work
from tests.domains.work.workshop import Workshop


@pytest.mark.anyio
async def test_agents_cannot_set_what_is_run_on_the_machine(workshop: Workshop) -> None:
    await workshop.open()
    with pytest.raises(PermissionDenied) as refusal:
        await workshop.fleet.platform.calls.run(workshop.agent(), configure_work, {"checks": ["true"]})
    assert refusal.value.layer == "principal"
    assert "configure_work" not in workshop.fleet.names(workshop.fleet.owner)


@pytest.mark.anyio
@pytest.mark.parametrize("settings", [{"checks": [" "]}, {"limit_s": 0}, {"check": "x"}, {"checks": ["x"] * 51}])
async def test_bad_settings_are_refused(workshop: Workshop, settings: dict[str, object]) -> None:
    await workshop.open()
    with pytest.raises(InvalidParams):
        await workshop.configure(**settings)


@pytest.mark.anyio
async def test_what_is_absent_stays_and_lists_are_replaced(workshop: Workshop) -> None:
    await workshop.open()
    first = await workshop.configure()
    assert (first.project, first.install, first.checks, first.limit_s) == ("shop", "", [], 900)
    await workshop.configure(install="make deps", checks=["make test", " make lint "])
    changed = await workshop.configure(limit_s=60)
    assert (changed.install, changed.checks, changed.limit_s) == ("make deps", ["make test", "make lint"], 60)
    assert (await workshop.configure(checks=[], install="")).checks == []


@pytest.mark.anyio
async def test_setting_it_is_in_the_record(workshop: Workshop) -> None:
    await workshop.open(checks=["true"])
    found = await workshop.call(workshop.fleet.owner, "list_audit_records", tool="configure_work")
    assert len(found.records) == 1
