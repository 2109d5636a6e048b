import asyncio
from typing import Any

import sqlalchemy as sa

from rookery.core.errors import Conflict, InvalidParams, PermissionDenied, RookeryError, ValidationFailed
from rookery.core.tool import PROFILES
from rookery.domains.tracker.tables import tracker_projects
from tests.domains.tracker.desk import Desk
from tests.domains.tracker.reviewing import refused as refused_anywhere

DEFAULTS: dict[str, Any] = {
    "prefix": None,
    "pipeline": ["research", "architecture", "grooming", "ready"],
    "unjudged": [],
    "gates": [],
    "sensitive_paths": [],
    "risk_thresholds": {"lowLines": 50, "highLines": 500, "lowFiles": 3, "highFiles": 15},
    "worker_instructions": "",
    "judge_instructions": "",
    "base_branch": "main",
    "contracts_dir": None,
}
TESTS = {"command": "make test", "label": "Tests", "required": True}


async def configure(desk: Desk, project: str = "default", **arguments: Any) -> dict[str, Any]:
    """The settings afterwards, set by a person."""
    done = await desk.call(desk.person(project), "configure_project", **arguments)
    assert done.project == project
    return done.settings


async def refused(desk: Desk, kind: type[RookeryError], says: str, **arguments: Any) -> RookeryError:
    """What a person is told; no setting is new."""
    before = desk.rows(sa.select(tracker_projects))
    told = await refused_anywhere(desk, kind, says, desk.person(), "configure_project", **arguments)
    assert desk.rows(sa.select(tracker_projects)) == before
    return told


async def test_no_profile_has_it_and_an_agent_needs_an_explicit_right(desk: Desk) -> None:
    issue = await desk.issue()
    for profile in PROFILES.values():
        agent = desk.actor(profile, issue)
        await refused_anywhere(desk, PermissionDenied, "configure_project", agent, "configure_project", gates=[])
        assert "configure_project" not in desk.fleet.names(agent)
    scoped = desk.fleet.actor(project="default", scope_file=frozenset({"configure_project"}))
    await refused_anywhere(desk, PermissionDenied, "configure_project", scoped, "configure_project", gates=[])
    await desk.call(desk.owner, "create_agent", name="wizard", permissions=["configure_project"])
    wizard = desk.fleet.actor(agent="wizard", project="default")
    assert (await desk.call(wizard, "configure_project", gates=[TESTS])).settings["gates"] == [TESTS]


async def test_it_acts_on_the_bound_project_alone(desk: Desk) -> None:
    await desk.project("other")
    await configure(desk, worker_instructions="ours")
    assert await configure(desk, "other") == DEFAULTS
    stranger = desk.fleet.actor(tenant=desk.stranger.tenant, as_owner=True, project="default")
    found = await desk.call(stranger, "configure_project")
    assert found.settings["worker_instructions"] == ""


async def test_thresholds_that_are_not_in_order_are_refused(desk: Desk) -> None:
    for wrong in (
        {"lowLines": 500},
        {"highLines": 50},
        {"lowLines": 10, "highLines": 10},
        {"lowFiles": 9, "highFiles": 3},
    ):
        await refused(desk, InvalidParams, "is not below", risk_thresholds=wrong)
    await configure(desk, risk_thresholds={"lowLines": 400})
    await refused(desk, InvalidParams, "lowLines 400 is not below highLines 300", risk_thresholds={"highLines": 300})
    for wrong in ({"lowLines": -1}, {"lowLines": 1.5}, {"highLines": 10**7}, {"mediumLines": 5}, {"lowFiles": "few"}):
        await refused(desk, InvalidParams, "risk_thresholds", risk_thresholds=wrong)


async def test_a_pipeline_is_some_phases_in_their_order_and_ends_in_ready(desk: Desk) -> None:
    for wrong in ([], ["research"], ["ready", "research"], ["ready", "ready"], ["architecture", "research", "ready"]):
        await refused(desk, InvalidParams, "pipeline", pipeline=wrong)
    await refused(desk, InvalidParams, "pipeline", pipeline=["testing", "ready"])
    await refused(desk, InvalidParams, "unjudged", unjudged=["ready"])
    await refused(desk, InvalidParams, "unjudged", unjudged=["testing"])
    found = await configure(desk, pipeline=["grooming", "ready"], unjudged=["grooming", "research", "grooming"])
    assert found["pipeline"] == ["grooming", "ready"]
    assert found["unjudged"] == ["research", "grooming"]
    made = await desk.call(desk.actor("planner", project="default"), "create_issue", title="a request")
    assert made.labels == ["phase:grooming"]


