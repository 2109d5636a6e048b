"""Which server this is and how it is set up, for people who look at it. Only what is safe to show.

Not in a module where tools are looked for: no agent has it, and no session pays for its listing.
"""

import time

from rookery import __version__
from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.settings import Settings

SAFE: dict[str, tuple[str, ...]] = {
    "Doors": ("host", "port", "public_url", "http_mcp", "http_path", "auth_mode", "oidc_issuer", "a2a_server"),
    "Agents": (
        "runtime", "orchestrator", "max_agents", "daily_budget_usd", "session_idle_s", "session_warm",
        "agent_timeout_ms", "approval_hold_s", "work_task_max_per_day", "work_max_iterations",
    ),
    "Keeping": ("job_keep_days", "asks_keep_days", "notification_keep_days", "message_keep_days", "network"),
    "Behaviour": ("role", "log_level", "audit_reads", "plugins", "rate_calls_per_minute", "credits_hard_stop"),
}  # fmt: skip
"""The settings that anybody with a role may see. Whatever is not named here is not shown."""
_STARTED = time.time()


class SettingGroup(ToolOutput):
    name: str
    settings: dict[str, str]


class ServerShown(ToolOutput):
    version: str
    address: str
    home: str
    database: str
    started_ms: int
    services: list[str]
    tools: int
    groups: list[SettingGroup]


@tool(
    title="Show server", effect="read", action="system:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def show_server(ctx: Context, args: NoInput) -> ServerShown:
    """Show version, address, home, kind of database and those settings that are no secrets."""
    settings: Settings = ctx.platform.facts["settings"]
    groups = {name: {key: _said(getattr(settings, key)) for key in keys} for name, keys in SAFE.items()}
    return ServerShown(
        version=__version__,
        address=settings.public_url or f"http://{settings.host}:{settings.port}",
        home=settings.home,
        database="PostgreSQL" if settings.database_url.startswith("postgres") else "SQLite",
        started_ms=int(_STARTED * 1000),
        services=sorted(ctx.actor.services),
        tools=len(list(ctx.platform.registry)),
        groups=[SettingGroup(name=name, settings=found) for name, found in groups.items()],
    )


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
