"""Settings: `rookery.toml` in the home folder, overlaid by `ROOKERY_*`. A wrong one is named before anything starts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rookery.settings.checks import Mismatch, check
from rookery.settings.sources import ALIASES, Found, default_home, from_environment, from_file
from rookery.settings.values import CHOICES, LEVELS, SECRET, Names, Table, convert, without_password

__all__ = ["ALIASES", "CHOICES", "LEVELS", "Settings", "default_home", "load_settings"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """Where things are and how they behave. No instance leaves a door open: what does not go together is refused.

    `audit_reads` is "full" where reads must survive a power cut.
    """

    home: str
    host: str = "127.0.0.1"
    port: int = 4242
    public_url: str = ""
    database: str = ""
    log_level: str = "info"
    audit_reads: str = "normal"
    rate_calls_per_minute: int = 0
    hide_unavailable: bool = False
    max_line_bytes: int = 32 * 1024 * 1024
    plugins: bool = True

    http_mcp: bool = True
    http_path: str = "/mcp"
    http_sessions: str = "auto"
    http_answers: str = "auto"
    http_session_idle_s: float = 1800
    http_max_sessions: int = 10_000
    http_max_body_bytes: int = 4 * 1024 * 1024
    http_origins: Names = ()
    http_hosts: Names = ()

    approval_hold_s: float = 45
    outgoing_allow: Names = ()

    github_token: str = ""
    github_api_url: str = "https://api.github.com"
    github_app_id: str = ""
    github_app_installation_id: int = 0
    github_app_key: str = ""
    github_allow: Names = ()

    search_engine: str = "brave"
    search_api_key: str = ""
    search_url: str = ""
    search_timeout_s: float = 10
    search_summary: bool = True

    a2a_server: bool = True
    a2a_agent: str = ""
    a2a_allow: Names = ()
    a2a_tokens: Table = ()
    a2a_trust: Table = ()
    a2a_min_trust: str = "low"
    a2a_max_invocations: int = 10
    a2a_max_agents: int = 3
    a2a_invocation_cooldown_ms: int = 5_000
    a2a_inbound_rate_limit_per_min: int = 5

    algorand_algod_url: str = ""
    algorand_algod_token: str = ""
    algorand_indexer_url: str = "https://mainnet-idx.algonode.cloud"

    network: str = "local"
    mnemonic: str = ""
    key_file: str = ""
    memory_hide_keys: bool = False

    role: str = "all"
    worker_concurrency: int = 16
    job_lease_s: float = 20
    job_keep_days: int = 30
    asks_keep_days: int = 90
    notification_keep_days: int = 90
    runtime: str = "none"
    runtime_command: str = ""
    scripts: str = ""
    orchestrator: bool = True
    tick_s: float = 5
    max_agents: int = 10
    daily_budget_usd: float = 0
    session_roots: Names = ()
    session_idle_s: float = 1800
    session_warm: int = 12
    session_stall_s: float = 600
    session_first_event_s: float = 120
    work_task_max_per_day: int = 100
    work_max_iterations: int = 3
    worktree_base_dir: str = ""
    agent_timeout_ms: int = 1_800_000
    pause_grace_s: float = 10

    agent_rate_limit_per_min: int = 10
    agent_cb_failure_threshold: int = 5
    agent_cb_reset_timeout_ms: int = 30_000
    agent_cb_success_threshold: int = 2
    session_max_agent_messages: int = 0
    session_max_unique_targets: int = 0
    session_message_interval_ms: int = 0
    message_keep_days: int = 90

    credits_hard_stop: bool = False
    credits_per_algo: int = 1000
    low_credit_threshold: int = 50
    reserve_per_group_message: int = 10
    credits_per_turn: int = 1
    credits_per_agent_message: int = 5
    free_credits_on_first_message: int = 100

    auth_mode: str = "local"
    auth_secret: str = ""
    auth_issuer: str = ""
    auth_audience: str = ""
    auth_resource: str = ""
    auth_jwks_uri: str = ""
    auth_jwks_cooldown_s: float = 300
    auth_jwks_timeout_s: float = 5
    auth_tenant: str = "default"
    auth_tenant_map: Table = ()
    auth_scope_checks: bool = True
    auth_scope_map: Table = ()

    oidc_issuer: str = ""
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    oidc_people: Table = ()

    def __post_init__(self) -> None:
        check(self)

    def __repr__(self) -> str:
        """Without secrets: settings end up in logs and tracebacks."""
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        hidden = {key: "***" for key in SECRET if told[key]}
        parts = (f"{key}={without_password(repr(value))}" for key, value in (told | hidden).items())
        return f"Settings({', '.join(parts)})"

    @property
    def services(self) -> frozenset[str]:
        """What they make available: names that tools `needs`."""
        there = {
            "github": bool(self.github_token or self.github_app_id),
            "search": bool(self.search_api_key or self.search_url),
        }
        return frozenset(name for name, is_there in there.items() if is_there)

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{os.path.join(self.home, 'rookery.db')}"

    @property
    def jwks_address(self) -> str:
        """Where the issuer of the tokens shows its keys."""
        return self.auth_jwks_uri or f"{self.auth_issuer.rstrip('/')}/.well-known/jwks.json"

    @property
    def logs(self) -> str:
        return os.path.join(self.home, "logs")

    @property
    def backups(self) -> str:
        return os.path.join(self.home, "backups")


def load_settings(home: str | None = None, environ: Mapping[str, str] = os.environ, **override: Any) -> Settings:
    """Settings of `home`: defaults, then the file, then the environment, then what the caller says."""
    home = os.path.abspath(os.path.expanduser(home)) if home else default_home(environ)
    kinds = {field.name: field.type for field in fields(Settings) if field.name != "home"}
    said = [Found(key, key, value, value) for key, value in override.items() if value is not None]
    values: dict[str, Any] = {}
    places: dict[str, str] = {}
    for found in (
        *from_file(os.path.join(home, "rookery.toml"), kinds),
        *from_environment(environ, kinds),
        *said,
    ):
        values[found.key] = convert(found.where, found.key, kinds[found.key], found.value, found.raw)
        places[found.key] = found.where
    try:
        return Settings(home=home, **values)
    except Mismatch as wrong:
        raise wrong.at(places.get(wrong.key, wrong.key)) from wrong
