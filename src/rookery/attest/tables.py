"""The log of attestations, one chain for each agent, and the steps that build it."""

import sqlalchemy as sa

from rookery.db.migrate import Migration
from rookery.db.schema import append_only, metadata, text, whole

reputation_attestations = sa.Table(
    "reputation_attestations",
    metadata,
    text("tenant", primary_key=True),
    text("agent_id", primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    text("hash"),
    text("said"),
    text("envelope"),
    text("head"),
    text("public_key"),
    whole("created_ms"),
)
"""`number` counts an agent's attestations from 1. `said` is the hash of what is said apart from when. `head` is signed
with the entry and says that the log ends there."""
sa.Index("reputation_attestations_agent", reputation_attestations.c.agent_id)

attestation_notes = sa.Table(
    "attestation_notes",
    metadata,
    text("tenant", primary_key=True),
    text("agent_id", primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    text("txid"),
    whole("created_ms"),
)
"""Which attestations a ledger of the outside world has, and in which transaction."""

_OF = "tenant TEXT NOT NULL, agent_id TEXT NOT NULL, number BIGINT NOT NULL, "
MIGRATIONS = (
    Migration(
        1,
        "attestations",
        [
            f"CREATE TABLE reputation_attestations ({_OF}hash TEXT NOT NULL, said TEXT NOT NULL, "
            "envelope TEXT NOT NULL, head TEXT NOT NULL, public_key TEXT NOT NULL, created_ms BIGINT NOT NULL, "
            "PRIMARY KEY (tenant, agent_id, number))",
            "CREATE INDEX reputation_attestations_agent ON reputation_attestations (agent_id)",
            f"CREATE TABLE attestation_notes ({_OF}txid TEXT NOT NULL, created_ms BIGINT NOT NULL, "
            "PRIMARY KEY (tenant, agent_id, number))",
            append_only("reputation_attestations"),
            append_only("attestation_notes"),
        ],
    ),
)
