"""webhook_wait: a node that another program completes, by a secret and before it is too late."""

import asyncio
import json
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.core.errors import Conflict
from rookery.core.hook import HookAnswer, HookRequest
from rookery.domains.workflows.hooks import complete
from rookery.domains.workflows.tables import workflow_node_runs, workflow_runs
from rookery.jobs.tables import jobs
from tests.domains.workflows.workshop import Workshop, chain, node, statuses

GRAPH = chain(node("w", "webhook_wait", webhookEvent="paid"), node("t", "transform", template="{{prev.who}} paid"))


async def post(
    workshop: Workshop, run_id: str, secret: str | None, body: Any = None, *, at: str = "w", how: str = "Bearer"
) -> HookAnswer:
    """Deliver as another program does."""
    headers = {} if secret is None else {"authorization": f"{how} {secret}"}
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return await complete.handler(
        workshop.fleet.platform.calls, HookRequest({"run": run_id, "node": at}, headers, sent)
    )


async def waiting(workshop: Workshop, graph: dict[str, Any] = GRAPH) -> tuple[str, str]:
    """A run that waits, and the secret of its node."""
    run_id = await workshop.start(workshop.owner, graph)
    (told,) = (await workshop.status(run_id))["waiting"]
    assert told["path"] == f"/hooks/workflows/{run_id}/w"
    return run_id, told["secret"]


async def test_without_the_secret_every_address_answers_alike(workshop: Workshop) -> None:
    nothing_yet = await post(workshop, "wfr-404", "0" * 64)
    run_id, secret = await waiting(workshop)
    other, _ = await waiting(workshop)
    refused = [
        await post(workshop, run_id, None),
        await post(workshop, run_id, ""),
        await post(workshop, run_id, "0" * 64),
        await post(workshop, run_id, "ü\ud800"),
        await post(workshop, run_id, secret, how="Basic"),
        await post(workshop, other, secret),
        await post(workshop, run_id, secret, at="t"),
        await post(workshop, "wfr-404", secret),
        await post(workshop, "wfr\0", secret, b"not json"),
        nothing_yet,
    ]
    assert {answer.status for answer in refused} == {401}
    assert all(answer == refused[0] for answer in refused)
    assert (await workshop.status(run_id))["status"] == "running"


@pytest.mark.parametrize(
    "body",
    [b"[]", b"1", b"not json", b"{", b"[" * 60_000, b'{"a": NaN}', b'{"a": 1e999}', b'{"a": "\\u0000"}', b"\xff"],
)
async def test_what_is_no_object_is_refused_and_the_node_waits_on(workshop: Workshop, body: bytes) -> None:
    run_id, secret = await waiting(workshop)
    assert (await post(workshop, run_id, secret, body)).status == 400
    assert statuses(await workshop.status(run_id))["w"] == "waiting"


async def test_a_delivery_completes_the_node_with_what_came(workshop: Workshop) -> None:
    run_id, secret = await waiting(workshop)
    assert await post(workshop, run_id, secret, {"who": "Ada"}) == HookAnswer(200, {"status": "completed"})
    run = await workshop.status(run_id)
    assert (run["status"], run["output"]["transformed"], run["waiting"]) == ("completed", "Ada paid", [])
    assert [row.state for row in workshop.rows(sa.select(jobs.c.state))] == ["cancelled"]


async def test_a_second_delivery_changes_nothing(workshop: Workshop) -> None:
    run_id, secret = await waiting(workshop)
    await post(workshop, run_id, secret, {"who": "Ada"})
    before = workshop.rows(sa.select(workflow_node_runs).order_by("node_id"))
    assert (await post(workshop, run_id, secret, {"who": "Ada"})).status == 200
    assert (await post(workshop, run_id, secret, {"who": "Eve"})).status == 409
    assert workshop.rows(sa.select(workflow_node_runs).order_by("node_id")) == before


async def test_of_two_deliveries_at_once_one_counts(workshop: Workshop) -> None:
    run_id, secret = await waiting(workshop)
    answers = await asyncio.gather(*(post(workshop, run_id, secret, {"who": who}) for who in ("Ada", "Eve", "Bob")))
    assert sorted(answer.status for answer in answers) == [200, 409, 409]
    assert (await workshop.status(run_id))["status"] == "completed"


async def test_of_a_delivery_and_a_cancel_at_once_one_counts(workshop: Workshop) -> None:
    for _ in range(5):
        run_id, secret = await waiting(workshop)
        delivered, cancelled = await asyncio.gather(
            post(workshop, run_id, secret, {"who": "Ada"}),
            workshop.do(workshop.owner, "cancel", run_id=run_id),
            return_exceptions=True,
        )
        assert isinstance(delivered, HookAnswer)
        if delivered.status == 200:
            assert isinstance(cancelled, Conflict)
            assert (await workshop.status(run_id))["status"] == "completed"
        else:
            assert (await workshop.status(run_id))["status"] == "cancelled"


async def test_a_delivery_to_a_run_that_is_over_or_gone_is_refused(workshop: Workshop) -> None:
    run_id, secret = await waiting(workshop)
    await workshop.do(workshop.owner, "cancel", run_id=run_id)
    assert (await post(workshop, run_id, secret)).status == 409
    workshop.change(sa.delete(workflow_node_runs))
    workshop.change(sa.delete(workflow_runs))
    assert (await post(workshop, run_id, secret)).status == 404


async def test_a_node_that_waits_in_vain_fails(workshop: Workshop) -> None:
    run_id = await workshop.start(workshop.owner, chain(node("w", "webhook_wait", timeoutMs=1)))
    run = await workshop.ended(run_id, "failed")
    assert "nothing was delivered within 1 ms" in run["error"]


async def test_a_delivery_during_a_pause_counts(workshop: Workshop) -> None:
    run_id, secret = await waiting(workshop)
    await workshop.do(workshop.owner, "pause_run", run_id=run_id)
    assert (await post(workshop, run_id, secret, {"who": "Ada"})).status == 200
    assert (await workshop.status(run_id))["status"] == "paused"
    await workshop.do(workshop.owner, "resume_run", run_id=run_id)
    assert (await workshop.status(run_id))["status"] == "completed"


async def test_only_those_who_see_the_run_see_the_secret(workshop: Workshop) -> None:
    run_id, secret = await waiting(workshop)
    kept = [*workshop.rows(sa.select(workflow_runs)), *workshop.rows(sa.select(workflow_node_runs))]
    assert secret not in str(kept)
    assert (await workshop.status(run_id))["waiting"][0]["event"] == "paid"
