from rookery.core.actor import Actor
from tests.identity.callers import agents_are_refused, own
from tests.platform_fixtures import Fleet


async def test_an_agent_does_not_see_the_tokens(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "list_tokens")


async def test_all_tokens_of_the_tenant_are_listed_without_their_secrets(fleet: Fleet, stranger: Actor) -> None:
    await fleet.call(stranger, "create_token", name="theirs")
    mine = await own(fleet, "create_token", name="phone", scopes=["tracker:*"])
    ours = await own(fleet, "create_token", name="ci", agent="default")
    await own(fleet, "revoke_token", id=ours.id)
    listed = {token.name: token for token in (await own(fleet, "list_tokens")).tokens}
    assert set(listed) == {"phone", "ci"}
    assert (listed["phone"].holder_kind, listed["phone"].holder) == ("person", fleet.owner.subject)
    assert (listed["ci"].holder_kind, listed["ci"].holder) == ("agent", fleet.actor().agent)
    assert (listed["phone"].scopes, listed["phone"].revoked, listed["ci"].revoked) == (["tracker:*"], False, True)
    assert "secret" not in listed["phone"].model_dump()
    assert mine.secret not in str(listed)
