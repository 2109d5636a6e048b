"""How a project lets its issues be worked on. Off until somebody switches it on: agents cost money."""

from collections.abc import Sequence
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy.dialects import postgresql, sqlite

from rookery.db.clock import DbNow
from rookery.db.tx import Tx
from rookery.engine.tables import orchestrator_projects
from rookery.lifecycle.issue_tables import WAKE

Role = Literal["judge", "worker", "planner", "architect", "researcher", "intake", "scanner"]
ROLES: tuple[Role, ...] = ("judge", "worker", "planner", "architect", "researcher", "intake", "scanner")
"""In the order in which they are dispatched: what is nearest to its end comes first."""
Row = sa.Row[Any]
_p = orchestrator_projects.c
# Built once: every tick asks them, and to build them costs more than to run them.
_ONE = sa.select(orchestrator_projects).where(
    _p.tenant == sa.bindparam("of_tenant"), _p.project_id == sa.bindparam("wanted")
)
_ENABLED = sa.select(orchestrator_projects).where(_p.enabled.is_(True)).order_by(_p.tenant, _p.project_id)


class Hooks(BaseModel):
    """Commands of the owner around a workspace. One that fails before a run ends the run; after it, it is told."""

    after_create: str = ""
    before_run: str = ""
    after_run: str = ""
    before_remove: str = ""
    limit_s: int = 60


class PromptBudgets(BaseModel):
    """How many tokens of each kind of context an agent is told at most."""

    issue: int = 6_000
    memories: int = 2_000
    conventions: int = 1_000
    learnings: int = 1_500
    rejections: int = 1_500


class OrchestratorSettings(BaseModel):
    """What is set for one project. Kept as one JSON value, so that a new setting is no migration."""

    model_config = ConfigDict(extra="ignore")

    max_agents: int = 4
    role_caps: dict[str, int] = {}
    agents: dict[str, str] = {}
    """Which agent does the work of a role, by name; else the one that is called like the role, else the first."""
    models: dict[str, str] = {}
    hooks: Hooks = Hooks()
    prompt: PromptBudgets = PromptBudgets()
    max_retries: int = 3
    run_limit_s: int = 3_600
    max_turns: int | None = None
    gate_limit_s: int = 900
    run_budget_usd: float | None = None
    issue_budget_usd: float | None = None
    daily_budget_usd: float | None = None
    merge: Literal["ff", "merge"] = "merge"
    auto_merge: bool = False
    """Whether approved changes of low risk are merged without a person."""
    scan_concepts: tuple[str, ...] = ()
    """What files are examined for; without any, nothing is scanned."""
    scan_paths: tuple[str, ...] = ("**",)
    scan_batch: int = 10
    scan_every_s: int = 3_600
    intake_batch: int = 10
    intake_folder: str = ""


class OrchestratorProjects:
    """The settings of a tenant's projects."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def of(self, project_id: str) -> tuple[bool, OrchestratorSettings]:
        """Whether the project is worked on, and how."""
        row = self.tx.one(_ONE, {"of_tenant": self.tenant, "wanted": project_id})
        return (False, OrchestratorSettings()) if row is None else (row.enabled, OrchestratorSettings(**row.settings))

    def update(self, project_id: str, *, enabled: bool | None = None, **values: Any) -> None:
        """Set some values; the others stay."""
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(orchestrator_projects)
        first: dict[str, Any] = {"project_id": project_id, "tenant": self.tenant, "enabled": False, "settings": {}}
        self.tx.run(insert.values(**first, updated_ms=DbNow()).on_conflict_do_nothing())
        mine = (_p.tenant == self.tenant, _p.project_id == project_id)
        kept = self.tx.one(sa.select(orchestrator_projects).where(*mine).with_for_update())
        assert kept is not None
        new = OrchestratorSettings(**{**kept.settings, **values})
        changed = {"settings": new.model_dump(mode="json"), "enabled": kept.enabled if enabled is None else enabled}
        self.tx.run(sa.update(orchestrator_projects).where(*mine).values(**changed, updated_ms=DbNow()))
        self.tx.wake(WAKE)


def unreadable(error: ValidationError) -> str:
    """What to say of settings that another version, or a hand, has stored."""
    names = dict.fromkeys(".".join(map(str, each["loc"])) for each in error.errors())
    return f"what is set for it cannot be read: {', '.join(names)}"


def enabled_projects(tx: Tx) -> Sequence[Row]:
    """Tenant, project and settings of every project that is worked on."""
    return tx.all(_ENABLED)
