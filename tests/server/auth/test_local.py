"""Rookery's own tokens, and no tokens at all."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rookery.core.errors import ConfigurationError, Unauthorized
from rookery.server.auth import make_authenticator
from rookery.server.auth.local import NoTokens
from rookery.server.session import open_session
from rookery.settings import Settings
from tests.platform_fixtures import Fleet
from tests.server.auth.issuer import forged, refused, shared_token

LOCAL = Settings(home="/nowhere")
NONE = Settings(home="/nowhere", auth_mode="none")
GOOD_FORM = "rk_" + "a" * 43


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "rk_",
        "rk_short",
        GOOD_FORM + "a",
        GOOD_FORM[:-1],
        GOOD_FORM.upper(),
        "tok_0123456789",
        GOOD_FORM[:-1] + "+",
        shared_token(),
        forged({"alg": "none"}, {"sub": "owner"}),
    ],
)
async def test_what_is_not_a_token_of_ours_is_refused_with_the_way_to_make_one(token: str) -> None:
    authenticator = make_authenticator(LOCAL)
    with pytest.raises(Unauthorized, match="not a token of this Rookery") as caught:
        await authenticator.authenticate(f"Bearer {token}")
    assert "rookery token create NAME --agent AGENT" in (caught.value.hint or "")
    assert await refused(authenticator, token)


async def test_a_token_that_nobody_made_opens_no_session(fleet: Fleet) -> None:
    credential = await make_authenticator(LOCAL).authenticate(f"Bearer {GOOD_FORM}")
    with pytest.raises(Unauthorized, match="unknown, revoked or over"):
        await open_session(fleet.platform, credential.binding)


async def test_a_token_opens_a_session_as_its_holder_until_it_is_revoked(fleet: Fleet) -> None:
    await fleet.call(fleet.owner, "create_agent", name="ada")
    made = await fleet.call(fleet.owner, "create_token", name="laptop", agent="ada", scopes=["system:*"])
    credential = await make_authenticator(LOCAL).authenticate(f"Bearer {made.secret}")
    assert credential.until is None
    assert made.secret not in repr(credential)
    session = await open_session(fleet.platform, credential.binding)
    ada = await session.actor()
    assert (ada.agent_name, ada.source, ada.auth.client) == ("ada", "http", made.id)
    await fleet.call(fleet.owner, "revoke_token", id=made.id)
    with pytest.raises(Unauthorized):
        await session.actor()


async def test_the_same_token_has_the_same_key_and_another_another() -> None:
    authenticator = make_authenticator(LOCAL)
    keys = [(await authenticator.authenticate(f"Bearer rk_{letter * 43}")).key for letter in "aab"]
    assert keys[0] == keys[1] != keys[2]


async def test_without_authentication_everybody_is_the_default_agent(fleet: Fleet) -> None:
    authenticator = make_authenticator(NONE)
    for header in (None, "Bearer whatever", f"Bearer {GOOD_FORM}"):
        credential = await authenticator.authenticate(header)
        actor = await (await open_session(fleet.platform, credential.binding)).actor()
        assert (actor.kind, actor.agent_name, actor.role) == ("agent", "default", None)
    await authenticator.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "rookery.example", "127.0.0.1.example", "128.0.0.1"])
def test_no_way_leads_to_an_open_door_for_others(host: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be 'none' while the server listens on"):
        Settings(home="/nowhere", host=host, auth_mode="none")
    with pytest.raises(ConfigurationError):
        replace(NONE, host=host)
    with pytest.raises(ValueError, match="loopback"):
        NoTokens(cast(Any, SimpleNamespace(auth_mode="none", host=host)))
    with pytest.raises(ValueError, match="explicit"):
        NoTokens(LOCAL)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_without_authentication_this_machine_may_be_served(host: str) -> None:
    assert make_authenticator(Settings(home="/nowhere", host=host, auth_mode="none")).mode == "none"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="auth_mode cannot be 'open'"):
        make_authenticator(Settings(home="/nowhere", auth_mode="open"))
