"""Random workflows whose workers are killed before and after commits end as the plain interpreter says, once."""

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, given, seed, settings

from rookery.db.tx import Tx
from rookery.domains.work.tables import work_tasks
from rookery.domains.workflows.engine import node_key
from rookery.domains.workflows.graph import Graph, Node
from rookery.domains.workflows.machine import BEGUN, SETTLED
from rookery.domains.workflows.tables import workflow_node_runs, workflow_runs
from rookery.domains.workflows.template import render
from rookery.jobs.tables import jobs
from tests import warm
from tests.domains.workflows.drawing import draw, graphs, node, values
from tests.domains.workflows.reference import Ended, Interpreter
from tests.domains.workflows.victim import agent_says
from tests.platform_fixtures import Fleet

ROOT = Path(__file__).parents[3]
KINDS = (*["agent_session"] * 5, *["work_task"] * 2, *["delay"] * 2, "transform", "webhook_wait", "end")
WAIT_MS = 20
MOST_WRITES = 36
MANY = 100
# Every change of a status leaves a line, whoever makes it.
MOVES = "CREATE TABLE chaos_moves (seq {number} PRIMARY KEY, run_id TEXT, node_id TEXT, status TEXT)"
NUMBER = {"sqlite": "INTEGER", "postgresql": "BIGSERIAL"}
WATCHED = {"workflow_node_runs": "NEW.run_id, NEW.node_id", "workflow_runs": "NEW.id, ''"}
EVERYTHING = draw(
    "s>a a>c c>b:true c>x:false b>p p>d p>t p>k d>j t>j k>j j>e p>w",
    node("a", "agent_session", prompt="!a {{topic}}", retries=1, retryDelayMs=0),
    node("c", "condition", expression="topic == 'tea'"),
    node("b", "agent_session", prompt="b {{output}}", retries=0),
    node("d", "delay", delayMs=10),
    node("t", "transform", template="{{output}}"),
    node("w", "webhook_wait", timeoutMs=WAIT_MS),
    s="start",
    k="work_task",
    x="end",
    p="parallel",
    j="join",
    e="end",
)
"""A small workflow with something of everything."""
Case = tuple[Graph, dict[str, Any]]


class Nursery:
    """Makes workers and lets them die."""

    def __init__(self, url: str, home: Path) -> None:
        command = [sys.executable, "-m", "tests.domains.workflows.victim", url, str(home)]
        self._process = warm.start(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, writes: int, when: str) -> int:
        """Let one worker live until that write; the signal that ended it, 0 if it came to its end."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{writes} {when}\n")
        self._process.stdin.flush()
        word, _, code = self._process.stdout.readline().partition(" ")
        assert word == "gone"
        return int(code)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
async def fleet(database_url: str, make_fleet: Callable[..., Fleet], tmp_path: Path) -> Fleet:
    """The product's own tools alone: work tasks are real ones, in a project of their own. Nobody works on them."""
    made = make_fleet(database_url, extra={})
    made.platform.database.direct(watch, write=True)
    await made.call(made.owner, "create_project", slug="shop", path=str(tmp_path))
    return made


@pytest.fixture
def nursery(database_url: str, tmp_path: Path) -> Iterator[Nursery]:
    made = Nursery(database_url, tmp_path / "home")
    yield made
    made.close()


def watch(tx: Tx) -> None:
    """Let the database itself note every status that a node or a run is given."""
    tx.run(sa.text(MOVES.format(number=NUMBER[tx.dialect])))
    for table, names in WATCHED.items():
        note = f"INSERT INTO chaos_moves (run_id, node_id, status) VALUES ({names}, NEW.status);"
        trigger = f"CREATE TRIGGER chaos_{table} AFTER UPDATE OF status ON {table} FOR EACH ROW"
        if tx.dialect == "sqlite":
            tx.run(sa.text(f"{trigger} BEGIN {note} END"))
        else:
            body = f"BEGIN {note} RETURN NULL; END"
            tx.run(sa.text(f"CREATE FUNCTION chaos_{table}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"))
            tx.run(sa.text(f"{trigger} EXECUTE FUNCTION chaos_{table}()"))


def cases(count: int, part: int) -> list[Case]:
    """Graphs with what their runs are given: always the same ones, and others for each part."""
    found: list[Case] = []

    @seed(part)
    @settings(
        max_examples=count, database=None, phases=[Phase.generate], deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )  # fmt: skip
    @given(graphs(min_nodes=5, max_nodes=14, kinds=KINDS), values())
    def collect(graph: Graph, run_input: dict[str, Any]) -> None:
        found.append((staged(graph, len(found)), run_input))

    collect()
    return found[:count]


def staged(graph: Graph, number: int) -> Graph:
    """The graph with sessions that break now and then, and nobody who delivers anything."""
    dice = random.Random(number)
    drawn = graph.model_dump(mode="json")
    for each in drawn["nodes"]:
        config = each["config"]
        if each["type"] == "agent_session":
            config["prompt"] = "!" * dice.choice([0, 0, 0, 1, 2, 3]) + f"{each['id']}: {config['prompt']}"
        if each["type"] == "work_task":
            config["description"] = f"{each['id']}: {config['description']}"
        if each["type"] == "webhook_wait":
            config["timeoutMs"] = WAIT_MS
    return Graph.model_validate(drawn)


async def start(fleet: Fleet, case: Case) -> str:
    """The id of a run of the workflow, begun as its owner would."""
    drawn = case[0].model_dump(mode="json", exclude_none=True)
    made = await fleet.call(
        fleet.owner, "manage_workflow", action="create", name="chaos", default_project_id="shop", **drawn
    )
    workflow_id = made.workflows[0]["id"]
    await fleet.call(fleet.owner, "manage_workflow", action="activate", workflow_id=workflow_id)
    begun = await fleet.call(fleet.owner, "manage_workflow", action="run", workflow_id=workflow_id, input=case[1])
    return begun.runs[0]["id"]


