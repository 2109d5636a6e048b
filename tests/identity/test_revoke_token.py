import pytest

from rookery.core.actor import Actor
from rookery.core.errors import NotFound, Unauthorized
from rookery.identity.resolve import Binding
from rookery.server.session import open_session
from tests.identity.callers import agents_are_refused, fails_with, is_not_found, own
from tests.platform_fixtures import Fleet


async def test_an_agent_cannot_revoke_tokens(fleet: Fleet) -> None:
    await agents_are_refused(fleet, "revoke_token", id="tok-1")


async def test_the_tokens_of_another_tenant_are_not_found(fleet: Fleet, stranger: Actor) -> None:
    theirs = await fleet.call(stranger, "create_token", name="theirs")
    await is_not_found(fleet, fleet.owner, "revoke_token", id=theirs.id)
    assert fleet.actor(token=theirs.secret).tenant == "other"


async def test_a_revoked_token_ends_its_live_sessions_with_their_next_call(fleet: Fleet) -> None:
    made = await own(fleet, "create_token", name="laptop", agent="default")
    session = await open_session(fleet.platform, Binding(token=made.secret))
    await fleet.call(await session.actor(), "ping")
    assert (await own(fleet, "revoke_token", id=made.id)).done == "revoked"
    for _ in range(2):
        with pytest.raises(Unauthorized):
            await session.actor()
    with pytest.raises(Unauthorized):
        await open_session(fleet.platform, Binding(token=made.secret))
    await fails_with(NotFound, fleet, "revoke_token", id=made.id)
    await fails_with(NotFound, fleet, "revoke_token", id=made.secret)
