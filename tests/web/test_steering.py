"""The buttons of schedules and workflows: the same for both, whoever presses them."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from rookery.web.signed_in import form_token
from tests.web.crew import person
from tests.web.guest import Guest
from tests.web.test_schedules_pages import make as make_schedule
from tests.web.test_workflow_pages import make as make_workflow
from tests.web.test_workflow_pages import run as run_workflow


@dataclass(frozen=True)
class Kind:
    """Something that is steered: how one is made, where they all are, and what turns it on again."""

    make: Callable[[Guest], Awaitable[str]]
    home: str
    below: str
    on: str


KINDS = [
    Kind(make_schedule, "/automation", "/automation/schedules", "resume"),
    Kind(make_workflow, "/automation/workflows", "/automation/workflows", "activate"),
]


@pytest.fixture(params=KINDS, ids=["schedule", "workflow"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


async def pressed(guest: Guest, address: str) -> tuple[int, dict[str, str]]:
    """What htmx is answered."""
    headers = {"HX-Request": "true", "X-CSRF-Token": form_token(guest.token or "")}
    answer = await guest.client.post(address, headers=headers)
    return answer.status_code, dict(answer.headers)


async def test_it_is_turned_off_on_and_deleted(owner: Guest, kind: Kind) -> None:
    at = f"{kind.below}/{await kind.make(owner)}"
    for verb, badge in (("pause", "paused"), (kind.on, "active")):
        assert (await owner.post(f"{at}/{verb}")).headers["location"] == at
        assert f'<span class="badge {badge}">' in (await owner.get(at)).text
    assert (await owner.post(f"{at}/delete")).headers["location"] == kind.home
    assert (await owner.get(at)).status_code == 404


async def test_the_project_of_the_page_stays_in_its_address(owner: Guest, kind: Kind) -> None:
    at = f"{kind.below}/{await kind.make(owner)}"
    assert (await owner.post(f"{at}/pause?project=default")).headers["location"] == f"{at}?project=default"
    assert (await owner.post(f"{at}/delete?project=default")).headers["location"] == f"{kind.home}?project=default"


async def test_a_viewer_presses_none_of_them(owner: Guest, kind: Kind) -> None:
    at = f"{kind.below}/{await kind.make(owner)}"
    viewer = person(owner, "viewer")
    for verb in ("pause", kind.on, "delete"):
        assert (await viewer.post(f"{at}/{verb}")).status_code == 403
    assert '<span class="badge active">' in (await owner.get(at)).text


async def test_what_is_not_there_is_not_found(owner: Guest, kind: Kind) -> None:
    for verb in ("pause", kind.on, "delete"):
        assert (await owner.post(f"{kind.below}/gone/{verb}")).status_code == 404


async def test_a_live_page_stays_and_fetches_its_parts_and_another_is_loaded_anew(owner: Guest) -> None:
    schedule, workflow = [f"{kind.below}/{await kind.make(owner)}" for kind in KINDS]
    run = await run_workflow(owner, workflow.rpartition("/")[2], repo="shop")
    for live in (schedule, run):
        status, headers = await pressed(owner, f"{live}/pause")
        assert (status, set(json.loads(headers["hx-trigger"]))) == (204, {"notice", "automation"})
    status, headers = await pressed(owner, f"{workflow}/pause")
    assert (status, headers["hx-redirect"]) == (204, workflow)
