"""The line that agents sign with: who wrote it, with which model. Nothing hides it, and nobody is called by it."""

from dataclasses import replace
from typing import Any

import pytest

from rookery.db.tx import Tx
from rookery.lifecycle.run_events import RunEvent
from rookery.lifecycle.run_store import NewRun, Runs
from tests.domains.github.desk import Desk

SIGNED = "*Posted by default (claude-code 2.1) through Rookery.*\n<!-- rookery:"


async def test_without_a_body_there_is_the_signature_with_the_client(desk: Desk) -> None:
    await desk.call("github_create_issue", title="x")
    assert desk.github.shop.issues[0]["body"].startswith(SIGNED)


@pytest.mark.parametrize(
    "body", ["So. <!--", "```\ncode", "<details><summary>x</summary>", "~~~~", "--> <!--", "<pre>"]
)
async def test_no_body_hides_the_signature(desk: Desk, body: str) -> None:
    """What stands before it is nothing, so nothing is open when it comes."""
    await desk.call("github_create_issue", title="x", body=body)
    text = desk.github.shop.issues[0]["body"]
    assert text.startswith(SIGNED)
    assert text.endswith(f" -->\n\n{body}")


def run_of(desk: Desk, *beginnings: dict[str, Any], tenant: str = "default") -> str:
    """A run whose runtime has said this of itself."""
    project = desk.agent.project or ""

    def work(tx: Tx) -> str:
        runs = Runs(tx, tenant)
        run: str = runs.start(NewRun(project_id=project)).id
        runs.append(run, [RunEvent("system", "init", each) for each in beginnings])
        return run

    return desk.fleet.platform.database.direct(work, write=True)


async def signed_in(desk: Desk, run: str, **given: Any) -> str:
    actor = replace(desk.agent, run=run)
    await desk.call("github_create_issue", actor, **{"title": run, **given})
    return desk.github.shop.issues[-1]["body"].split("\n")[0]


@pytest.mark.parametrize("beginnings", [[], [{}], [{"model": ""}], [{"model": None}], [{"model": ["x"]}]])
async def test_a_run_that_does_not_tell_its_model_leaves_it_to_the_caller(
    desk: Desk, beginnings: list[dict[str, Any]]
) -> None:
    told = await signed_in(desk, run_of(desk, *beginnings), model="claude-sonnet-5")
    assert told == "*Posted by default (claude-sonnet-5) through Rookery.*"
    other = await signed_in(desk, run_of(desk, {"model": "of-others"}, tenant="other"))
    assert other == "*Posted by default (claude-code 2.1) through Rookery.*"


async def test_the_model_of_the_run_counts_and_not_what_the_caller_says_of_itself(desk: Desk) -> None:
    run = run_of(desk, {"model": "claude-haiku-4"}, {"model": "claude-opus-5"}, {"servers": []})
    assert await signed_in(desk, run, model="gpt-99") == "*Posted by default (claude-opus-5) through Rookery.*"


async def test_nobody_is_called_by_a_name_in_the_signature(desk: Desk) -> None:
    await desk.fleet.call(desk.fleet.owner, "create_agent", name="ada")
    await desk.call("github_create_issue", desk.fleet.actor(agent="ada"), title="x", model="@octocat **<b>-->")
    assert desk.github.shop.issues[0]["body"].startswith("*Posted by ada (octocat b--) through Rookery.*")
