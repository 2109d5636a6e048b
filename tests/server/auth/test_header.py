"""The Authorization header that comes and the WWW-Authenticate header that goes, the same in every mode."""

import re

import pytest

from rookery.core.errors import PermissionDenied, Unauthorized
from rookery.server.auth import Authenticator, MissingToken, make_authenticator
from rookery.settings import Settings
from tests.server.auth.issuer import jwt_settings, oauth_settings, shared_token

LOCAL = Settings(home="/nowhere")
OAUTH = oauth_settings("https://issuer.example/keys")


@pytest.fixture(params=[LOCAL, jwt_settings(), OAUTH], ids=["local", "jwt", "oauth"])
def authenticator(request: pytest.FixtureRequest) -> Authenticator:
    return make_authenticator(request.param)


@pytest.mark.parametrize("header", [None, "", " ", "\t"])
async def test_no_token_is_asked_for_and_not_called_wrong(authenticator: Authenticator, header: str | None) -> None:
    with pytest.raises(MissingToken, match="needs a token") as caught:
        await authenticator.authenticate(header)
    assert "Authorization: Bearer" in (caught.value.hint or "")
    assert authenticator.challenge(caught.value, None) == 'Bearer realm="rookery"'


TOKEN = shared_token()
NOT_ONE_BEARER_TOKEN = [
    "Bearer",
    "Bearer ",
    "Bearer  ",
    "Bearer\t" + TOKEN,
    f"Basic {TOKEN}",
    "Basic YWRhOnNlY3JldA==",
    f"bearer{TOKEN}",
    f"Token {TOKEN}",
    TOKEN,
    f"Bearer {TOKEN} {TOKEN}",
    f"Bearer {TOKEN},Bearer {TOKEN}",
    f"Bearer {TOKEN}, Bearer {TOKEN}",
    f"Bearer Bearer {TOKEN}",
    f"Bearer {TOKEN};",
    f"Bearer {TOKEN}\r\nX-Evil: 1",
    f"Bearer {TOKEN}\0",
    f"Bearer “{TOKEN}”",
    f'Bearer "{TOKEN}"',
    f"Bearer {TOKEN}é",
    "Bearer \udc80\udcff",
    "Bearer " + "ä" * 100,
    "Bearer " + "a" * 20_000,
    "Bearer " + ".".join(["a" * 6_000] * 3),
    f"Digest username=ada, token={TOKEN}",
    "Bearer ===",
]


@pytest.mark.parametrize("header", NOT_ONE_BEARER_TOKEN)
async def test_a_header_that_is_not_one_bearer_token_is_refused(authenticator: Authenticator, header: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        await authenticator.authenticate(header)
    assert not isinstance(caught.value, MissingToken)
    assert caught.value.hint
    assert TOKEN not in f"{caught.value.message}{caught.value.hint}"
    assert 'error="invalid_token"' in authenticator.challenge(caught.value, None)


async def test_the_scheme_is_read_in_any_case_and_blanks_around_the_token_are_nothing() -> None:
    authenticator = make_authenticator(jwt_settings())
    for header in (f"bearer {TOKEN}", f"BEARER {TOKEN}", f" Bearer   {TOKEN} "):
        assert (await authenticator.authenticate(header)).binding.identity is not None


def test_the_challenge_names_the_error_the_scopes_and_the_metadata(authenticator: Authenticator) -> None:
    error = Unauthorized("the token has expired", hint="get a new one")
    assert authenticator.challenge(error, "https://rookery.example/.well-known/oauth-protected-resource/mcp") == (
        'Bearer realm="rookery", error="invalid_token", error_description="the token has expired", '
        'resource_metadata="https://rookery.example/.well-known/oauth-protected-resource/mcp"'
    )
    assert authenticator.challenge(PermissionDenied("the token lacks a:b"), None, ["a:b", "c:d"]) == (
        'Bearer realm="rookery", error="insufficient_scope", error_description="the token lacks a:b", scope="a:b c:d"'
    )


EVIL = ['a"b', "a\\", "a\r\nSet-Cookie: x=1", "ä\u2028", "\x00\x7f", '", error="none', "x" * 1000]


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_can_break_out_of_the_challenge(authenticator: Authenticator, evil: str) -> None:
    header = authenticator.challenge(Unauthorized(evil), f"https://h/{evil}", [evil])
    assert re.fullmatch(r"[ -~]+", header)
    quoted = r'"[^"\\]*"'
    assert re.fullmatch(rf"Bearer (\w+={quoted})(, \w+={quoted})*", header)
    names = re.findall(r'(\w+)="', header)
    assert names == ["realm", "error", "error_description", "scope", "resource_metadata"]
