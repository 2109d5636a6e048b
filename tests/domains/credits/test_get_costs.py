"""What runs have cost, for those who may know."""

from typing import Any

import pytest

from rookery.core.actor import Actor
from rookery.core.errors import InvalidParams, NotFound
from rookery.lifecycle.run_store import Usage
from tests.lifecycle.run_rows import RunRows
from tests.platform_fixtures import Fleet


class Spending:
    """A fleet whose agents have spent something on issues."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.rows = RunRows(fleet.platform.database)
        self.project = fleet.owner.project or ""
        self.issue = self.rows.issue("SYM-001", self.project)

    def run(self, agent: str | None, micros: int, project: str | None = None, **known: Any) -> str:
        run = self.rows.start(project or self.project, agent=agent, **known)
        self.rows.change(lambda runs: runs.spend(run, Usage(cost_micros=micros, input_tokens=10, output_tokens=1)))
        return run

    async def costs(self, actor: Actor, **wanted: Any) -> Any:
        return await self.fleet.call(actor, "get_costs", **wanted)

    async def listed(self, actor: Actor, **wanted: Any) -> dict[str, float]:
        return {row["id"]: row["cost_usd"] for row in (await self.costs(actor, **wanted)).costs}


@pytest.fixture
def spending(fleet: Fleet) -> Spending:
    return Spending(fleet)


@pytest.mark.parametrize(
    "wanted",
    [{}, {"by": "project"}, {"by": "agent", "id": ""}, {"by": "agent", "id": "x" * 201}, {"by": "run", "id": 5}],
)
async def test_a_question_that_makes_no_sense_is_told_so(spending: Spending, wanted: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams):
        await spending.costs(spending.fleet.owner, **wanted)


async def test_an_agent_sees_what_its_own_runs_have_cost_and_nobody_elses(spending: Spending) -> None:
    fleet = spending.fleet
    ada = await fleet.call(fleet.owner, "create_agent", name="ada")
    me = fleet.actor()
    mine = spending.run(me.agent, 500_000, issue_id=spending.issue)
    hers = spending.run(ada.id, 250_000, issue_id=spending.issue)
    assert await spending.listed(me, by="agent") == {me.agent: 0.5}
    assert await spending.listed(me, by="issue") == {spending.issue: 0.5}
    assert await spending.listed(me, by="run") == {mine: 0.5}
    assert (await spending.costs(me, by="run")).total["cost_usd"] == 0.5
    for wanted in ({"by": "run", "id": hers}, {"by": "agent", "id": "ada"}, {"by": "agent", "id": ada.id}):
        with pytest.raises(NotFound):
            await spending.costs(me, **wanted)


async def test_another_tenant_and_a_closed_project_tell_nothing(spending: Spending, stranger: Actor) -> None:
    fleet = spending.fleet
    run = spending.run(fleet.actor().agent, 500_000, issue_id=spending.issue)
    assert (await spending.costs(stranger, by="agent")).costs == []
    for wanted in ({"by": "run", "id": run}, {"by": "issue", "id": "SYM-001"}):
        with pytest.raises(NotFound):
            await spending.costs(stranger, **wanted)
    shop = await fleet.call(fleet.owner, "create_project", slug="shop")
    me = fleet.actor(project="shop")
    await fleet.call(fleet.owner, "set_project_members", project="default", agents=[])
    outside = fleet.actor(project="shop")
    assert (me.project, outside.closed) == (shop.id, frozenset({spending.project}))
    assert (await spending.costs(outside, by="run")).costs == []
    for wanted in ({"by": "run", "id": run}, {"by": "issue", "id": "SYM-001"}):
        with pytest.raises(NotFound):
            await spending.costs(outside, **wanted)


@pytest.mark.parametrize(("by", "unknown"), [("agent", "nobody"), ("issue", "SYM-9"), ("run", "run-1")])
async def test_what_is_not_there_is_not_found(spending: Spending, by: str, unknown: str) -> None:
    with pytest.raises(NotFound, match=unknown):
        await spending.costs(spending.fleet.owner, by=by, id=unknown)


async def test_people_see_everybody_the_dearest_first_with_names_and_a_total(spending: Spending) -> None:
    fleet = spending.fleet
    owner, default = fleet.owner, fleet.actor().agent or ""
    ada = (await fleet.call(owner, "create_agent", name="ada")).id
    spending.run(default, 100_000, issue_id=spending.issue)
    spending.run(default, 200_000)
    spending.run(ada, 1_000_001, issue_id=spending.issue)
    spending.run(None, 5)
    told = await spending.costs(owner, by="agent")
    assert told.costs == [
        {"id": ada, "name": "ada", "runs": 1, "cost_usd": 1.000001, "input_tokens": 10, "output_tokens": 1},
        {"id": default, "name": "default", "runs": 2, "cost_usd": 0.3, "input_tokens": 20, "output_tokens": 2},
    ]
    assert told.total == {"runs": 4, "cost_usd": 1.300006, "input_tokens": 40, "output_tokens": 4}
    [issue] = (await spending.costs(owner, by="issue")).costs
    assert (issue["id"], issue["name"], issue["runs"], issue["cost_usd"]) == (spending.issue, "SYM-001", 2, 1.100001)
    assert list((await spending.listed(owner, by="run")).values()) == [1.000001, 0.2, 0.1, 0.000005]


async def test_one_is_picked_out_by_id_or_name(spending: Spending) -> None:
    fleet = spending.fleet
    me = fleet.actor()
    run = spending.run(me.agent, 300_000, issue_id=spending.issue)
    for actor in (me, fleet.owner):
        for name in ("SYM-001", "sym-1", spending.issue):
            assert await spending.listed(actor, by="issue", id=name) == {spending.issue: 0.3}
        for name in ("Default", me.agent):
            assert await spending.listed(actor, by="agent", id=name) == {me.agent: 0.3}
        assert await spending.listed(actor, by="run", id=run) == {run: 0.3}


async def test_at_most_fifty_are_listed_and_all_are_counted(spending: Spending) -> None:
    owner, agent = spending.fleet.owner, spending.fleet.actor().agent
    for _ in range(51):
        spending.run(agent, 10)
    told = await spending.costs(owner, by="run")
    assert (len(told.costs), told.total["runs"]) == (50, 51)


async def test_what_has_cost_nothing_yet_is_an_empty_answer(spending: Spending) -> None:
    told = await spending.costs(spending.fleet.actor(), by="issue", id="SYM-001")
    assert (told.costs, told.total["cost_usd"]) == ([], 0)
