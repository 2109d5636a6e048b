"""The names that other MCP servers use for our settings: what each does, and which of two wins."""

from pathlib import Path

import pytest

from rookery.settings import ALIASES
from tests.settings_loading import Load, fault, loader

SECRET = "correct-horse-battery-staple-and-more"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return loader(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "key", "read"),
    [
        ("DORKOS_PORT", "3000", "port", 3000),
        ("PORT", "3001", "port", 3001),
        ("MCP_HTTP_PORT", "3010", "port", 3010),
        ("MCP_HTTP_HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("MCP_HTTP_ENDPOINT_PATH", "/agents", "http_path", "/agents"),
        ("MCP_HTTP_PATH", "/v1/mcp", "http_path", "/v1/mcp"),
        ("MCP_TRANSPORT_TYPE", "stdio", "http_mcp", False),
        ("MCP_TRANSPORT_TYPE", "http", "http_mcp", True),
        ("MCP_ALLOWED_ORIGINS", "*", "http_origins", ("*",)),
        ("MCP_ALLOWED_ORIGINS", "https://a.example, HTTP://B.example:8080", "http_origins",
         ("https://a.example", "http://b.example:8080")),
        ("MCP_SESSION_MODE", "stateless", "http_sessions", "stateless"),
        ("MCP_SESSION_MODE", "stateful", "http_sessions", "stateful"),
        ("MCP_SESSION_MODE", "auto", "http_sessions", "auto"),
        ("MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS", "3600000", "http_session_idle_s", 3600),
        ("MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS", "1500", "http_session_idle_s", 1.5),
        ("MCP_PUBLIC_URL", "https://rookery.example/", "public_url", "https://rookery.example"),
        ("MCP_LOG_LEVEL", "notice", "log_level", "info"),
        ("MCP_LOG_LEVEL", "emerg", "log_level", "error"),
        ("MCP_LOG_LEVEL", "warn", "log_level", "warning"),
        ("MCP_LOG_LEVEL", "debug", "log_level", "debug"),
        ("MCP_AUTH_MODE", "none", "auth_mode", "none"),
        ("MCP_AUTH_SECRET_KEY", SECRET, "auth_secret", SECRET),
        ("OAUTH_ISSUER_URL", "https://issuer.example/", "auth_issuer", "https://issuer.example/"),
        ("OAUTH_AUDIENCE", "rookery", "auth_audience", "rookery"),
        ("OAUTH_JWKS_URI", "https://issuer.example/keys", "auth_jwks_uri", "https://issuer.example/keys"),
        ("OAUTH_JWKS_COOLDOWN_MS", "60000", "auth_jwks_cooldown_s", 60),
        ("OAUTH_JWKS_TIMEOUT_MS", "2500", "auth_jwks_timeout_s", 2.5),
        ("MCP_SERVER_RESOURCE_IDENTIFIER", "https://rookery.example/mcp", "auth_resource",
         "https://rookery.example/mcp"),
        ("MCP_JWT_EXPECTED_ISSUER", "me", "auth_issuer", "me"),
        ("MCP_JWT_EXPECTED_AUDIENCE", "rookery", "auth_audience", "rookery"),
        ("WORK_TASK_MAX_PER_DAY", "5", "work_task_max_per_day", 5),
        ("WORK_MAX_ITERATIONS", "2", "work_max_iterations", 2),
        ("WORKTREE_BASE_DIR", "/srv/trees", "worktree_base_dir", "/srv/trees"),
        ("AGENT_TIMEOUT_MS", "60000", "agent_timeout_ms", 60_000),
        ("MAX_REMOTE_INVOCATIONS_PER_SESSION", "7", "a2a_max_invocations", 7),
        ("MAX_UNIQUE_AGENTS_PER_SESSION", "7", "a2a_max_agents", 7),
        ("A2A_INVOCATION_COOLDOWN_MS", "7", "a2a_invocation_cooldown_ms", 7),
        ("A2A_INBOUND_RATE_LIMIT_PER_MIN", "7", "a2a_inbound_rate_limit_per_min", 7),
        ("CREDITS_PER_ALGO", "7", "credits_per_algo", 7),
        ("LOW_CREDIT_THRESHOLD", "7", "low_credit_threshold", 7),
        ("RESERVE_PER_GROUP_MESSAGE", "7", "reserve_per_group_message", 7),
        ("CREDITS_PER_TURN", "7", "credits_per_turn", 7),
        ("CREDITS_PER_AGENT_MESSAGE", "7", "credits_per_agent_message", 7),
        ("FREE_CREDITS_ON_FIRST_MESSAGE", "7", "free_credits_on_first_message", 7),
        ("AGENT_RATE_LIMIT_PER_MIN", "20", "agent_rate_limit_per_min", 20),
        ("AGENT_CB_FAILURE_THRESHOLD", "3", "agent_cb_failure_threshold", 3),
        ("AGENT_CB_RESET_TIMEOUT_MS", "5000", "agent_cb_reset_timeout_ms", 5000),
        ("AGENT_CB_SUCCESS_THRESHOLD", "1", "agent_cb_success_threshold", 1),
        ("SESSION_MAX_AGENT_MESSAGES", "5", "session_max_agent_messages", 5),
        ("SESSION_MAX_UNIQUE_TARGETS", "2", "session_max_unique_targets", 2),
        ("SESSION_MESSAGE_INTERVAL_MS", "3000", "session_message_interval_ms", 3000),
        ("GITHUB_TOKEN", "ghp_x", "github_token", "ghp_x"),
        ("GH_TOKEN", "ghp_x", "github_token", "ghp_x"),
        ("GITHUB_API_URL", "https://github.example/api/v3/", "github_api_url", "https://github.example/api/v3"),
        ("GITHUB_ALLOWED_ORGS", "Acme, octo/Shop", "github_allow", ("acme", "octo/shop")),
        ("ALGORAND_INDEXER_URL", "https://idx.example/", "algorand_indexer_url", "https://idx.example"),
        ("BRAVE_SEARCH_API_KEY", "BSA-x", "search_api_key", "BSA-x"),
        ("MCP_AUTH_DISABLE_SCOPE_CHECKS", "true", "auth_scope_checks", False),
        ("MCP_AUTH_DISABLE_SCOPE_CHECKS", "1", "auth_scope_checks", False),
        ("MCP_AUTH_DISABLE_SCOPE_CHECKS", "false", "auth_scope_checks", True),
    ],
)  # fmt: skip
def test_the_names_that_other_servers_use_are_understood(
    load: Load, name: str, value: str, key: str, read: object
) -> None:
    assert getattr(load("", {name: value}), key) == read
    assert load("", {name: ""}) == load()


