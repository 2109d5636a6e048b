"""Where settings come from: `rookery.toml`, our own variables, and the names that other servers use for them."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from rookery.core.errors import ConfigurationError


class Found(NamedTuple):
    """A value and the setting that it is for; an error names its place and what was said there."""

    where: str
    key: str
    value: Any
    raw: Any


def _same(value: str) -> Any:
    return value


def _seconds(value: str) -> float:
    return int(value) / 1000


def _opposite(value: str) -> bool:
    # The switch is a dangerous one, so only plain words turn it.
    return {"true": False, "1": False, "false": True, "0": True}[value.lower()]


def _served(value: str) -> bool:
    return {"http": True, "stdio": False}[value.lower()]


def _level(value: str) -> str:
    """The names of syslog and of other loggers, by the nearest that we have."""
    near = {"trace": "debug", "notice": "info", "warn": "warning"}
    severe = ("crit", "critical", "alert", "emerg", "emergency", "fatal", "silent")
    small = value.lower()
    return "error" if small in severe else near.get(small, small)


# The first of two names for one setting wins. What each reader refuses is refused with its `wanted`.
ALIASES: dict[str, tuple[str, Callable[[str], Any], str]] = {
    "MCP_HTTP_PORT": ("port", _same, ""),
    "DORKOS_PORT": ("port", _same, ""),
    "PORT": ("port", _same, ""),
    "MCP_HTTP_HOST": ("host", _same, ""),
    "MCP_LOG_LEVEL": ("log_level", _level, ""),
    "MCP_TRANSPORT_TYPE": ("http_mcp", _served, "http or stdio"),
    "MCP_HTTP_ENDPOINT_PATH": ("http_path", _same, ""),
    "MCP_HTTP_PATH": ("http_path", _same, ""),
    "MCP_ALLOWED_ORIGINS": ("http_origins", _same, ""),
    "MCP_SESSION_MODE": ("http_sessions", _same, ""),
    "MCP_STATEFUL_SESSION_STALE_TIMEOUT_MS": ("http_session_idle_s", _seconds, "a whole number of milliseconds"),
    "MCP_PUBLIC_URL": ("public_url", _same, ""),
    "MCP_AUTH_MODE": ("auth_mode", _same, ""),
    "MCP_AUTH_SECRET_KEY": ("auth_secret", _same, ""),
    "OAUTH_ISSUER_URL": ("auth_issuer", _same, ""),
    "MCP_JWT_EXPECTED_ISSUER": ("auth_issuer", _same, ""),
    "OAUTH_AUDIENCE": ("auth_audience", _same, ""),
    "MCP_JWT_EXPECTED_AUDIENCE": ("auth_audience", _same, ""),
    "OAUTH_JWKS_URI": ("auth_jwks_uri", _same, ""),
    "OAUTH_JWKS_COOLDOWN_MS": ("auth_jwks_cooldown_s", _seconds, "a whole number of milliseconds"),
    "OAUTH_JWKS_TIMEOUT_MS": ("auth_jwks_timeout_s", _seconds, "a whole number of milliseconds"),
    "MCP_SERVER_RESOURCE_IDENTIFIER": ("auth_resource", _same, ""),
    "WORK_TASK_MAX_PER_DAY": ("work_task_max_per_day", _same, ""),
    "WORK_MAX_ITERATIONS": ("work_max_iterations", _same, ""),
    "WORKTREE_BASE_DIR": ("worktree_base_dir", _same, ""),
    "AGENT_TIMEOUT_MS": ("agent_timeout_ms", _same, ""),
    "AGENT_RATE_LIMIT_PER_MIN": ("agent_rate_limit_per_min", _same, ""),
    "AGENT_CB_FAILURE_THRESHOLD": ("agent_cb_failure_threshold", _same, ""),
    "AGENT_CB_RESET_TIMEOUT_MS": ("agent_cb_reset_timeout_ms", _same, ""),
    "AGENT_CB_SUCCESS_THRESHOLD": ("agent_cb_success_threshold", _same, ""),
    "SESSION_MAX_AGENT_MESSAGES": ("session_max_agent_messages", _same, ""),
    "SESSION_MAX_UNIQUE_TARGETS": ("session_max_unique_targets", _same, ""),
    "SESSION_MESSAGE_INTERVAL_MS": ("session_message_interval_ms", _same, ""),
    "MAX_REMOTE_INVOCATIONS_PER_SESSION": ("a2a_max_invocations", _same, ""),
    "MAX_UNIQUE_AGENTS_PER_SESSION": ("a2a_max_agents", _same, ""),
    "A2A_INVOCATION_COOLDOWN_MS": ("a2a_invocation_cooldown_ms", _same, ""),
    "A2A_INBOUND_RATE_LIMIT_PER_MIN": ("a2a_inbound_rate_limit_per_min", _same, ""),
    "CREDITS_PER_ALGO": ("credits_per_algo", _same, ""),
    "LOW_CREDIT_THRESHOLD": ("low_credit_threshold", _same, ""),
    "RESERVE_PER_GROUP_MESSAGE": ("reserve_per_group_message", _same, ""),
    "CREDITS_PER_TURN": ("credits_per_turn", _same, ""),
    "CREDITS_PER_AGENT_MESSAGE": ("credits_per_agent_message", _same, ""),
    "FREE_CREDITS_ON_FIRST_MESSAGE": ("free_credits_on_first_message", _same, ""),
    "GITHUB_TOKEN": ("github_token", _same, ""),
    "GH_TOKEN": ("github_token", _same, ""),
    "GITHUB_API_URL": ("github_api_url", _same, ""),
    "GITHUB_APP_ID": ("github_app_id", _same, ""),
    "GITHUB_APP_INSTALLATION_ID": ("github_app_installation_id", _same, ""),
    "GITHUB_APP_PRIVATE_KEY": ("github_app_key", _same, ""),
    "GITHUB_ALLOWED_ORGS": ("github_allow", _same, ""),
    "ALGORAND_INDEXER_URL": ("algorand_indexer_url", _same, ""),
    "BRAVE_SEARCH_API_KEY": ("search_api_key", _same, ""),
    "MCP_AUTH_DISABLE_SCOPE_CHECKS": ("auth_scope_checks", _opposite, "true or false"),
}


def from_file(path: str, known: Mapping[str, Any]) -> Iterator[Found]:
    """What the file says. A setting that does not exist is named."""
    for key, value in _read_file(path, known).items():
        if key not in known:
            raise ConfigurationError(f"{path}: there is no setting {key}", hint=f"known: {', '.join(sorted(known))}")
        yield Found(f"{path}: {key}", key, value, value)


def from_environment(environ: Mapping[str, str], known: Mapping[str, Any]) -> Iterator[Found]:
    """What the environment says, the stronger names later. An empty variable counts as unset."""
    for name in reversed(ALIASES):
        key, read, wanted = ALIASES[name]
        if environ.get(name):
            try:
                yield Found(name, key, read(environ[name]), environ[name])
            except (ValueError, KeyError, OverflowError) as error:
                raise ConfigurationError(f"{name} cannot be {environ[name]!r}", hint=f"it must be {wanted}") from error
    for key in known:
        name = f"ROOKERY_{key.upper()}"
        if environ.get(name):
            yield Found(name, key, environ[name], environ[name])


def _read_file(path: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The file's settings; tables become prefixes, so `[audit] reads` is `audit_reads`."""
    try:
        with open(path, "rb") as file:
            tree = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}", hint="mend the file or move it away") from error
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        named: dict[str, Any] = {key: value}
        if isinstance(value, dict) and key not in known:
            named = {f"{key}_{inner}": item for inner, item in cast("dict[str, Any]", value).items()}
        for twice in flat.keys() & named.keys():
            raise ConfigurationError(f"{path}: {twice} is set twice", hint="keep one of the two")
        flat |= named
    return flat


def default_home(environ: Mapping[str, str] = os.environ) -> str:
    """`ROOKERY_HOME`, or `.rookery` in the user's home."""
    return os.path.abspath(os.path.expanduser(environ.get("ROOKERY_HOME") or "~/.rookery"))
