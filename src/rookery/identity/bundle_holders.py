"""Who holds which bundle, for the people who change them.

Not in a module where tools are looked for: nobody but people has it, and no session pays for its listing.
"""

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.core.tool import NoInput, ToolOutput, tool
from rookery.identity.store import IdentityStore
from rookery.identity.tables import bundle_uses


class BundleHolder(ToolOutput):
    bundle: str
    kind: str
    id: str
    name: str


class BundleHolders(ToolOutput):
    holders: list[BundleHolder]


@tool(
    title="List bundle holders", effect="read", action="identity:read", tier="observe", group="System", profiles="",
    default=False, principals="people",
)  # fmt: skip
def list_bundle_holders(ctx: Context, args: NoInput) -> BundleHolders:
    """List the agents and projects that were given bundles, agents first."""
    store = IdentityStore(ctx.tx, ctx.actor.tenant)
    names = {row.id: row.name for row in store.agents()} | {row.id: row.slug for row in store.projects()}
    mine = sa.select(bundle_uses).where(bundle_uses.c.tenant == ctx.actor.tenant)
    rows = ctx.tx.all(mine.order_by(bundle_uses.c.holder_kind, bundle_uses.c.sort_order))
    return BundleHolders(
        holders=[
            BundleHolder(bundle=row.bundle, kind=row.holder_kind, id=row.holder, name=names[row.holder])
            for row in rows
            if row.holder in names
        ]
    )