def test_every_other_name_has_a_test_of_its_effect() -> None:
    source = Path(__file__).read_text()
    assert [name for name in ALIASES if f'("{name}", ' not in source] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCP_TRANSPORT_TYPE", "sse"),
        ("MCP_HTTP_PORT", "http"),
        ("DORKOS_PORT", "-1"),
        ("MCP_HTTP_PATH", "mcp"),
        ("MCP_ALLOWED_ORIGINS", "example.org"),
        ("MCP_SESSION_MODE", "sticky"),
        ("MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS", "soon"),
        ("MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS", "5"),
        ("MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS", "9" * 400),
        ("MCP_AUTH_MODE", "open"),
        ("MCP_LOG_LEVEL", "loud"),
        ("OAUTH_JWKS_URI", "http://keys.example"),
        ("GITHUB_API_URL", "http://github.example"),
        ("GITHUB_ALLOWED_ORGS", "acme/shop/../x"),
        ("GITHUB_APP_INSTALLATION_ID", "mine"),
        ("MCP_SERVER_RESOURCE_IDENTIFIER", "rookery"),
        ("MCP_PUBLIC_URL", "rookery.example"),
        ("MCP_AUTH_DISABLE_SCOPE_CHECKS", "yes please"),
        ("MCP_AUTH_DISABLE_SCOPE_CHECKS", "on"),
    ],
)
def test_a_wrong_value_under_another_name_is_named_as_it_was_given(load: Load, name: str, value: str) -> None:
    assert fault(load, "", {name: value}) == f"{name} cannot be {value!r}"


def test_a_github_app_is_named_whole_or_not_at_all(load: Load) -> None:
    parts = [("GITHUB_APP_ID", "7"), ("GITHUB_APP_INSTALLATION_ID", "9"), ("GITHUB_APP_PRIVATE_KEY", "/etc/key.pem")]
    for name, _ in parts:
        environ = {other: value for other, value in parts if other != name}
        assert "is missing, and the rest of the GitHub App is set" in fault(load, "", environ)
    app = load("", dict(parts))
    assert (app.github_app_id, app.github_app_installation_id, app.github_app_key) == ("7", 9, "/etc/key.pem")
    assert "key.pem" not in repr(app)


def test_our_own_names_win_over_the_others_and_those_over_the_file(load: Load) -> None:
    file = "[http]\npath = '/file'\n"
    assert load(file).http_path == "/file"
    assert load(file, {"MCP_HTTP_PATH": "/alias"}).http_path == "/alias"
    assert load(file, {"MCP_HTTP_PATH": "/alias", "MCP_HTTP_ENDPOINT_PATH": "/first"}).http_path == "/first"
    assert load(file, {"MCP_HTTP_PATH": "/alias", "ROOKERY_HTTP_PATH": "/own"}).http_path == "/own"
    assert load("", {"PORT": "1", "DORKOS_PORT": "2"}).port == 2
    assert load("", {"PORT": "1", "DORKOS_PORT": "2", "MCP_HTTP_PORT": "3"}).port == 3