async def test_patterns_gates_branches_and_folders_must_be_such(desk: Desk) -> None:
    wrong_gates = (
        [{"command": "make"}],
        [{**TESTS, "command": " "}],
        [{**TESTS, "label": ""}],
        [{**TESTS, "required": "perhaps"}],
        [{**TESTS, "shell": "bash"}],
        [TESTS, {**TESTS, "label": "Again"}],
        [{**TESTS, "command": f"make {n}"} for n in range(31)],
    )
    for gates in wrong_gates:
        await refused(desk, InvalidParams, "gates", gates=gates)
    for pattern in ("[[-?]", "*a*a*a*b", "!"):
        await refused(desk, ValidationFailed, "not a path pattern", sensitive_paths=["fine", pattern])
    for pattern in ("", " ", "x" * 201):
        await refused(desk, InvalidParams, "sensitive_paths", sensitive_paths=[pattern])
    for branch in ("", "a b", "-f", "a..b", "a~1", "HEAD:x", "x/", ".x", "x.lock", "a" * 251, "a\nb"):
        await refused(desk, InvalidParams, "base_branch", base_branch=branch)
    for folder in ("/etc", "../other", "a/../../b", "a//b", ".", "a/.", "C:/x", "a\\b", ".git/hooks", "/", "x" * 501):
        await refused(desk, InvalidParams, "contracts_dir", contracts_dir=folder)
    for field in ("worker_instructions", "judge_instructions"):
        await refused(desk, InvalidParams, field, **{field: "x" * 50_001})
    await refused(desk, InvalidParams, "slug", slug="renamed")
    assert desk.count(tracker_projects) == 0


async def test_one_wrong_setting_keeps_the_others_out(desk: Desk) -> None:
    await refused(desk, InvalidParams, "is not below", worker_instructions="new", risk_thresholds={"lowLines": 900})
    await desk.issue()
    await refused(desk, Conflict, "already", worker_instructions="new", prefix="NEW")
    assert (await configure(desk))["worker_instructions"] == ""


async def test_what_is_absent_stays_and_looking_writes_nothing(desk: Desk) -> None:
    assert await configure(desk) == DEFAULTS
    assert desk.count(tracker_projects) == 0
    everything: dict[str, Any] = {
        "gates": [TESTS, {"command": "make lint", "label": "Lint", "required": False}],
        "sensitive_paths": ["server/database/*", ".env*"],
        "risk_thresholds": {"lowLines": 10, "highLines": 100, "lowFiles": 1, "highFiles": 5},
        "worker_instructions": "Work in small steps.",
        "judge_instructions": "Be kind.",
        "prefix": "SYM",
        "pipeline": ["research", "ready"],
        "unjudged": ["research"],
        "base_branch": "release/1.x",
        "contracts_dir": "prompts/own/",
    }
    found = await configure(desk, **everything)
    assert found == {**everything, "contracts_dir": "prompts/own"}
    assert await configure(desk) == found
    changed = await configure(desk, risk_thresholds={"highLines": 200}, judge_instructions="", contracts_dir="")
    assert changed == {
        **found,
        "risk_thresholds": {**found["risk_thresholds"], "highLines": 200},
        "judge_instructions": "",
        "contracts_dir": None,
    }
    assert (await configure(desk, gates=[], sensitive_paths=[]))["gates"] == []


async def test_a_prefix_is_chosen_before_the_first_issue_and_once_in_a_tenant(desk: Desk) -> None:
    await desk.project("other")
    for wrong in ("", "X", "1AB", "A-B", "Ä1", "ABCDEFGHIJK", "AB\n"):
        await refused(desk, InvalidParams, "prefix", prefix=wrong)
    assert (await configure(desk, prefix="sym"))["prefix"] == "SYM"
    assert (await configure(desk, prefix="SYM"))["prefix"] == "SYM"
    await refused_anywhere(desk, Conflict, "another project", desk.person("other"), "configure_project", prefix="Sym")
    assert (await desk.issue()).identifier == "SYM-001"
    await refused(desk, Conflict, "SYM", prefix="NEW")
    assert (await configure(desk, prefix="SYM"))["prefix"] == "SYM"
    stranger = desk.fleet.actor(tenant=desk.stranger.tenant, as_owner=True, project="default")
    assert (await desk.call(stranger, "configure_project", prefix="SYM")).settings["prefix"] == "SYM"


async def test_of_projects_that_want_one_prefix_at_once_one_gets_it(desk: Desk) -> None:
    names = [f"p{number}" for number in range(6)]
    for name in names:
        await desk.project(name)
    calls = [desk.call(desk.person(name), "configure_project", prefix="SYM") for name in names]
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sorted(type(end).__name__ for end in ends) == ["Configured"] + ["Conflict"] * 5


async def test_settings_made_at_once_are_all_kept(desk: Desk) -> None:
    given = [
        {"worker_instructions": "w"},
        {"judge_instructions": "j"},
        {"base_branch": "trunk"},
        {"gates": [TESTS]},
        {"unjudged": ["grooming"]},
    ]
    await asyncio.gather(*(configure(desk, **each) for each in given))
    found = await configure(desk)
    assert all(found[name] == value for each in given for name, value in each.items())
