"""A look at a project's code: real commands in a real folder, with limits."""

import asyncio
import os
import time
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict, NotFound, PermissionDenied, RequestCancelled, ValidationFailed
from rookery.domains.health.collecting import PROBES
from rookery.domains.health.tables import health_collections
from rookery.domains.schedules.action import Action
from rookery.domains.schedules.improving import improve
from tests.domains.health.clinic import PROJECT, Clinic, Watcher, gone, there

pytestmark = pytest.mark.anyio
TOOL = "collect_health"


async def test_a_project_that_is_closed_or_foreign_or_not_there_is_not_looked_at(clinic: Clinic) -> None:
    await clinic.open(tests="touch ran")
    outsider = await clinic.shut_out("eve")
    for actor, project in ((outsider, PROJECT), (clinic.stranger, PROJECT), (clinic.agent(), "nowhere")):
        with pytest.raises(NotFound):
            await clinic.collect(actor, project_id=project)
    assert not (clinic.code / "ran").exists()


async def test_an_agent_without_the_right_runs_nothing(clinic: Clinic) -> None:
    await clinic.open(tests="touch ran")
    await clinic.call(clinic.fleet.owner, "create_agent", name="ada", permissions=["ping"])
    with pytest.raises(PermissionDenied):
        await clinic.collect(clinic.agent("ada"))
    assert not (clinic.code / "ran").exists()


async def test_a_project_without_a_folder_is_refused(clinic: Clinic) -> None:
    with pytest.raises(ValidationFailed, match="project default has no folder"):
        await clinic.collect(clinic.agent(project="default"))


async def test_without_any_command_only_the_source_is_looked_at(clinic: Clinic) -> None:
    await clinic.open()
    clinic.write("a.py", "# TODO\n# FIXME\n# FIXME\n" + "x\n" * 500)
    found = await clinic.collect()
    assert found.missing == {
        probe: f"no command is set; the owner sets one: rookery health settings --{probe} COMMAND"
        for probe in ("types", "tests", "outdated")
    }
    counts = {name: value for name, value in found.snapshot.items() if name.endswith("_count")}
    assert counts == {
        "tsc_error_count": None,
        "test_failure_count": None,
        "todo_count": 1,
        "fixme_count": 2,
        "hack_count": 0,
        "large_file_count": 1,
        "outdated_dep_count": None,
    }
    assert found.samples[0] == "a.py:1: # TODO"


async def test_every_probe_counts_and_the_snapshot_is_kept(clinic: Clinic) -> None:
    await clinic.open(
        types="echo '3 errors, 0 warnings'; exit 1",
        tests="echo '2 failed, 8 passed'; exit 1",
        outdated='echo \'[{"name": "a"}, {"name": "b"}]\'',
        large_lines=1,
    )
    clinic.write("src/a.py", "# HACK\nx = 1\n")
    found = await clinic.collect(project_id=PROJECT)
    (row,) = clinic.rows()
    kept = (row.tsc_error_count, row.test_failure_count, row.hack_count, row.large_file_count, row.outdated_dep_count)
    assert kept == (3, 2, 1, 1, 2)
    assert (row.id, row.source, row.agent_id) == (found.snapshot["id"], "collected", clinic.agent().agent)
    assert found.missing == {}
    assert clinic.rows(health_collections) == []
    assert (await clinic.trends()).latest == found.snapshot


async def test_a_probe_that_fails_says_why_and_keeps_no_other_from_counting(clinic: Clinic) -> None:
    await clinic.open(types="no-such-checker", tests="echo '1 failed'; kill -9 $$", outdated="echo broken >&2; exit 3")
    clinic.write("a.py", "# TODO\n")
    found = await clinic.collect()
    assert "not found" in found.missing["types"]
    assert found.missing["tests"] == "1 failed"
    assert found.missing["outdated"] == "broken"
    assert (found.snapshot["todo_count"], found.snapshot["tests_passed"]) == (1, None)


async def test_a_probe_that_takes_too_long_is_stopped_with_everything_it_started(clinic: Clinic) -> None:
    await clinic.open(types="echo 0 errors", tests="sleep 300 & echo $! > inner; echo $$ > outer; wait", limit_s=1)
    started = time.monotonic()
    found = await clinic.collect()
    assert time.monotonic() - started < 20
    assert found.missing["tests"] == "stopped after 1 s"
    assert found.snapshot["tsc_error_count"] == 0
    for name in ("inner", "outer"):
        await gone(int((clinic.code / name).read_text()))


