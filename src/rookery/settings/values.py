"""What a value may be: the kinds of settings, their limits, and how text is read as one."""

import math
import re
from collections.abc import Callable
from typing import Any, cast

from rookery.core.errors import ConfigurationError
from rookery.settings import addresses

Names = tuple[str, ...]
Table = tuple[tuple[str, tuple[str, ...]], ...]

LEVELS = ("debug", "info", "warning", "error")
TRUST = ("untrusted", "low", "medium", "high", "verified")
CHOICES = {
    "a2a_min_trust": TRUST,
    "audit_reads": ("normal", "full"),
    "auth_mode": ("local", "jwt", "oauth", "none"),
    "http_answers": ("auto", "json", "sse"),
    "http_sessions": ("auto", "stateful", "stateless"),
    "log_level": LEVELS,
    "network": ("local", "test", "main"),
    "role": ("all", "server"),
    "runtime": ("none", "scripted", "claude", "claude-cli", "codex", "gemini", "opencode", "command"),
}
RANGES: dict[str, tuple[float, float]] = {
    "port": (0, 65535),
    "rate_calls_per_minute": (0, 1_000_000),
    "max_line_bytes": (1024, 1 << 30),
    "http_session_idle_s": (0.1, 31 * 86_400),
    "http_max_sessions": (1, 1_000_000),
    "http_max_body_bytes": (1024, 1 << 30),
    "github_app_installation_id": (0, 1 << 62),
    "auth_jwks_cooldown_s": (0.1, 86_400),
    "auth_jwks_timeout_s": (0.1, 60),
    "approval_hold_s": (0, 600),
    "search_timeout_s": (0.1, 60),
    "worker_concurrency": (1, 256),
    "job_lease_s": (1, 3600),
    "job_keep_days": (1, 3650),
    "asks_keep_days": (1, 3650),
    "notification_keep_days": (1, 3650),
    "tick_s": (0.05, 3600),
    "max_agents": (0, 10_000),
    "daily_budget_usd": (0, 1_000_000),
    "session_idle_s": (0, 31 * 86_400),
    "session_warm": (0, 1_000),
    "session_stall_s": (0.1, 86_400),
    "session_first_event_s": (0.1, 86_400),
    "work_task_max_per_day": (0, 1_000_000),
    "work_max_iterations": (1, 20),
    "agent_timeout_ms": (1, 7 * 86_400_000),
    "pause_grace_s": (0, 3600),
    "agent_rate_limit_per_min": (1, 100_000),
    "agent_cb_failure_threshold": (1, 1_000_000),
    "agent_cb_reset_timeout_ms": (1, 86_400_000),
    "agent_cb_success_threshold": (1, 1_000),
    "session_max_agent_messages": (0, 1_000_000),
    "session_max_unique_targets": (0, 1_000_000),
    "session_message_interval_ms": (0, 86_400_000),
    "message_keep_days": (1, 3650),
    "a2a_max_invocations": (0, 1_000_000),
    "a2a_max_agents": (0, 1_000_000),
    "a2a_invocation_cooldown_ms": (0, 86_400_000),
    "a2a_inbound_rate_limit_per_min": (0, 100_000),
    "credits_per_algo": (0, 1_000_000),
    "low_credit_threshold": (0, 1_000_000),
    "reserve_per_group_message": (0, 1_000_000),
    "credits_per_turn": (0, 1_000_000),
    "credits_per_agent_message": (0, 1_000_000),
    "free_credits_on_first_message": (0, 1_000_000),
}
SHAPES: dict[str, tuple[Callable[[str], str], str]] = {
    "public_url": (addresses.web_address, "an http or https address, such as https://rookery.example.org"),
    "http_path": (addresses.endpoint_path, "a path such as /mcp that no other page of the server has"),
    "http_origins": (addresses.origin, "origins without a path, such as https://app.example.org, or *"),
    "http_hosts": (addresses.host_name, "host names, such as rookery.example.org"),
    "outgoing_allow": (addresses.outgoing_place, "networks such as 10.0.0.0/8, or names such as ntfy.lan:8080"),
    "a2a_allow": (addresses.outgoing_place, "networks such as 10.0.0.0/8, or names such as agents.lan:8080"),
    "github_api_url": (addresses.api_address, "an https address (http only on this machine)"),
    "github_allow": (addresses.github_place, "owners or owner/name of repositories, such as acme or acme/shop"),
    "search_engine": (addresses.plain_word, "the name of a search engine, such as brave"),
    "search_api_key": (addresses.header_word, "a key without spaces, as the search engine shows it"),
    "search_url": (addresses.api_address, "an https address (http only on this machine)"),
    "algorand_algod_url": (addresses.api_address, "an https address (http only on this machine)"),
    "algorand_indexer_url": (addresses.api_address, "an https address (http only on this machine)"),
    "auth_jwks_uri": (addresses.safe_address, "an https address (http only on this machine)"),
    "oidc_issuer": (
        addresses.safe_address,
        "an https address (http only on this machine), exactly as the tokens have it",
    ),
    "auth_resource": (addresses.resource_address, "an absolute URI without a fragment"),
}
# Their values never appear in an error, a log or a repr.
SECRET = frozenset(
    {
        "a2a_tokens",
        "auth_secret",
        "oidc_client_secret",
        "mnemonic",
        "github_token",
        "github_app_key",
        "search_api_key",
        "algorand_algod_token",
    }
)
KINDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    float: "a number",
    Names: "a list of texts, or text with commas",
    Table: "a table of lists, or text such as admin=*;ops=tracker:*,system:read",
}
WORDS = {
    "a2a_tokens": "a table with one token without spaces for each host, such as agents.lan:8080",
    "a2a_trust": "a table with a level for each host, such as agents.lan:8080, and the id of a key if it must have one",
}


