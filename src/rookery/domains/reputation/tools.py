"""Tools that show the reputation of an agent, attest it, and check what others attest."""

import sqlalchemy as sa

from rookery.attest.log import AttestationLog
from rookery.attest.notes import NoteEntry, NoteLedger, reputation_note
from rookery.core.actor import Actor
from rookery.core.context import Context
from rookery.core.errors import InvalidParams, PermissionDenied, RookeryError
from rookery.core.tool import tool
from rookery.db.clock import now_ms
from rookery.db.tx import Tx
from rookery.domains.reputation.inputs import CheckReputation, PublishAttestation, Told, VerifyAgentReputation
from rookery.domains.reputation.remote import verify_remote
from rookery.domains.reputation.shown import shown_score, statement_of
from rookery.domains.reputation.store import DAY_MS, Reputation, Row
from rookery.identity.store import IdentityStore
from rookery.repute.events import ReputationEvent, add_events

VERIFY_S = 45.0
PUBLISH_S = 60.0
NO_LEDGER = "no ledger is set up: that takes the setting algorand_algod_url, and pip install 'rookery[algorand]'"


@tool(
    title="Check reputation", effect="write", action="reputation:read", tier="observe", group="Read", profiles="",
    default=True, bundles=("preset-analyst",), idempotent=True,
)  # fmt: skip
def check_reputation(ctx: Context, args: CheckReputation) -> Told:
    """Use it for an agent's reputation, 0-100. Returns it with up to 10 events."""
    agent = _agent(ctx.tx, ctx.actor, args.agent_id)
    reputation = Reputation(ctx.tx, ctx.actor.tenant)
    score, kept = reputation.recompute(agent.id)
    return Told(**shown_score(agent.name, score, kept, reputation.newest_events(agent.id)))


@tool(
    title="Publish attestation", effect="external", action="reputation:publish", tier="act", group="Write",
    profiles="", default=True, timeout_s=PUBLISH_S,
)  # fmt: skip
async def publish_attestation(ctx: Context, args: PublishAttestation) -> Told:
    """Use it to sign and publish your score. Returns hash and txid. No undo."""
    ctx.emit_status("Computing and signing the reputation")
    agent_id, entry, is_new, txid = await ctx.write(lambda tx: _attested(tx, ctx.actor, args.agent_id))
    told = {
        "agent_id": agent_id,
        "hash": entry.hash,
        "number": entry.number,
        "repeated": not is_new,
        "log": f"/attestations/{agent_id}/log.json",
    }
    ledger: NoteLedger | None = ctx.platform.facts.get("ledger")
    why = None if ledger is not None else NO_LEDGER
    unnoted = txid is None and ledger is not None
    ctx.emit_status("Writing a note to the ledger" if unnoted else "The attestation is in the log")
    if txid is None and ledger is not None:
        txid, why = await _noted(ctx, ledger, agent_id, entry)
    if is_new:
        ctx.publish("AttestationPublished", subject=agent_id, hash=entry.hash)
    score = await ctx.read(lambda tx: Reputation(tx, ctx.actor.tenant).kept(agent_id))
    assert score is not None
    standing = {"overall_score": score.overall_score, "trust_level": score.trust_level}
    chain = {"on_chain": True, "txid": txid} if txid is not None else {"on_chain": False, "why_not": why}
    return Told(**told, **standing, **chain)


async def _noted(ctx: Context, ledger: NoteLedger, agent_id: str, entry: Row) -> tuple[str | None, str | None]:
    """The transaction of the note, or why there is none: the local log has the attestation all the same."""
    note = NoteEntry(
        tenant=ctx.actor.tenant, owner=f"agent:{agent_id}", payload=reputation_note(agent_id, entry.hash)
    )  # fmt: skip
    try:
        txid = await ledger.put(note)
    except RookeryError as error:
        return None, f"{error.message}; {error.hint}" if error.hint else error.message
    await ctx.write(lambda tx: AttestationLog(tx, ctx.actor.tenant, agent_id).note(entry.number, txid))
    return txid, None


def _attested(tx: Tx, actor: Actor, named: str | None) -> tuple[str, Row, bool, str | None]:
    """The agent, the entry of its score in the log, whether that is new, and its transaction if it has one."""
    agent = _agent(tx, actor, named)
    if actor.kind != "human" and agent.id != actor.agent:
        raise PermissionDenied("an agent attests only for itself", hint="leave agent_id out", layer="principal")
    reputation, log = Reputation(tx, actor.tenant), AttestationLog(tx, actor.tenant, agent.id)
    score, _ = reputation.recompute(agent.id)
    entry, is_new = log.append(statement_of(score), unless_same_since_ms=now_ms(tx) - DAY_MS)
    reputation.note_attestation(agent.id, entry.hash)
    if is_new:
        published = ReputationEvent(
            tenant=actor.tenant,
            agent_id=agent.id,
            type="attestation_published",
            impact=0,
            about={"hash": entry.hash, "number": entry.number},
        )
        add_events(tx, [published])
    return agent.id, entry, is_new, log.txid(entry.number)


@tool(
    title="Verify agent reputation", effect="external", action="reputation:verify", tier="observe", group="Read",
    profiles="", default=True, timeout_s=VERIFY_S,
)  # fmt: skip
async def verify_agent_reputation(ctx: Context, args: VerifyAgentReputation) -> Told:
    """Use it before you trust others. Returns level, up to 10 attestations, or why not."""
    ctx.emit_status("Fetching what the agent attests")
    return Told(**await verify_remote(ctx, args.agent_url))


def _agent(tx: Tx, actor: Actor, named: str | None) -> sa.Row[object]:
    """The agent that is meant: by its id or name, or else the caller."""
    wanted = named or actor.agent
    if wanted is None:
        raise InvalidParams("agent_id: is needed from whoever is no agent", hint="list_agents shows them")
    return IdentityStore(tx, actor.tenant).agent(wanted)