async def test_the_probes_run_side_by_side(clinic: Clinic) -> None:
    # Each waits for the other: one after the other they would wait until their time is over.
    meet = "touch {mine}; while [ ! -e {other} ]; do sleep 0.01; done; echo 0 errors"
    await clinic.open(types=meet.format(mine="t", other="s"), tests=meet.format(mine="s", other="t"), limit_s=30)
    found = await clinic.collect()
    assert (found.snapshot["tsc_passed"], found.snapshot["tests_passed"]) == (True, True)


async def test_whoever_gives_up_leaves_no_process_and_no_snapshot(clinic: Clinic) -> None:
    await clinic.open(tests="echo $$ > pid; mv pid there; sleep 300")
    task = asyncio.create_task(clinic.collect())
    process = int(await there(clinic.code / "there"))
    task.cancel()
    with pytest.raises((asyncio.CancelledError, RequestCancelled)):
        await task
    await gone(process)
    assert clinic.rows() == []
    assert clinic.rows(health_collections) == []


async def test_two_looks_at_one_project_do_not_get_into_each_others_way(clinic: Clinic) -> None:
    await clinic.open(tests="touch begun; while [ ! -e go ]; do sleep 0.01; done", limit_s=30)
    first = asyncio.create_task(clinic.collect())
    await there(clinic.code / "begun")
    with pytest.raises(Conflict) as refusal:
        await clinic.collect()
    assert refusal.value.hint
    clinic.write("go", "")
    assert (await first).snapshot["tests_passed"]
    await clinic.collect()
    assert len(clinic.rows()) == 2


async def test_who_died_while_looking_holds_nobody_up_for_long(clinic: Clinic) -> None:
    await clinic.open()
    held = {"project_id": clinic.agent().project, "tenant": "default", "token": "dead"}
    clinic.change(sa.insert(health_collections).values(**held, until_ms=10**14))
    with pytest.raises(Conflict):
        await clinic.collect()
    clinic.change(sa.update(health_collections).values(until_ms=1))
    await clinic.collect()
    assert clinic.rows(health_collections) == []


async def test_the_caller_is_told_of_each_probe_as_it_ends(clinic: Clinic) -> None:
    await clinic.open(types="echo 0 errors", tests="echo 4 failed; exit 1")
    watcher = Watcher()
    await clinic.fleet.platform.calls.call(clinic.agent(), TOOL, {}, door=watcher)
    assert [(done, total) for done, total, _ in watcher.told] == [(number, 4) for number in range(5)]
    lines = {message.partition(":")[0]: message for _, _, message in watcher.told[1:]}
    assert set(lines) == set(PROBES)
    assert lines["tests"] == "tests: test_failures 4"
    assert lines["outdated"].startswith("outdated: no command is set; ")


async def test_commands_see_no_secret_and_run_in_the_projects_folder(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOKERY_MNEMONIC", "hush hush")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/hush")
    await clinic.open(tests="env > seen; pwd > place")
    await clinic.collect()
    assert "hush" not in (clinic.code / "seen").read_text()
    assert os.path.samefile((clinic.code / "place").read_text().strip(), clinic.code)


async def test_a_folder_that_is_gone_is_no_healthy_one(clinic: Clinic) -> None:
    await clinic.open(tests="true")
    clinic.code.rmdir()
    found = await clinic.collect()
    assert set(found.missing) == set(PROBES)
    assert "cannot be read" in found.missing["source"]
    assert "cannot be started" in found.missing["tests"]
    assert found.snapshot["todo_count"] is None


async def test_an_improvement_cycle_looks_and_gives_out_work_on_what_is_worst(clinic: Clinic) -> None:
    await clinic.open(tests="echo 2 failed; exit 1")
    clinic.write("a.py", "# TODO\n")
    agent = clinic.agent()

    async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return (await clinic.fleet.platform.calls.call(agent, tool, arguments)).structured

    action = Action.model_validate({"type": "improvement_loop", "project_id": agent.project})
    done = await improve(call, agent, action, "cycle-1", health=True)
    assert done["result"].startswith("2 work tasks")
    tasks = (await clinic.call(agent, "list_work_tasks")).tasks
    described = sorted(task["description"] for task in tasks)
    assert described == ["Make the 2 failing tests pass.", "Settle the 1 TODO notes."]
    assert len(clinic.rows()) == 1
