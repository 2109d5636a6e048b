"""What is looked at in a project: only its owner says so, and it is recorded."""

from typing import Any

import pytest

from rookery.core.errors import InvalidParams, PermissionDenied
from rookery.domains.health.project_settings import configure_health
from tests.domains.health.clinic import Clinic

pytestmark = pytest.mark.anyio


async def test_agents_cannot_set_what_is_run_on_the_machine(clinic: Clinic) -> None:
    await clinic.open()
    with pytest.raises(PermissionDenied) as refusal:
        await clinic.fleet.platform.calls.run(clinic.agent(), configure_health, {"tests": "true"})
    assert refusal.value.layer == "principal"
    assert "configure_health" not in clinic.fleet.names(clinic.fleet.owner)


@pytest.mark.parametrize(
    "settings",
    [
        {"limit_s": 0},
        {"limit_s": 3601},
        {"large_lines": 0},
        {"tests": "x" * 2001},
        {"test": "pytest"},
        {"exclude": [" "]},
        {"exclude": ["!"]},
        {"exclude": ["x"] * 101},
    ],
)
async def test_bad_settings_are_refused(clinic: Clinic, settings: dict[str, Any]) -> None:
    await clinic.open()
    with pytest.raises(InvalidParams):
        await clinic.configure(**settings)


async def test_what_is_absent_stays_and_lists_are_replaced(clinic: Clinic) -> None:
    await clinic.open()
    first = await clinic.configure()
    assert first.model_dump() == {
        "project": "shop",
        "types": "",
        "tests": "",
        "outdated": "",
        "exclude": [],
        "large_lines": 500,
        "limit_s": 60,
    }
    await clinic.configure(types=" pyright ", exclude=["*.sql", "docs/"])
    changed = await clinic.configure(limit_s=5)
    assert (changed.types, changed.exclude, changed.limit_s) == ("pyright", ["*.sql", "docs/"], 5)
    assert (await clinic.configure(exclude=[], types="")).exclude == []


async def test_setting_it_is_in_the_record(clinic: Clinic) -> None:
    await clinic.open(tests="true")
    found = await clinic.call(clinic.fleet.owner, "list_audit_records", tool="configure_health")
    assert len(found.records) == 1
