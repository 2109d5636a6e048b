"""Reputation with its parts and attestations, and credits with their books, for each agent."""

import json
from typing import Any

import pytest

from rookery.attest.tables import reputation_attestations
from rookery.db.tx import Tx
from rookery.domains.credits.books import get_daily_costs, list_balances, list_transactions
from rookery.domains.reputation.score import WEIGHTS
from rookery.domains.reputation.standing import list_attestations, list_scores, show_reputation
from rookery.engine.agent_activity import get_agent_activity
from rookery.ledger.store import wallet_of
from tests.web.fleet_of_agents import agent_elsewhere, asked, call, person
from tests.web.guest import Guest, words_of
from tests.web.site import Viewer
from tests.web.test_run_names import a_schedule


async def agent_id(owner: Guest, name: str = "default") -> str:
    return next(each["id"] for each in (await call(owner, "list_agent_settings"))["agents"] if each["name"] == name)


async def test_a_viewer_sees_the_score_and_is_refused_to_publish_it_or_to_give_credits(owner: Guest) -> None:
    viewer = person(owner, "viewer")
    assert "Publish the score" not in await viewer.words("/agents/default/reputation")
    assert "Give credits" not in await viewer.words("/agents/default/credits")
    assert (await viewer.post("/agents/default/attest")).status_code == 403
    assert (await viewer.post("/agents/default/credits", {"amount": "5"})).status_code == 403
    assert (await asked(owner, list_attestations, agent="default"))["count"] == 0


async def test_the_books_of_another_tenant_are_not_there(owner: Guest) -> None:
    other = agent_elsewhere(owner)
    for path in (f"/agents/{other}/attest", f"/agents/{other}/credits"):
        assert (await owner.post(path, {"amount": "5"})).status_code == 404
    assert (await asked(owner, list_balances))["balances"] == []
    assert other not in json.dumps(await asked(owner, list_scores))
    assert other not in json.dumps(await asked(owner, get_agent_activity))


async def test_the_score_is_shown_with_every_part_its_weight_and_what_it_means(owner: Guest) -> None:
    standing = await asked(owner, show_reputation, agent="default")
    assert standing["overall_score"] == 55
    assert {each["name"]: each["weight"] for each in standing["components"]} == WEIGHTS
    page = await owner.words("/agents/default/reputation")
    assert "55 Score, of 100" in page
    assert "Security compliance 100 of 100, weighs 20 %, gives 20.0" in page
    assert "Nothing was noted yet." in page
    assert (await asked(owner, list_scores))["scores"][0]["overall_score"] == 55


async def test_attestations_are_published_verified_and_linked(owner: Guest) -> None:
    agent = await agent_id(owner)
    assert "Nothing is attested yet." in await owner.words("/agents/default/reputation")
    assert (await owner.post("/agents/default/attest")).status_code == 303
    await call(owner, "grant_credits", wallet_address=wallet_of(agent), amount=10)
    await owner.post("/agents/default/attest")
    page = (await owner.get("/agents/default/reputation")).text
    assert "log verified" in words_of(page)
    assert f'href="/attestations/{agent}/log.json"' in page
    assert "Attested scores" in page
    assert (await owner.get(f"/attestations/{agent}/log.json")).status_code == 200
    first = await asked(owner, list_attestations, agent="default", limit=1)
    assert (first["count"], first["state"], first["next_before"]) == (2, "verified", 2)
    second = await asked(owner, list_attestations, agent="default", limit=1, before=2)
    assert [each["overall_score"] for each in (first["attestations"] + second["attestations"])] == [63, 55]


async def test_a_spoilt_log_is_said_to_be_broken(owner: Guest) -> None:
    await owner.post("/agents/default/attest")
    database = owner.fleet.platform.database

    def spoil(tx: Tx) -> None:
        row = database_row(tx)
        insert = reputation_attestations.insert().values(
            **{**row, "number": row["number"] + 1, "envelope": "no envelope", "head": "{}"}
        )
        tx.run(insert)

    database.direct(spoil, write=True)
    page = await owner.words("/agents/default/reputation")
    assert "log broken" in page
    assert "an entry of the log cannot be read" in page


def database_row(tx: Tx) -> dict[str, Any]:
    row = tx.one(reputation_attestations.select())
    assert row is not None
    return row._asdict()


async def test_credits_are_given_and_every_move_is_in_the_books(owner: Guest) -> None:
    agent = await agent_id(owner)
    assert "Nothing has moved." in await owner.words("/agents/default/credits")
    answer = await owner.post("/agents/default/credits", {"amount": "500", "reference": "a <b>start</b>"})
    assert answer.status_code == 303
    for amount in range(1, 31):
        await call(owner, "grant_credits", wallet_address=wallet_of(agent), amount=amount, reference=f"number {amount}")
    page = await owner.words("/agents/default/credits")
    assert "965 Available" in page
    assert "+30 965 number 30" in page
    assert "a <b>start</b>" not in page
    books = await asked(owner, list_transactions, wallet_address=wallet_of(agent))
    assert len(books["transactions"]) == 25
    older = await owner.words(f"/agents/default/credits?before={books['next_before']}")
    assert "+500 500 a <b>start</b>" in older
    assert "Newest" in older
    assert (await asked(owner, list_balances))["balances"][0]["available"] == 965


async def test_the_books_name_the_schedule_for_which_credits_were_spent(owner: Guest) -> None:
    wallet, execution = wallet_of(await agent_id(owner)), await a_schedule(owner, "Nightly review")
    for reference in (f"execution:{execution}:0", "execution:of-nobody:0"):
        await call(owner, "grant_credits", wallet_address=wallet, amount=5, reference=reference)
    words = await owner.words("/agents/default/credits")
    assert "+5 5 Schedule Nightly review" in words
    assert "+5 10 execution:of-nobody:0" in words


@pytest.mark.parametrize("amount", ["", "0", "-5", "1e3", "2000000", "\u0661"])
async def test_an_amount_that_is_none_gives_nothing(owner: Guest, amount: str) -> None:
    assert (await owner.post("/agents/default/credits", {"amount": amount})).status_code == 400
    assert (await asked(owner, list_balances))["balances"] == []


async def test_costs_are_summed_by_day(owner: Guest) -> None:
    fleet = owner.fleet
    issue = await fleet.issue()
    agent = fleet.actor(agent="default", issue=issue)
    await fleet.platform.calls.call(agent, "ping", {})
    days = (await asked(owner, get_daily_costs, agent="default", days=7))["days"]
    assert len(days) == 7
    assert sum(each["cost_usd"] for each in days) == 0
    assert "No run in the last 30 days." in await owner.words("/agents/default/credits")


async def test_whoever_has_called_a_tool_was_seen(owner: Guest) -> None:
    fleet = owner.fleet
    assert (await asked(owner, get_agent_activity))["agents"][0]["seen_at"] is None
    await fleet.call(fleet.actor(agent="default"), "ping")
    assert (await asked(owner, get_agent_activity))["agents"][0]["seen_at"] is not None


def test_a_score_is_published_and_credits_given_in_the_browser(viewer: Viewer) -> None:
    page = viewer.open("/agents/default/credits")
    page.get_by_label("Credits", exact=True).fill("250")
    page.get_by_label("Credits", exact=True).press("Enter")
    page.get_by_role("cell", name="+250").wait_for()
    viewer.check()
    page.get_by_role("link", name="Reputation").click()
    page.get_by_role("button", name="Publish the score").click()
    page.get_by_role("button", name="Yes").click()
    page.get_by_text("log verified").wait_for()
    viewer.check()
