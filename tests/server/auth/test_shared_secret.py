"""Tokens signed with a shared secret: HS256 with our secret passes, and nothing else."""

import base64
import time

import jwt
import pytest

from rookery.server.auth.shared_secret import SharedSecret
from tests.server.auth.issuer import (
    NONES,
    SECRET,
    Clock,
    accepted,
    claims,
    forged,
    jwt_settings,
    part,
    public_pem,
    refused,
    resigned,
    rsa_key,
    shared_token,
    signed_token,
)


@pytest.fixture
def authenticator() -> SharedSecret:
    return SharedSecret(jwt_settings())


@pytest.mark.parametrize("name", NONES, ids=repr)
async def test_an_unsigned_token_is_refused_however_it_spells_none(authenticator: SharedSecret, name: object) -> None:
    assert await refused(authenticator, forged({"alg": name, "typ": "JWT"}, claims()))
    assert await refused(authenticator, resigned({"alg": name, "typ": "JWT"}, claims()))


@pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
async def test_another_hash_with_the_right_secret_is_refused(authenticator: SharedSecret, algorithm: str) -> None:
    token = jwt.encode(claims(), SECRET * 2, algorithm=algorithm)
    assert "does not accept" in await refused(authenticator, token)


async def test_a_token_of_a_key_pair_is_refused(authenticator: SharedSecret) -> None:
    for algorithm in ("RS256", "PS256", "ES256"):
        assert "does not accept" in await refused(authenticator, signed_token(algorithm=algorithm))


async def test_another_secret_is_refused(authenticator: SharedSecret) -> None:
    for secret in (SECRET[:-1] + "x", SECRET.upper() + "-", SECRET + " ", "0" * 40):
        assert "signature" in await refused(authenticator, shared_token(secret))
    assert "signature" in await refused(authenticator, resigned({"alg": "HS256"}, claims(), ""))


async def test_a_changed_token_is_refused_wherever_it_was_changed(authenticator: SharedSecret) -> None:
    header, payload, signature = shared_token().split(".")
    more = part(claims(scope="*"))
    for token in (
        f"{header}.{more}.{signature}",
        f"{header}.{payload}.{signature[:-4]}",
        f"{header}.{payload}.{signature[::-1]}",
        f"{header}.{payload}.",
        f"{header}.{payload}",
        f"{header}..{signature}",
        f"{payload}.{header}.{signature}",
        f"{header}.{payload}.{signature}.{signature}",
        f"{part({'alg': 'HS256', 'kid': '../../etc/passwd'})}.{payload}.{signature}",
    ):
        assert await refused(authenticator, token)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "HS256", "crit": ["exp"]},
        {"alg": "HS256", "crit": []},
        {"alg": "HS256", "b64": False},
        {"alg": "HS256", "b64": False, "crit": ["b64"]},
        {"alg": "HS256", "typ": "id_token"},
        {"alg": "HS256", "typ": "dpop+jwt"},
        {"alg": "HS256", "typ": 5},
        {"alg": "HS256", "kid": 5},
        ["HS256"],
        "HS256",
        None,
    ],
)
async def test_a_header_of_another_kind_is_refused(authenticator: SharedSecret, header: object) -> None:
    assert await refused(authenticator, resigned(header, claims()))


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "application/at+jwt", None])
async def test_access_tokens_of_every_usual_type_pass(authenticator: SharedSecret, kind: str | None) -> None:
    header = {"alg": "HS256"} | ({"typ": kind} if kind else {})
    assert await accepted(authenticator, resigned(header, claims()))


@pytest.mark.parametrize("payload", [b"", b"no json", b"[]", b"null", b'"x"', b"\xff", b"[" * 9000, b"1e999", b"NaN"])
async def test_a_right_signature_over_something_else_than_claims_is_refused(
    authenticator: SharedSecret, payload: bytes
) -> None:
    assert await refused(authenticator, resigned({"alg": "HS256"}, payload))


async def test_a_key_that_the_token_brings_is_not_used(authenticator: SharedSecret) -> None:
    own = "a-secret-that-the-forger-has-made-up-himself"
    entry = {"kty": "oct", "k": base64.urlsafe_b64encode(own.encode()).decode()}
    for extra in ({"jwk": entry}, {"jku": "http://127.0.0.1:1/keys"}, {"x5u": "http://127.0.0.1:1"}, {"x5c": ["MII"]}):
        assert "signature" in await refused(authenticator, shared_token(own, headers=extra))


async def test_a_public_key_as_the_secret_of_an_hmac_is_refused() -> None:
    """Also where somebody took the public key of an issuer for the secret."""
    pem = public_pem("first").decode()
    authenticator = SharedSecret(jwt_settings(auth_secret=pem))
    assert "signature" in await refused(authenticator, resigned({"alg": "HS256"}, claims(), pem))
    assert "does not accept" in await refused(authenticator, jwt.encode(claims(), rsa_key("first"), algorithm="RS256"))


async def test_a_secret_of_any_bytes_works() -> None:
    raw = bytes(range(200, 240))
    authenticator = SharedSecret(jwt_settings(auth_secret=raw.decode(errors="surrogateescape")))
    assert await accepted(authenticator, shared_token(raw))
    assert "signature" in await refused(authenticator, shared_token())


async def test_issuer_and_audience_count_where_they_are_set() -> None:
    authenticator = SharedSecret(jwt_settings(auth_issuer="https://issuer.example", auth_audience="rookery"))
    assert "another issuer" in await refused(authenticator, shared_token(iss="https://evil.example", aud="rookery"))
    assert "another audience" in await refused(authenticator, shared_token(aud="other"))
    assert await accepted(authenticator, shared_token(aud=["other", "rookery"]))


async def test_the_token_becomes_an_identity(authenticator: SharedSecret) -> None:
    expires = int(time.time()) + 600
    token = shared_token(cid="cli", sub="ada", tid="acme", scp=["a:b"], scope="c:d e:f", exp=expires)
    credential = await accepted(authenticator, token)
    identity = credential.binding.identity
    assert identity is not None
    assert (identity.client, identity.subject, identity.tenant) == ("cli", "ada", "acme")
    assert identity.scopes == {"a:b", "c:d", "e:f"}
    assert identity.expires_ms == (expires + 30) * 1000
    assert (credential.binding.source, credential.binding.token, credential.binding.as_owner) == ("http", None, False)
    assert token not in repr(credential)


async def test_a_token_is_checked_again_after_a_minute_or_when_it_is_over() -> None:
    clock = Clock(time.time())
    authenticator = SharedSecret(jwt_settings(), clock)
    long, short = shared_token(exp=int(clock.now) + 600), shared_token(exp=int(clock.now) + 10)
    first = await accepted(authenticator, long)
    assert first.until == clock.now + 60
    assert await accepted(authenticator, long) is first
    assert (await accepted(authenticator, short)).until == int(clock.now) + 10 + 30
    clock.now += 41
    assert await accepted(authenticator, long) is first
    assert await refused(authenticator, short) == "the token has expired"
    clock.now += 20
    again = await accepted(authenticator, long)
    assert again is not first
    assert again.key == first.key
    clock.now += 600
    assert await refused(authenticator, long) == "the token has expired"


async def test_no_number_of_tokens_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rookery.server.auth.signed.MOST_KEPT", 10)
    authenticator = SharedSecret(jwt_settings())
    for number in range(50):
        assert await accepted(authenticator, shared_token(sub=f"user-{number}"))
        assert len(vars(authenticator)["_kept"]) <= 10
