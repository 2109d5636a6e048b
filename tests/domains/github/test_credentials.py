"""The App: a token of its own for an hour, made from a claim that only its key can sign."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from rookery.core.errors import ConfigurationError, RateLimited, ServiceUnavailable
from rookery.domains.github import credentials
from tests.domains.github.desk import Desk
from tests.domains.github.fake_server import Said

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    kind = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()).decode()


@pytest.fixture(autouse=True)
def no_tokens() -> Iterator[None]:
    credentials._TOKENS.clear()
    yield
    credentials._TOKENS.clear()


def app(desk: Desk, **settings: object) -> Desk:
    desk.github.app_key = KEY.public_key()
    given = {"github_app_id": "7", "github_app_installation_id": 99, "github_app_key": pem(KEY), "github_token": ""}
    return desk.with_settings(**{**given, **settings})


@pytest.mark.parametrize(
    "key", ["nonsense", "/no/such/file", "-----BEGIN x", pem(ec.generate_private_key(ec.SECP256R1()))]
)
async def test_a_key_that_is_none_is_for_the_owner_to_mend(desk: Desk, key: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read as an RSA key") as caught:
        await app(desk, github_app_key=key).call("github_repo_info")
    assert key not in f"{caught.value.as_dict()}"
    assert desk.server.asked == []


async def test_a_key_or_an_installation_that_github_does_not_know_is_told(desk: Desk) -> None:
    stolen = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    for wrong in ({"github_app_key": pem(stolen)}, {"github_app_id": "8"}, {"github_app_installation_id": 98}):
        with pytest.raises(ConfigurationError, match="does not know this App or its installation"):
            await app(desk, **wrong).call("github_repo_info")


async def test_stars_and_follows_need_an_account(desk: Desk) -> None:
    for tool, more in (("github_star_repo", {}), ("github_follow_user", {"username": "octocat"})):
        with pytest.raises(ConfigurationError, match="the token of an account"):
            await app(desk).call(tool, **more)
    assert desk.server.asked == []


@pytest.mark.parametrize("said", [Said(201, b"<html>"), Said(201, {"token": 5}), Said(500), Said(201, {"token": "x"})])
async def test_an_answer_without_a_token_is_no_token(desk: Desk, said: Said) -> None:
    desk.server.fail(said, method="POST", part="/app/", times=9)
    with pytest.raises(ServiceUnavailable, match="no token for the App"):
        await app(desk).call("github_repo_info")


async def test_a_limit_on_the_way_to_a_token_is_a_limit_and_nobodys_mistake(desk: Desk) -> None:
    said = Said(403, {"message": "You have exceeded a secondary rate limit"}, {"Retry-After": "3600"})
    desk.server.fail(said, method="POST", part="/app/")
    fleet = app(desk)
    for _ in range(2):
        with pytest.raises(RateLimited, match="secondary rate limit is used up"):
            await fleet.call("github_repo_info")
    assert (len(desk.server.asked), fleet.count("limits")) == (1, 1)


async def test_what_fails_on_the_way_to_a_token_leaves_no_doubt_about_a_post(desk: Desk) -> None:
    desk.server.fail(Said(500), method="POST", part="/app/", times=9)
    fleet = app(desk)
    with pytest.raises(ServiceUnavailable, match="no token for the App") as caught:
        await fleet.call("github_create_issue", title="x")
    assert caught.value.hint == "try again later"
    assert (fleet.count("posts"), desk.asked("POST", "/repos")) == (0, [])


async def test_a_short_limit_on_the_way_to_a_token_is_sat_out(desk: Desk) -> None:
    desk.server.fail(Said(429, {"message": "Too many"}, {"Retry-After": "0"}), method="POST", part="/app/", times=2)
    assert (await app(desk).call("github_repo_info"))["name"] == "shop"
    credentials._TOKENS.clear()
    desk.server.fail(Said(429, {"message": "Too many"}, {"Retry-After": "0"}), method="POST", part="/app/", times=9)
    with pytest.raises(RateLimited):
        await app(desk).call("github_repo_info")
    assert len(desk.asked("POST", "/app/")) == 6


async def test_a_token_that_ends_among_faults_does_not_make_them_endless(desk: Desk) -> None:
    fleet = app(desk)
    await fleet.call("github_repo_info")
    for status, times in ((500, 2), (401, 1), (500, 50)):
        desk.server.fail(Said(status, {"message": "no"}), part="/repos", times=times)
    with pytest.raises(ServiceUnavailable, match="answered 500"):
        await fleet.call("github_repo_info")
    assert (len(desk.asked("GET")), desk.github.app_tokens) == (5, 2)


async def test_one_token_serves_until_it_ends(desk: Desk) -> None:
    fleet = app(desk)
    for _ in range(3):
        assert (await fleet.call("github_repo_info"))["name"] == "shop"
    await app(desk).call("github_create_issue", title="x")
    assert desk.github.app_tokens == 1
    assert {asked.headers["authorization"] for asked in desk.asked("GET")} == {"Bearer ghs_1"}


async def test_a_token_that_is_about_to_end_is_replaced(desk: Desk) -> None:
    desk.github.app_token_lasts_s = 59
    fleet = app(desk)
    for _ in range(2):
        await fleet.call("github_repo_info")
    assert desk.github.app_tokens == 2


async def test_a_token_that_was_revoked_is_replaced_once(desk: Desk) -> None:
    fleet = app(desk)
    await fleet.call("github_repo_info")
    desk.github.tokens.clear()
    assert (await fleet.call("github_repo_info"))["name"] == "shop"
    assert desk.github.app_tokens == 2
    desk.server.fail(Said(401, {"message": "Bad credentials"}), times=9)
    with pytest.raises(ConfigurationError, match="does not accept the token"):
        await fleet.call("github_repo_info")


async def test_with_both_the_app_works_and_the_account_stars(desk: Desk) -> None:
    both = app(desk, github_token="ghp_s3cr3t")
    await both.call("github_repo_info")
    await both.call("github_star_repo")
    (looked,), (starred,) = desk.asked("GET"), desk.asked("PUT")
    assert looked.headers["authorization"] == "Bearer ghs_1"
    assert starred.headers["authorization"] == "Bearer ghp_s3cr3t"


async def test_the_key_may_be_a_file_or_one_line(desk: Desk, tmp_path: Path) -> None:
    file = tmp_path / "app.pem"
    file.write_text(pem(KEY), encoding="utf-8")
    for key in (str(file), pem(KEY).replace("\n", "\\n")):
        credentials._TOKENS.clear()
        assert (await app(desk, github_app_key=key).call("github_repo_info"))["name"] == "shop"


def test_neither_token_nor_key_shows_in_a_repr() -> None:
    shown = f"{credentials.PersonalToken('ghp_s3cr3t')!r} {credentials.AppInstallation('7', 9, 's3cr3t', 'x')!r}"
    assert "s3cr3t" not in shown
