"""Forged tokens by the thousand: whatever a forger writes who has no key, it is refused and nothing breaks."""

import string
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rookery.core.errors import Unauthorized
from rookery.server.auth import Authenticator, make_authenticator
from rookery.server.auth.jwks import Keys
from rookery.server.auth.oauth import OAuthTokens
from rookery.settings import Settings
from tests.server.auth.issuer import (
    SECRET,
    claims,
    forged,
    jwt_settings,
    oauth_settings,
    public_pem,
    resigned,
    rsa_entry,
    shared_token,
    signed_token,
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
ALGORITHMS = st.sampled_from(["none", "None", "HS256", "HS512", "RS256", "PS256", "ES256", "EdDSA", "", None, 7])
HEADERS = st.fixed_dictionaries(
    {"alg": ALGORITHMS},
    optional={
        "typ": st.sampled_from(["JWT", "at+jwt", "JWE", 5]),
        "kid": st.sampled_from(["first", "second", "", 5, None]) | st.text(max_size=10),
        "jwk": st.just(rsa_entry("forger")),
        "jku": st.just("http://127.0.0.1:1/keys"),
        "crit": JSON,
        "b64": st.booleans(),
        "zip": st.just("DEF"),
    },
)
CLAIM_NAMES = st.sampled_from([*claims(), "nbf", "tid", "scp", "permissions", "azp", "resource"])
CLAIMS = st.dictionaries(CLAIM_NAMES, JSON, max_size=3).map(lambda changes: claims() | changes)
MANY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture(params=["local", "jwt", "oauth"])
def authenticator(request: pytest.FixtureRequest) -> Authenticator:
    if request.param == "local":
        return make_authenticator(Settings(home="/nowhere"))
    if request.param == "jwt":
        return make_authenticator(jwt_settings())
    known = Keys("https://issuer.example/keys", cooldown_s=300, timeout_s=1)
    vars(known).update({"_entries": [rsa_entry("first")], "_fresh_until": float("inf"), "_again_at": float("inf")})
    return OAuthTokens(oauth_settings("https://issuer.example/keys"), keys=known)


def accepts(authenticator: Authenticator, header: str) -> bool:
    """Whether a header is accepted. Without a loop, since nothing here has to wait for anybody."""
    refusal: Unauthorized | None = None
    try:
        authenticator.authenticate(header).send(None)
    except StopIteration:
        return True
    except Unauthorized as error:
        refusal = error
    assert refusal is not None, "it waits for somebody"
    assert authenticator.challenge(refusal, None).isascii()
    return False


@MANY
@given(header=HEADERS, payload=CLAIMS | JSON, signature=st.binary(max_size=300))
def test_made_up_parts_are_refused(authenticator: Authenticator, header: Any, payload: Any, signature: bytes) -> None:
    assert not accepts(authenticator, f"Bearer {forged(header, payload, signature)}")


@MANY
@given(text=st.text(max_size=200) | st.text(string.printable, max_size=200))
def test_any_text_is_refused(authenticator: Authenticator, text: str) -> None:
    for header in (text, f"Bearer {text}", f"Bearer {text}.{text}.{text}", f"Basic {text}"):
        assert not accepts(authenticator, header)


@MANY
@given(header=HEADERS, payload=CLAIMS, own=st.sampled_from(["x" * 40, SECRET[:-1], public_pem("first").decode()]))
def test_a_signature_with_another_secret_is_refused(
    authenticator: Authenticator, header: Any, payload: Any, own: str
) -> None:
    assert not accepts(authenticator, f"Bearer {resigned(header, payload, own)}")


@MANY
@given(place=st.integers(0, 10_000), letter=st.sampled_from(string.ascii_letters + string.digits + "-_.=+/ ,"))
def test_one_changed_letter_is_enough_to_be_refused(authenticator: Authenticator, place: int, letter: str) -> None:
    for token in (GOOD_SHARED, GOOD_SIGNED):
        at = place % len(token)
        changed = token[:at] + letter + token[at + 1 :]
        if changed.strip(" ") != token:
            assert not accepts(authenticator, f"Bearer {changed}")


@MANY
@given(payload=CLAIMS)
def test_a_right_signature_over_any_claims_passes_or_is_refused_and_nothing_else(payload: Any) -> None:
    accepts(make_authenticator(jwt_settings()), f"Bearer {resigned({'alg': 'HS256'}, payload)}")


GOOD_SHARED, GOOD_SIGNED = shared_token(), signed_token()


def test_the_tokens_that_were_changed_are_good_ones(authenticator: Authenticator) -> None:
    passed = [accepts(authenticator, f"Bearer {token}") for token in (GOOD_SHARED, GOOD_SIGNED)]
    assert passed == {"local": [False, False], "jwt": [True, False], "oauth": [False, True]}[authenticator.mode]
