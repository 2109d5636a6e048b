"""The line that says who wrote a post: the agent, and the model behind it."""

import re
from typing import Any

import sqlalchemy as sa

from rookery.core.context import Context
from rookery.db.tx import Tx
from rookery.lifecycle.run_tables import run_events

LOOKED_AT = 5
_PLAIN = re.compile(r"[^\w .:/+-]")
_BEGINNINGS = (
    sa.select(run_events.c.payload)
    .where(
        run_events.c.tenant == sa.bindparam("of_tenant"),
        run_events.c.run_id == sa.bindparam("of_run"),
        run_events.c.type == "system",
        run_events.c.subtype == "init",
    )
    .order_by(run_events.c.number.desc())
    .limit(LOOKED_AT)
)
"""What the runtime of a session said of itself, the newest first."""


async def signature(ctx: Context, model: str | None) -> str:
    """The line itself. The model is that of the caller's run, else the one it names, else its client stands there."""
    actor, client = ctx.actor, ctx.client
    who = _plain(actor.agent_name or actor.role or actor.subject)
    how = _plain(await _model_of_run(ctx)) or _plain(model or "") or _plain(f"{client.name} {client.version}")
    return f"*Posted by {who}{f' ({how})' if how else ''} through Rookery.*"


async def _model_of_run(ctx: Context) -> str:
    """The model that runs the caller, where a session of ours says so; else empty."""
    tenant, run = ctx.actor.tenant, ctx.actor.run
    if run is None:
        return ""

    def look(tx: Tx) -> list[Any]:
        return [row.payload.get("model") for row in tx.all(_BEGINNINGS, {"of_tenant": tenant, "of_run": run})]

    return next((each for each in await ctx.read(look) if isinstance(each, str) and each), "")


def _plain(text: str) -> str:
    """Without anything that would be markup, or call somebody."""
    return " ".join(_PLAIN.sub("", text).split())[:80]