def expire(tx: Tx) -> int:
    """What a dead worker had is free, as it is once its lease is over."""
    return tx.run(sa.update(jobs).where(jobs.c.state == "running").values(lease_ms=0))


async def kill_until_over(fleet: Fleet, nursery: Nursery, dice: random.Random, most: int) -> int:
    """Let workers work and die until every run has ended; how many died."""
    for killed in range(most):
        when = dice.choice(["before", "after"])
        ended = await asyncio.to_thread(nursery.run, dice.randint(1, MOST_WRITES), when)
        await fleet.platform.database.change(expire)
        if ended == 0:
            return killed
        assert ended == signal.SIGKILL
    pytest.fail(f"runs are open after {most} workers")


def expected(case: Case, run_id: str, tasks: Mapping[str, sa.Row[Any]]) -> Interpreter:
    """The same run, uninterrupted. Of work tasks only the names cannot be foretold."""

    def outside(node: Node, given: dict[str, Any]) -> Ended:
        if node.type == "work_task":
            task = tasks[node_key(run_id, node.id)]
            return "completed", {"workTaskId": task.id, "branchName": task.branch_name, "status": "pending"}, None
        if node.type == "delay":
            return "completed", {"delayed": True, "delayMs": node.config["delayMs"]}, None
        if node.type == "webhook_wait":
            return "failed", None, f"nothing was delivered within {WAIT_MS} ms"
        prompt = render(node.config["prompt"], given)
        tries = [agent_says(prompt, failures) for failures in range(node.config["retries"] + 1)]
        done = next((outcome for outcome in tries if outcome.status == "done"), None)
        if done is None:
            return "failed", None, tries[-1].error
        return "completed", {"sessionId": f"session:{node_key(run_id, node.id)}", "output": done.output}, None

    return Interpreter(case[0], case[1], outside)


def rows_of(fleet: Fleet, statement: sa.Select[Any]) -> Sequence[sa.Row[Any]]:
    return fleet.platform.database.direct(lambda tx: tx.all(statement))


def assert_ended_as_expected(fleet: Fleet, case: Case, run_id: str) -> None:
    made = rows_of(fleet, sa.select(work_tasks).where(work_tasks.c.source_id.like(f"node:{run_id}:%")))
    reference = expected(case, run_id, {row.source_id: row for row in made})
    run = rows_of(fleet, sa.select(workflow_runs).where(workflow_runs.c.id == run_id))[0]
    assert (run.status, run.output, run.error) == reference.run(), case
    nodes = rows_of(fleet, sa.select(workflow_node_runs).where(workflow_node_runs.c.run_id == run_id))
    assert {row.node_id: (row.status, row.input, row.output, row.error) for row in nodes} == {
        name: (end.status, end.input, end.output, end.error) for name, end in reference.ends.items()
    }, case
    begun = {row.work_task_id for row in nodes if row.node_type == "work_task" and row.status == "completed"}
    assert sorted(begun) == sorted(row.id for row in made)


def assert_nothing_was_recorded_twice(fleet: Fleet, case: Case, run_id: str) -> None:
    moves = sa.text("SELECT node_id, status FROM chaos_moves WHERE run_id = :run ORDER BY seq").bindparams(run=run_id)
    noted = fleet.platform.database.direct(lambda tx: tx.all(moves))
    for each in case[0].nodes:
        given = [row.status for row in noted if row.node_id == each.id]
        assert len([status for status in given if status in SETTLED]) == 1, (each, given)
        assert given[:-1] in ([], [BEGUN.get(each.type)]), (each, given)
    assert len([row for row in noted if not row.node_id]) == 1
    begun = {row.node_id for row in noted if row.status not in SETTLED}
    kept = rows_of(fleet, sa.select(jobs).where(jobs.c.key.like(f"node:{run_id}:%")))
    assert sorted(row.key for row in kept) == sorted(node_key(run_id, name) for name in begun)
    assert {row.state for row in kept} <= {"done", "failed"}


async def survive(fleet: Fleet, nursery: Nursery, count: int, part: int = 0) -> int:
    drawn = cases(count, part)
    assert len(drawn) == count
    begun = [(case, await start(fleet, case)) for case in drawn]
    killed = await kill_until_over(fleet, nursery, random.Random(part), most=20 * count)
    for case, run_id in begun:
        assert_ended_as_expected(fleet, case, run_id)
        assert_nothing_was_recorded_twice(fleet, case, run_id)
    return killed


async def test_workflows_survive_the_death_of_their_workers(fleet: Fleet, nursery: Nursery) -> None:
    assert await survive(fleet, nursery, 15) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_worker_may_die_at_any_write_of_a_run(fleet: Fleet, nursery: Nursery, when: str) -> None:
    case = EVERYTHING, {"topic": "tea"}
    for writes in range(1, MANY):
        run_id = await start(fleet, case)
        killed = await asyncio.to_thread(nursery.run, writes, when)
        await fleet.platform.database.change(expire)
        if killed:
            assert await asyncio.to_thread(nursery.run, MANY, when) == 0
        assert_ended_as_expected(fleet, case, run_id)
        assert_nothing_was_recorded_twice(fleet, case, run_id)
        if not killed:
            assert writes > 10
            return
    pytest.fail(f"a run takes more than {MANY} writes")


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
async def test_two_hundred_workflows_survive_the_death_of_their_workers(
    fleet: Fleet, nursery: Nursery, part: int
) -> None:
    assert await survive(fleet, nursery, 50, part) >= 15
