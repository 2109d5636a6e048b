"""Settings that would leave a door open stop the start, and none of them tells a secret."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rookery.core.errors import ConfigurationError
from rookery.settings import Settings
from tests.settings_loading import Load, fault, loader

SECRET = "correct-horse-battery-staple-and-more"
OAUTH = {
    "MCP_AUTH_MODE": "oauth",
    "OAUTH_ISSUER_URL": "https://issuer.example",
    "OAUTH_AUDIENCE": "rookery",
}


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return loader(tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "rookery.example", "localhost.example"])
def test_without_authentication_nobody_else_may_be_served(load: Load, host: str) -> None:
    told = fault(load, "", {"MCP_AUTH_MODE": "none", "MCP_HTTP_HOST": host})
    assert told == f"MCP_AUTH_MODE cannot be 'none' while the server listens on {host}"
    assert "listens on" in fault(load, f'host = "{host}"\n', auth_mode="none")
    assert "others reach as https://rookery.example" in fault(
        load, '[auth]\nmode = "none"\n', {"MCP_PUBLIC_URL": "https://rookery.example"}
    )


def test_a_shared_secret_must_be_there_and_long_enough(load: Load, tmp_path: Path) -> None:
    assert fault(load, "", {"MCP_AUTH_MODE": "jwt"}) == "auth_secret is missing, and auth_mode is jwt"
    short = "too-short-" + "x" * 21
    assert fault(load, "", {"MCP_AUTH_MODE": "jwt", "MCP_AUTH_SECRET_KEY": short}) == "MCP_AUTH_SECRET_KEY is too short"
    file = f'[auth]\nmode = "jwt"\nsecret = "{short}"\n'
    assert fault(load, file) == f"{tmp_path / 'rookery.toml'}: auth_secret is too short"
    assert load("", {"MCP_AUTH_MODE": "jwt", "MCP_AUTH_SECRET_KEY": short + "x"}).auth_mode == "jwt"


def test_oauth_needs_an_issuer_and_an_audience(load: Load) -> None:
    mode, issuer, audience = ({name: value} for name, value in OAUTH.items())
    assert fault(load, "", mode) == "auth_issuer is missing, and auth_mode is oauth"
    assert fault(load, "", mode | issuer) == "auth_audience is missing, and auth_mode is oauth"
    assert fault(load, "", mode | audience) == "auth_issuer is missing, and auth_mode is oauth"
    settings = load("", OAUTH)
    assert settings.jwks_address == "https://issuer.example/.well-known/jwks.json"


def test_single_sign_on_needs_an_issuer_and_a_client(load: Load) -> None:
    issuer = {"ROOKERY_OIDC_ISSUER": "https://issuer.example"}
    assert fault(load, "", issuer) == "oidc_client_id is missing, and oidc_issuer is set"
    assert fault(load, '[oidc]\nclient_id = "console"\n') == "oidc_issuer is missing, and oidc_client_id is set"
    secret = {"ROOKERY_OIDC_CLIENT_ID": "console", "ROOKERY_OIDC_CLIENT_SECRET": "hunter2 and more"}
    assert "hunter2" not in repr(load("", issuer | secret))


@pytest.mark.parametrize(
    "issuer",
    ["http://issuer.example", "issuer", "ftp://127.0.0.1", "https://u:p@issuer.example", "https://i.example#x"],
)
def test_an_issuer_that_others_could_pretend_to_be_is_refused(load: Load, issuer: str) -> None:
    assert fault(load, "", OAUTH | {"OAUTH_ISSUER_URL": issuer}).startswith("OAUTH_ISSUER_URL cannot be ")


@pytest.mark.parametrize("issuer", ["http://127.0.0.1:8080", "http://localhost/realms/a", "http://[::1]:1"])
def test_an_issuer_on_this_machine_needs_no_encryption(load: Load, issuer: str) -> None:
    assert load("", OAUTH | {"OAUTH_ISSUER_URL": issuer}).auth_issuer == issuer


def test_settings_cannot_be_made_that_leave_a_door_open() -> None:
    wrong: dict[str, Any]
    for wrong in (
        {"auth_mode": "none", "host": "0.0.0.0"},
        {"auth_mode": "jwt", "auth_secret": "short"},
        {"auth_mode": "oauth", "auth_issuer": "http://issuer.example", "auth_audience": "a"},
    ):
        with pytest.raises(ConfigurationError):
            Settings(home="/nowhere", **wrong)
    with pytest.raises(ConfigurationError):
        replace(Settings(home="/nowhere", auth_mode="none"), host="0.0.0.0")


def test_no_secret_is_shown(load: Load) -> None:
    database = "postgresql://ada:hunter2@db/rookery?sslmode=require&password=hunter2"
    settings = load("", {"ROOKERY_AUTH_SECRET": SECRET, "ROOKERY_DATABASE": database})
    assert (settings.auth_secret, settings.database) == (SECRET, database)
    for text in (repr(settings), str(settings), f"{settings}"):
        assert SECRET not in text
        assert "hunter2" not in text
        assert "auth_secret='***'" in text
        assert "ada:***@db" in text
    for file in (
        f'[auth]\nsecret = ["{SECRET}"]\n',
        f'[auth]\nsecret = {{a = "{SECRET}"}}\n',
        f'database = ["{database}"]\n',
        'auth_jwks_uri = "https://ada:hunter2@keys.example"\n',
    ):
        with pytest.raises(ConfigurationError) as caught:
            load(file)
        told = f"{caught.value!r} {caught.value.message} {caught.value.hint}"
        assert SECRET not in told
        assert "hunter2" not in told
    with pytest.raises(ConfigurationError) as caught:
        load("", OAUTH | {"OAUTH_ISSUER_URL": "https://ada:hunter2@issuer.example"})
    assert "hunter2" not in caught.value.message
