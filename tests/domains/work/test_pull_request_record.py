"""A completed task keeps what it proposes, whether or not there is a place to open a pull request."""

from typing import Any, cast

import pytest

from rookery.core.errors import ValidationFailed
from tests.domains.work.workshop import Workshop, git

pytestmark = pytest.mark.anyio


async def shown(workshop: Workshop, task_id: str) -> dict[str, Any]:
    return (await workshop.call(workshop.person(), "get_work_task", task_id=task_id)).pull_request


async def test_a_task_that_has_failed_proposes_nothing(workshop: Workshop) -> None:
    await workshop.open(checks=["false"])
    task = await workshop.work("!write a.txt a")
    assert (task.status, await shown(workshop, task.id)) == ("failed", None)


async def test_the_record_names_branch_base_head_sums_and_risk(workshop: Workshop) -> None:
    await workshop.open()
    base = git(workshop.repository, "rev-parse", "main")
    task = await workshop.work("!write src/a.py def f(): ...", "!commit one", "!append README.md more", "!commit two")
    record = await shown(workshop, task.id)
    assert (record["branch"], record["base_branch"], record["base"]) == (task.branch_name, "main", base)
    assert record["head"] == git(workshop.repository, "rev-parse", task.branch_name)
    assert (record["commits"], record["added"], record["deleted"], record["changed_files"]) == (2, 2, 0, 2)
    assert [file["path"] for file in record["files"]] == ["README.md", "src/a.py"]
    assert (record["risk"], record["risk_level"]) == (10, "low")
    assert record["risk_reasons"][-1] == "code changed and no test did (10)"


async def test_the_settings_of_the_project_decide_on_the_risk(workshop: Workshop) -> None:
    await workshop.open()
    await workshop.call(workshop.person(), "configure_project", sensitive_paths=["billing/"])
    task = await workshop.work("!write billing/pay.py def pay(): ...")
    record = await shown(workshop, task.id)
    assert record["risk_level"] == "medium"
    assert any("billing/pay.py" in reason for reason in record["risk_reasons"])


async def test_commits_on_main_meanwhile_are_no_part_of_it(workshop: Workshop) -> None:
    await workshop.open(install=f"cd {workshop.repository} && git -c user.name=x -c user.email=x@example.org "
                        "commit -q --allow-empty -m meanwhile")  # fmt: skip
    task = await workshop.work("!write a.txt a")
    record = await shown(workshop, task.id)
    assert (record["commits"], record["changed_files"]) == (1, 1)


async def test_what_cannot_be_measured_is_said_and_the_task_is_completed(workshop: Workshop) -> None:
    class TooLarge:
        async def measured(self, *given: Any) -> Any:
            raise ValidationFailed("git's answer is larger than 5,000,000 bytes")

    await workshop.open()
    cast("dict[str, Any]", workshop.fleet.platform.calls.facts)["changes"] = TooLarge()
    task = await workshop.work("!write a.txt a")
    record = await shown(workshop, task.id)
    assert (task.status, record["commits"]) == ("completed", 1)
    assert record["unmeasured"] == "git's answer is larger than 5,000,000 bytes"
