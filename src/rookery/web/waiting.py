"""What stands at the top of every page: how much waits for a person, and what is paused."""

import logging
from typing import TYPE_CHECKING, Any

from rookery.core.errors import RookeryError
from rookery.db.tx import Tx
from rookery.engine.waiting import figures
from rookery.lifecycle.pauses import Pauses
from rookery.lifecycle.pausing import resume_agents

if TYPE_CHECKING:
    from rookery.web.visit import Visit

LIMIT_S = 2.0
NOTHING: dict[str, int] = {"asks": 0, "reviews": 0, "stuck": 0, "total": 0}
log = logging.getLogger("rookery.web")


async def waiting_for(visit: "Visit") -> dict[str, Any]:
    """How many asks, reviews and stuck things there are, `total`, and the `pauses` that stand.

    A figure beside the menu is no call of a person: it leaves no record, and a page is shown without it if it cannot
    be had.
    """
    tenant = visit.signed_in.tenant
    try:
        found = await visit.platform.database.read(lambda tx: _look(tx, tenant), timeout_s=LIMIT_S)
        return {**found, "may_resume": bool(found["pauses"]) and await visit.may(resume_agents)}
    except RookeryError as error:
        log.warning("what waits could not be counted: %s", error.message)
        return {**NOTHING, "pauses": [], "may_resume": False}


def _look(tx: Tx, tenant: str) -> dict[str, Any]:
    found = figures(tx, tenant)
    asks = found["questions"] + found["approvals"] + found["schedules"]
    reviews = found["reviews"] + found["merges"]
    stuck = found["blocked"] + found["late_runs"] + found["stopped_schedules"]
    counts = {"asks": asks, "reviews": reviews, "stuck": stuck, "total": asks + reviews + stuck}
    return {**counts, "pauses": Pauses(tx, tenant).all()}
