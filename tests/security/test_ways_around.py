"""What an agent cannot do itself it cannot have done: by another agent, a schedule, a workflow or a hook."""

import json
from typing import Any

import httpx2
import pytest
import sqlalchemy as sa

from rookery.domains.messages.tables import messages
from rookery.domains.schedules.planning import plan
from rookery.domains.schedules.tables import executions, schedules
from rookery.domains.workflows.tables import workflow_node_runs as nodes_run
from rookery.server.hooks import hook_routes
from tests.jobs.working import running_worker, settled
from tests.security.keep import Keep
from tests.server.streamable.web import serving


def script(keep: Keep) -> str:
    """What an agent of the scripted runtime tries, line by line; what it was told is its last word."""
    return "\n".join(f"!call {tool} {json.dumps(arguments)}" for tool, arguments in keep.attacks())


def refusals(told: str) -> int:
    return told.count(" was refused: ")


async def test_a_message_makes_no_agent_do_it(keep: Keep) -> None:
    keep.actors()
    before = keep.rights()
    await _send(keep, "mighty", script(keep))
    (row,) = keep.rows(sa.select(messages))
    # It was tried, each of it, by an agent with every grant there is.
    assert refusals(row.response) >= len(keep.attacks()) - 3
    assert keep.rights() == before


async def test_work_that_is_asked_for_in_a_message_does_not_do_it(keep: Keep) -> None:
    keep.actors()
    before = keep.rights()
    await _send(keep, "mighty", f"[WORK] {script(keep)}")
    assert keep.rights() == before


async def _send(keep: Keep, to: str, message: str) -> None:
    async with running_worker(keep.platform):
        await keep.tried(keep.fleet.actor(), "send_message", {"to_agent": to, "message": message})
        await settled(keep.platform)


@pytest.mark.parametrize("policy", ["auto", "owner_approve"])
async def test_no_schedule_does_it(keep: Keep, policy: str) -> None:
    mighty = keep.actors()["an agent with every grant"]
    before = keep.rights()
    made = await keep.fleet.call(
        mighty, "manage_schedule", action="create", name="sly", cron_expression="0 0 29 2 *", approval_policy=policy,
        schedule_actions=[{"type": "custom", "prompt": script(keep)[:8000].rpartition("\n")[0]}],
    )  # fmt: skip
    schedule_id = made.schedules[0]["id"]

    def due(tx: Any) -> None:
        (row,) = tx.all(sa.select(schedules).where(schedules.c.id == schedule_id))
        plan(tx, row, 1_000)

    keep.change(due)
    await keep.work()
    (row,) = keep.rows(sa.select(executions).where(executions.c.schedule_id == schedule_id))
    assert refusals(row.steps[0]["result"]) >= 10
    assert keep.rights() == before


async def test_no_workflow_does_it(keep: Keep) -> None:
    mighty = keep.actors()["an agent with every grant"]
    before = keep.rights()
    ends = ({"id": "s", "type": "start", "label": "s", "config": {}}, {"id": "e", "type": "end", "label": "e"})
    session = {"id": "a", "type": "agent_session", "label": "a", "config": {"prompt": script(keep), "maxTurns": 999}}
    ways = [{"id": f"{a}{b}", "sourceNodeId": a, "targetNodeId": b} for a, b in ("sa", "ae")]
    nodes = [ends[0], session, {**ends[1], "config": {}}]
    made = await keep.fleet.call(mighty, "manage_workflow", action="create", name="sly", nodes=nodes, edges=ways)
    about = {"workflow_id": made.workflows[0]["id"]}
    await keep.fleet.call(mighty, "manage_workflow", action="activate", **about)
    await keep.fleet.call(mighty, "manage_workflow", action="run", **about)
    await keep.work()
    (done,) = keep.rows(sa.select(nodes_run).where(nodes_run.c.node_id == "a"))
    assert (done.status, refusals(json.dumps(done.output)) >= 10) == ("completed", True)
    assert keep.rights() == before


async def test_no_hook_does_it_for_who_has_no_secret(keep: Keep) -> None:
    before = keep.rights()
    waiting = (keep.question, keep.schedule, keep.approval)
    async with serving(keep.fleet) as web:
        for route in hook_routes(keep.platform):
            for ask_id in waiting:
                for guess in (ask_id, keep.ticket, "0" * 43, "x", "%00", "..", "' OR 1=1"):
                    path = route.path
                    for name in ("id", "run"):
                        path = path.replace(f"{{{name}}}", ask_id)
                    path = path.replace("{token}", guess).replace("{node}", guess)
                    await _knock(web.http, path)
    assert keep.rights() == before


async def _knock(http: httpx2.AsyncClient, path: str) -> None:
    form = {"choice": "1", "text": "yes", "answer": "approve"}
    for answer in (
        await http.get(path),
        await http.post(path, data=form),
        await http.post(path, json=form, headers={"authorization": "Bearer guess"}),
        await http.request("PUT", path, json=form),
        await http.request("HEAD", path),
    ):
        assert answer.status_code in (400, 401, 404, 405, 410), (path, answer.status_code)