def convert(where: str, key: str, kind: Any, value: Any, raw: Any = None) -> Any:
    """The value as the setting's kind, or an error that names its place and `raw`, what was said there."""
    try:
        converted = _read(kind, value)
        wanted = _wanted(key, converted)
        if wanted is None:
            return _shaped(key, converted)
    except ValueError:
        wanted = (
            SHAPES[key][1] if key in SHAPES else WORDS.get(key) or KINDS.get(kind, getattr(kind, "__name__", str(kind)))
        )
    raise ConfigurationError(
        f"{where} cannot be {shown(key, value if raw is None else raw)}", hint=f"it must be {wanted}"
    )


def shown(key: str, value: Any) -> str:
    """A value as an error may repeat it: never a secret, nor the credentials in an address."""
    if key in SECRET:
        return "a secret of this kind"
    return without_password(repr(value))


def without_password(text: str) -> str:
    """The same text with the passwords of addresses left out."""
    text = re.sub(r"(://[^/@:\s]*):[^/\s]*@", r"\1:***@", text)
    return re.sub(r"(?i)(password=)[^&\s'\"]+", r"\1***", text)


def _read(kind: Any, value: Any) -> Any:
    """Text is read, since an environment has nothing else; what is of another kind is not changed into this one."""
    if kind == Names:
        return _to_names(value)
    if kind == Table:
        return _to_table(value)
    if kind is float and type(value) is int:
        return value
    if kind is float and isinstance(value, str | float):
        number = float(value)
        if not math.isfinite(number):
            raise ValueError(value)
        return int(number) if number.is_integer() else number
    if type(value) is kind:
        return value
    if not isinstance(value, str):
        raise ValueError(value)
    return _to_bool(value) if kind is bool else int(value)


def _wanted(key: str, value: Any) -> str | None:
    """What is allowed instead of `value`, None if it is allowed."""
    if key in CHOICES and value not in CHOICES[key]:
        return f"one of {', '.join(CHOICES[key])}"
    if key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        return f"between {RANGES[key][0]} and {RANGES[key][1]}{' seconds' if key.endswith('_s') else ''}"
    if key == "host" and not value:
        # A socket would take it for every network that this machine is in.
        return "an address, such as 127.0.0.1"
    if key == "auth_tenant" and not value:
        return "the name of a tenant, such as default"
    if key == "oidc_people" and any(len(names) != 1 for _, names in value):
        return "a table with one person for each subject or email"
    if key == "auth_tenant_map" and any(len(names) != 1 for _, names in value):
        return "a table with one tenant for each name in a token"
    if key == "a2a_tokens" and any(len(tokens) != 1 for _, tokens in value):
        return "a table with one token for each host"
    if key == "a2a_trust" and not all(_is_trust(words) for _, words in value):
        return f"a table with one of {', '.join(TRUST)} for each host, and the id of its key if that is pinned"
    return None


def _is_trust(words: Names) -> bool:
    """Whether this is a level, or a level and the id of a key."""
    level, *keys = words or ("",)
    return level in TRUST and len(keys) <= 1 and all(re.fullmatch("[0-9a-f]{64}", each) for each in keys)


def _shaped(key: str, value: Any) -> Any:
    """The value in the form that the server compares. Empty text is an address that was not given."""
    if key in ("a2a_tokens", "a2a_trust"):
        return _by_host(value)
    if key not in SHAPES or (value == "" and key != "http_path"):
        return value
    shape = SHAPES[key][0]
    return tuple(shape(item) for item in cast("Names", value)) if isinstance(value, tuple) else shape(value)


def _by_host(table: Table) -> Table:
    """The table with its hosts as requests have them; ValueError if one is none, or stands there twice."""
    found = {addresses.host_name(host): tuple(addresses.header_word(word) for word in words) for host, words in table}
    if len(found) < len(table):
        raise ValueError("a host twice")
    return tuple(sorted(found.items()))


def _to_bool(text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise ValueError(text)


def _to_names(value: Any) -> Names:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    names: list[Any] = cast("list[Any]", value) if isinstance(value, list | tuple) else [None]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError(names)
    return tuple(names)


def _to_table(value: Any) -> Table:
    if isinstance(value, str):
        rows = [row.partition("=") for row in value.split(";") if row.strip()]
        if not all(sign and key.strip() for key, sign, _ in rows) or len({row[0].strip() for row in rows}) < len(rows):
            raise ValueError(value)
        value = {key.strip(): names for key, _, names in rows}
    if isinstance(value, tuple):
        value = dict(cast("Table", value))
    if not isinstance(value, dict):
        raise ValueError(value)
    table = cast("dict[str, Any]", value)
    return tuple((key, _to_names(names)) for key, names in sorted(table.items()))
