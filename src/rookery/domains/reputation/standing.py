"""How agents stand, for the people who look at them: scores, what they are made of, and what was attested.

Not in a module where tools are looked for: nobody but people has them, and no session pays for their listing. Unlike
`check_reputation` they keep nothing, so whoever may only look can call them.
"""

import base64
import json
from dataclasses import asdict
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import Field

from rookery.attest.log import AttestationLog
from rookery.attest.tables import attestation_notes, reputation_attestations
from rookery.attest.verify import Verified, verify_log
from rookery.core.context import Context
from rookery.core.moments import iso
from rookery.core.tool import NoInput, ToolInput, ToolOutput, tool
from rookery.domains.reputation.inputs import AgentName
from rookery.domains.reputation.score import ACTIVE_DAYS, FEWEST_TASKS, UNKNOWN, WEIGHTS, WINDOW_DAYS
from rookery.domains.reputation.shown import shown_event
from rookery.domains.reputation.store import Reputation
from rookery.identity.store import IdentityStore

_a, _n = reputation_attestations.c, attestation_notes.c
_PEOPLE: dict[str, Any] = {
    "effect": "read", "action": "reputation:read", "tier": "observe", "group": "Read", "profiles": "",
    "default": False, "principals": "people",
}  # fmt: skip
MEANINGS = {
    "task_completion": (
        f"Of the tasks that ended in the last {WINDOW_DAYS} days, how many were completed. "
        f"{UNKNOWN} until there are {FEWEST_TASKS}."
    ),
    "peer_rating": f"The ratings from 1 to 5 that others gave, of all times. {UNKNOWN} without any.",
    "credit_pattern": (
        f"Credits earned against credits spent in the last {WINDOW_DAYS} days. {UNKNOWN} without either."
    ),
    "security_compliance": f"100, less 20 for each refused reach for a tool in the last {WINDOW_DAYS} days.",
    "activity_level": f"10 for each hour of the last {ACTIVE_DAYS} days in which the agent had a session, up to 100.",
}


class AgentStanding(ToolInput):
    agent: AgentName = Field(description="Name or id.")


class ListAttestations(AgentStanding):
    before: int | None = Field(None, ge=1, description="Only those with a number below this.")
    limit: int = Field(20, ge=1, le=200, description="At most.")


class Component(ToolOutput):
    name: str
    value: int
    weight: int
    meaning: str


class Standing(ToolOutput):
    agent_id: str
    agent: str
    overall_score: int
    trust_level: str
    components: list[Component]
    events: list[dict[str, Any]]


class Score(ToolOutput):
    agent_id: str
    overall_score: int
    trust_level: str


class Scores(ToolOutput):
    scores: list[Score]


class Attestation(ToolOutput):
    number: int
    hash: str
    overall_score: int | None
    trust_level: str | None
    created_at: str | None
    txid: str | None


class Attestations(ToolOutput):
    agent_id: str
    attestations: list[Attestation]
    count: int
    next_before: int | None
    state: Literal["none", "verified", "broken"]
    level: str
    keyid: str
    why: str | None
    log: str | None


@tool(title="Show reputation", **_PEOPLE)
def show_reputation(ctx: Context, args: AgentStanding) -> Standing:
    """Show how an agent's score is made up as of now, and what was noted of it last. Keeps nothing."""
    agent = IdentityStore(ctx.tx, ctx.actor.tenant).agent(args.agent)
    reputation = Reputation(ctx.tx, ctx.actor.tenant)
    score = reputation.score(agent.id)
    return Standing(
        agent_id=agent.id,
        agent=agent.name,
        overall_score=score.overall,
        trust_level=score.trust,
        components=[
            Component(name=name, value=value, weight=WEIGHTS[name], meaning=MEANINGS[name])
            for name, value in asdict(score.components).items()
        ],
        events=[shown_event(row) for row in reputation.newest_events(agent.id)],
    )


@tool(title="List scores", **_PEOPLE)
def list_scores(ctx: Context, args: NoInput) -> Scores:
    """List the score of every agent as of now. Keeps nothing."""
    reputation = Reputation(ctx.tx, ctx.actor.tenant)
    found = [(row.id, reputation.score(row.id)) for row in IdentityStore(ctx.tx, ctx.actor.tenant).agents()]
    return Scores(
        scores=[Score(agent_id=agent, overall_score=one.overall, trust_level=one.trust) for agent, one in found]
    )


@tool(title="List attestations", **_PEOPLE)
def list_attestations(ctx: Context, args: ListAttestations) -> Attestations:
    """List what was attested of an agent, newest first, and whether its whole log verifies."""
    tenant = ctx.actor.tenant
    agent = IdentityStore(ctx.tx, tenant).agent(args.agent)
    rows = ctx.tx.all(_page(tenant, agent.id, args))
    log = AttestationLog(ctx.tx, tenant, agent.id)
    last, verified = log.last(), _verified(log)
    return Attestations(
        agent_id=agent.id,
        attestations=[_shown(row) for row in rows[: args.limit]],
        count=0 if last is None else last.number,
        next_before=rows[args.limit - 1].number if len(rows) > args.limit else None,
        state="none" if last is None else "verified" if verified.fault is None else "broken",
        level=verified.level,
        keyid=verified.keyid,
        why=verified.why,
        log=None if last is None else f"/attestations/{agent.id}/log.json",
    )


def _verified(log: AttestationLog) -> Verified:
    try:
        document = log.document()
    except ValueError:
        return Verified(fault="changed", why="an entry of the log cannot be read")
    return Verified() if document is None else verify_log(document)


def _page(tenant: str, agent_id: str, args: ListAttestations) -> sa.Executable:
    noted = sa.and_(_n.tenant == _a.tenant, _n.agent_id == _a.agent_id, _n.number == _a.number)
    mine = [_a.tenant == tenant, _a.agent_id == agent_id]
    if args.before is not None:
        mine.append(_a.number < args.before)
    entries = sa.select(_a.number, _a.hash, _a.envelope, _a.created_ms, _n.txid)
    joined = entries.select_from(reputation_attestations.outerjoin(attestation_notes, noted))
    return joined.where(*mine).order_by(_a.number.desc()).limit(args.limit + 1)


def _shown(row: sa.Row[Any]) -> Attestation:
    said = _said(row.envelope)
    return Attestation(
        number=row.number,
        hash=row.hash,
        overall_score=said.get("overallScore"),
        trust_level=said.get("trustLevel"),
        created_at=iso(row.created_ms),
        txid=row.txid,
    )


def _said(envelope: str) -> dict[str, Any]:
    """What an entry says; nothing if somebody has spoilt it, which the verification tells."""
    try:
        return json.loads(base64.b64decode(json.loads(envelope)["payload"]))
    except (ValueError, KeyError, TypeError):
        return {}
