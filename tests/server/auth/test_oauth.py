"""Tokens of an issuer with published keys: only its own signatures pass, whatever a token says of itself."""

from collections.abc import AsyncIterator

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from rookery.server.auth.oauth import OAuthTokens
from tests.server.auth.issuer import (
    AUDIENCE,
    NONES,
    KeyServer,
    accepted,
    claims,
    ec_entry,
    forged,
    oauth_settings,
    part,
    public_pem,
    refused,
    resigned,
    rsa_entry,
    rsa_key,
    shared_token,
    signed_token,
)


@pytest.fixture
async def authenticator(key_server: KeyServer) -> AsyncIterator[OAuthTokens]:
    key_server.publish(rsa_entry("first"), ec_entry("curve"))
    made = OAuthTokens(oauth_settings(key_server.address))
    yield made
    await made.close()


@pytest.mark.parametrize(
    "name", [*NONES, "HS256", "HS384", "HS512", "RS512", "EdDSA", "ES512", "RS256 ", "rs256"], ids=repr
)
async def test_no_other_algorithm_is_accepted(authenticator: OAuthTokens, name: object) -> None:
    assert await refused(authenticator, forged({"alg": name, "kid": "first"}, claims()))
    signed = signed_token().rsplit(".", 1)[1]
    assert await refused(authenticator, f"{part({'alg': name, 'kid': 'first'})}.{part(claims())}.{signed}")


async def test_the_public_key_is_no_secret_for_an_hmac(authenticator: OAuthTokens) -> None:
    pem = public_pem("first").decode()
    for secret in (pem, pem.strip(), rsa_entry("first")["n"]):
        assert await refused(authenticator, resigned({"alg": "HS256", "kid": "first"}, claims(), secret))
        assert await refused(authenticator, resigned({"alg": "RS256", "kid": "first"}, claims(), secret))
    assert await refused(authenticator, shared_token(headers={"kid": "first"}))


async def test_a_key_that_the_token_brings_is_not_used(authenticator: OAuthTokens, key_server: KeyServer) -> None:
    own = rsa_entry("forger")
    async with KeyServer() as evil:
        evil.publish(own)
        brought = (
            {"jwk": own},
            {"jku": evil.address},
            {"x5u": evil.address},
            {"x5c": ["MII"]},
            {"jwk": own, "jku": evil.address, "kid": "first"},
            {"iss": "https://evil.example", "jku": evil.address},
        )
        for headers in brought:
            assert await refused(authenticator, signed_token("forger", headers=headers))
            assert await refused(authenticator, signed_token("forger", kid=None, headers=headers))
        assert evil.requests == 0
    assert key_server.requests == 1


async def test_anothers_signature_under_a_known_key_id_is_refused(authenticator: OAuthTokens) -> None:
    for algorithm in ("RS256", "PS256"):
        assert "signature" in await refused(authenticator, signed_token("forger", algorithm, kid="first"))
    assert "signature" in await refused(authenticator, signed_token("forger", "ES256", kid="curve"))
    assert await refused(authenticator, signed_token("forger", "ES256", kid="first"))
    assert await refused(authenticator, signed_token("forger", "RS256", kid="curve"))


async def test_a_changed_token_is_refused(authenticator: OAuthTokens) -> None:
    header, payload, signature = signed_token().split(".")
    assert "signature" in await refused(authenticator, f"{header}.{part(claims(scope='*'))}.{signature}")
    assert "signature" in await refused(authenticator, f"{header}.{payload}.{signature[:-8]}AAAAAAAA")
    assert "signature" in await refused(authenticator, f"{header}.{payload}.")
    other = {"alg": "RS256", "kid": "first", "typ": "JWT", "x": 1}
    assert "signature" in await refused(authenticator, f"{part(other)}.{payload}.{signature}")


@pytest.mark.parametrize("kid", [5, ["first"], {"a": 1}, True, "x" * 257, "first\0", "FIRST", "../first", "' OR 1=1"])
async def test_a_key_id_that_is_not_one_of_the_issuers_is_refused(authenticator: OAuthTokens, kid: object) -> None:
    signature = signed_token().rsplit(".", 1)[1]
    assert await refused(authenticator, f"{part({'alg': 'RS256', 'kid': kid})}.{part(claims())}.{signature}")


