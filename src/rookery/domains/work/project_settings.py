"""How the work of a project is prepared and checked: commands of its owner, set from the command line."""

from typing import Annotated, Any

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.work.tables import work_settings
from rookery.identity.store import IdentityStore

DEFAULT_LIMIT_S = 900
_OF = sa.select(work_settings.c.settings).where(
    work_settings.c.tenant == sa.bindparam("of_tenant"), work_settings.c.project_id == sa.bindparam("wanted")
)
Command = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class WorkSettings(BaseModel):
    """What is set for one project. Kept as one JSON value, so that a new setting is no migration."""

    model_config = ConfigDict(extra="ignore")

    install: str = ""
    checks: tuple[str, ...] = ()
    limit_s: int = DEFAULT_LIMIT_S


class ProjectWork:
    """The settings of a tenant's projects."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def of(self, project_id: str) -> WorkSettings:
        """What is set for the project; without anything, work there is not checked."""
        row = self.tx.one(_OF, {"of_tenant": self.tenant, "wanted": project_id})
        return WorkSettings() if row is None else WorkSettings(**row.settings)

    def update(self, project_id: str, **values: Any) -> WorkSettings:
        """Set some values; the others stay."""
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(work_settings)
        first: dict[str, Any] = {
            "project_id": project_id,
            "tenant": self.tenant,
            "settings": {},
            "updated_ms": now_ms(self.tx),
        }
        self.tx.run(insert.values(**first).on_conflict_do_nothing())
        mine = (work_settings.c.tenant == self.tenant, work_settings.c.project_id == project_id)
        kept = self.tx.one(sa.select(work_settings.c.settings).where(*mine).with_for_update())
        assert kept is not None
        new = WorkSettings(**{**kept.settings, **values})
        changed = {"settings": new.model_dump(mode="json"), "updated_ms": now_ms(self.tx)}
        self.tx.run(sa.update(work_settings).where(*mine).values(**changed))
        return new


class ConfigureWork(ToolInput):
    install: str | None = Field(None, max_length=2000, description="Prepares a fresh working tree; '' for nothing.")
    checks: list[Command] | None = Field(None, max_length=50, description="All commands that must succeed.")
    limit_s: int | None = Field(None, ge=1, le=86_400, description="Seconds that each command may take.")


class ConfiguredWork(ToolOutput):
    project: str
    install: str
    checks: list[str]
    limit_s: int


# Not in a module where tools are looked for: nobody but the owner at the command line sets what is run on the machine,
# and no session pays for its listing. It is called, decided and recorded like any other.
@tool(
    title="Configure work", effect="write", action="work:configure", tier="privileged", group="System", profiles="",
    default=False, principals="people", binds="project", idempotent=True,
)  # fmt: skip
def configure_work(ctx: Context, args: ConfigureWork) -> ConfiguredWork:
    """Set how work in the bound project is prepared and checked. Use it without arguments to look. Returns the
    settings. Only for the owner; absent values stay, lists are replaced."""
    project = IdentityStore(ctx.tx, ctx.actor.tenant).project(ctx.actor.project or "")
    given = args.model_dump(exclude_none=True)
    store = ProjectWork(ctx.tx, ctx.actor.tenant)
    now = store.update(project.id, **given) if given else store.of(project.id)
    return ConfiguredWork(
        project=project.slug, install=now.install, checks=list(now.checks), limit_s=now.limit_s
    )  # fmt: skip
