"""Calls a tool for a job, as an agent. Where a person has to approve the call, the job comes back for a while."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from rookery.asks.store import Asks
from rookery.asks.tables import OPEN, asks
from rookery.core.actor import Actor
from rookery.core.errors import ApprovalRequired
from rookery.core.results import Result
from rookery.db.tx import Tx
from rookery.jobs.running import Running
from rookery.jobs.store import Jobs, is_over

log = logging.getLogger("rookery.sessions")
APPROVAL_S = 600.0
"""So long a person has, as in every session without one: see `asks.approvals.UNATTENDED_MS`."""
AGAIN_S = 5.0
_OPEN_OF = sa.select(asks.c.id).where(
    asks.c.tenant == sa.bindparam("of_tenant"),
    asks.c.status == sa.literal_column(f"'{OPEN}'"),
    asks.c.kind == "approval",
    asks.c.session == sa.bindparam("of_session"),
)


def patience() -> float:
    """Until when somebody who begins now waits for a person, by the clock of `time.monotonic`."""
    return time.monotonic() + APPROVAL_S


async def call_approved(
    job: Running,
    who: Callable[[], Awaitable[Actor]],
    tool: str,
    arguments: dict[str, Any],
    *,
    session: str,
    until: float | None = None,
) -> Result:
    """What the tool gives whomever `who` says, asked anew for each try: rights are those of that moment.

    The call is made in a `session` of that name, in which nobody is there. If a person has to approve it they have ten
    minutes, or `until` then; after that ApprovalRequired. The ask ends with the call, and with the job. If only the
    worker ends it stays, for whoever takes the job over.
    """
    deadline = patience() if until is None else until
    try:
        while True:
            actor = replace(await who(), session=session, shared_session=False, unattended=True)
            try:
                return await job.platform.calls.call(actor, tool, arguments)
            except ApprovalRequired:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(AGAIN_S)
    except (ApprovalRequired, asyncio.CancelledError) as error:
        gone = isinstance(error, asyncio.CancelledError)
        await asyncio.shield(_take_back(job, session, if_over=gone))
        raise


async def _take_back(job: Running, session: str, *, if_over: bool) -> None:
    """Let nobody be asked any more for this session; `if_over` only if nobody will go on with the job."""

    def work(tx: Tx) -> None:
        row = Jobs(tx, job.tenant).of(job.id)
        if if_over and row is not None and not row.cancel and not is_over(row):
            return
        store = Asks(tx, job.tenant)
        for each in tx.all(_OPEN_OF, {"of_tenant": job.tenant, "of_session": session}):
            store.withdraw(each.id)

    try:
        await job.platform.database.change(work)
    except Exception:
        # It ends by itself when its time is over.
        log.exception("the asks of %s could not be taken back", session)