async def test_wrong_claims_under_a_right_signature_are_refused(authenticator: OAuthTokens) -> None:
    assert "another issuer" in await refused(authenticator, signed_token(iss="https://evil.example"))
    assert "another audience" in await refused(authenticator, signed_token(aud="https://other.example"))
    assert "another audience" in await refused(authenticator, signed_token(aud=None))
    assert "expired" in await refused(authenticator, signed_token(exp=1))
    assert "has no end" in await refused(authenticator, signed_token(exp=None))
    assert "not valid yet" in await refused(authenticator, signed_token(nbf=claims()["exp"]))
    assert "no scopes" in await refused(authenticator, signed_token(scope=None))
    assert "no client" in await refused(authenticator, signed_token(client_id=None))
    assert "another type" in await refused(authenticator, signed_token(headers={"typ": "logout+jwt"}))


async def test_a_token_for_another_resource_is_refused(key_server: KeyServer) -> None:
    key_server.publish(rsa_entry("first"))
    picky = OAuthTokens(oauth_settings(key_server.address, auth_resource="https://rookery.example/mcp/two"))
    assert "another resource" in await refused(picky, signed_token())
    assert await accepted(picky, signed_token(resource="https://rookery.example/mcp/two"))
    assert await accepted(picky, signed_token(aud=[AUDIENCE, "https://rookery.example/mcp/two"]))
    await picky.close()


@pytest.mark.parametrize(("key", "algorithm"), [("first", "RS256"), ("first", "PS256"), ("curve", "ES256")])
async def test_each_kind_of_signature_passes(authenticator: OAuthTokens, key: str, algorithm: str) -> None:
    credential = await accepted(authenticator, signed_token(key, algorithm, headers={"typ": "at+jwt"}))
    assert credential.binding.identity is not None
    assert (credential.binding.identity.subject, credential.binding.identity.client) == ("ada", "cli")


async def test_a_token_without_a_key_id_gets_the_only_key_that_fits(
    authenticator: OAuthTokens, key_server: KeyServer
) -> None:
    assert await accepted(authenticator, signed_token(kid=None))
    assert await accepted(authenticator, signed_token("curve", "ES256", kid=None))
    assert "signature" in await refused(authenticator, signed_token("forger", kid=None))
    key_server.publish(rsa_entry("first"), rsa_entry("second"))
    several = OAuthTokens(oauth_settings(key_server.address))
    assert "does not show" in await refused(several, signed_token(kid=None))
    await several.close()


async def test_keys_that_are_not_for_this_are_not_used(key_server: KeyServer) -> None:
    private = {**rsa_entry("first"), "d": "AQAB"}
    for entry in (
        rsa_entry("first", use="enc"),
        rsa_entry("first", alg="PS256"),
        rsa_entry("first", key_ops=["sign"]),
        rsa_entry("first", key_ops="verify"),
        rsa_entry("first", n="AAAA"),
        rsa_entry("first", n=5),
        rsa_entry("first", e=""),
        private,
        {"kty": "RSA", "kid": "first"},
        {"kty": "oct", "kid": "first", "k": "c2VjcmV0"},
        ec_entry("first"),
    ):
        key_server.publish(entry)
        authenticator = OAuthTokens(oauth_settings(key_server.address))
        assert await refused(authenticator, signed_token("first"))
        await authenticator.close()


async def test_short_keys_and_other_curves_are_not_used(key_server: KeyServer) -> None:
    key_server.publish(rsa_entry("short", 1024), ec_entry("large", ec.SECP384R1))
    authenticator = OAuthTokens(oauth_settings(key_server.address))
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        short = jwt.encode(claims(), rsa_key("short", 1024), algorithm="RS256", headers={"kid": "short"})
    assert "does not show" in await refused(authenticator, short)
    assert await refused(authenticator, signed_token("large", "ES256"))
    await authenticator.close()


async def test_two_keys_of_one_id_are_none(key_server: KeyServer) -> None:
    key_server.publish(rsa_entry("first"), rsa_entry("second", kid="first"))
    authenticator = OAuthTokens(oauth_settings(key_server.address))
    assert "does not show" in await refused(authenticator, signed_token())
    await authenticator.close()
