from rookery.core.actor import Actor
from tests.identity.callers import agents_are_refused, own
from tests.platform_fixtures import Fleet


async def test_an_agent_does_not_see_the_grants(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "list_grants")


async def test_all_grants_of_the_tenant_are_listed_ended_ones_included(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "grant_tool", agent="default", tool="credit_config")
    first = await own(fleet, "grant_tool", agent="default", tool="grant_credits", reason="payday")
    second = await own(fleet, "grant_tool", agent="default", tool="get_issue")
    await own(fleet, "revoke_grant", id=first.id)
    listed = (await own(fleet, "list_grants")).grants
    assert {grant.id: grant.revoked for grant in listed} == {first.id: True, second.id: False}
    assert {grant.reason for grant in listed} == {"payday", ""}
    assert {grant.agent for grant in listed} == {fleet.actor().agent}
