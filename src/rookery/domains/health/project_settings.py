"""What is looked at in a project: commands of its owner, set from the command line."""

from typing import Annotated, Any

import sqlalchemy as sa
from pathspec import GitIgnoreSpec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy.dialects import postgresql, sqlite

from rookery.core.context import Context
from rookery.core.tool import ToolInput, ToolOutput, tool
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.health.tables import health_settings
from rookery.identity.store import IdentityStore

DEFAULT_LIMIT_S = 60
MAX_LIMIT_S = 3600
LARGE_LINES = 500
_OF = sa.select(health_settings.c.settings).where(
    health_settings.c.tenant == sa.bindparam("of_tenant"), health_settings.c.project_id == sa.bindparam("wanted")
)


class HealthSettings(BaseModel):
    """What is set for one project. Kept as one JSON value, so that a new setting is no migration."""

    model_config = ConfigDict(extra="ignore")

    types: str = ""
    tests: str = ""
    outdated: str = ""
    exclude: tuple[str, ...] = ()
    large_lines: int = LARGE_LINES
    limit_s: int = DEFAULT_LIMIT_S


class ProjectHealth:
    """The settings of a tenant's projects."""

    def __init__(self, tx: Tx, tenant: str) -> None:
        self.tx = tx
        self.tenant = tenant

    def of(self, project_id: str) -> HealthSettings:
        """What is set for the project; without anything, only its source is looked at."""
        row = self.tx.one(_OF, {"of_tenant": self.tenant, "wanted": project_id})
        return HealthSettings() if row is None else HealthSettings(**row.settings)

    def update(self, project_id: str, **values: Any) -> HealthSettings:
        """Set some values; the others stay."""
        insert = (sqlite if self.tx.dialect == "sqlite" else postgresql).insert(health_settings)
        at = now_ms(self.tx)
        first: dict[str, Any] = {"project_id": project_id, "tenant": self.tenant, "settings": {}, "updated_ms": at}
        self.tx.run(insert.values(**first).on_conflict_do_nothing())
        mine = (health_settings.c.tenant == self.tenant, health_settings.c.project_id == project_id)
        kept = self.tx.one(sa.select(health_settings.c.settings).where(*mine).with_for_update())
        assert kept is not None
        new = HealthSettings(**{**kept.settings, **values})
        changed = {"settings": new.model_dump(mode="json"), "updated_ms": at}
        self.tx.run(sa.update(health_settings).where(*mine).values(**changed))
        return new


def _patterns(globs: list[str]) -> list[str]:
    GitIgnoreSpec.from_lines(globs)
    return globs


Command = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2000)]
Glob = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
Globs = Annotated[list[Glob], AfterValidator(_patterns)]


class ConfigureHealth(ToolInput):
    types: Command | None = Field(None, description="Checks types and says how many errors; '' for nothing.")
    tests: Command | None = Field(None, description="Runs the tests and says how many fail; '' for nothing.")
    outdated: Command | None = Field(None, description="Lists outdated dependencies, one a line or as JSON.")
    exclude: Globs | None = Field(None, max_length=100, description="Files that do not count, as in .gitignore.")
    large_lines: int | None = Field(None, ge=1, le=1_000_000, description="A file with more lines is large.")
    limit_s: int | None = Field(None, ge=1, le=MAX_LIMIT_S, description="Seconds that each probe may take.")


class ConfiguredHealth(ToolOutput):
    project: str
    types: str
    tests: str
    outdated: str
    exclude: list[str]
    large_lines: int
    limit_s: int


# Not in a module where tools are looked for: nobody but the owner at the command line sets what is run on the machine,
# and no session pays for its listing. It is called, decided and recorded like any other.
@tool(
    title="Configure health", effect="write", action="health:configure", tier="privileged", group="System",
    profiles="", default=False, principals="people", binds="project", idempotent=True,
)  # fmt: skip
def configure_health(ctx: Context, args: ConfigureHealth) -> ConfiguredHealth:
    """Set what is looked at in the bound project. Use it without arguments to look. Returns the settings. Only for
    the owner; absent values stay, lists are replaced."""
    project = IdentityStore(ctx.tx, ctx.actor.tenant).project(ctx.actor.project or "")
    given = args.model_dump(exclude_none=True)
    store = ProjectHealth(ctx.tx, ctx.actor.tenant)
    now = store.update(project.id, **given) if given else store.of(project.id)
    return ConfiguredHealth(project=project.slug, **now.model_dump(mode="json"))
